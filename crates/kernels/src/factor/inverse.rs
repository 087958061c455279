//! Elements of the inverse at the places of a Cholesky factor: A = L Lᴴ, Z = A⁻¹, column by column from the last (Erisman, Tinney,
//! On computing certain elements of the inverse of a sparse matrix, CACM 18 (1975)).
//!
//! With the pivots P of some columns and the rows B below them, `Z_BP = −Z_BB L_BP L_PP⁻¹` and
//! `Z_PP = L_PP⁻ᴴ (L_PP⁻¹ − L_BPᴴ Z_BP)`. Tiles lie row by row. All is done in the caller's thread.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::panel::Panel;
use super::scalar::{rows, tile, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

/// Work on elements of an inverse.
#[derive(Clone, Copy, Debug)]
pub struct SelectedInverse {
    panel: Panel,
}

impl SelectedInverse {
    pub fn new(panel: Panel) -> SelectedInverse {
        SelectedInverse { panel }
    }

    /// `C += A B` for `A` of `m x k`, or `C += Aᴴ B` (`is_adjoint`) for `A` of `k x m`; `B` of `k x n`, `C` of `m x n`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn add_product(&self, sizes: [usize; 3], (a, is_adjoint): (&[u8], bool), b: &[u8], c: &mut [u8]) {
        in_type!(self.panel, add_product(sizes, (a, is_adjoint), b, c));
    }

    /// `W := −W L⁻¹` for `W` of `m x n` and `L` of `n x n`, of which the lower triangle is read.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn finish_below(&self, sizes: [usize; 2], l: &[u8], w: &mut [u8]) {
        in_type!(self.panel, finish_below(sizes, l, w));
    }

    /// `S := L⁻ᴴ (L⁻¹ − S)` for `S` and `L` of `n x n`; the lower triangle of `L` is read. With a workspace of
    /// [`SelectedInverse::diagonal_bytes`].
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn finish_diagonal(&self, n: usize, l: &[u8], s: &mut [u8], workspace: &mut [u8]) {
        in_type!(self.panel, finish_diagonal(n, l, s, Spare::new(workspace)));
    }

    /// Bytes of the workspace of [`SelectedInverse::finish_diagonal`].
    pub fn diagonal_bytes(&self, n: usize) -> usize {
        taken::<u8>(&[n * n * self.panel.dtype().size()]) + SKIPPED
    }

    /// Makes elements above the diagonal of a tile the conjugates of those below.
    pub fn mirror(&self, n: usize, tile: &mut [u8]) {
        in_type!(self.panel, mirror(n, tile));
    }

    /// Elements of the inverse in the first `pivots` columns of a front of side `side`, at the places of the `columns` of L,
    /// which lie one behind the other, each from its diagonal on. `below` has the elements of the rows below the pivots, all
    /// of them. With a workspace of [`SelectedInverse::columns_bytes`].
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn columns(&self, sizes: [usize; 2], columns: &[u8], below: &[u8], out: &mut [u8], workspace: &mut [u8]) {
        in_type!(
            self.panel,
            invert_columns(sizes, columns, below, out, Spare::new(workspace))
        );
    }

    /// Bytes of the workspace of [`SelectedInverse::columns`].
    pub fn columns_bytes(&self, [side, pivots]: [usize; 2]) -> usize {
        let item = self.panel.dtype().size();
        2 * taken::<u8>(&[side * pivots * item]) + taken::<u8>(&[pivots * pivots * item]) + SKIPPED
    }
}

fn add<T: FactorScalar>(c: MatMut<'_, T>, (a, conj): (MatRef<'_, T>, Conj), b: MatRef<'_, T>) {
    matmul_with_conj(c, Accum::Add, a, conj, b, Conj::No, T::of(1.0), Par::Seq);
}

fn add_product<T: FactorScalar>([m, n, k]: [usize; 3], (a, is_adjoint): (&[u8], bool), b: &[u8], c: &mut [u8]) {
    let a = match is_adjoint {
        false => (tile::<T>(a, m, k), Conj::No),
        true => (tile::<T>(a, k, m).transpose(), Conj::Yes),
    };
    add(rows(bytemuck::cast_slice_mut(c), m, n), a, tile::<T>(b, k, n));
}

/// `W := −W L⁻¹`: X L = W is Lᵀ Xᵀ = Wᵀ.
fn right_solved<T: FactorScalar>(l: MatRef<'_, T>, mut w: MatMut<'_, T>) {
    solve::solve_upper_triangular_in_place(l.transpose(), w.as_mut().transpose_mut(), Par::Seq);
    for row in 0..w.nrows() {
        for column in 0..w.ncols() {
            w[(row, column)] = T::of(0.0) - w[(row, column)];
        }
    }
}

/// `S := L⁻ᴴ (L⁻¹ − S)`, with memory for the inverse of L.
fn left_solved<T: FactorScalar>(l: MatRef<'_, T>, mut s: MatMut<'_, T>, inverse: &mut [T]) {
    let n = s.nrows();
    let mut inverse = MatMut::from_column_major_slice_mut(inverse, n, n);
    inverse.fill(T::of(0.0));
    inverse.as_mut().diagonal_mut().fill(T::of(1.0));
    solve::solve_lower_triangular_in_place(l, inverse.as_mut(), Par::Seq);
    for row in 0..n {
        for column in 0..n {
            s[(row, column)] = inverse[(row, column)] - s[(row, column)];
        }
    }
    solve::solve_upper_triangular_in_place_with_conj(l.transpose(), Conj::Yes, s, Par::Seq);
}

fn finish_below<T: FactorScalar>([m, n]: [usize; 2], l: &[u8], w: &mut [u8]) {
    right_solved(tile::<T>(l, n, n), rows(bytemuck::cast_slice_mut(w), m, n));
}

fn finish_diagonal<T: FactorScalar>(n: usize, l: &[u8], s: &mut [u8], mut spare: Spare<'_>) {
    let inverse = spare.take::<T>(n * n);
    left_solved(tile::<T>(l, n, n), rows(bytemuck::cast_slice_mut(s), n, n), inverse);
}

fn mirror<T: FactorScalar>(n: usize, tile: &mut [u8]) {
    let elements: &mut [T] = bytemuck::cast_slice_mut(tile);
    for row in 0..n {
        for column in row + 1..n {
            elements[row * n + column] = elements[column * n + row].conjugate();
        }
    }
}

fn invert_columns<T: FactorScalar>(
    [side, pivots]: [usize; 2],
    columns: &[u8],
    below: &[u8],
    out: &mut [u8],
    mut spare: Spare<'_>,
) {
    let (columns, out): (&[T], &mut [T]) = (bytemuck::cast_slice(columns), bytemuck::cast_slice_mut(out));
    let factor = spare.take::<T>(side * pivots);
    let mut from = 0;
    for (column, to) in factor.chunks_exact_mut(side).enumerate() {
        to[..column].fill(T::of(0.0));
        to[column..].copy_from_slice(&columns[from..from + side - column]);
        from += side - column;
    }
    let elements = spare.take::<T>(side * pivots);
    let inverse = spare.take::<T>(pivots * pivots);
    elements.fill(T::of(0.0));
    let (l11, l21) = MatRef::from_column_major_slice(factor, side, pivots).split_at_row(pivots);
    let (mut z11, mut z21) = MatMut::from_column_major_slice_mut(elements, side, pivots).split_at_row_mut(pivots);
    if side > pivots {
        let rest = tile::<T>(below, side - pivots, side - pivots);
        add(z21.as_mut(), (rest, Conj::No), l21);
        right_solved(l11, z21.as_mut());
        add(z11.as_mut(), (l21.transpose(), Conj::Yes), z21.as_ref());
    }
    left_solved(l11, z11, inverse);
    let mut to = 0;
    for (column, from) in elements.chunks_exact(side).enumerate() {
        out[to..to + side - column].copy_from_slice(&from[column..]);
        to += side - column;
    }
}
