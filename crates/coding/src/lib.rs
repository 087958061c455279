//! Tiles of sparse matrices and lists of graphs as bytes.
//!
//! Pure functions on slices, which any bytes may be given to: no file, no thread, no allocation that the bytes ask for.
//! `tiles/` is what `.ocs` files hold, `lists/` what `.ocg` files hold; neither uses the other, nor any crate of ours.
//! Start with the byte layouts at the head of each.
//!
//! **Invariant.** Unsafe code lives in `lists/fence.rs` alone: vectors for processors that have them.
#![deny(unsafe_code)]

pub mod lists;
mod malformed;
pub mod tiles;

pub use malformed::Malformed;
