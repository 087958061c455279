//! The entries of a stored sparse matrix, tile by tile, for what is no product.

use outcore_coding::Malformed;
use outcore_store::{AlignedBuffer, Io, Region, Source, PAGE};

use super::formula::RowPlace;
use super::opened::{made_tiles, tiles_of};
use super::SparseMatrix;
use crate::EngineError;

/// Entries in the order in which they are stored: rows, columns, and the bytes of the values.
#[derive(Debug, Default)]
pub struct Entries {
    pub rows: Vec<u64>,
    pub columns: Vec<u64>,
    pub values: Vec<u8>,
}

/// The bytes of a tile, from an offset on.
pub(crate) type TileBytes = (AlignedBuffer, usize);

impl SparseMatrix {
    /// Reads the bytes of a tile.
    pub(crate) fn read_tile(&self, tile: usize, io: &Io) -> Result<TileBytes, EngineError> {
        let region = Region::new(vec![tile as u64, 0], vec![1, self.file.shape()[1]]);
        let cost = self.file.cost(&region, io)?;
        let memory = AlignedBuffer::new(cost.frame_bytes.max(1).next_multiple_of(PAGE));
        let mut frame = memory.map_err(|cause| EngineError::Plan(format!("no memory for a tile: {cause}")))?;
        let offset = self.file.read(&region, &mut frame, io)?;
        Ok((frame, offset))
    }

    /// Entries of a tile, as the file says.
    pub fn entries_of(&self, tile: usize) -> u64 {
        self.file.tile_rows(tile).map(|(record, _)| record.entries).sum()
    }

    /// Reads the entries of one tile.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says.
    pub fn entries(&self, tile: usize, io: &Io) -> Result<Entries, EngineError> {
        let (frame, offset) = self.read_tile(tile, io)?;
        let matrix = self.file.matrix();
        let side = u64::from(matrix.side);
        let malformed = |Malformed(what): Malformed| EngineError::Store(self.file.malformed(what));
        // The count in a file that may be damaged is bounded by the bytes there are.
        let entries = self.entries_of(tile).min(frame.len() as u64) as usize;
        let mut found = Entries {
            rows: Vec::with_capacity(entries),
            columns: Vec::with_capacity(entries),
            values: Vec::with_capacity(entries * self.dtype().map_or(0, |dtype| dtype.size())),
        };
        let mut workspace = AlignedBuffer::new(self.formula_bytes(tile).next_multiple_of(PAGE).max(PAGE))
            .map_err(|cause| EngineError::Plan(format!("no memory for a tile: {cause}")))?;
        for (record, place) in self.file.tile_rows(tile) {
            let bytes = &frame[offset..][place];
            let tiles = match &self.formula {
                None => tiles_of(&self.file, record, bytes, |_| true)?,
                Some(formula) => {
                    let mut desk = formula.desk(&mut workspace, record.entries);
                    made_tiles(&self.file, record, bytes, (formula, &mut desk))?
                }
            };
            let place = RowPlace::of(&self.file, record.number);
            for tile in tiles {
                let start = u64::from(tile.block) * side;
                let width = side.min(matrix.columns - start);
                tile.for_each(place.height as usize, width as usize, |row, column| {
                    found.rows.push(place.first + u64::from(row));
                    found.columns.push(start + u64::from(column));
                })
                .map_err(malformed)?;
                found.values.extend_from_slice(tile.values);
            }
        }
        Ok(found)
    }

    /// Bytes that reading a tile takes beside its entries.
    pub fn reading_bytes(&self, tile: usize) -> u64 {
        self.file.tile_bytes(tile) + self.formula_bytes(tile) as u64
    }

    /// Bytes that the formula takes for a tile.
    fn formula_bytes(&self, tile: usize) -> usize {
        let Some(formula) = &self.formula else { return 0 };
        let rows = self.file.tile_rows(tile);
        let bytes = rows.map(|(record, _)| formula.desk_bytes(&self.file, [record].into_iter()));
        bytes.max().unwrap_or(0) as usize
    }
}
