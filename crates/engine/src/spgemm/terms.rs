//! How many terms the tile rows of a sparse product have: no entries are more, so memory for as many is enough.

use std::collections::BTreeMap;

use outcore_coding::tiles::ENTRIES_MAX;
use outcore_store::Io;

use super::meeting::Meeting;
use super::operands::SparseProduct;
use crate::sparse::SparseMatrix;
use crate::EngineError;

/// Bytes of the length of a row.
const LENGTH_BYTES: u64 = 4;

/// The entries in each row of a matrix, or the most in a row of each tile row where lengths of all rows take too much.
struct RowLengths {
    side: u64,
    of_tile_rows: BTreeMap<u64, Vec<u32>>,
}

impl RowLengths {
    fn of(
        matrix: &SparseMatrix,
        memory: u64,
        io: &Io,
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<RowLengths, EngineError> {
        let (shape, side) = (matrix.file.matrix(), u64::from(matrix.file.matrix().side));
        let fit = shape.rows.saturating_mul(LENGTH_BYTES) <= memory;
        let mut of_tile_rows = BTreeMap::new();
        for tile in 0..matrix.file.tiles() {
            watch()?;
            for (number, rows) in matrix.rows_of_tile(tile, None, io)? {
                let height = side.min(shape.rows - number * side) as usize;
                let lengths = (0..height).map(|row| rows.place(row).len() as u32);
                let kept = match fit {
                    true => lengths.collect(),
                    false => vec![lengths.max().unwrap_or(0)],
                };
                of_tile_rows.insert(number, kept);
            }
        }
        Ok(RowLengths { side, of_tile_rows })
    }

    fn row(&self, row: u64) -> u64 {
        let lengths = self.of_tile_rows.get(&(row / self.side));
        lengths.map_or(0, |lengths| {
            u64::from(lengths[((row % self.side) as usize).min(lengths.len() - 1)])
        })
    }
}

/// The most entries that a tile row of the product can have, of those that begin with a tile of the first matrix. Reads the
/// second matrix, and the first from there on.
pub(super) fn most_entries(
    what: &SparseProduct<'_>,
    meeting: &Meeting<'_>,
    from: usize,
    (memory, io): (u64, &Io),
    watch: &mut dyn FnMut() -> Result<(), EngineError>,
) -> Result<u64, EngineError> {
    let lengths = RowLengths::of(what.second, memory, io, watch)?;
    let mut most = 0;
    for tile in from..what.tiles.end {
        watch()?;
        for (number, rows) in what.first.rows_of_tile(tile, None, io)? {
            let terms: u128 = rows.columns.iter().map(|column| u128::from(lengths.row(*column))).sum();
            most = most.max(terms.min(meeting.places(number)));
        }
    }
    Ok(most.min(ENTRIES_MAX as u128) as u64)
}
