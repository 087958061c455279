//! Fill-reducing orderings of symmetric sparse matrices, multilevel nested dissection and approximate minimum degree,
//! and matchings of large entries.
//!
//! Start with [`dissect`] and [`min_degree`], and with [`match_entries`] and [`symmetric_matching`]. All take at most
//! the bytes that [`dissect_bytes`] and its like say, ask the caller of an [`OrderingWatch`] whether to stop, and give
//! one result, whatever the threads.
//!
//! `reduction` takes out dense rows and merges vertices that are alike; `degree` is minimum degree on a quotient graph;
//! `dissection` finds separators on coarser and coarser graphs, and hands its leaves to `degree`;
//! `matching` pairs rows and columns, and compresses graphs by pairs.
//!
//! **Invariant.** No global state: no signal handler, no shared random numbers, no thread that outlives its call.
#![forbid(unsafe_code)]

mod bytes;
mod degree;
mod dissection;
mod graph;
mod matching;
mod random;
mod reduction;
mod team;
mod watch;

pub use bytes::{compress_bytes, dissect_bytes, matching_bytes, min_degree_bytes, symmetric_matching_bytes};
pub use degree::min_degree;
pub use dissection::dissect;
pub use graph::SymmetricGraph;
pub use matching::{
    compress, match_entries, symmetric_matching, Matching, PairedGraph, SparseColumns, SymmetricMatching,
};
pub use watch::{OrderingWatch, Stopped};
