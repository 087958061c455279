//! Element-wise programs over strips of elements that stay in the CPU's first cache.
//!
//! Uses `expr`. Start with `compile.rs`, which makes a program of a chain of nodes; `run.rs` runs it.

mod buffers;
mod compile;
mod run;

pub use buffers::Buffers;
pub use compile::{compile, fuse, Fused, Link, REGISTER_BYTES, STRIP};
pub use run::{run, FusedInput};
