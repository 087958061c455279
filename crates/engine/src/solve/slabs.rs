//! The cut of a dense LU factor: slabs of columns of full height, each in tiles of rows and one of its pivots.

use outcore_dtype::DType;
use outcore_kernels::PivotBlock;
use outcore_store::FactorRecord;

use super::factorize::has_tiles;
use crate::expr::Expr;

/// Columns of a slab.
const WIDTH: u64 = 256;
/// Tiles of a slab along its rows at most, and rows of a tile at least.
const TILES: u64 = 16;
const HEIGHT: u64 = 1024;
/// Rows that are taken from the matrix at once.
const PART: u32 = 256;
/// The first bytes of the record.
const MARK: &[u8; 8] = b"dense LU";
/// Bytes in front of a tile of pivots: the largest sizes in the slab of the matrix and in that of U.
const SIZES_BYTES: usize = 16;

/// The cut of the factor of a matrix of so many rows. Rows and type alone decide, so that the bits are the same at every limit.
///
/// Tiles lie column by column. L has ones on its diagonal, which are not stored; each column of blocks of L has its rows as they
/// were when it was eliminated, so later exchanges have not moved them (D'Azevedo, Dongarra, The design and implementation of the
/// parallel out-of-core ScaLAPACK LU, QR, and Cholesky factorization routines, LAPACK Working Note 118 (1997)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabCut {
    rows: u64,
    width: u64,
    height: u64,
    dtype: DType,
}

impl SlabCut {
    /// The cut for a number of rows, which is not 0.
    pub(super) fn new(rows: u32, dtype: DType) -> SlabCut {
        let rows = u64::from(rows);
        let width = WIDTH.min(rows);
        let height = rows.div_ceil(TILES).max(HEIGHT).next_multiple_of(width);
        SlabCut {
            rows,
            width,
            height: height.min(rows.next_multiple_of(width)),
            dtype,
        }
    }

    /// The cut of a factor of so many rows.
    ///
    /// # Errors
    /// There is none of such rows or elements.
    pub fn of(rows: u64, dtype: DType) -> Result<SlabCut, String> {
        match u32::try_from(rows) {
            Ok(rows) if rows > 0 && matches!(dtype, DType::F64 | DType::C128) => Ok(SlabCut::new(rows, dtype)),
            _ => Err(format!("no dense LU factor has {rows} rows of {dtype}")),
        }
    }

    /// Whether tiles are as many and as long as those of the factor.
    pub(super) fn is_cut_of(&self, factor: &Expr) -> bool {
        has_tiles(factor, &self.lengths())
    }

    /// The cut of a factor in a file, whose tiles have so many bytes.
    ///
    /// # Errors
    /// The record is that of another kind of factor, or does not go with the tiles.
    pub fn restored(rows: u64, dtype: DType, sections: &[&[u8]], tiles: &[u64]) -> Result<SlabCut, String> {
        if !SlabCut::is_record(sections) {
            return Err("a factor of another kind than dense LU".into());
        }
        let cut = SlabCut::of(rows, dtype)?;
        // Rows of a file are not trusted with an allocation.
        let count = u64::from(cut.slabs()) * (u64::from(cut.tiles()) + 1);
        match count == tiles.len() as u64 && tiles == cut.lengths() {
            true => Ok(cut),
            false => Err("the tiles are not those of a dense LU factor".into()),
        }
    }

    /// Whether the record of a factor says that it is of this kind.
    pub fn is_record(sections: &[&[u8]]) -> bool {
        sections == [&MARK[..]]
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub(super) fn height(&self) -> u64 {
        self.height
    }

    pub(super) fn width(&self) -> u64 {
        self.width
    }

    pub(super) fn slabs(&self) -> u32 {
        self.rows.div_ceil(self.width) as u32
    }

    /// Tiles of a slab along its rows.
    pub(super) fn tiles(&self) -> u32 {
        self.rows.div_ceil(self.height) as u32
    }

    pub(super) fn columns(&self, slab: u32) -> std::ops::Range<u32> {
        let start = u64::from(slab) * self.width;
        start as u32..(start + self.width).min(self.rows) as u32
    }

    pub(super) fn rows_of(&self, tile: u32) -> std::ops::Range<u32> {
        let start = u64::from(tile) * self.height;
        start as u32..(start + self.height).min(self.rows) as u32
    }

    /// Parts of a whole tile, in which rows are taken from the matrix.
    fn parts(&self) -> u32 {
        (self.height as u32).div_ceil(PART)
    }

    /// Parts of all tiles of a slab.
    pub(super) fn all_parts(&self) -> u32 {
        let last = self.tiles() - 1;
        last * self.parts() + (self.rows_of(last).len() as u32).div_ceil(PART)
    }

    /// The tile of a part of a slab, and its number there.
    pub(super) fn part(&self, number: u32) -> [u32; 2] {
        [number / self.parts(), number % self.parts()]
    }

    pub(super) fn part_rows(&self, row: u32, part: u32) -> std::ops::Range<u32> {
        let tile = self.rows_of(row);
        let start = tile.start + part * PART;
        start..tile.end.min(start + PART)
    }

    /// The tile of a slab that has its block of pivots, as its number along the rows.
    pub(super) fn pivot_tile(&self, slab: u32) -> u32 {
        (u64::from(slab) * self.width / self.height) as u32
    }

    pub(super) fn block(&self, slab: u32) -> PivotBlock {
        let first = u64::from(slab) * self.width % self.height;
        PivotBlock {
            height: self.rows_of(self.pivot_tile(slab)).len(),
            first: first as usize,
            width: self.columns(slab).len(),
        }
    }

    /// The number of a tile of the factor.
    pub(super) fn tile(&self, row: u32, slab: u32) -> u64 {
        u64::from(slab) * (u64::from(self.tiles()) + 1) + u64::from(row)
    }

    /// The number of the tile with the pivots of a slab.
    pub(super) fn pivots(&self, slab: u32) -> u64 {
        self.tile(self.tiles(), slab)
    }

    /// Bytes of each tile.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let item = self.dtype.size();
        let of_slab = |slab: u32| {
            let width = self.columns(slab).len();
            let tiles = (0..self.tiles()).map(move |row| self.rows_of(row).len() * width * item);
            tiles.chain([SIZES_BYTES + width * (item + 4)])
        };
        (0..self.slabs()).flat_map(of_slab).map(|bytes| bytes as u64).collect()
    }

    /// Bytes of the tiles of a slab.
    pub(super) fn slab_bytes(&self) -> u64 {
        self.rows * self.width * self.dtype.size() as u64
    }
}

/// The record of a dense LU factor.
#[derive(Debug)]
pub(super) struct SlabRecord;

impl FactorRecord for SlabRecord {
    fn sections(&self) -> Vec<&[u8]> {
        vec![MARK]
    }
}

/// A tile of pivots: largest sizes, the diagonal of U, and of each row the one that it is exchanged with.
pub(super) struct SlabExchanges<'a> {
    pub sizes: [f64; 2],
    pub diagonal: &'a [u8],
    pub pivots: &'a [u32],
}

impl<'a> SlabExchanges<'a> {
    pub fn new(bytes: &'a [u8], width: usize, item: usize) -> SlabExchanges<'a> {
        let (sizes, rest) = bytes.split_at(SIZES_BYTES);
        let (diagonal, pivots) = rest.split_at(width * item);
        let sizes: &[f64] = bytemuck::cast_slice(sizes);
        SlabExchanges {
            sizes: [sizes[0], sizes[1]],
            diagonal,
            pivots: bytemuck::cast_slice(&pivots[..4 * width]),
        }
    }

    /// Row numbers counted from a first one.
    pub fn from(&self, first: u32) -> Vec<u32> {
        self.pivots.iter().map(|pivot| pivot - first).collect()
    }
}

/// As [`SlabExchanges`], while it is made.
pub(super) struct SlabExchangesMut<'a> {
    pub sizes: &'a mut [f64],
    pub diagonal: &'a mut [u8],
    pub pivots: &'a mut [u32],
}

impl<'a> SlabExchangesMut<'a> {
    pub fn new(bytes: &'a mut [u8], width: usize, item: usize) -> SlabExchangesMut<'a> {
        let (sizes, rest) = bytes.split_at_mut(SIZES_BYTES);
        let (diagonal, pivots) = rest.split_at_mut(width * item);
        SlabExchangesMut {
            sizes: bytemuck::cast_slice_mut(sizes),
            diagonal,
            pivots: bytemuck::cast_slice_mut(&mut pivots[..4 * width]),
        }
    }

    /// Takes a size of the matrix (0) or of U (1) where it is larger, or NaN.
    pub fn take(&mut self, of: usize, size: f64) {
        if size > self.sizes[of] || size.is_nan() {
            self.sizes[of] = size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_pivots_are_within_one_tile_and_tiles_cover_the_matrix() {
        for rows in [1, 2, 255, 256, 257, 1023, 1024, 1025, 5000, 40_000, 100_001] {
            let cut = SlabCut::new(rows, DType::F64);
            assert!(cut.tiles() <= 17);
            assert_eq!(cut.columns(cut.slabs() - 1).end, rows);
            assert_eq!(cut.rows_of(cut.tiles() - 1).end, rows);
            for slab in 0..cut.slabs() {
                let block = cut.block(slab);
                assert!(block.first + block.width <= block.height);
                let first = cut.rows_of(cut.pivot_tile(slab)).start as usize + block.first;
                assert_eq!(first, cut.columns(slab).start as usize);
            }
            let parts = (0..cut.all_parts()).map(|part| cut.part(part));
            let covered = parts.fold(0, |end, [row, part]| {
                let rows = cut.part_rows(row, part);
                assert!(rows.start == end && rows.end > end && rows.end <= cut.rows_of(row).end);
                rows.end
            });
            assert_eq!(covered, rows);
            let elements: u64 = cut.lengths().iter().map(|bytes| bytes / 8).sum();
            assert!(elements >= u64::from(rows).pow(2));
            assert_eq!(
                SlabCut::restored(cut.rows, DType::F64, &[MARK], &cut.lengths()),
                Ok(cut)
            );
            assert!(SlabCut::restored(cut.rows + 1, DType::F64, &[MARK], &cut.lengths()).is_err());
            assert!(SlabCut::restored(cut.rows, DType::F64, &[b"other"], &cut.lengths()).is_err());
        }
    }
}
