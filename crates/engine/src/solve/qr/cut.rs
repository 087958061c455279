//! The cut of a dense QR factor: square tiles of the matrix column by column, and with each column its triangle and those of its
//! reflectors.

use std::ops::Range;

use outcore_dtype::DType;
use outcore_kernels::Reflectors;
use outcore_store::FactorRecord;

use crate::expr::Expr;
use crate::solve::factorize::has_tiles;
use crate::task::{Parameters, Recipe};
use crate::EngineError;

/// Rows and columns of a tile.
const SIDE: u64 = 512;
/// Rows that are taken from the matrix at once.
const PART: u64 = 256;
/// The first bytes of the record.
const MARK: &[u8; 8] = b"dense QR";

/// The cut of the factor of a matrix of so many rows and columns. They and the type alone decide, so that the bits are the same
/// at every limit.
///
/// A column of tiles has R above the diagonal and reflectors from it on down. Behind them are the diagonal tile of R and, for each
/// tile of reflectors, their triangles, where the column has pivots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QrCut {
    rows: u64,
    columns: u64,
    dtype: DType,
}

impl QrCut {
    /// The cut of a factor of so many rows and columns.
    ///
    /// # Errors
    /// There is none of such rows, columns or elements.
    pub fn of(rows: u64, columns: u64, dtype: DType) -> Result<QrCut, String> {
        let cut = QrCut { rows, columns, dtype };
        let is_known = matches!(dtype, DType::F64 | DType::C128);
        let is_long = [rows, columns]
            .iter()
            .all(|&side| side > 0 && side <= u64::from(u32::MAX));
        // Tasks have numbers of 32 bits: one for each tile of a column and column of tiles behind it.
        if is_known && is_long && cut.tasks() <= u128::from(u32::MAX) {
            return Ok(cut);
        }
        Err(format!(
            "no dense QR factor has {rows} rows and {columns} columns of {dtype}"
        ))
    }

    fn tasks(&self) -> u128 {
        let [down, across, parts] =
            [self.rows.div_ceil(SIDE), self.columns.div_ceil(SIDE), self.all_parts()].map(u128::from);
        parts * across + down * across * down.min(across)
    }

    /// The cut of a factor in a file, whose tiles have so many bytes.
    ///
    /// # Errors
    /// The record is that of another kind of factor, or does not go with the tiles.
    pub fn restored(rows: u64, dtype: DType, sections: &[&[u8]], tiles: &[u64]) -> Result<QrCut, String> {
        let columns = match sections {
            [_, columns] if QrCut::is_record(sections) => <[u8; 8]>::try_from(*columns).ok(),
            _ => None,
        };
        let columns = columns.ok_or("a factor of another kind than dense QR")?;
        let cut = QrCut::of(rows, u64::from_le_bytes(columns), dtype)?;
        match cut.count() == tiles.len() as u64 && tiles == cut.lengths() {
            true => Ok(cut),
            false => Err("the tiles are not those of a dense QR factor".into()),
        }
    }

    /// Whether the record of a factor says that it is of this kind.
    pub fn is_record(sections: &[&[u8]]) -> bool {
        sections.first() == Some(&&MARK[..])
    }

    /// Whether tiles are as many and as long as those of the factor.
    pub(super) fn is_cut_of(&self, factor: &Expr) -> bool {
        has_tiles(factor, &self.lengths())
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn columns(&self) -> u64 {
        self.columns
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The smaller side.
    pub fn short(&self) -> u64 {
        self.rows.min(self.columns)
    }

    pub(super) fn side() -> u64 {
        SIDE
    }

    /// Tiles along rows and columns.
    pub(super) fn counts(&self) -> [u32; 2] {
        [self.rows.div_ceil(SIDE) as u32, self.columns.div_ceil(SIDE) as u32]
    }

    /// Columns of tiles that have pivots.
    pub(super) fn pivots(&self) -> u32 {
        let [down, across] = self.counts();
        down.min(across)
    }

    pub(super) fn rows_of(&self, tile: u32) -> Range<u32> {
        interval(tile, self.rows)
    }

    pub(super) fn columns_of(&self, tile: u32) -> Range<u32> {
        interval(tile, self.columns)
    }

    /// Parts of all tiles of a column.
    pub(super) fn all_parts(&self) -> u64 {
        self.rows.div_ceil(PART)
    }

    /// The tile of a part of a column, and its rows.
    pub(super) fn part(&self, number: u32) -> (u32, Range<u32>) {
        let start = u64::from(number) * PART;
        let end = (start + PART).min(self.rows);
        ((start / SIDE) as u32, start as u32..end as u32)
    }

    /// Reflectors of a column in its tile of a row.
    fn reflectors(&self, row: u32, column: u32) -> usize {
        let width = self.columns_of(column).len();
        if row == column {
            width.min(self.rows_of(row).len())
        } else {
            width
        }
    }

    /// Rows and columns of a tile.
    pub(super) fn sizes(&self, row: u32, column: u32) -> [usize; 2] {
        [self.rows_of(row).len(), self.columns_of(column).len()]
    }

    /// The number of the first tile of a column.
    fn first(&self, column: u32) -> u64 {
        let [down, _] = self.counts().map(u64::from);
        let pivots = u64::from(column.min(self.pivots()));
        // A triangle, and one for each tile from the diagonal on.
        u64::from(column) * down + pivots * (down + 1) - pivots * pivots.saturating_sub(1) / 2
    }

    /// The number of a tile of R or of reflectors.
    pub(super) fn tile(&self, row: u32, column: u32) -> u64 {
        self.first(column) + u64::from(row)
    }

    /// The number of a diagonal tile of R.
    pub(super) fn diagonal(&self, column: u32) -> u64 {
        self.first(column) + u64::from(self.counts()[0])
    }

    /// The number of the tile with the triangles of the reflectors of a tile.
    pub(super) fn triangles(&self, row: u32, column: u32) -> u64 {
        self.diagonal(column) + 1 + u64::from(row - column)
    }

    fn count(&self) -> u64 {
        self.first(self.counts()[1])
    }

    /// Bytes of each tile.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let [down, across] = self.counts();
        let mut lengths = Vec::with_capacity(self.count() as usize);
        for column in 0..across {
            let width = self.columns_of(column).len();
            lengths.extend((0..down).map(|row| self.rows_of(row).len() * width));
            if column < self.pivots() {
                lengths.push(self.reflectors(column, column) * width);
                lengths.extend((column..down).map(|row| {
                    let count = self.reflectors(row, column);
                    Reflectors::triangle_rows(count) * count
                }));
            }
        }
        let item = self.dtype.size() as u64;
        lengths.into_iter().map(|length| length as u64 * item).collect()
    }

    /// The parameters that a factor is known by to another process.
    pub(super) fn recipe(&self, builder: &'static str) -> Recipe {
        let is_complex = self.dtype == DType::C128;
        Recipe::new(builder).word(self.rows).word(self.columns).flag(is_complex)
    }

    /// As [`QrCut::recipe`] says.
    ///
    /// # Errors
    /// There is no such factor.
    pub fn described_by(with: &mut Parameters<'_>) -> Result<QrCut, EngineError> {
        let (rows, columns, is_complex) = (with.word()?, with.word()?, with.flag()?);
        let dtype = if is_complex { DType::C128 } else { DType::F64 };
        QrCut::of(rows, columns, dtype).map_err(EngineError::Argument)
    }

    /// Bytes of a whole tile.
    pub(super) fn tile_bytes(&self) -> u64 {
        SIDE * SIDE * self.dtype.size() as u64
    }
}

fn interval(tile: u32, length: u64) -> Range<u32> {
    let start = u64::from(tile) * SIDE;
    start as u32..(start + SIDE).min(length) as u32
}

/// The record of a dense QR factor.
#[derive(Debug)]
pub(super) struct QrRecord {
    columns: [u8; 8],
}

impl QrRecord {
    pub fn new(cut: &QrCut) -> QrRecord {
        QrRecord {
            columns: cut.columns.to_le_bytes(),
        }
    }
}

impl FactorRecord for QrRecord {
    fn sections(&self) -> Vec<&[u8]> {
        vec![MARK, &self.columns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_have_numbers_of_their_own_and_cover_the_matrix() {
        for (rows, columns) in [
            (1, 1),
            (512, 512),
            (513, 2000),
            (3000, 700),
            (2600, 2600),
            (40_000, 20_000),
        ] {
            let cut = QrCut::of(rows, columns, DType::F64).unwrap();
            let lengths = cut.lengths();
            let mut seen = vec![false; lengths.len()];
            let mut see = |number: u64, elements: usize| {
                assert!(!std::mem::replace(&mut seen[number as usize], true));
                assert_eq!(lengths[number as usize], elements as u64 * 8);
            };
            let [down, across] = cut.counts();
            let mut covered = 0;
            for column in 0..across {
                for row in 0..down {
                    let [height, width] = cut.sizes(row, column);
                    see(cut.tile(row, column), height * width);
                    covered += height * width;
                }
                if column < cut.pivots() {
                    let [height, width] = cut.sizes(column, column);
                    see(cut.diagonal(column), height.min(width) * width);
                    for row in column..down {
                        let count = cut.reflectors(row, column);
                        see(cut.triangles(row, column), Reflectors::triangle_rows(count) * count);
                    }
                }
            }
            assert!(seen.into_iter().all(|seen| seen));
            assert_eq!(covered as u64, rows * columns);
            let ends = (0..cut.all_parts() as u32).fold(0, |end, number| {
                let (tile, part) = cut.part(number);
                let of = cut.rows_of(tile);
                assert!(part.start == end && part.start >= of.start && part.end <= of.end);
                part.end
            });
            assert_eq!(u64::from(ends), rows);
            let record = QrRecord::new(&cut);
            assert_eq!(QrCut::restored(rows, DType::F64, &record.sections(), &lengths), Ok(cut));
            assert!(QrCut::restored(rows + 512, DType::F64, &record.sections(), &lengths).is_err());
            assert!(QrCut::restored(rows, DType::F64, &record.sections(), &lengths[1..]).is_err());
            assert!(QrCut::restored(rows, DType::F64, &[MARK], &lengths).is_err());
        }
        assert!(QrCut::of(u64::from(u32::MAX), u64::from(u32::MAX), DType::F64).is_err());
        assert!(QrCut::of(0, 3, DType::F64).is_err());
    }
}
