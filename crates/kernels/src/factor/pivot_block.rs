//! Blocks of pivots in columns of tiles, and what all work on them shares.

use faer::linalg::matmul::matmul_with_conj;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::scalar::FactorScalar;

/// How the elements of a tile lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileLayout {
    Rows,
    Columns,
}

/// A pivot that is zero or not finite, and its column within the panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoPivot {
    pub column: usize,
    pub is_zero: bool,
}

/// A block of pivots of a factor: the tile that has it, of so many rows, the first of its rows there and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PivotBlock {
    pub height: usize,
    pub first: usize,
    pub width: usize,
}

pub(super) fn matrix<T: FactorScalar>(data: &[u8], height: usize, width: usize, layout: TileLayout) -> MatRef<'_, T> {
    let data = bytemuck::cast_slice(data);
    match layout {
        TileLayout::Rows => MatRef::from_row_major_slice(data, height, width),
        TileLayout::Columns => MatRef::from_column_major_slice(data, height, width),
    }
}

pub(super) fn matrix_mut<T: FactorScalar>(
    data: &mut [u8],
    height: usize,
    width: usize,
    layout: TileLayout,
) -> MatMut<'_, T> {
    let data = bytemuck::cast_slice_mut(data);
    match layout {
        TileLayout::Rows => MatMut::from_row_major_slice_mut(data, height, width),
        TileLayout::Columns => MatMut::from_column_major_slice_mut(data, height, width),
    }
}

pub(super) fn rows_of<T: FactorScalar>(data: &[u8], width: usize) -> usize {
    data.len() / (width * size_of::<T>()).max(1)
}

pub(super) fn subtract<T: FactorScalar>(c: MatMut<'_, T>, a: MatRef<'_, T>, conjugate: Conj, b: MatRef<'_, T>) {
    matmul_with_conj(c, Accum::Add, a, conjugate, b, Conj::No, T::of(-1.0), Par::Seq);
}

/// The larger of two sizes; NaN where one is NaN.
pub(super) fn larger(size: f64, largest: f64) -> f64 {
    if largest.is_nan() {
        return largest;
    }
    if size > largest || size.is_nan() {
        size
    } else {
        largest
    }
}

pub(super) fn largest_of<T: FactorScalar>(block: MatRef<'_, T>) -> f64 {
    let mut most = 0.0;
    for column in 0..block.ncols() {
        for row in 0..block.nrows() {
            most = larger(block[(row, column)].size(), most);
        }
    }
    most
}
