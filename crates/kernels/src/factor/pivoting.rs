//! Elimination with partial pivoting of a column of tiles: exchanges of rows, triangular solves, products that are subtracted,
//! and the factor of the column itself (`laswp`, `trsm`, `gemm` and `getrf` of LAPACK).
//!
//! Tiles of a matrix lie column by column, those of right-hand sides row by row; float64 or complex128. All is done in the
//! caller's thread, so the bits depend on the tiles alone.

use faer::linalg::triangular_solve as solve;
use faer::{Conj, Par};

use super::elimination::factorize;
use super::panel::Panel;
use super::pivot_block::{larger, largest_of, matrix, matrix_mut, subtract, NoPivot, PivotBlock, TileLayout};
use super::scalar::FactorScalar;

/// The system that a factor is applied to: A, its transpose or its adjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposition {
    None,
    Transpose,
    Adjoint,
}

impl Transposition {
    /// SciPy's number: 0, 1 or 2.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn numbered(number: u64) -> Option<Transposition> {
        use Transposition::{Adjoint, None as Itself, Transpose};
        [Itself, Transpose, Adjoint].get(usize::try_from(number).ok()?).copied()
    }
}

/// Work on columns of tiles with elements of a type.
#[derive(Clone, Copy, Debug)]
pub struct Pivoting {
    pub(super) dtype: outcore_dtype::DType,
}

impl Pivoting {
    pub fn new(panel: Panel) -> Pivoting {
        Pivoting { dtype: panel.dtype }
    }

    /// Exchanges rows of a column of tiles, each but the last of `height` rows: row `first + t` with row `pivots[t]`, one after
    /// the other, or from the last on (`backward`).
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn exchange(
        &self,
        (tiles, layout): (&mut [&mut [u8]], TileLayout),
        [height, width, first]: [usize; 3],
        pivots: &[u32],
        backward: bool,
    ) {
        in_type!(
            self,
            exchange((tiles, layout), [height, width, first], pivots, backward)
        );
    }

    /// Solves with the unit lower triangle of a block of pivots, and subtracts the products with what is below it in its tile:
    /// `U := L⁻¹ C`, `C −= L U`, for a tile `c` of `width` columns. Gives the largest size in U.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_lower(&self, block: PivotBlock, l: &[u8], (c, layout): (&mut [u8], TileLayout), width: usize) -> f64 {
        in_type!(self, solve_lower(block, l, (c, layout), width))
    }

    /// `C −= L U`, for L of `rows x k`, U the rows of a block of pivots in a tile, C of `rows x width`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_lower(
        &self,
        block: PivotBlock,
        l: &[u8],
        u: &[u8],
        (c, layout): (&mut [u8], TileLayout),
        [rows, width]: [usize; 2],
    ) {
        in_type!(self, subtract_lower(block, l, u, (c, layout), [rows, width]));
    }

    /// Factorizes a column of tiles from row `block.first` of the first tile on, with exchanges of rows, whose numbers count from
    /// the first row of the first tile. Gives the largest size in U. A column without a pivot stays as it is.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn factorize(&self, block: PivotBlock, tiles: &mut [&mut [u8]], pivots: &mut [u32]) -> (f64, Option<NoPivot>) {
        in_type!(self, factorize(block, tiles, pivots))
    }

    /// Rows of right-hand sides by U: `X := U⁻¹ X` with the block of pivots, and above it in its tile `X −= U X`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_upper(&self, block: PivotBlock, u: &[u8], x: &mut [u8], width: usize) {
        in_type!(self, solve_upper(block, u, x, width));
    }

    /// Rows of right-hand sides by the transpose of U: those above the block in its tile are subtracted, then the block solved.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_upper_transposed(&self, block: PivotBlock, u: &[u8], x: &mut [u8], width: usize, of: Transposition) {
        in_type!(self, solve_upper_transposed(block, u, x, width, of));
    }

    /// Rows of right-hand sides by the transpose of L: those below the block in its tile are subtracted, then the block solved.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_lower_transposed(&self, block: PivotBlock, l: &[u8], x: &mut [u8], width: usize, of: Transposition) {
        in_type!(self, solve_lower_transposed(block, l, x, width, of));
    }

    /// `X −= Tᵀ Y` or `X −= Tᴴ Y`: X the rows of a block of pivots in a tile, T a tile of `rows` beside the block's columns, Y
    /// `rows` of right-hand sides.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_transposed(
        &self,
        block: PivotBlock,
        (t, rows): (&[u8], usize),
        y: &[u8],
        (x, width): (&mut [u8], usize),
        of: Transposition,
    ) {
        in_type!(self, subtract_transposed(block, (t, rows), y, (x, width), of));
    }

    /// The largest size of some elements; NaN where one is NaN.
    pub fn largest(&self, elements: &[u8]) -> f64 {
        in_type!(self, largest(elements))
    }
}

fn conjugation(of: Transposition) -> Conj {
    match of {
        Transposition::Adjoint => Conj::Yes,
        Transposition::None | Transposition::Transpose => Conj::No,
    }
}

fn largest<T: FactorScalar>(elements: &[u8]) -> f64 {
    let elements: &[T] = bytemuck::cast_slice(elements);
    elements.iter().fold(0.0, |most, element| larger(element.size(), most))
}

fn exchange<T: FactorScalar>(
    (tiles, layout): (&mut [&mut [u8]], TileLayout),
    [height, width, first]: [usize; 3],
    pivots: &[u32],
    backward: bool,
) {
    let mut tiles: Vec<&mut [T]> = tiles.iter_mut().map(|tile| bytemuck::cast_slice_mut(tile)).collect();
    let heights: Vec<usize> = tiles.iter().map(|tile| tile.len() / width.max(1)).collect();
    let mut swap = |step: usize, columns: std::ops::Range<usize>| {
        let (one, other) = (first + step, pivots[step] as usize);
        if one == other {
            return;
        }
        for column in columns {
            let place = |row: usize| {
                let (tile, row) = (row / height, row % height);
                match layout {
                    TileLayout::Rows => (tile, row * width + column),
                    TileLayout::Columns => (tile, column * heights[tile] + row),
                }
            };
            let ((tile, at), (other_tile, other_at)) = (place(one), place(other));
            let kept = tiles[tile][at];
            tiles[tile][at] = tiles[other_tile][other_at];
            tiles[other_tile][other_at] = kept;
        }
    };
    let mut all = |columns: std::ops::Range<usize>| match backward {
        false => (0..pivots.len()).for_each(|step| swap(step, columns.clone())),
        true => (0..pivots.len()).rev().for_each(|step| swap(step, columns.clone())),
    };
    match layout {
        TileLayout::Rows => all(0..width),
        TileLayout::Columns => (0..width).for_each(|column| all(column..column + 1)),
    }
}

fn solve_lower<T: FactorScalar>(
    block: PivotBlock,
    l: &[u8],
    (c, layout): (&mut [u8], TileLayout),
    width: usize,
) -> f64 {
    let l = matrix::<T>(l, block.height, block.width, TileLayout::Columns)
        .split_at_row(block.first)
        .1;
    let (l, below) = l.split_at_row(block.width);
    let c = matrix_mut::<T>(c, block.height, width, layout);
    let (mut u, rest) = c.split_at_row_mut(block.first).1.split_at_row_mut(block.width);
    solve::solve_unit_lower_triangular_in_place(l, u.as_mut(), Par::Seq);
    subtract(rest, below, Conj::No, u.as_ref());
    largest_of(u.as_ref())
}

fn subtract_lower<T: FactorScalar>(
    block: PivotBlock,
    l: &[u8],
    u: &[u8],
    (c, layout): (&mut [u8], TileLayout),
    [rows, width]: [usize; 2],
) {
    let u = matrix::<T>(u, block.height, width, layout).subrows(block.first, block.width);
    let l = matrix::<T>(l, rows, block.width, TileLayout::Columns);
    subtract(matrix_mut(c, rows, width, layout), l, Conj::No, u);
}

fn solve_upper<T: FactorScalar>(block: PivotBlock, u: &[u8], x: &mut [u8], width: usize) {
    let u = matrix::<T>(u, block.height, block.width, TileLayout::Columns);
    let (above, u) = u.subrows(0, block.first + block.width).split_at_row(block.first);
    let x = matrix_mut::<T>(x, block.height, width, TileLayout::Rows);
    let (rest, mut x) = x
        .subrows_mut(0, block.first + block.width)
        .split_at_row_mut(block.first);
    solve::solve_upper_triangular_in_place(u, x.as_mut(), Par::Seq);
    subtract(rest, above, Conj::No, x.as_ref());
}

fn solve_upper_transposed<T: FactorScalar>(block: PivotBlock, u: &[u8], x: &mut [u8], width: usize, of: Transposition) {
    let u = matrix::<T>(u, block.height, block.width, TileLayout::Columns);
    let (above, u) = u.subrows(0, block.first + block.width).split_at_row(block.first);
    let x = matrix_mut::<T>(x, block.height, width, TileLayout::Rows);
    let (before, mut x) = x
        .subrows_mut(0, block.first + block.width)
        .split_at_row_mut(block.first);
    subtract(x.as_mut(), above.transpose(), conjugation(of), before.as_ref());
    solve::solve_lower_triangular_in_place_with_conj(u.transpose(), conjugation(of), x, Par::Seq);
}

fn solve_lower_transposed<T: FactorScalar>(block: PivotBlock, l: &[u8], x: &mut [u8], width: usize, of: Transposition) {
    let l = matrix::<T>(l, block.height, block.width, TileLayout::Columns)
        .split_at_row(block.first)
        .1;
    let (l, below) = l.split_at_row(block.width);
    let x = matrix_mut::<T>(x, block.height, width, TileLayout::Rows);
    let (mut x, behind) = x.split_at_row_mut(block.first).1.split_at_row_mut(block.width);
    subtract(x.as_mut(), below.transpose(), conjugation(of), behind.as_ref());
    solve::solve_unit_upper_triangular_in_place_with_conj(l.transpose(), conjugation(of), x, Par::Seq);
}

fn subtract_transposed<T: FactorScalar>(
    block: PivotBlock,
    (t, rows): (&[u8], usize),
    y: &[u8],
    (x, width): (&mut [u8], usize),
    of: Transposition,
) {
    let t = matrix::<T>(t, rows, block.width, TileLayout::Columns);
    let y = matrix::<T>(y, rows, width, TileLayout::Rows);
    let x = matrix_mut::<T>(x, block.height, width, TileLayout::Rows);
    subtract(
        x.subrows_mut(block.first, block.width),
        t.transpose(),
        conjugation(of),
        y,
    );
}

#[cfg(test)]
mod tests {
    use outcore_dtype::{Complex, DType};

    use super::*;

    /// Numbers without a pattern.
    fn numbers(count: usize) -> Vec<f64> {
        (0..count)
            .map(|at| ((at * at) as f64 * 0.7 + at as f64).sin())
            .collect()
    }

    fn column_major<T: FactorScalar>(matrix: &[T], n: usize, rows: std::ops::Range<usize>) -> Vec<T> {
        let of = |column: usize| rows.clone().map(move |row| matrix[row * n + column]);
        (0..n).flat_map(of).collect()
    }

    fn check<T: FactorScalar>(dtype: DType, matrix: &[T], n: usize, height: usize) {
        let pivoting = Pivoting::new(Panel::new(dtype).unwrap());
        let starts: Vec<usize> = (0..2 * n).step_by(height).collect();
        let ends = |start: usize| (start + height).min(2 * n);
        let mut tiles: Vec<Vec<T>> = starts
            .iter()
            .map(|&start| column_major(matrix, n, start..ends(start)))
            .collect();
        let mut bytes: Vec<&mut [u8]> = tiles.iter_mut().map(|tile| bytemuck::cast_slice_mut(tile)).collect();
        let block = PivotBlock {
            height,
            first: 0,
            width: n,
        };
        let mut pivots = vec![0; n];
        let (_, bad) = pivoting.factorize(block, &mut bytes, &mut pivots);
        assert_eq!(bad, None);
        let element = |row: usize, column: usize| {
            let tile = row / height;
            tiles[tile][column * (ends(starts[tile]) - starts[tile]) + row % height]
        };
        let mut exchanged: Vec<usize> = (0..2 * n).collect();
        pivots
            .iter()
            .enumerate()
            .for_each(|(step, &pivot)| exchanged.swap(step, pivot as usize));
        for row in 0..2 * n {
            for column in 0..n {
                let mut sum = if row <= column {
                    element(row, column)
                } else {
                    T::of(0.0)
                };
                for inner in 0..row.min(column + 1) {
                    assert!(element(row, inner).size() <= 1.5 || row <= inner);
                    sum += element(row, inner).times(element(inner, column));
                }
                let size = (sum - matrix[exchanged[row] * n + column]).size();
                assert!(size < 1e-12, "{row} {column}: {size}");
            }
        }
    }

    #[test]
    fn the_product_of_the_factors_is_the_matrix_with_its_rows_exchanged() {
        for (n, height) in [(1, 1), (3, 3), (8, 9), (17, 20), (40, 40), (40, 64), (100, 128)] {
            let real = numbers(2 * n * n);
            check(DType::F64, &real, n, height);
            let complex: Vec<Complex<f64>> = numbers(4 * n * n)
                .chunks_exact(2)
                .map(|parts| Complex::new(parts[0], parts[1]))
                .collect();
            check(DType::C128, &complex, n, height);
        }
    }

    #[test]
    fn exchanges_backward_undo_those_forward_in_both_layouts() {
        let pivoting = Pivoting::new(Panel::new(DType::F64).unwrap());
        let pivots = [4, 3, 6];
        for layout in [TileLayout::Rows, TileLayout::Columns] {
            let before: Vec<Vec<f64>> = vec![numbers(12), numbers(9)];
            let mut tiles = before.clone();
            let exchange = |tiles: &mut Vec<Vec<f64>>, backward: bool| {
                let mut bytes: Vec<&mut [u8]> = tiles.iter_mut().map(|tile| bytemuck::cast_slice_mut(tile)).collect();
                pivoting.exchange((&mut bytes, layout), [4, 3, 1], &pivots, backward);
            };
            exchange(&mut tiles, false);
            assert_ne!(tiles, before);
            exchange(&mut tiles, true);
            assert_eq!(tiles, before);
        }
    }

    #[test]
    fn a_column_without_a_pivot_is_named() {
        let pivoting = Pivoting::new(Panel::new(DType::F64).unwrap());
        let block = PivotBlock {
            height: 3,
            first: 0,
            width: 3,
        };
        for (value, is_zero) in [(2.0, true), (f64::NAN, false), (f64::INFINITY, false)] {
            let mut tile = [1.0, 0.0, 1.0, 2.0, 0.0, value, 0.0, 1.0, 0.0];
            let mut pivots = [0; 3];
            let bad = pivoting
                .factorize(block, &mut [bytemuck::cast_slice_mut(&mut tile)], &mut pivots)
                .1;
            assert_eq!(bad, Some(NoPivot { column: 1, is_zero }));
        }
    }
}
