//! Fronts of a sparse factorization in memory: elimination of their first columns, and contribution blocks that are added.
//!
//! A front lies column by column, and only its lower triangle counts (Liu, The multifrontal method for sparse matrix solution,
//! SIAM Review 34 (1992)). All is done in the caller's thread.

use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, Par};

use super::failure::BadPivot;
use super::panel::Panel;
use super::scalar::FactorScalar;
use crate::spare::{Spare, SKIPPED};

/// Pivots up to which loops over columns take less time than calls of blocked kernels.
const FEW: usize = 4;

impl Panel {
    /// Eliminates the first `pivots` columns of a front of side `side`: they become columns of L, and the rest C − L₂ L₂ᴴ. With
    /// a workspace of [`Panel::elimination_bytes`].
    ///
    /// # Errors
    /// The first pivot that is not positive; the front is of no use then.
    ///
    /// # Panics
    /// When the front has not the length that the sizes give.
    pub fn eliminate(
        &self,
        [side, pivots]: [usize; 2],
        front: &mut [u8],
        workspace: &mut [u8],
    ) -> Result<(), BadPivot> {
        in_any_type!(self, eliminate([side, pivots], front, Spare::new(workspace)))
    }

    /// Bytes of the workspace of [`Panel::eliminate`].
    pub fn elimination_bytes(&self, pivots: usize) -> usize {
        in_any_type!(self, factor_scratch(pivots)) + SKIPPED
    }
}

fn factor_scratch<T: FactorScalar>(n: usize) -> usize {
    let request = llt::cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default());
    request.size_bytes() + request.align_bytes()
}

fn eliminate<T: FactorScalar>(
    [side, pivots]: [usize; 2],
    front: &mut [u8],
    mut spare: Spare<'_>,
) -> Result<(), BadPivot> {
    let elements: &mut [T] = bytemuck::cast_slice_mut(front);
    if pivots <= FEW {
        return by_columns([side, pivots], elements);
    }
    let front = MatMut::from_column_major_slice_mut(elements, side, side);
    let (mut l11, _, mut l21, c) = front.split_at_mut(pivots, pivots);
    llt::cholesky_in_place(
        l11.as_mut(),
        Default::default(),
        Par::Seq,
        spare.stack(),
        Default::default(),
    )
    .map_err(|llt::LltError::NonPositivePivot { index }| BadPivot(index))?;
    if side == pivots {
        return Ok(());
    }
    // X Lᴴ = B is conj(L) Xᵀ = Bᵀ.
    let right = l21.as_mut().transpose_mut();
    solve::solve_lower_triangular_in_place_with_conj(l11.as_ref(), Conj::Yes, right, Par::Seq);
    triangular::matmul_with_conj(
        c,
        BlockStructure::TriangularLower,
        Accum::Add,
        l21.as_ref(),
        BlockStructure::Rectangular,
        Conj::No,
        l21.as_ref().transpose(),
        BlockStructure::Rectangular,
        Conj::Yes,
        T::of(-1.0),
        Par::Seq,
    );
    Ok(())
}

/// As [`eliminate`], column by column.
fn by_columns<T: FactorScalar>([side, pivots]: [usize; 2], front: &mut [T]) -> Result<(), BadPivot> {
    for pivot in 0..pivots {
        let (before, after) = front.split_at_mut((pivot + 1) * side);
        let column = &mut before[pivot * side + pivot..];
        let diagonal = column[0].real();
        if diagonal.is_nan() || diagonal <= 0.0 {
            return Err(BadPivot(pivot));
        }
        let root = diagonal.sqrt();
        let inverse = T::of(1.0 / root);
        column[0] = T::of(root);
        column[1..].iter_mut().for_each(|value| *value = value.times(inverse));
        for (offset, target) in after.chunks_exact_mut(side).enumerate() {
            let below = &column[1 + offset..];
            let factor = below[0].conjugate();
            if factor.size() == 0.0 {
                continue;
            }
            let target = &mut target[side - below.len()..];
            for (value, &other) in target.iter_mut().zip(below) {
                *value -= other.times(factor);
            }
        }
    }
    Ok(())
}
