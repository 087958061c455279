//! Graph files (`.ocg`): lists of neighbours by vertex, the index of them, and weights beside.
//!
//! ```text
//! page 0      OCGRAPHS, version, flags, vertices, edges, type of the weights, what lies where, checksum
//! per direction (out, then in where edges have one):
//!   weights   one for each neighbour, in the order of the lists           from a page on
//!   lists     one behind the other, in the order of the vertices           from a page on
//!   index     a byte for the length of each list; (u32, u64) for large ones
//!   degrees   the same for the number of neighbours
//!   checksums CRC-32C of each page of weights, then of each page of lists
//! ```
//!
//! Numbers are little-endian. The coding of a list is that of `outcore-coding`. Lists and weights are read in whole
//! pages, each of which is held against its checksum.

mod file;
mod header;
mod writer;

pub use file::{Caching, Direction, GraphFile, Part, PlacedRun, Section};
pub use header::{parse_graph, GraphShape};
pub use writer::GraphWriter;
