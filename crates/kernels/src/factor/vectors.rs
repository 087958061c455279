//! Right-hand sides beside tiles of a factor: rows that lie one behind the other, as wide as there are right-hand sides.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, Par};

use super::panel::Panel;
use super::scalar::{rows, tile, FactorScalar};

/// Work on right-hand sides with elements of a type, in the caller's thread.
#[derive(Clone, Copy, Debug)]
pub struct RightHandSides {
    pub(super) panel: Panel,
}

impl RightHandSides {
    pub fn new(panel: Panel) -> RightHandSides {
        RightHandSides { panel }
    }

    /// `to += from`.
    pub fn add(&self, from: &[u8], to: &mut [u8]) {
        in_any_type!(self.panel, add(from, to));
    }

    /// `X := L⁻¹ X`, or `L⁻ᴴ X` (`adjoint`), for X of `n x k` and the lower triangle of `l`, row by row.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn solve(&self, [n, k]: [usize; 2], l: &[u8], adjoint: bool, x: &mut [u8]) {
        in_any_type!(self.panel, solve_triangle([n, k], l, adjoint, x));
    }

    /// `Y −= L X`, or `Lᴴ X` (`adjoint`), for Y of `m x k` and X of `n x k`; L lies row by row.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn subtract(&self, [m, k, n]: [usize; 3], l: &[u8], adjoint: bool, x: &[u8], y: &mut [u8]) {
        in_any_type!(self.panel, subtract([m, k, n], l, adjoint, x, y));
    }

    /// Solves with columns of L that lie one behind the other, each from its diagonal on; `rows` has the right-hand sides from
    /// `first` on at the pivots and at `targets` below them, from where products are subtracted.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn forward(&self, sizes: [usize; 3], columns: &[u8], targets: &[usize], rows: &mut [u8]) {
        in_any_type!(self.panel, forward(sizes, columns, targets, rows));
    }

    /// As [`RightHandSides::forward`], with Lᴴ from the last column to the first.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn backward(&self, sizes: [usize; 3], columns: &[u8], targets: &[usize], rows: &mut [u8]) {
        in_any_type!(self.panel, backward(sizes, columns, targets, rows));
    }
}

fn add<T: FactorScalar>(from: &[u8], to: &mut [u8]) {
    let (from, to): (&[T], &mut [T]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
}

fn solve_triangle<T: FactorScalar>([n, k]: [usize; 2], l: &[u8], adjoint: bool, x: &mut [u8]) {
    let (l, x) = (tile::<T>(l, n, n), rows::<T>(bytemuck::cast_slice_mut(x), n, k));
    match adjoint {
        false => solve::solve_lower_triangular_in_place_with_conj(l, Conj::No, x, Par::Seq),
        true => solve::solve_upper_triangular_in_place_with_conj(l.transpose(), Conj::Yes, x, Par::Seq),
    }
}

fn subtract<T: FactorScalar>([m, k, n]: [usize; 3], l: &[u8], adjoint: bool, x: &[u8], y: &mut [u8]) {
    let (l, conjugate) = match adjoint {
        false => (tile::<T>(l, m, n), Conj::No),
        true => (tile::<T>(l, n, m).transpose(), Conj::Yes),
    };
    matmul_with_conj(
        rows::<T>(bytemuck::cast_slice_mut(y), m, k),
        Accum::Add,
        l,
        conjugate,
        tile::<T>(x, n, k),
        Conj::No,
        T::of(-1.0),
        Par::Seq,
    );
}

/// `to −= factor · from`.
fn subtract_row<T: FactorScalar>(factor: T, from: &[T], to: &mut [T]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, from)| *to -= factor.times(*from));
}

fn forward<T: FactorScalar>([pivots, width, first]: [usize; 3], columns: &[u8], targets: &[usize], data: &mut [u8]) {
    let mut columns: &[T] = bytemuck::cast_slice(columns);
    let data: &mut [T] = bytemuck::cast_slice_mut(data);
    for pivot in 0..pivots {
        let (column, rest) = columns.split_at(pivots - pivot + targets.len());
        columns = rest;
        let at = (first + pivot) * width;
        let inverse = T::of(1.0 / column[0].real());
        let (before, after) = data.split_at_mut(at + width);
        let own = &mut before[at..];
        own.iter_mut().for_each(|value| *value = value.times(inverse));
        let (beside, below) = column[1..].split_at(pivots - pivot - 1);
        for (&factor, to) in beside.iter().zip(after.chunks_exact_mut(width)) {
            subtract_row(factor, own, to);
        }
        for (&factor, &target) in below.iter().zip(targets) {
            let to = target * width - (at + width);
            subtract_row(factor, own, &mut after[to..to + width]);
        }
    }
}

fn backward<T: FactorScalar>([pivots, width, first]: [usize; 3], columns: &[u8], targets: &[usize], data: &mut [u8]) {
    let mut columns: &[T] = bytemuck::cast_slice(columns);
    let data: &mut [T] = bytemuck::cast_slice_mut(data);
    for pivot in (0..pivots).rev() {
        let (rest, column) = columns.split_at(columns.len() - (pivots - pivot + targets.len()));
        columns = rest;
        let at = (first + pivot) * width;
        let (before, after) = data.split_at_mut(at + width);
        let own = &mut before[at..];
        let (beside, below) = column[1..].split_at(pivots - pivot - 1);
        for (&factor, from) in beside.iter().zip(after.chunks_exact(width)) {
            subtract_row(factor.conjugate(), from, own);
        }
        for (&factor, &target) in below.iter().zip(targets) {
            let from = target * width - (at + width);
            subtract_row(factor.conjugate(), &after[from..from + width], own);
        }
        let inverse = T::of(1.0 / column[0].real());
        own.iter_mut().for_each(|value| *value = value.times(inverse));
    }
}
