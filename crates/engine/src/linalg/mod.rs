//! Factorizations: of matrices that fit the memory whole, one after the other, and of tall ones tile by tile.
//!
//! Uses `ops` and the rooms below. Start with `tall.rs`, whose tasks name their tiles; `batch.rs` has one task a matrix.

mod batch;
mod tall;

pub use batch::factorize;
pub use tall::is_tall;
