//! Files of sparse matrices (`.ocs`): tile rows one behind the other, and where each of them is.
//!
//! A tile row is coded by `outcore_coding::tiles`. Tile rows without entries are not there, so the directory grows with the entries and never with the rows. Little-endian:
//!
//! ```text
//! 0     "OCSPARSE"
//! 8     u32  version, 1
//! 12    u32  rows and columns of a tile, a power of two
//! 16    u64  rows of the matrix
//! 24    u64  columns
//! 32    u64  entries
//! 40    u64  tile rows that are there
//! 48    u64  where the directory begins
//! 56    [16] name of the type of the values, padded with 0: "float64", …; "pattern" where there are none
//! 72    u32  CRC-32C of the directory
//! 76    u32  CRC-32C of the 76 bytes before
//! 4096  the tile rows, each from a multiple of 64 bytes
//!       the directory, from a multiple of 64 bytes, for each tile row, ascending:
//!         u64 number, u64 first byte, u64 bytes, u64 entries, u32 CRC-32C of its bytes,
//!         u32 CRC-32C of its head, up to the last of its list of tiles; 0 where it was not computed
//! ```

mod compressed;
mod header;
mod output;
mod pending;
mod sink;
mod source;
mod writer;

pub use compressed::CompressedRows;
pub use header::{parse_sparse, SparseShape, TileRowRecord};
pub use output::{RowBound, SparseOutput};
pub use pending::{place_pending, PendingTile, FIRST_OFFSET};
pub(crate) use sink::SparsePlan;
pub use source::{open_rows, open_sparse, SparseFile};
pub use writer::SparseWriter;
