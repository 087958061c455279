//! Tile rows of sparse matrices: their bytes, and how they are made and read.
//!
//! A sparse matrix is cut into square tiles of at most 32 Ki rows and columns, which are stored tile row by tile row
//! (FlashX, Zheng 2017, section 4.3.2). Within a tile, rows that have as many entries as each other stand together in a
//! *segment*: a product then goes through its rows without a branch that cannot be foretold, and a row needs no count.
//! The bytes of a tile row, little-endian:
//!
//! ```text
//! 0    u32  tiles that have entries
//! 4    u32  0
//! 8    u64  entries
//! 16   u64  where the values begin, a multiple of 8, from the beginning of the tile row; 0 where there are none
//! 24   for each tile, by column: u32 number of its column of tiles, u32 entries, u32 bytes, u32 segments
//!      the tiles' segments, one tile after the other
//!      the values, in the order of the entries
//!
//! segment
//! 0    u8   entries of each row; 0 where every row has its own count
//! 1    u8   bytes of a row number: 1 (distance from the row before) or 2
//! 2    u16  rows, less one
//! 4    u16  the first row
//! 6    the other rows, ascending; one byte more where their bytes would be odd in number
//!      [u16 entries of each row, less one]
//!      u16 columns, ascending in each row
//! ```

// Lanes are indexed because several arrays of them advance together; the compiler vectorizes that form.
#![allow(clippy::needless_range_loop)]

mod compressed;
mod encode;
mod growing;
mod layout;
mod rows;
mod tile;

pub use compressed::{encode_rows, rows_bytes};
pub use encode::{put_tiles, segments_bytes_most, TileEncoder, TileLength, TileRowEncoder, ENTRIES_MAX};
pub use growing::{GrowingRow, RowLimits};
pub use layout::{HEAD_BYTES, LISTED_BYTES, SIDE_MAX};
pub use rows::{Rows, Values};
pub use tile::{check_tile_row, listed_tiles, RowNumbers, RowWalk, Segment, Tile, TileRow};
