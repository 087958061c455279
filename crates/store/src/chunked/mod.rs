//! Arrays of chunks, wherever these lie: each a file of its own, or all of them in one, one after the other.
//!
//! Uses `array` and the rooms below. Start with `manifest.rs`, which says what a format tells of its chunks; `units.rs` finds what
//! a region needs of each file, `source.rs` reads it, `chain.rs` decodes it,
//! and `encoder.rs` encodes what is written.

pub(crate) mod blocks;
pub(crate) mod casting;
pub(crate) mod chain;
mod contexts;
pub(crate) mod differences;
pub(crate) mod encoder;
mod filters;
pub(crate) mod listed;
mod lzw;
pub(crate) mod manifest;
pub(crate) mod one_file;
pub(crate) mod pages;
pub(crate) mod scaling;
pub(crate) mod several_files;
mod shuffle;
pub(crate) mod source;
mod units;
