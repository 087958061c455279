//! Dense matrices as one front: tiles of their lower triangle.

use std::ops::Range;

use crate::task::Grid;

/// A dense matrix, cut as its array is.
#[derive(Clone, Debug)]
pub(super) struct DenseRows {
    grid: Grid,
}

impl DenseRows {
    pub(super) fn new(grid: Grid) -> DenseRows {
        DenseRows { grid }
    }

    /// Tiles that have elements of some rows and columns.
    pub(super) fn tiles(&self, rows: &Range<u32>, columns: &Range<u32>) -> Vec<u64> {
        let within = |axis: usize, interval: &Range<u32>| {
            let side = self.grid.tile[axis];
            u64::from(interval.start) / side..(u64::from(interval.end) - 1) / side + 1
        };
        let across = self.grid.counts()[1];
        let columns = within(1, columns);
        let of_row = |row: u64| columns.clone().map(move |column| row * across + column);
        within(0, rows).flat_map(of_row).collect()
    }

    /// Copies elements of some rows and columns, which `reads` have, to a tile: all of it, or its lower triangle row by row.
    pub(super) fn copy(
        &self,
        rows: &Range<u32>,
        columns: &Range<u32>,
        reads: &[&[u8]],
        (out, is_triangle): (&mut [u8], bool),
    ) {
        let item = self.grid.dtype.size();
        let interval = |range: &Range<u32>| range.start as usize..range.end as usize;
        let (rows, columns) = (interval(rows), interval(columns));
        for (tile, bytes) in self.tiles(&as_u32(&rows), &as_u32(&columns)).into_iter().zip(reads) {
            let [own_rows, own_columns] = [0, 1].map(|axis| {
                let along = self.grid.region(tile)[axis];
                along.start as usize..along.end() as usize
            });
            let width = own_columns.len();
            for row in rows.start.max(own_rows.start)..rows.end.min(own_rows.end) {
                let place = row - rows.start;
                // A row of a triangle ends at the diagonal.
                let end = if is_triangle {
                    columns.end.min(columns.start + place + 1)
                } else {
                    columns.end
                };
                let shared = columns.start.max(own_columns.start)..end.min(own_columns.end);
                if shared.is_empty() {
                    continue;
                }
                let start = if is_triangle {
                    place * (place + 1) / 2
                } else {
                    place * columns.len()
                };
                let to = (start + shared.start - columns.start) * item;
                let from = ((row - own_rows.start) * width + shared.start - own_columns.start) * item;
                let count = shared.len() * item;
                out[to..to + count].copy_from_slice(&bytes[from..from + count]);
            }
        }
    }

    /// Copies elements of some rows and columns, which `reads` have, to a tile that lies column by column: `of` are
    /// the rows of the tile, those copied, and the columns.
    pub(super) fn copy_columns(&self, of: [&Range<u32>; 3], reads: &[&[u8]], out: &mut [u8]) {
        match self.grid.dtype.size() {
            8 => self.transpose::<u64>(of, reads, out),
            _ => self.transpose::<[u64; 2]>(of, reads, out),
        }
    }

    fn transpose<T: bytemuck::Pod>(&self, [all, rows, columns]: [&Range<u32>; 3], reads: &[&[u8]], out: &mut [u8]) {
        let out: &mut [T] = bytemuck::cast_slice_mut(out);
        let [height, top, first, left] = [
            all.len(),
            all.start as usize,
            rows.start as usize,
            columns.start as usize,
        ];
        for (tile, bytes) in self.tiles(rows, columns).into_iter().zip(reads) {
            let elements: &[T] = bytemuck::cast_slice(bytes);
            let [own_rows, own_columns] = [0, 1].map(|axis| {
                let along = self.grid.region(tile)[axis];
                along.start as usize..along.end() as usize
            });
            let common_rows = first.max(own_rows.start)..(rows.end as usize).min(own_rows.end);
            let common = left.max(own_columns.start)..(columns.end as usize).min(own_columns.end);
            // Rows few enough that what is read of them stays in the cache.
            for start in common_rows.clone().step_by(TRANSPOSED_ROWS) {
                let end = common_rows.end.min(start + TRANSPOSED_ROWS);
                for column in common.clone() {
                    let to = &mut out[(column - left) * height..][start - top..end - top];
                    for (row, to) in (start..end).zip(to) {
                        *to = elements[(row - own_rows.start) * own_columns.len() + column - own_columns.start];
                    }
                }
            }
        }
    }
}

/// Rows that are transposed together.
const TRANSPOSED_ROWS: usize = 32;

fn as_u32(range: &Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;

    use super::*;

    #[test]
    fn tiles_come_from_any_cut_of_the_matrix() {
        let grid = Grid {
            shape: vec![7, 7],
            tile: vec![3, 2],
            dtype: DType::U8,
        };
        let matrix = DenseRows::new(grid.clone());
        let tile = |number: u64| -> Vec<u8> {
            let [rows, columns] = [grid.region(number)[0], grid.region(number)[1]];
            let of = |row: u64| columns.indices().map(move |column| (row * 7 + column) as u8);
            rows.indices().flat_map(of).collect()
        };
        for (rows, columns) in [(2..6, 0..3), (4..7, 4..7), (0..7, 1..2)] {
            let tiles: Vec<Vec<u8>> = matrix.tiles(&rows, &columns).into_iter().map(tile).collect();
            let reads: Vec<&[u8]> = tiles.iter().map(Vec::as_slice).collect();
            let mut all = vec![0; rows.len() * columns.len()];
            matrix.copy(&rows, &columns, &reads, (&mut all, false));
            let expected: Vec<u8> = rows
                .clone()
                .flat_map(|row| columns.clone().map(move |column| (row * 7 + column) as u8))
                .collect();
            assert_eq!(all, expected);
            if rows == columns {
                let mut lower = vec![0; 6];
                matrix.copy(&rows, &columns, &reads, (&mut lower, true));
                assert_eq!(lower, [32, 39, 40, 46, 47, 48]);
            }
        }
    }

    #[test]
    fn tiles_that_lie_column_by_column_have_the_same_elements() {
        for dtype in [DType::F64, DType::C128] {
            let grid = Grid {
                shape: vec![90, 7],
                tile: vec![37, 3],
                dtype,
            };
            let matrix = DenseRows::new(grid.clone());
            let parts = dtype.size() / 8;
            let tile = |number: u64| -> Vec<f64> {
                let [rows, columns] = [grid.region(number)[0], grid.region(number)[1]];
                let of = |row: u64| columns.indices().map(move |column| (row * 7 + column) as f64);
                let elements = rows.indices().flat_map(of);
                elements.flat_map(|value| vec![value; parts]).collect()
            };
            for (rows, columns) in [(2..80, 0..3), (0..90, 0..7), (37..74, 2..4)] {
                let mut out = vec![0.0; rows.len() * columns.len() * parts];
                for some in [rows.start..rows.start + 1, rows.start + 1..rows.end] {
                    // Rows that are not copied stay.
                    let tiles: Vec<Vec<f64>> = matrix.tiles(&some, &columns).into_iter().map(tile).collect();
                    let reads: Vec<&[u8]> = tiles.iter().map(|tile| bytemuck::cast_slice(tile)).collect();
                    matrix.copy_columns([&rows, &some, &columns], &reads, bytemuck::cast_slice_mut(&mut out));
                }
                let of = |column: u32| rows.clone().map(move |row| f64::from(row * 7 + column));
                let expected = columns.clone().flat_map(of).flat_map(|value| vec![value; parts]);
                assert_eq!(out, expected.collect::<Vec<f64>>());
            }
        }
    }
}
