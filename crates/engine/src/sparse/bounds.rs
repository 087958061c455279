//! The most that a tile row of a result can take.

use outcore_coding::tiles::RowLimits;
use outcore_store::SparseShape;

/// A tile row of so many entries.
pub(super) fn limits_of(shape: &SparseShape, entries: u64) -> RowLimits {
    RowLimits {
        tiles: entries.min(shape.columns.div_ceil(u64::from(shape.side))),
        entries,
        item: shape.dtype.map_or(0, |dtype| dtype.size()),
    }
}
