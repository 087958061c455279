//! Entries of some rows of a stored matrix, from tiles that a task has in memory.

use std::ops::Range;
use std::sync::Arc;

use outcore_store::SparseFile;

use super::formula::RowPlace;
use super::opened::{fault, tiles_of};
use super::SparseMatrix;
use crate::EngineError;

/// No tile.
const NONE: u32 = u32::MAX;

/// The rows of a stored matrix, and the tiles that have them.
#[derive(Clone, Debug)]
pub struct RowEntries {
    file: Arc<SparseFile>,
    /// The tile of each tile row.
    tiles: Arc<[u32]>,
}

impl RowEntries {
    /// # Errors
    /// A matrix whose entries a formula makes.
    pub fn new(matrix: &SparseMatrix) -> Result<RowEntries, EngineError> {
        if matrix.formula.is_some() {
            return Err(EngineError::Internal(
                "rows are read of a matrix that is not stored".into(),
            ));
        }
        let shape = matrix.file.matrix();
        let mut tiles = vec![NONE; shape.rows.div_ceil(u64::from(shape.side)) as usize];
        for tile in 0..matrix.file.tiles() {
            for (record, _) in matrix.file.tile_rows(tile) {
                tiles[record.number as usize] = tile as u32;
            }
        }
        Ok(RowEntries {
            file: matrix.file.clone(),
            tiles: tiles.into(),
        })
    }

    /// The tiles that have entries of some rows, ascending.
    pub fn tiles(&self, rows: &Range<u32>) -> impl Iterator<Item = u64> + '_ {
        let side = self.file.matrix().side;
        let numbers = match rows.is_empty() {
            true => 0..0,
            false => (rows.start / side) as usize..((rows.end - 1) / side) as usize + 1,
        };
        let mut before = NONE;
        self.tiles[numbers].iter().filter_map(move |&tile| {
            let is_new = tile != NONE && tile != before;
            before = tile;
            is_new.then_some(u64::from(tile))
        })
    }

    /// Calls `each` with row, column and the bytes of the value of each entry of some rows, whose tiles are `reads`; entries
    /// outside of `columns` may be left out.
    ///
    /// # Errors
    /// Bytes that are not what was written.
    pub fn for_each(
        &self,
        rows: &Range<u32>,
        columns: Range<u64>,
        reads: &[&[u8]],
        mut each: impl FnMut(u32, u64, &[u8]),
    ) -> Result<(), EngineError> {
        let matrix = self.file.matrix();
        let (side, item) = (u64::from(matrix.side), matrix.dtype.map_or(0, |dtype| dtype.size()));
        let is_wanted = |block: u32| {
            let first = u64::from(block) * side;
            first < columns.end && first + side > columns.start
        };
        for (tile, bytes) in self.tiles(rows).zip(reads) {
            for (record, place) in self.file.tile_rows(tile as usize) {
                let first = record.number * side;
                if first >= u64::from(rows.end) || first + side <= u64::from(rows.start) {
                    continue;
                }
                let height = RowPlace::of(&self.file, record.number).height as usize;
                for tile in tiles_of(&self.file, record, &bytes[place], is_wanted)? {
                    let start = u64::from(tile.block) * side;
                    let width = side.min(matrix.columns - start) as usize;
                    let mut at = 0;
                    let one = |row: u16, column: u16| {
                        let row = (first + u64::from(row)) as u32;
                        if rows.contains(&row) {
                            each(row, start + u64::from(column), &tile.values[at..at + item]);
                        }
                        at += item;
                    };
                    let malformed = |what| fault(&self.file, record.number, what);
                    tile.for_each(height, width, one).map_err(malformed)?;
                }
            }
        }
        Ok(())
    }
}
