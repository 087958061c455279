//! Fill-reducing orderings of symmetric sparse matrices: multilevel nested dissection and approximate minimum degree.
#![forbid(unsafe_code)]

mod bytes;
mod degree;
mod dissection;
mod graph;
mod random;
mod reduction;
mod watch;

pub use bytes::{dissect_bytes, min_degree_bytes};
pub use degree::min_degree;
pub use dissection::dissect;
pub use graph::Graph;
pub use watch::{Stopped, Watch};
