//! Systems with the tiles of a triangular matrix, which lie row by row.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatRef, Par};
use outcore_dtype::DType;

use super::panel::Panel;
use super::pivot_block::{matrix, matrix_mut, TileLayout};
use super::pivoting::Transposition;
use super::scalar::FactorScalar;

/// A triangular matrix as systems take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    dtype: DType,
    pub is_lower: bool,
    /// Its diagonal is taken for ones.
    pub has_unit_diagonal: bool,
    pub of_matrix: Transposition,
}

impl Triangle {
    pub fn new(panel: Panel, [is_lower, has_unit_diagonal]: [bool; 2], of_matrix: Transposition) -> Triangle {
        Triangle {
            dtype: panel.dtype,
            is_lower,
            has_unit_diagonal,
            of_matrix,
        }
    }

    /// Whether its first row has one element as systems take it: transposed or not.
    pub fn solves_forward(&self) -> bool {
        self.is_lower == (self.of_matrix == Transposition::None)
    }

    /// The first element of the diagonal of a tile that is 0.
    ///
    /// # Panics
    /// When the tile has not the length that the rows give.
    pub fn zero(&self, rows: usize, tile: &[u8]) -> Option<usize> {
        if self.has_unit_diagonal {
            return None;
        }
        in_type!(self, zero_of(rows, tile))
    }

    /// Solves with a tile on the diagonal, in the place of rows of right-hand sides with so many columns.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve(&self, rows: usize, tile: &[u8], x: &mut [u8], columns: usize) {
        in_type!(self, solve_of(self, rows, tile, x, columns));
    }

    /// `Y := Y − T X`, or with the transpose of T, for a tile of `[rows, columns]` beside the diagonal and right-hand sides with
    /// `width` columns.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract(&self, sizes: [usize; 2], tile: &[u8], x: &[u8], y: &mut [u8], width: usize) {
        in_type!(self, subtract_of(self, sizes, tile, x, y, width));
    }
}

fn zero_of<T: FactorScalar>(rows: usize, tile: &[u8]) -> Option<usize> {
    let tile = matrix::<T>(tile, rows, rows, TileLayout::Rows);
    (0..rows).find(|&row| tile[(row, row)].size() == 0.0)
}

/// A tile as systems take it.
fn taken<'a, T: FactorScalar>(of: Transposition, tile: MatRef<'a, T>) -> (MatRef<'a, T>, Conj) {
    match of {
        Transposition::None => (tile, Conj::No),
        Transposition::Transpose => (tile.transpose(), Conj::No),
        Transposition::Adjoint => (tile.transpose(), Conj::Yes),
    }
}

fn solve_of<T: FactorScalar>(triangle: &Triangle, rows: usize, tile: &[u8], x: &mut [u8], columns: usize) {
    let (tile, conjugate) = taken(triangle.of_matrix, matrix::<T>(tile, rows, rows, TileLayout::Rows));
    let x = matrix_mut::<T>(x, rows, columns, TileLayout::Rows);
    match (triangle.solves_forward(), triangle.has_unit_diagonal) {
        (true, false) => solve::solve_lower_triangular_in_place_with_conj(tile, conjugate, x, Par::Seq),
        (true, true) => solve::solve_unit_lower_triangular_in_place_with_conj(tile, conjugate, x, Par::Seq),
        (false, false) => solve::solve_upper_triangular_in_place_with_conj(tile, conjugate, x, Par::Seq),
        (false, true) => solve::solve_unit_upper_triangular_in_place_with_conj(tile, conjugate, x, Par::Seq),
    }
}

fn subtract_of<T: FactorScalar>(
    triangle: &Triangle,
    [rows, columns]: [usize; 2],
    tile: &[u8],
    x: &[u8],
    y: &mut [u8],
    width: usize,
) {
    let (tile, conjugate) = taken(triangle.of_matrix, matrix::<T>(tile, rows, columns, TileLayout::Rows));
    let x = matrix::<T>(x, tile.ncols(), width, TileLayout::Rows);
    let y = matrix_mut::<T>(y, tile.nrows(), width, TileLayout::Rows);
    matmul_with_conj(y, Accum::Add, tile, conjugate, x, Conj::No, T::of(-1.0), Par::Seq);
}
