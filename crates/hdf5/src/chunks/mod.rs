//! Where the chunks of a dataset are: all indices of the format.
//!
//! Uses `base`, `trees`, `messages` and `objects`. Start with `walk.rs`; `fixed.rs` and `extensible.rs` are the two
//! arrays.

mod elements;
mod extensible;
mod fixed;
mod grid;
mod walk;

pub use grid::ChunkPlace;
pub use walk::chunks;
