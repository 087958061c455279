//! Entries of stored tiles, row by row.

use outcore_coding::tiles::{listed_tiles, Rows, TileRow, Values};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_kernels::cast_kernel;
use outcore_store::Io;

use super::entries::TileBytes;
use super::SparseMatrix;
use crate::EngineError;

/// The columns of tiles in which a tile row has entries, and how many.
pub(crate) type Listed = Vec<(u32, u32)>;

impl SparseMatrix {
    /// The entries of a tile, tile row by tile row and in each row by row, with values of a type, or without any.
    pub(crate) fn rows_of_tile(
        &self,
        tile: usize,
        dtype: Option<DType>,
        io: &Io,
    ) -> Result<Vec<(u64, Rows)>, EngineError> {
        let rows = self.decode(tile, &self.read_tile(tile, io)?, dtype, &|_| true)?;
        Ok(rows.into_iter().map(|(number, rows, _)| (number, rows)).collect())
    }

    /// As `rows_of_tile`, of a tile that was read and the tile rows in it that are wanted, with the columns of tiles they have.
    pub(crate) fn decode(
        &self,
        tile: usize,
        (frame, offset): &TileBytes,
        dtype: Option<DType>,
        is_wanted: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(u64, Rows, Listed)>, EngineError> {
        let matrix = self.file.matrix();
        let (side, item) = (u64::from(matrix.side), matrix.dtype.map_or(0, |dtype| dtype.size()));
        let malformed = |Malformed(what): Malformed| EngineError::Store(self.file.malformed(what));
        let mut tile_rows = vec![];
        for (record, place) in self.file.tile_rows(tile) {
            if !is_wanted(record.number) {
                continue;
            }
            let bytes = &frame[*offset..][place];
            let row = TileRow::new(bytes, item).map_err(malformed)?;
            let height = side.min(matrix.rows - record.number * side) as usize;
            let entries = row.entries() as usize;
            let size = dtype.map_or(0, |dtype| dtype.size());
            let mut values = Values::zeroed(entries * size);
            match (matrix.dtype, dtype) {
                (_, None) => {}
                (Some(from), Some(to)) => cast_kernel(from, to)(row.values(), values.bytes_mut()),
                (None, Some(to)) => cast_kernel(DType::Bool, to)(&vec![1; entries], values.bytes_mut()),
            }
            let rows = Rows::new(&row, side, height, values.bytes(), size).map_err(malformed)?;
            tile_rows.push((record.number, rows, listed_tiles(bytes).map_err(malformed)?));
        }
        Ok(tile_rows)
    }
}
