//! The most that a tile row of a result can take.

use outcore_coding::tiles::{segments_bytes_most, HEAD_BYTES, LISTED_BYTES};
use outcore_store::SparseShape;

/// Bytes of a value.
pub(super) fn item_of(shape: &SparseShape) -> u64 {
    shape.dtype.map_or(0, |dtype| dtype.size() as u64)
}

/// Tiles of a tile row of so many entries.
pub(super) fn tiles_most(shape: &SparseShape, entries: u64) -> u64 {
    entries.min(shape.columns.div_ceil(u64::from(shape.side)))
}

/// Bytes of a tile row of so many entries.
pub(super) fn row_bytes(shape: &SparseShape, entries: u64) -> u64 {
    row_bytes_in(tiles_most(shape, entries), entries, item_of(shape))
}

/// Bytes of a tile row of so many entries in so many tiles, with values of `item` bytes.
pub(super) fn row_bytes_in(tiles: u64, entries: u64, item: u64) -> u64 {
    let head = HEAD_BYTES as u64 + tiles * LISTED_BYTES as u64;
    let places = head.saturating_add(segments_bytes_most(tiles, entries));
    let values = entries.saturating_mul(item).next_multiple_of(8);
    places.next_multiple_of(8).saturating_add(values)
}
