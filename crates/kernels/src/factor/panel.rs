//! Work on tiles of a factorization, in place: products that are subtracted, triangular solves and products, the factor of a
//! diagonal tile (`gemm`, `herk`, `trsm`, `trmm` and `potrf` of BLAS and LAPACK).
//!
//! Tiles lie row by row. All is done in the caller's thread, so the bits depend on the tiles alone.

use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};
use outcore_dtype::DType;

use super::failure::BadPivot;
use super::scalar::{rows, tile, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

/// Work on tiles with elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    pub(super) dtype: DType,
}

fn tile_mut<T: FactorScalar>(data: &mut [u8], height: usize, width: usize) -> MatMut<'_, T> {
    rows(bytemuck::cast_slice_mut(data), height, width)
}

impl Panel {
    /// Work in float64 or complex128; nothing for other types.
    pub fn new(dtype: DType) -> Option<Panel> {
        matches!(dtype, DType::F64 | DType::C128).then_some(Panel { dtype })
    }

    /// Work in single precision too: what Cholesky factors and their sweeps ask for, of which alone there is such.
    pub fn of_any_precision(dtype: DType) -> Option<Panel> {
        matches!(dtype, DType::F32 | DType::C64)
            .then_some(Panel { dtype })
            .or(Panel::new(dtype))
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// `C −= A Bᴴ` for `A` of `m x k`, `B` of `n x k`, `C` of `m x n`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_product(&self, [m, n, k]: [usize; 3], a: &[u8], b: &[u8], c: &mut [u8]) {
        in_any_type!(self, subtract_product([m, n, k], a, b, c));
    }

    /// `C −= A Aᴴ` on and below the diagonal, for `A` of `n x k`; what is above the diagonal of `C` stays.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_square(&self, [n, k]: [usize; 2], a: &[u8], c: &mut [u8]) {
        in_any_type!(self, subtract_square([n, k], a, c));
    }

    /// `B := B L⁻ᴴ` for `B` of `m x n` and `L` of `n x n`, of which the lower triangle is read.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_right(&self, [m, n]: [usize; 2], l: &[u8], b: &mut [u8]) {
        in_any_type!(self, solve_right([m, n], l, b));
    }

    /// `B := L⁻¹ B`, or `L⁻ᴴ B` (`adjoint`), for `B` of `n x k`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_left(&self, [n, k]: [usize; 2], l: &[u8], adjoint: bool, b: &mut [u8]) {
        in_any_type!(self, solve_left([n, k], l, adjoint, b));
    }

    /// `B := L B`, or `Lᴴ B` (`adjoint`), for `B` of `n x k`, with a workspace of [`Panel::product_bytes`].
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn multiply_left(&self, [n, k]: [usize; 2], l: &[u8], adjoint: bool, b: &mut [u8], workspace: &mut [u8]) {
        in_any_type!(self, multiply_left([n, k], l, adjoint, b, Spare::new(workspace)));
    }

    /// Bytes of the workspace of [`Panel::multiply_left`].
    pub fn product_bytes(&self, [n, k]: [usize; 2]) -> usize {
        taken::<u8>(&[n * k * self.dtype.size()]) + SKIPPED
    }

    /// `A = L Lᴴ` in place, of a Hermitian positive definite tile of `n x n`, of which the lower triangle is read; what is above
    /// the diagonal becomes 0. With a workspace of [`Panel::factor_bytes`].
    ///
    /// # Errors
    /// The first pivot that is not positive; the tile is of no use then.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn factorize(&self, n: usize, a: &mut [u8], workspace: &mut [u8]) -> Result<(), BadPivot> {
        in_any_type!(self, factorize(n, a, Spare::new(workspace)))
    }

    /// Bytes of the workspace of [`Panel::factorize`].
    pub fn factor_bytes(&self, n: usize) -> usize {
        let request = in_any_type!(self, factor_scratch(n));
        request + SKIPPED
    }
}

fn subtract_product<T: FactorScalar>([m, n, k]: [usize; 3], a: &[u8], b: &[u8], c: &mut [u8]) {
    matmul_with_conj(
        tile_mut::<T>(c, m, n),
        Accum::Add,
        tile::<T>(a, m, k),
        Conj::No,
        tile::<T>(b, n, k).transpose(),
        Conj::Yes,
        T::of(-1.0),
        Par::Seq,
    );
}

fn subtract_square<T: FactorScalar>([n, k]: [usize; 2], a: &[u8], c: &mut [u8]) {
    let a = tile::<T>(a, n, k);
    triangular::matmul_with_conj(
        tile_mut::<T>(c, n, n),
        BlockStructure::TriangularLower,
        Accum::Add,
        a,
        BlockStructure::Rectangular,
        Conj::No,
        a.transpose(),
        BlockStructure::Rectangular,
        Conj::Yes,
        T::of(-1.0),
        Par::Seq,
    );
}

fn solve_right<T: FactorScalar>([m, n]: [usize; 2], l: &[u8], b: &mut [u8]) {
    // X Lᴴ = B is conj(L) Xᵀ = Bᵀ.
    let right = tile_mut::<T>(b, m, n).transpose_mut();
    solve::solve_lower_triangular_in_place_with_conj(tile::<T>(l, n, n), Conj::Yes, right, Par::Seq);
}

fn solve_left<T: FactorScalar>([n, k]: [usize; 2], l: &[u8], adjoint: bool, b: &mut [u8]) {
    let (l, b) = (tile::<T>(l, n, n), tile_mut::<T>(b, n, k));
    match adjoint {
        false => solve::solve_lower_triangular_in_place_with_conj(l, Conj::No, b, Par::Seq),
        true => solve::solve_upper_triangular_in_place_with_conj(l.transpose(), Conj::Yes, b, Par::Seq),
    }
}

fn multiply_left<T: FactorScalar>([n, k]: [usize; 2], l: &[u8], adjoint: bool, b: &mut [u8], mut spare: Spare<'_>) {
    let before = spare.take::<T>(n * k);
    before.copy_from_slice(bytemuck::cast_slice(b));
    let l = tile::<T>(l, n, n);
    let (l, structure, conjugate) = match adjoint {
        false => (l, BlockStructure::TriangularLower, Conj::No),
        true => (l.transpose(), BlockStructure::TriangularUpper, Conj::Yes),
    };
    triangular::matmul_with_conj(
        tile_mut::<T>(b, n, k),
        BlockStructure::Rectangular,
        Accum::Replace,
        l,
        structure,
        conjugate,
        MatRef::from_row_major_slice(before, n, k),
        BlockStructure::Rectangular,
        Conj::No,
        T::of(1.0),
        Par::Seq,
    );
}

fn factorize<T: FactorScalar>(n: usize, a: &mut [u8], mut spare: Spare<'_>) -> Result<(), BadPivot> {
    let factor = tile_mut::<T>(a, n, n);
    llt::cholesky_in_place(factor, Default::default(), Par::Seq, spare.stack(), Default::default())
        .map_err(|llt::LltError::NonPositivePivot { index }| BadPivot(index))?;
    let elements: &mut [T] = bytemuck::cast_slice_mut(a);
    for (row, elements) in elements.chunks_exact_mut(n.max(1)).enumerate() {
        elements[row + 1..].fill(T::of(0.0));
    }
    Ok(())
}

fn factor_scratch<T: FactorScalar>(n: usize) -> usize {
    let request = llt::cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default());
    request.size_bytes() + request.align_bytes()
}
