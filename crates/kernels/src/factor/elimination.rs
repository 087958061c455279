//! The factor of a column of tiles with partial pivoting, by halves of its columns (`getrf` of LAPACK).

use faer::linalg::triangular_solve as solve;
use faer::prelude::IntoConst;
use faer::{Conj, MatMut, Par};

use super::pivot_block::{larger, largest_of, matrix, rows_of, subtract, NoPivot, PivotBlock, TileLayout};
use super::scalar::FactorScalar;

/// Columns that are eliminated one by one.
const ONE_BY_ONE: usize = 16;
/// Sizes that are compared beside each other.
const LANES: usize = 8;

/// The largest size by which pivots are chosen; NaN where one is NaN, and less than 0 of none.
fn largest_part<T: FactorScalar>(elements: &[T]) -> f64 {
    let (mut lanes, mut has_nan) = ([-1.0; LANES], [false; LANES]);
    let chunks = elements.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for lane in 0..LANES {
            let size = chunk[lane].sum_of_parts();
            lanes[lane] = if size > lanes[lane] { size } else { lanes[lane] };
            has_nan[lane] |= size.is_nan();
        }
    }
    let most = rest.iter().map(|element| element.sum_of_parts()).chain(lanes);
    let most = most.fold(-1.0, |most, size| larger(size, most));
    if has_nan.contains(&true) {
        f64::NAN
    } else {
        most
    }
}

/// A column of tiles that is eliminated.
struct Elimination<'a, T> {
    block: PivotBlock,
    tiles: Vec<&'a mut [T]>,
    pivots: &'a mut [u32],
    first_bad: Option<NoPivot>,
}

pub(super) fn factorize<T: FactorScalar>(
    block: PivotBlock,
    tiles: &mut [&mut [u8]],
    pivots: &mut [u32],
) -> (f64, Option<NoPivot>) {
    let mut elimination = Elimination::<T> {
        block,
        tiles: tiles.iter_mut().map(|tile| bytemuck::cast_slice_mut(tile)).collect(),
        pivots,
        first_bad: None,
    };
    elimination.eliminate(0, block.width);
    let first_bad = elimination.first_bad;
    let (height, width) = (rows_of::<T>(tiles[0], block.width), block.width);
    let square = matrix::<T>(tiles[0], height, width, TileLayout::Columns).subrows(block.first, width);
    let mut most = 0.0;
    for column in 0..width {
        most = larger(largest_of(square.submatrix(0, column, column + 1, 1)), most);
    }
    (most, first_bad)
}

impl<T: FactorScalar> Elimination<'_, T> {
    /// Eliminates columns by halves: those on the left, then what they subtract on the right, then those (Toledo, Locality of
    /// reference in LU decomposition with partial pivoting, SIMAX 18 (1997)).
    fn eliminate(&mut self, start: usize, end: usize) {
        if end - start <= ONE_BY_ONE {
            (start..end).for_each(|column| self.eliminate_one(column, end));
            return;
        }
        let middle = start + ((end - start) / 2).next_multiple_of(ONE_BY_ONE).min(end - start - 1);
        self.eliminate(start, middle);
        self.update(start, middle, end);
        self.eliminate(middle, end);
    }

    /// Subtracts what the columns `start..middle` contribute to those from `middle` to `end`.
    fn update(&mut self, start: usize, middle: usize, end: usize) {
        let (width, first) = (self.block.width, self.block.first);
        let (own, below) = self.tiles.split_at_mut(1);
        let height = own[0].len() / width;
        let first_tile = MatMut::from_column_major_slice_mut(&mut *own[0], height, width);
        let (left, right) = first_tile.split_at_col_mut(middle);
        let left = left.into_const().subcols(start, middle - start);
        let right = right.subcols_mut(0, end - middle);
        let (l, l_below) = left.split_at_row(first + start).1.split_at_row(middle - start);
        let (mut u, rest) = right.split_at_row_mut(first + start).1.split_at_row_mut(middle - start);
        solve::solve_unit_lower_triangular_in_place(l, u.as_mut(), Par::Seq);
        subtract(rest, l_below, Conj::No, u.as_ref());
        for tile in below {
            let height = tile.len() / width;
            let tile = MatMut::from_column_major_slice_mut(tile, height, width);
            let (left, right) = tile.split_at_col_mut(middle);
            let left = left.into_const().subcols(start, middle - start);
            subtract(right.subcols_mut(0, end - middle), left, Conj::No, u.as_ref());
        }
    }

    /// Finds the pivot of a column, exchanges rows, and subtracts up to column `end`.
    fn eliminate_one(&mut self, column: usize, end: usize) {
        let PivotBlock { first, width, height } = self.block;
        let row = first + column;
        let mut largest = (-1.0, row);
        for (number, tile) in self.tiles.iter().enumerate() {
            let rows = tile.len() / width;
            let skipped = if number == 0 { row } else { 0 };
            let elements = &tile[column * rows + skipped..(column + 1) * rows];
            let size = largest_part(elements);
            if size > largest.0 || (size.is_nan() && !f64::is_nan(largest.0)) {
                let is_it = |element: &T| {
                    let own = element.sum_of_parts();
                    own == size || (own.is_nan() && size.is_nan())
                };
                let at = elements.iter().position(is_it).unwrap_or(0);
                largest = (size, number * height + skipped + at);
            }
        }
        self.pivots[column] = largest.1 as u32;
        if !(largest.0 > 0.0 && largest.0.is_finite()) && self.first_bad.is_none() {
            self.first_bad = Some(NoPivot {
                column,
                is_zero: largest.0 == 0.0,
            });
        }
        if largest.0 == 0.0 {
            return;
        }
        let (tile, at) = (largest.1 / height, largest.1 % height);
        if largest.1 != row {
            let (rows, other_rows) = (self.tiles[0].len() / width, self.tiles[tile].len() / width);
            for column in 0..width {
                let (one, other) = (column * rows + row, column * other_rows + at);
                let kept = self.tiles[0][one];
                self.tiles[0][one] = self.tiles[tile][other];
                self.tiles[tile][other] = kept;
            }
        }
        let own_rows = self.tiles[0].len() / width;
        let pivot = self.tiles[0][column * own_rows + row];
        let mut beside = [T::of(0.0); ONE_BY_ONE];
        for (value, column) in beside.iter_mut().zip(column + 1..end) {
            *value = self.tiles[0][column * own_rows + row];
        }
        for (number, tile) in self.tiles.iter_mut().enumerate() {
            let rows = tile.len() / width;
            let skipped = if number == 0 { row + 1 } else { 0 };
            let (own, right) = tile[column * rows..].split_at_mut(rows);
            let own = &mut own[skipped..];
            own.iter_mut().for_each(|element| *element = element.over(pivot));
            for (&factor, to) in beside.iter().zip(right.chunks_exact_mut(rows)).take(end - column - 1) {
                for (to, from) in to[skipped..].iter_mut().zip(&*own) {
                    *to -= from.times(factor);
                }
            }
        }
    }
}
