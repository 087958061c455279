//! Fill-reducing orderings of symmetric sparse matrices: multilevel nested dissection and approximate minimum degree.
//!
//! Start with [`dissect`] and [`min_degree`]. Both take at most what [`dissect_bytes`] and [`min_degree_bytes`] say,
//! ask the caller of an [`OrderingWatch`] whether to stop, and give one order for a graph, whatever the threads.
//!
//! `reduction` takes out dense rows and merges vertices that are alike; `degree` is minimum degree on a quotient graph;
//! `dissection` finds separators on coarser and coarser graphs, and hands its leaves to `degree`.
//!
//! **Invariant.** No global state: no signal handler, no shared random numbers, no thread that outlives its call.
#![forbid(unsafe_code)]

mod bytes;
mod degree;
mod dissection;
mod graph;
mod random;
mod reduction;
mod team;
mod watch;

pub use bytes::{dissect_bytes, min_degree_bytes};
pub use degree::min_degree;
pub use dissection::dissect;
pub use graph::SymmetricGraph;
pub use watch::{OrderingWatch, Stopped};
