//! Files of factors of sparse matrices (`.ocf`): tiles of fronts one behind the other, then how they make a factor.
//!
//! Where a tile is follows from the room of those before it: each begins on a page. Room that a tile does not take is a hole,
//! and holes take no disk. Little-endian:
//!
//! ```text
//! 0     "OCFACTOR"
//! 8     u32  version: 1, or 2 where tiles have room for more bytes than they take
//! 12    u32  words of the record's sections: how many sections it has
//! 16    u64  rows of the matrix
//! 24    u64  tiles
//! 32    u64  where the directory begins: behind the last tile, on a page
//! 40    u64  where the record begins: behind the directory
//! 48    [16] name of the type of the elements, padded with 0: "float64", …
//! 64    u32  CRC-32C of the directory
//! 68    u32  CRC-32C of the record
//! 72    u64  bytes of the record
//! 80    u32  CRC-32C of the 80 bytes before
//! 4096  the tiles, each from a page on
//!       the directory, for each tile: u64 bytes, u32 CRC-32C of them, u32 pages that they have room in (version 1: 0)
//!       the record: for each section u64 bytes, then the sections, each padded with 0 to a multiple of 8 bytes
//! ```

mod header;
mod output;
mod sink;
mod source;

pub use header::parse_factor;
pub use output::{FactorOutput, FactorRecord};
pub(crate) use sink::FactorPlan;
pub use source::{open_factor, FactorFile};
