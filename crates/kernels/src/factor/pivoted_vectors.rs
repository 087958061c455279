//! Right-hand sides beside blocks of pivots: those of a tile of a front, and those of a front's columns.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::candidates::{PivotForm, PivotRecord, PivotedKind};
use super::pivoting::Transposition;
use super::scalar::{rows, tile, FactorScalar};
use super::vectors::RightHandSides;

impl Transposition {
    fn conjugation(self) -> Conj {
        match self {
            Transposition::Adjoint => Conj::Yes,
            _ => Conj::No,
        }
    }

    fn of<T: FactorScalar>(self, value: T) -> T {
        match self {
            Transposition::Adjoint => value.conjugate(),
            _ => value,
        }
    }
}

/// Triangles of a block of pivots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PivotTriangle {
    /// L, with 1 on its diagonal.
    Lower,
    /// U.
    Upper,
}

/// The columns of L of a front, from the diagonal down, each followed by its row of U where the matrix is not symmetric.
#[derive(Clone, Copy, Debug)]
pub struct PivotColumns<'a> {
    pub kind: PivotedKind,
    pub pivots: usize,
    pub records: &'a [PivotRecord],
    pub data: &'a [u8],
}

impl RightHandSides {
    /// `Y −= A X` for A of `m x n`, row by row, or `Aᵀ`, `Aᴴ` for A of `n x m`; Y of `m x k`.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn subtract_turned(&self, [m, k, n]: [usize; 3], a: &[u8], turn: Transposition, x: &[u8], y: &mut [u8]) {
        in_type!(self.panel, subtract_turned([m, k, n], a, turn, x, y));
    }

    /// Solves with the triangle of `pivots` rows of a block of `n x n`, row by row, for X of `n x k`, and subtracts what its
    /// other rows give: forward from the pivots to the rows behind them, backward from these to the pivots. Triangles of U
    /// that are turned go forward, as L does.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn solve_pivots(
        &self,
        [n, pivots, k]: [usize; 3],
        block: &[u8],
        triangle: PivotTriangle,
        turn: Transposition,
        x: &mut [u8],
    ) {
        in_type!(self.panel, solve_pivots([n, pivots, k], block, triangle, turn, x));
    }

    /// `X := D⁻¹ X` for the pivots of a block of `n x n`, row by row.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn divide_pivots(
        &self,
        [n, k]: [usize; 2],
        kind: PivotedKind,
        block: &[u8],
        records: &[PivotRecord],
        x: &mut [u8],
    ) {
        in_type!(self.panel, divide_pivots([n, k], kind, block, records, x));
    }

    /// Solves with L from the first column on: rows of X at `rows` for the candidates and the rows below them.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn forward_columns(
        &self,
        columns: PivotColumns<'_>,
        width: usize,
        turn: Transposition,
        rows: &[usize],
        x: &mut [u8],
    ) {
        in_type!(self.panel, forward_columns(columns, width, turn, rows, x));
    }

    /// Solves with D Lᴴ, or U, from the last row on: `pivots` of Y at `from`, rows of X at `rows`.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn backward_columns(
        &self,
        columns: PivotColumns<'_>,
        width: usize,
        turn: Transposition,
        (from, rows): (&[usize], &[usize]),
        y: &[u8],
        x: &mut [u8],
    ) {
        in_type!(self.panel, backward_columns(columns, width, turn, (from, rows), y, x));
    }
}

fn product<T: FactorScalar>(y: MatMut<'_, T>, (a, conj): (MatRef<'_, T>, Conj), x: MatRef<'_, T>) {
    matmul_with_conj(y, Accum::Add, a, conj, x, Conj::No, T::of(-1.0), Par::Seq);
}

fn subtract_turned<T: FactorScalar>([m, k, n]: [usize; 3], a: &[u8], turn: Transposition, x: &[u8], y: &mut [u8]) {
    let a = match turn {
        Transposition::None => tile::<T>(a, m, n),
        _ => tile::<T>(a, n, m).transpose(),
    };
    product(
        rows::<T>(bytemuck::cast_slice_mut(y), m, k),
        (a, turn.conjugation()),
        tile::<T>(x, n, k),
    );
}

fn solve_pivots<T: FactorScalar>(
    [n, pivots, k]: [usize; 3],
    block: &[u8],
    triangle: PivotTriangle,
    turn: Transposition,
    x: &mut [u8],
) {
    let block = tile::<T>(block, n, n);
    let (mut own, mut others) = rows::<T>(bytemuck::cast_slice_mut(x), n, k).split_at_row_mut(pivots);
    let conj = turn.conjugation();
    let corner = block.get(..pivots, ..pivots);

    match (triangle, turn) {
        (PivotTriangle::Lower, Transposition::None) => {
            solve::solve_unit_lower_triangular_in_place_with_conj(corner, conj, own.as_mut(), Par::Seq);
            product(others, (block.get(pivots.., ..pivots), conj), own.as_ref());
        }
        (PivotTriangle::Lower, _) => {
            let beside = block.get(pivots.., ..pivots).transpose();
            product(own.as_mut(), (beside, conj), others.as_mut().as_ref());
            solve::solve_unit_upper_triangular_in_place_with_conj(corner.transpose(), conj, own, Par::Seq);
        }
        (PivotTriangle::Upper, Transposition::None) => {
            product(
                own.as_mut(),
                (block.get(..pivots, pivots..), conj),
                others.as_mut().as_ref(),
            );
            solve::solve_upper_triangular_in_place_with_conj(corner, conj, own, Par::Seq);
        }
        (PivotTriangle::Upper, _) => {
            solve::solve_lower_triangular_in_place_with_conj(corner.transpose(), conj, own.as_mut(), Par::Seq);
            product(others, (block.get(..pivots, pivots..).transpose(), conj), own.as_ref());
        }
    }
}

/// `[x y] := D⁻¹ [x y]` of two rows of right-hand sides, for D = [a b̄; b c].
fn divide_pair<T: FactorScalar>([a, b, c]: [T; 3], kind: PivotedKind, first: &mut [T], second: &mut [T]) {
    let across = match kind {
        PivotedKind::Hermitian => b.conjugate(),
        _ => b,
    };
    let (a1, c1) = (a.times(b.inverse()), c.times(across.inverse()));
    let determinant = a1.times(c1) - T::of(1.0);
    let (by_b, by_across) = (b.times(determinant).inverse(), across.times(determinant).inverse());
    for (x, y) in first.iter_mut().zip(second) {
        let (own, other) = (*x, *y);
        *x = own.times(c1).times(by_b) - other.times(by_b);
        *y = other.times(a1).times(by_across) - own.times(by_across);
    }
}

fn divide_pivots<T: FactorScalar>(
    [n, k]: [usize; 2],
    kind: PivotedKind,
    block: &[u8],
    records: &[PivotRecord],
    x: &mut [u8],
) {
    let (block, x): (&[T], &mut [T]) = (bytemuck::cast_slice(block), bytemuck::cast_slice_mut(x));
    for (pivot, record) in records.iter().enumerate() {
        let own = block[pivot * n + pivot];
        let (first, rest) = x[pivot * k..].split_at_mut(k);
        match record.form {
            PivotForm::FIRST => {
                let d = [own, block[(pivot + 1) * n + pivot], block[(pivot + 1) * n + pivot + 1]];
                divide_pair(d, kind, first, &mut rest[..k]);
            }
            PivotForm::SECOND => {}
            form if form.is_left() => {}
            _ => {
                let inverse = own.inverse();
                first.iter_mut().for_each(|value| *value = value.times(inverse));
            }
        }
    }
}

/// Where the parts of a pivot begin: its column of L, and its row of U behind the diagonal.
fn parts<T>(columns: &PivotColumns<'_>, side: usize, data: &[T]) -> Vec<usize> {
    let mut begin = 0;
    let starts = (0..columns.pivots).map(|pivot| {
        let start = begin;
        begin += side - pivot;
        if columns.kind == PivotedKind::Unsymmetric {
            begin += side - pivot - 1;
        }
        start
    });
    let starts = starts.collect();
    debug_assert!(begin <= data.len());
    starts
}

/// `to −= factor · from` of rows of X.
fn subtract_row<T: FactorScalar>(x: &mut [T], width: usize, [from, to]: [usize; 2], factor: T) {
    for at in 0..width {
        let value = factor.times(x[from * width + at]);
        x[to * width + at] -= value;
    }
}

fn forward_columns<T: FactorScalar>(
    columns: PivotColumns<'_>,
    width: usize,
    turn: Transposition,
    rows: &[usize],
    x: &mut [u8],
) {
    let (data, x): (&[T], &mut [T]) = (bytemuck::cast_slice(columns.data), bytemuck::cast_slice_mut(x));
    for (pivot, start) in parts(&columns, rows.len(), data).into_iter().enumerate() {
        let behind = rows.len() - pivot - 1;
        // A transposed solve goes forward with U, whose diagonal is that of L's column.
        let part = match turn {
            Transposition::None => &data[start + 1..start + 1 + behind],
            _ => {
                let inverse = turn.of(data[start]).inverse();
                let own = &mut x[rows[pivot] * width..(rows[pivot] + 1) * width];
                own.iter_mut().for_each(|value| *value = value.times(inverse));
                &data[start + 1 + behind..start + 1 + 2 * behind]
            }
        };
        let is_first = columns.records[pivot].form == PivotForm::FIRST && turn == Transposition::None;
        for (&factor, &row) in part.iter().zip(&rows[pivot + 1..]).skip(usize::from(is_first)) {
            subtract_row(x, width, [rows[pivot], row], turn.of(factor));
        }
    }
}

fn backward_columns<T: FactorScalar>(
    columns: PivotColumns<'_>,
    width: usize,
    turn: Transposition,
    (from, rows): (&[usize], &[usize]),
    y: &[u8],
    x: &mut [u8],
) {
    let data: &[T] = bytemuck::cast_slice(columns.data);
    let (y, x): (&[T], &mut [T]) = (bytemuck::cast_slice(y), bytemuck::cast_slice_mut(x));
    let starts = parts(&columns, rows.len(), data);
    let is_symmetric = columns.kind != PivotedKind::Unsymmetric;
    let mut pivot = columns.pivots;
    while pivot > 0 {
        let is_pair = columns.records[pivot - 1].form == PivotForm::SECOND;
        let first = pivot - 1 - usize::from(is_pair);
        for own in first..pivot {
            x[rows[own] * width..(rows[own] + 1) * width]
                .copy_from_slice(&y[from[own] * width..(from[own] + 1) * width]);
        }
        let diagonal = |pivot: usize| data[starts[pivot]];
        let scale = |x: &mut [T], own: usize, value: T| {
            let inverse = value.inverse();
            x[rows[own] * width..(rows[own] + 1) * width]
                .iter_mut()
                .for_each(|value| *value = value.times(inverse));
        };
        if is_symmetric && is_pair {
            let d = [diagonal(first), data[starts[first] + 1], diagonal(first + 1)];
            let mut pair = [vec![T::of(0.0); width], vec![T::of(0.0); width]];
            for (own, part) in (first..pivot).zip(&mut pair) {
                part.copy_from_slice(&x[rows[own] * width..(rows[own] + 1) * width]);
            }
            let [one, other] = &mut pair;
            divide_pair(d, columns.kind, one, other);
            for (own, part) in (first..pivot).zip(&pair) {
                x[rows[own] * width..(rows[own] + 1) * width].copy_from_slice(part);
            }
        } else if is_symmetric {
            scale(x, first, diagonal(first));
        }
        for own in first..pivot {
            let behind = rows.len() - own - 1;
            let start = starts[own] + 1;
            // L turned, of a symmetric matrix or for a transposed solve; else the row of U.
            let is_lower = is_symmetric || turn != Transposition::None;
            let part = match is_lower {
                true => &data[start..start + behind],
                false => &data[start + behind..start + 2 * behind],
            };
            let skipped = usize::from(is_symmetric && is_pair && own == first);
            for (&factor, &row) in part.iter().zip(&rows[own + 1..]).skip(skipped) {
                let factor = match columns.kind {
                    PivotedKind::Hermitian => factor.conjugate(),
                    _ => turn.of(factor),
                };
                subtract_row(x, width, [row, rows[own]], factor);
            }
        }
        if !is_symmetric && turn == Transposition::None {
            scale(x, first, diagonal(first));
        }
        pivot = first;
    }
}
