//! Factorizations: of matrices that fit the memory whole, one after the other, and of tall ones tile by tile.
//!
//! Uses `ops` and the rooms below. Start with `batch.rs`.

mod batch;
mod tall;

pub use batch::factorize;
pub use tall::is_tall;
