//! Matrices that others hold by rows (CSR): three arrays, read a tile row at a time and put into tiles on the way.

use std::sync::Arc;

use outcore_coding::tiles::{encode_rows, rows_bytes};
use outcore_coding::Malformed;
use outcore_dtype::DType;

use super::header::{SparseShape, TileRowRecord};
use crate::array::source::{ReadCost, Source};
use crate::base::page::PAGE;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

/// The arrays of a matrix in compressed rows.
#[derive(Clone, Debug)]
pub struct CompressedRows {
    pub name: String,
    /// Where the entries of each row begin, and where the last end.
    pub indptr: Arc<dyn Source>,
    /// The columns.
    pub indices: Arc<dyn Source>,
    /// The values, if any.
    pub data: Option<Arc<dyn Source>>,
}

/// Tenths of a byte that the place of an entry takes in a tiled file of a scattered matrix; more than in others.
const PLACE_TENTHS: u64 = 27;
/// How often the sort of a conversion moves the place and value of an entry.
const MOVES: u64 = 6;

/// Most entries of a tile row, whose places are counted in 32 bits.
const ENTRIES_MAX: u64 = u32::MAX as u64;
/// Elements of the row pointer that are read at a time.
const POINTERS: u64 = 1 << 18;

impl CompressedRows {
    /// The arrays there are.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        [&self.indptr, &self.indices].into_iter().chain(&self.data)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.arrays()
            .map(|array| array.shape()[0].saturating_mul(array.dtype().size() as u64))
            .sum()
    }

    /// When a copy in tiles would move less than these arrays do.
    pub(super) fn advice(&self, shape: &SparseShape) -> Option<String> {
        let item = shape.dtype.map_or(0, |dtype| dtype.size() as u64);
        let tiled = shape.entries.saturating_mul(PLACE_TENTHS + 10 * item) / 10;
        let saved = self.bytes().checked_sub(tiled).filter(|saved| *saved > 0)?;
        let moved = shape.entries.saturating_mul((8 + item) * MOVES);
        let conversion = self.bytes().saturating_add(moved).saturating_add(tiled);
        Some(format!(
            "{}: {} bytes in compressed rows are read and put into tiles for every product; a copy in tiles (.ocs) would \
             have some {tiled} and pay from the {}th product on",
            self.name,
            self.bytes(),
            conversion.div_ceil(saved)
        ))
    }

    /// What is wrong with the arrays, before any of them is read.
    pub(super) fn check(&self, shape: &SparseShape) -> Result<(), StoreError> {
        let malformed = |reason: String| Err(StoreError::format(self.name.as_ref(), reason));
        let lengths: Vec<&[u64]> = self.arrays().map(|array| array.shape()).collect();
        if lengths.iter().any(|length| length.len() != 1) || lengths[0][0].checked_sub(1) != Some(shape.rows) {
            return malformed(format!(
                "indptr has shape {:?}, indices {:?}, and the matrix {} rows",
                lengths[0], lengths[1], shape.rows
            ));
        }
        if lengths[1..].iter().any(|length| length[0] != shape.entries) {
            return malformed(format!("indices and data have shapes {:?}", &lengths[1..]));
        }
        match [&self.indptr, &self.indices]
            .into_iter()
            .find(|array| !is_integer(array.dtype()))
        {
            Some(array) => malformed(format!(
                "{} of {}, where integers are wanted",
                array.name(),
                array.dtype()
            )),
            None => Ok(()),
        }
    }

    /// The tile rows that have entries: number, first entry, entries. Reads all of `indptr`.
    pub(super) fn records(&self, shape: &SparseShape, io: &Io) -> Result<Vec<TileRowRecord>, StoreError> {
        let malformed = |reason: String| StoreError::format(self.name.as_ref(), reason);
        let side = u64::from(shape.side);
        let (mut found, mut before, mut first) = (vec![], 0, 0);
        let mut row = 0;
        while row <= shape.rows {
            let count = POINTERS.min(shape.rows + 1 - row);
            for pointer in read_integers(&*self.indptr, row, count, io)? {
                if pointer < before || pointer > shape.entries || (row == 0 && pointer != 0) {
                    return Err(malformed(format!("indptr has {pointer} at {row} after {before}")));
                }
                if row > 0 && pointer - before > shape.columns {
                    return Err(malformed(format!(
                        "{} entries in row {}, and the matrix has {} columns",
                        pointer - before,
                        row - 1,
                        shape.columns
                    )));
                }
                before = pointer;
                if row > 0 && (row % side == 0 || row == shape.rows) {
                    let number = (row - 1) / side;
                    if pointer - first > ENTRIES_MAX {
                        let reason = format!(
                            "{} entries in {side} rows; tiles of fewer rows (side=) have at most {ENTRIES_MAX}",
                            pointer - first
                        );
                        return Err(StoreError::unsupported(self.name.as_ref(), reason));
                    }
                    if pointer > first {
                        found.push(TileRowRecord {
                            number,
                            offset: first,
                            bytes: rows_bytes(pointer - first, shape.layout()),
                            entries: pointer - first,
                            checksum: 0,
                            head: 0,
                        });
                    }
                    first = pointer;
                }
                row += 1;
            }
        }
        match before == shape.entries {
            true => Ok(found),
            false => Err(malformed(format!(
                "indptr ends with {before}, and there are {} indices",
                shape.entries
            ))),
        }
    }

    /// The parts of the arrays that a tile row is made of: of indptr, and of the others.
    fn parts(&self, record: &TileRowRecord, shape: &SparseShape) -> [Region; 2] {
        let side = u64::from(shape.side);
        let first = record.number * side;
        let rows = side.min(shape.rows - first);
        [
            Region::new(vec![first], vec![rows + 1]),
            Region::new(vec![record.offset], vec![record.entries]),
        ]
    }

    pub(super) fn cost(&self, record: &TileRowRecord, shape: &SparseShape, io: &Io) -> Result<ReadCost, StoreError> {
        let [pointers, own] = self.parts(record, shape);
        let mut cost = ReadCost {
            read_bytes: 0,
            frame_bytes: record.bytes as usize,
            // Columns as words, entries, values and the tile row in the making, and again when it is complete.
            workspace_bytes: (record.entries * 12 + 2 * record.bytes) as usize + pointers.shape[0] as usize * 8,
        };
        for (at, array) in self.arrays().enumerate() {
            let part = array.cost(if at == 0 { &pointers } else { &own }, io)?;
            cost.read_bytes += part.read_bytes;
            cost.workspace_bytes += part.frame_bytes.max(PAGE) + part.workspace_bytes;
        }
        Ok(cost)
    }

    /// Reads a tile row and puts it to the front of `frame`.
    pub(super) fn read(
        &self,
        record: &TileRowRecord,
        shape: &SparseShape,
        frame: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let malformed = |reason: String| StoreError::format(self.name.as_ref(), reason);
        let [pointers, own] = self.parts(record, shape);
        let pointers = read_integers(&*self.indptr, pointers.start[0], pointers.shape[0], io)?;
        let ends = (pointers.first(), pointers.last());
        let is_same = ends == (Some(&record.offset), Some(&(record.offset + record.entries)));
        if !is_same || pointers.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(malformed(format!("indptr falls in tile row {}", record.number)));
        }
        let counts: Vec<u64> = pointers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let columns = read_integers(&*self.indices, own.start[0], own.shape[0], io)?;
        let mut out = vec![];
        let made = match &self.data {
            None => encode_rows(&counts, &columns, &[], shape.layout(), &mut out),
            Some(data) => read_with(&**data, &own, io, |values| {
                encode_rows(&counts, &columns, values, shape.layout(), &mut out)
            })?,
        };
        made.map_err(|Malformed(what)| malformed(format!("{what}, in tile row {}", record.number)))?;
        let place = frame.get_mut(..record.bytes as usize);
        let place = place.filter(|place| place.len() >= out.len());
        let place =
            place.ok_or_else(|| StoreError::Invalid(format!("{}: a tile row of {} bytes", self.name, out.len())))?;
        place[..out.len()].copy_from_slice(&out);
        place[out.len()..].fill(0);
        Ok(())
    }
}

fn is_integer(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

/// Calls `then` with the bytes of a region.
fn read_with<T>(array: &dyn Source, region: &Region, io: &Io, then: impl FnOnce(&[u8]) -> T) -> Result<T, StoreError> {
    let cost = array.cost(region, io)?;
    let memory = AlignedBuffer::new(cost.frame_bytes.max(1).next_multiple_of(PAGE));
    let mut frame = memory.map_err(|cause| StoreError::io(array.name().as_ref(), 0, "map memory", cause))?;
    let at = array.read(region, &mut frame, io)?;
    Ok(then(&frame[at..at + region.shape[0] as usize * array.dtype().size()]))
}

/// Elements of an array of integers, none of which may be negative.
fn read_integers(array: &dyn Source, first: u64, count: u64, io: &Io) -> Result<Vec<u64>, StoreError> {
    let region = Region::new(vec![first], vec![count]);
    let size = array.dtype().size();
    let is_signed = array.dtype().to_string().starts_with('i');
    let found = read_with(array, &region, io, |bytes| {
        let wide = |word: &[u8]| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(word);
            u64::from_le_bytes(wide)
        };
        bytes.chunks_exact(size).map(wide).collect::<Vec<u64>>()
    })?;
    // The highest bit of a number with a sign.
    match is_signed && found.iter().any(|number| number >> (8 * size - 1) & 1 == 1) {
        true => Err(StoreError::format(array.name().as_ref(), "an index is negative")),
        false => Ok(found),
    }
}
