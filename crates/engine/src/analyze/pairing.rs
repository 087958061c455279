//! Pivots that are large before anything is eliminated: rows and columns are scaled, columns put where they have large entries
//! on the diagonal, and rows of symmetric matrices paired (Duff, Koster 2001; Duff, Pralet 2005).

use outcore_dtype::DType;
use outcore_ordering::{
    match_entries, matching_bytes, symmetric_matching, symmetric_matching_bytes, OrderingWatch, SparseColumns, Stopped,
};
use outcore_store::Io;

use crate::live::Watch;
use crate::solve::{PivotScaling, Stop};
use crate::sparse::SparseMatrix;
use crate::EngineError;

/// The symmetry that pairs of rows and columns are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    Nothing,
    Symmetric,
    Unsymmetric,
}

/// Scales of the rows and columns of a matrix as it is, and what pivots are to be.
#[derive(Clone, Debug)]
pub(super) struct PairedRows {
    pub rows: Vec<f64>,
    pub columns: Vec<f64>,
    /// The row whose place each column takes.
    pub places: Option<Vec<u32>>,
    /// For each row the other of its pair, or itself.
    pub partners: Option<Vec<u32>>,
}

/// Sizes of the entries of a matrix, row by row.
struct EntrySizes {
    starts: Vec<u64>,
    columns: Vec<u32>,
    sizes: Vec<f64>,
}

/// Bytes that [`PairedRows::of`] takes at most, without the tile that is read.
pub(super) fn pairing_bytes(pairing: Pairing, rows: u64, entries: u64) -> u64 {
    let sizes = 8 * (rows + 1) + 12 * entries;
    let results = 2 * 8 * rows + 2 * 4 * rows;
    match pairing {
        Pairing::Nothing => 0,
        Pairing::Symmetric => sizes + results + symmetric_matching_bytes(rows, entries),
        Pairing::Unsymmetric => sizes + results + matching_bytes(rows, rows, entries),
    }
}

impl EntrySizes {
    /// Reads all entries once.
    fn read(matrix: &SparseMatrix, io: &Io, watch: &mut Watch<'_>) -> Result<EntrySizes, EngineError> {
        let shape = matrix.file.matrix();
        let mut sizes = EntrySizes {
            starts: vec![0; shape.rows as usize + 1],
            columns: Vec::with_capacity(shape.entries as usize),
            sizes: Vec::with_capacity(shape.entries as usize),
        };
        let mut row_before = 0;
        for tile in 0..matrix.file.tiles() {
            watch()?;
            let entries = matrix.entries(tile, io)?;
            let Some(first) = entries.rows.iter().min().copied() else {
                continue;
            };
            let last = entries.rows.iter().max().copied().unwrap_or(first);
            // Rows of a tile are not in order.
            let mut next = vec![0; (last - first + 2) as usize];
            entries
                .rows
                .iter()
                .for_each(|row| next[(row - first + 1) as usize] += 1);
            let begin = sizes.columns.len();
            sizes.starts[row_before..=first as usize].fill(begin as u64);
            let mut at = begin;
            for (row, count) in (first..=last).zip(&mut next[1..]) {
                sizes.starts[row as usize] = at as u64;
                let own = std::mem::replace(count, at);
                at += own;
            }
            row_before = last as usize + 1;
            sizes.columns.resize(at, 0);
            sizes.sizes.resize(at, 0.0);
            for (entry, (row, column)) in entries.rows.iter().zip(&entries.columns).enumerate() {
                let place = &mut next[(row - first + 1) as usize];
                sizes.columns[*place] = *column as u32;
                sizes.sizes[*place] = size_of_value(matrix.dtype(), &entries.values, entry);
                *place += 1;
            }
        }
        let end = sizes.columns.len() as u64;
        sizes.starts[row_before..].fill(end);
        Ok(sizes)
    }

    fn by_row(&self) -> SparseColumns<'_> {
        SparseColumns {
            rows: self.starts.len() as u32 - 1,
            starts: &self.starts,
            indices: &self.columns,
            sizes: &self.sizes,
        }
    }
}

/// The size of a value of float64 or complex128; 1 of matrices without.
fn size_of_value(dtype: Option<DType>, values: &[u8], entry: usize) -> f64 {
    let Some(dtype) = dtype else { return 1.0 };
    let own = &values[entry * dtype.size()..(entry + 1) * dtype.size()];
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |bytes| f64::from_ne_bytes(*bytes));
    match dtype {
        DType::C128 => number(own).hypot(number(&own[8..])),
        _ => number(own).abs(),
    }
}

/// The power of two next to a scale, by which products are exact.
fn power(scale: f64) -> f64 {
    scale.log2().round().clamp(-1000.0, 1000.0).exp2()
}

impl PairedRows {
    /// # Errors
    /// A matrix that cannot be read; an interrupt.
    pub fn of(
        pairing: Pairing,
        matrix: &SparseMatrix,
        io: &Io,
        watch: &mut Watch<'_>,
    ) -> Result<Option<impl FnOnce(Stop<'_>) -> Result<PairedRows, EngineError> + Send>, EngineError> {
        if pairing == Pairing::Nothing {
            return Ok(None);
        }
        let sizes = EntrySizes::read(matrix, io, watch)?;
        Ok(Some(move |stop: Stop<'_>| {
            let watch = OrderingWatch { threads: 1, stop };
            let stopped = |Stopped: Stopped| EngineError::Cancelled;
            let powers = |scales: &[f64]| scales.iter().map(|scale| power(*scale)).collect::<Vec<f64>>();
            if pairing == Pairing::Symmetric {
                let matching = symmetric_matching(sizes.by_row(), &watch).map_err(stopped)?;
                let scales = powers(&matching.scale);
                return Ok(PairedRows {
                    rows: scales.clone(),
                    columns: scales,
                    places: None,
                    partners: Some(matching.partner),
                });
            }
            // By row, so rows and columns are each other's.
            let matching = match_entries(sizes.by_row(), &watch).map_err(stopped)?;
            Ok(PairedRows {
                rows: powers(&matching.column_scale),
                columns: powers(&matching.row_scale),
                places: Some(places_of(&matching.row_of_column)),
                partners: None,
            })
        }))
    }

    /// Scales in an order of elimination, and the columns in it.
    pub fn scaling(self, order: &[u32]) -> PivotScaling {
        let mut columns: Vec<u32> = (0..order.len() as u32).collect();
        if let Some(places) = &self.places {
            for (column, &row) in places.iter().enumerate() {
                columns[row as usize] = column as u32;
            }
        }
        let columns: Vec<u32> = order.iter().map(|row| columns[*row as usize]).collect();
        PivotScaling {
            rows: order.iter().map(|row| self.rows[*row as usize]).collect(),
            columns: columns.iter().map(|column| self.columns[*column as usize]).collect(),
            order: columns.into(),
        }
    }
}

/// The row that each column takes the place of, from the column of each row; what is not matched follows in order.
fn places_of(columns: &[u32]) -> Vec<u32> {
    let mut places = vec![u32::MAX; columns.len()];
    for (row, &column) in columns.iter().enumerate() {
        if let Some(place) = places.get_mut(column as usize) {
            *place = row as u32;
        }
    }
    let mut alone = (0..columns.len() as u32).filter(|row| columns[*row as usize] == u32::MAX);
    for place in &mut places {
        if *place == u32::MAX {
            *place = alone.next().unwrap_or(0);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_a_place() {
        assert_eq!(places_of(&[2, u32::MAX, 0]), [2, 1, 0]);
        assert_eq!(places_of(&[u32::MAX, u32::MAX]), [0, 1]);
    }
}
