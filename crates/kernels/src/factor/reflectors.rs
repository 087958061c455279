//! Householder reflectors of a column of tiles: the factor of the first tile, of a triangle with a tile below it, and products
//! with them (`geqrt`, `tsqrt`, `unmqr` and `tsmqr` of tile algorithms).
//!
//! Buttari, Langou, Kurzak and Dongarra (2009), "A class of parallel tiled linear algebra algorithms for multicore
//! architectures", section 4. Reflectors of so many columns together are I − V T⁻¹ Vᴴ with a triangle T, which has Vᴴ V above
//! its diagonal. Tiles of the matrix lie column by column, in float64 or complex128. All is done in the caller's thread, so the
//! bits depend on the tiles alone.

use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_sequence,
    apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj as apply_transposed_sequence,
    make_householder_in_place,
};
use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::qr::no_pivoting::factor as qr;
use faer::linalg::temp_mat_scratch;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};
use outcore_dtype::DType;

use super::panel::Panel;
use super::pivot_block::{matrix, matrix_mut, rows_of, subtract, TileLayout};
use super::scalar::FactorScalar;
use crate::spare::{taken, Spare, SKIPPED};

/// Reflectors whose triangle is one.
const BLOCK: usize = 64;

/// Work on columns of tiles with elements of a type.
#[derive(Clone, Copy, Debug)]
pub struct Reflectors {
    dtype: DType,
}

impl Reflectors {
    pub fn new(panel: Panel) -> Reflectors {
        Reflectors { dtype: panel.dtype }
    }

    /// Rows of the triangles of so many reflectors, which lie beside each other.
    pub fn triangle_rows(count: usize) -> usize {
        BLOCK.min(count)
    }

    /// `A = Q R` of a tile of `height x width`: `a` becomes the reflectors, `r` the `k x width` triangle and `t` the triangles of
    /// the reflectors, for the smaller side k. With a workspace of [`Reflectors::workspace_bytes`] for `width` columns.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn factorize(&self, sizes: [usize; 2], a: &mut [u8], r: &mut [u8], t: &mut [u8], workspace: &mut [u8]) {
        in_type!(self, factorize(sizes, a, r, t, Spare::new(workspace)));
    }

    /// The factor of a triangle R of `width x width` with a tile of `height x width` below it: `r` becomes the new triangle, `a` the
    /// reflectors without their unit triangle, `t` their triangles. Workspace as [`Reflectors::factorize`].
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn factorize_below(&self, sizes: [usize; 2], r: &mut [u8], a: &mut [u8], t: &mut [u8], workspace: &mut [u8]) {
        in_type!(self, factorize_below(sizes, r, a, t, Spare::new(workspace)));
    }

    /// `C := Qᴴ C` (`adjoint`) or `Q C` for the reflectors of [`Reflectors::factorize`] and a tile `c` of `columns` columns.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn apply(
        &self,
        (sizes, v, t): ([usize; 2], &[u8], &[u8]),
        adjoint: bool,
        (c, layout): (&mut [u8], TileLayout),
        columns: usize,
        workspace: &mut [u8],
    ) {
        in_type!(
            self,
            apply((sizes, v, t), adjoint, (c, layout), columns, Spare::new(workspace))
        );
    }

    /// `[C₁; C₂] := Qᴴ [C₁; C₂]` (`adjoint`) or `Q [C₁; C₂]` for the reflectors of [`Reflectors::factorize_below`]: C₁ are the
    /// first rows of a tile.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn apply_below(
        &self,
        (sizes, v, t): ([usize; 2], &[u8], &[u8]),
        adjoint: bool,
        (c, layout): ([&mut [u8]; 2], TileLayout),
        columns: usize,
        workspace: &mut [u8],
    ) {
        in_type!(
            self,
            apply_both((sizes, v, t), adjoint, (c, layout), columns, Spare::new(workspace))
        );
    }

    /// Elements of a tile of `width` columns, which lies column by column, row by row.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn by_rows(&self, width: usize, tile: &[u8], out: &mut [u8]) {
        in_type!(self, by_rows(width, tile, out));
    }

    /// Bytes of the workspace of all work on tiles with so many columns.
    pub fn workspace_bytes(&self, columns: usize) -> usize {
        in_type!(self, workspace_of(columns)) + SKIPPED
    }
}

fn by_rows<T: FactorScalar>(width: usize, tile: &[u8], out: &mut [u8]) {
    let height = rows_of::<T>(tile, width);
    matrix_mut::<T>(out, height, width, TileLayout::Rows).copy_from(matrix::<T>(
        tile,
        height,
        width,
        TileLayout::Columns,
    ));
}

fn workspace_of<T: FactorScalar>(columns: usize) -> usize {
    let request = temp_mat_scratch::<T>(BLOCK, columns);
    taken::<T>(&[BLOCK * columns]).max(request.size_bytes() + request.align_bytes())
}

fn factorize<T: FactorScalar>(
    [height, width]: [usize; 2],
    a: &mut [u8],
    r: &mut [u8],
    t: &mut [u8],
    mut spare: Spare<'_>,
) {
    let count = height.min(width);
    let mut a = matrix_mut::<T>(a, height, width, TileLayout::Columns);
    let mut t = matrix_mut::<T>(t, BLOCK.min(count), count, TileLayout::Columns);
    t.fill(T::of(0.0));
    qr::qr_in_place(a.as_mut(), t, Par::Seq, spare.stack(), Default::default());
    let mut r = matrix_mut::<T>(r, count, width, TileLayout::Columns);
    for column in 0..width {
        for row in 0..count {
            r[(row, column)] = if row <= column { a[(row, column)] } else { T::of(0.0) };
        }
    }
}

/// The reflectors' columns that share a triangle.
fn blocks(width: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let count = width.div_ceil(BLOCK);
    (0..count).map(move |block| (block * BLOCK, BLOCK.min(width - block * BLOCK)))
}

fn factorize_below<T: FactorScalar>(
    [height, width]: [usize; 2],
    r: &mut [u8],
    a: &mut [u8],
    t: &mut [u8],
    mut spare: Spare<'_>,
) {
    let mut r = matrix_mut::<T>(r, width, width, TileLayout::Columns);
    let mut a = matrix_mut::<T>(a, height, width, TileLayout::Columns);
    let mut t = matrix_mut::<T>(t, BLOCK.min(width), width, TileLayout::Columns);
    t.fill(T::of(0.0));
    let space = spare.take::<T>(BLOCK * width);
    for (start, count) in blocks(width) {
        let (rows, rest) = r.as_mut().subrows_mut(start, count).split_at_col_mut(start + count);
        let (v, c) = a.as_mut().split_at_col_mut(start + count);
        let mut v = v.subcols_mut(start, count);
        let mut t = t.as_mut().submatrix_mut(0, start, count, count);
        reflect(rows.subcols_mut(start, count), v.as_mut(), t.as_mut(), space);
        turn(v.as_ref(), t.as_ref(), true, [rest, c], space);
    }
}

/// Reflectors of few columns by halves of them.
fn reflect<T: FactorScalar>(mut r: MatMut<'_, T>, mut a: MatMut<'_, T>, mut t: MatMut<'_, T>, space: &mut [T]) {
    let count = r.ncols();
    if count == 1 {
        let tau = make_householder_in_place(&mut r[(0, 0)], a.as_mut().col_mut(0)).tau;
        t[(0, 0)] = T::from_real_impl(&tau);
        if !t[(0, 0)].size().is_finite() && !t[(0, 0)].size().is_nan() {
            // No reflector: numbers below the smallest may be left.
            a.fill(T::of(0.0));
        }
        return;
    }
    let half = count / 2;
    let (r11, mut r12, _, r22) = r.as_mut().split_at_mut(half, half);
    let (mut left, mut right) = a.as_mut().split_at_col_mut(half);
    let (mut t11, t12, _, t22) = t.as_mut().split_at_mut(half, half);
    reflect(r11, left.as_mut(), t11.as_mut(), space);
    turn(left.as_ref(), t11.as_ref(), true, [r12.as_mut(), right.as_mut()], space);
    reflect(r22, right.as_mut(), t22, space);
    let (v1, v2) = (left.as_ref(), right.as_ref());
    matmul_with_conj(
        t12,
        Accum::Replace,
        v1.transpose(),
        Conj::Yes,
        v2,
        Conj::No,
        T::of(1.0),
        Par::Seq,
    );
}

/// `[C₁; C₂] := [C₁; C₂] − [I; V] T⁻¹ (C₁ + Vᴴ C₂)`, or with T⁻ᴴ (`adjoint`).
fn turn<T: FactorScalar>(
    v: MatRef<'_, T>,
    t: MatRef<'_, T>,
    adjoint: bool,
    [mut c1, c2]: [MatMut<'_, T>; 2],
    space: &mut [T],
) {
    let (count, columns) = c1.shape();
    if columns == 0 {
        return;
    }
    let space = &mut space[..count * columns];
    // As C lies, so that one product does not go across the other.
    let mut w = match c2.row_stride() {
        1 => MatMut::from_column_major_slice_mut(space, count, columns),
        _ => MatMut::from_row_major_slice_mut(space, count, columns),
    };
    w.copy_from(c1.as_ref());
    matmul_with_conj(
        w.as_mut(),
        Accum::Add,
        v.transpose(),
        Conj::Yes,
        c2.as_ref(),
        Conj::No,
        T::of(1.0),
        Par::Seq,
    );
    match adjoint {
        true => solve::solve_lower_triangular_in_place_with_conj(t.transpose(), Conj::Yes, w.as_mut(), Par::Seq),
        false => solve::solve_upper_triangular_in_place(t, w.as_mut(), Par::Seq),
    }
    c1 -= w.as_ref();
    subtract(c2, v, Conj::No, w.as_ref());
}

fn apply<T: FactorScalar>(
    ([height, width], v, t): ([usize; 2], &[u8], &[u8]),
    adjoint: bool,
    (c, layout): (&mut [u8], TileLayout),
    columns: usize,
    mut spare: Spare<'_>,
) {
    let count = height.min(width);
    let v = matrix::<T>(v, height, width, TileLayout::Columns).subcols(0, count);
    let t = matrix::<T>(t, BLOCK.min(count), count, TileLayout::Columns);
    let c = matrix_mut::<T>(c, height, columns, layout);
    match adjoint {
        true => apply_transposed_sequence(v, t, Conj::Yes, c, Par::Seq, spare.stack()),
        false => apply_sequence(v, t, Conj::No, c, Par::Seq, spare.stack()),
    }
}

fn apply_both<T: FactorScalar>(
    ([height, width], v, t): ([usize; 2], &[u8], &[u8]),
    adjoint: bool,
    ([c1, c2], layout): ([&mut [u8]; 2], TileLayout),
    columns: usize,
    mut spare: Spare<'_>,
) {
    let rows = rows_of::<T>(c1, columns);
    let v = matrix::<T>(v, height, width, TileLayout::Columns);
    let t = matrix::<T>(t, BLOCK.min(width), width, TileLayout::Columns);
    let mut c1 = matrix_mut::<T>(c1, rows, columns, layout);
    let mut c2 = matrix_mut::<T>(c2, height, columns, layout);
    let space = spare.take::<T>(BLOCK * columns);
    let mut step = |(start, count): (usize, usize)| {
        let c = [c1.as_mut().subrows_mut(start, count), c2.as_mut()];
        turn(
            v.subcols(start, count),
            t.submatrix(0, start, count, count),
            adjoint,
            c,
            space,
        );
    };
    match adjoint {
        true => blocks(width).for_each(&mut step),
        false => blocks(width).rev().for_each(&mut step),
    }
}
