//! Places of entries as numbers.

use outcore_store::SparseShape;

/// How the place of an entry is one number, by which entries are sorted: the bits of the tile row, of the column of tiles, of
/// the row in the tile and of the column in the tile, from the highest. Where 64 bits are too few, the tile row is a number
/// of its own.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Bits of a row or a column within its tile.
    pub(super) side: u32,
    /// Bits of a column of tiles.
    pub(super) block: u32,
    pub(super) is_wide: bool,
}

impl Places {
    /// Nothing where a column and a row of a tile take more than 64 bits.
    pub fn new(shape: &SparseShape) -> Option<Places> {
        let side = shape.side.checked_ilog2()?;
        let bits = |count: u64| u64::BITS - count.saturating_sub(1).leading_zeros();
        let tiles = |length: u64| bits(length.div_ceil(u64::from(shape.side)));
        let block = tiles(shape.columns);
        let bits = block + 2 * side;
        (bits <= u64::BITS).then_some(Places {
            side,
            block,
            is_wide: tiles(shape.rows) + bits > u64::BITS,
        })
    }

    /// Keys by which an entry is sorted.
    pub(super) fn keys(self) -> usize {
        1 + usize::from(self.is_wide)
    }

    /// What the places of a tile begin with.
    pub(super) fn tile(self, place: u64) -> u64 {
        place.checked_shr(2 * self.side).unwrap_or(0)
    }

    pub(super) fn row_and_block(self, tile: u64) -> (u64, u32) {
        let block = tile & ((1 << self.block) - 1);
        (tile.checked_shr(self.block).unwrap_or(0), block as u32)
    }

    /// Row · 2¹⁶ + column within the tile.
    pub(super) fn inside(self, place: u64) -> u32 {
        let mask = (1 << self.side) - 1;
        ((place >> self.side & mask) << 16 | place & mask) as u32
    }

    /// Row and column in the matrix, of a place in a tile.
    pub(super) fn of_matrix(self, tile: TileNumber, place: u64, side: u32) -> [u64; 2] {
        let (inside, side) = (self.inside(place), u64::from(side));
        [
            tile.0.saturating_mul(side).saturating_add(u64::from(inside >> 16)),
            u64::from(tile.1) * side + u64::from(inside & 0xffff),
        ]
    }
}

/// Its tile row and column of tiles.
pub(super) type TileNumber = (u64, u32);
