//! The fixed sizes of a tile row's parts.

/// The largest side of a tile.
pub const SIDE_MAX: usize = 1 << 15;
/// Bytes before the directory of a tile row.
pub const HEAD_BYTES: usize = 24;
/// Bytes of a tile in the directory.
pub const LISTED_BYTES: usize = 16;
/// Bytes of a segment before its rows.
pub const SEGMENT_BYTES: usize = 6;
