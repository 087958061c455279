//! Work with pivots that a search chose: fronts in memory, and tiles of fronts.

use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::candidates::{CandidateSides, Candidates, PivotForm, PivotRecord, PivotRule, PivotedKind};
use super::panel::Panel;
use super::scalar::{rows, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

/// Pivots whose columns are multiplied with D at a time.
const SCALED: usize = 64;

impl PivotedKind {
    fn conjugation(self) -> Conj {
        match self {
            PivotedKind::Hermitian => Conj::Yes,
            _ => Conj::No,
        }
    }
}

impl Panel {
    /// Eliminates candidates, so that no more than `most_left` are left, and gives the pivots: columns of L from the first on,
    /// those of candidates that are left behind them. Of a symmetric matrix the lower triangle of the candidates counts, and
    /// D comes on the diagonal and, of pivots of two rows, below it.
    ///
    /// # Panics
    /// When `data` and `records` have not the lengths that the sides give.
    pub fn eliminate_candidates(
        &self,
        sides: CandidateSides,
        rule: PivotRule,
        most_left: usize,
        data: &mut [u8],
        records: &mut [PivotRecord],
    ) -> usize {
        in_type!(self, eliminate(sides, rule, most_left, data, records))
    }

    /// Subtracts what pivots give from the rest of a front of side `side`, whose columns lie one behind the other: L D Lᴴ from
    /// its lower triangle, or L U from all, with the rows of U made first. With a workspace of [`Panel::rest_bytes`].
    ///
    /// # Panics
    /// When the front has not the length that the sides give.
    pub fn subtract_from_rest(
        &self,
        side: usize,
        pivots: usize,
        kind: PivotedKind,
        records: &[PivotRecord],
        front: &mut [u8],
        workspace: &mut [u8],
    ) {
        in_type!(
            self,
            subtract_from_rest(side, pivots, kind, records, front, Spare::new(workspace))
        );
    }

    /// Bytes of the workspace of [`Panel::subtract_from_rest`].
    pub fn rest_bytes(&self, side: usize) -> usize {
        taken::<u8>(&[side * (SCALED + 1) * self.dtype.size()]) + SKIPPED
    }

    /// `W = B D` for B of `n x k`, row by row, and the pivots of a packed triangle; 0 in columns of no pivot.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn times_pivots(
        &self,
        [n, k]: [usize; 2],
        kind: PivotedKind,
        b: &[u8],
        triangle: &[u8],
        records: &[PivotRecord],
        w: &mut [u8],
    ) {
        in_type!(self, times_pivots([n, k], kind, b, triangle, records, w));
    }

    /// `C −= A Wᴴ`, or `A Wᵀ`, for A of `m x k` and W of `n x k`; on and below the diagonal alone where `is_square`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_scaled(
        &self,
        [m, n, k]: [usize; 3],
        kind: PivotedKind,
        is_square: bool,
        [a, w]: [&[u8]; 2],
        c: &mut [u8],
    ) {
        in_type!(self, subtract_scaled([m, n, k], kind, is_square, [a, w], c));
    }

    /// `C −= A B` for the first `pivots` columns of A of `m x k` and rows of B of `k x n`, row by row.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_rows(&self, [m, n, k]: [usize; 3], pivots: usize, a: &[u8], b: &[u8], c: &mut [u8]) {
        in_type!(self, subtract_rows([m, n, k], pivots, a, b, c));
    }

    /// `B := L⁻¹ B` for the unit lower triangle of the first `pivots` rows of L of `n x n`, and the rows behind them less what
    /// these pivots give; B of `n x k`, row by row.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn solve_unit_rows(&self, [n, pivots, k]: [usize; 3], l: &[u8], b: &mut [u8]) {
        in_type!(self, solve_unit_rows([n, pivots, k], l, b));
    }
}

fn eliminate<T: FactorScalar>(
    sides: CandidateSides,
    rule: PivotRule,
    most_left: usize,
    data: &mut [u8],
    records: &mut [PivotRecord],
) -> usize {
    let data: &mut [T] = bytemuck::cast_slice_mut(data);
    if rule.kind != PivotedKind::Unsymmetric {
        for column in 0..sides.width {
            for row in column + 1..sides.width {
                let value = data[column * sides.lead + row];
                data[row * sides.lead + column] = match rule.kind {
                    PivotedKind::Hermitian => value.conjugate(),
                    _ => value,
                };
            }
        }
    }
    Candidates::new(data, sides, rule, records).eliminate(most_left)
}

/// D of a pivot and the one behind it: on the diagonal, and below it where they belong together.
struct PivotValues<T> {
    own: T,
    below: Option<T>,
}

/// The columns of `W = B D` that belong to a pivot, from those of B.
fn scaled<T: FactorScalar>(of: &PivotValues<T>, next: T, kind: PivotedKind, first: T, second: T) -> [T; 2] {
    match of.below {
        None => [first.times(of.own), T::of(0.0)],
        Some(below) => {
            let across = match kind {
                PivotedKind::Hermitian => below.conjugate(),
                _ => below,
            };
            [
                first.times(of.own) + second.times(below),
                first.times(across) + second.times(next),
            ]
        }
    }
}

fn subtract_from_rest<T: FactorScalar>(
    side: usize,
    pivots: usize,
    kind: PivotedKind,
    records: &[PivotRecord],
    front: &mut [u8],
    mut spare: Spare<'_>,
) {
    let data: &mut [T] = bytemuck::cast_slice_mut(front);
    let width = records.len();
    let rest = side - width;
    if rest == 0 || pivots == 0 {
        return;
    }
    let (own, others) = data.split_at_mut(width * side);
    let l = MatRef::from_column_major_slice(&*own, side, width);
    let mut others = MatMut::from_column_major_slice_mut(others, side, rest);
    if kind == PivotedKind::Unsymmetric {
        let moved = spare.take::<T>(width);
        for mut column in others.as_mut().col_iter_mut() {
            for (place, record) in records.iter().enumerate() {
                moved[place] = column[record.row as usize];
            }
            for (place, &value) in moved.iter().enumerate() {
                column[place] = value;
            }
        }
        let (mut upper, lower) = others.split_at_row_mut(pivots);
        let triangle = l.get(..pivots, ..pivots);
        solve::solve_unit_lower_triangular_in_place_with_conj(triangle, Conj::No, upper.as_mut(), Par::Seq);
        subtract_product(lower, l.get(pivots.., ..pivots), (upper.as_ref(), Conj::No));
        return;
    }
    let lower = others.split_at_row_mut(width).1;
    subtract_from_triangle(
        own,
        (side, width, pivots),
        (kind, records),
        lower,
        spare.take::<T>(rest * (SCALED + 1)),
    );
}

/// Subtracts L D Lᴴ from the rows below the candidates.
fn subtract_from_triangle<T: FactorScalar>(
    own: &[T],
    (side, width, pivots): (usize, usize, usize),
    (kind, records): (PivotedKind, &[PivotRecord]),
    mut lower: MatMut<'_, T>,
    w: &mut [T],
) {
    let rest = side - width;
    let mut begin = 0;
    while begin < pivots {
        let mut end = pivots.min(begin + SCALED);
        end += usize::from(records[end - 1].form == PivotForm::FIRST);
        let mut pivot = begin;
        while pivot < end {
            let is_pair = records[pivot].form == PivotForm::FIRST;
            let values = PivotValues {
                own: own[pivot * side + pivot],
                below: is_pair.then(|| own[pivot * side + pivot + 1]),
            };
            let next = if is_pair {
                own[(pivot + 1) * side + pivot + 1]
            } else {
                T::of(0.0)
            };
            for row in 0..rest {
                let first = own[pivot * side + width + row];
                let second = if is_pair {
                    own[(pivot + 1) * side + width + row]
                } else {
                    T::of(0.0)
                };
                let [one, other] = scaled(&values, next, kind, first, second);
                w[(pivot - begin) * rest + row] = one;
                if is_pair {
                    w[(pivot + 1 - begin) * rest + row] = other;
                }
            }
            pivot += 1 + usize::from(is_pair);
        }
        let l = MatRef::from_column_major_slice(own, side, width).get(width.., begin..end);
        let w = MatRef::from_column_major_slice(&w[..rest * (end - begin)], rest, end - begin);
        triangular::matmul_with_conj(
            lower.as_mut(),
            BlockStructure::TriangularLower,
            Accum::Add,
            l,
            BlockStructure::Rectangular,
            Conj::No,
            w.transpose(),
            BlockStructure::Rectangular,
            kind.conjugation(),
            T::of(-1.0),
            Par::Seq,
        );
        begin = end;
    }
}

fn subtract_product<T: FactorScalar>(c: MatMut<'_, T>, a: MatRef<'_, T>, (b, conj): (MatRef<'_, T>, Conj)) {
    matmul_with_conj(c, Accum::Add, a, Conj::No, b, conj, T::of(-1.0), Par::Seq);
}

fn times_pivots<T: FactorScalar>(
    [n, k]: [usize; 2],
    kind: PivotedKind,
    b: &[u8],
    triangle: &[u8],
    records: &[PivotRecord],
    w: &mut [u8],
) {
    let (b, w): (&[T], &mut [T]) = (bytemuck::cast_slice(b), bytemuck::cast_slice_mut(w));
    let triangle: &[T] = bytemuck::cast_slice(triangle);
    let diagonal = |row: usize| triangle[row * (row + 1) / 2 + row];
    w.fill(T::of(0.0));
    for (pivot, record) in records.iter().enumerate().take(k) {
        let is_pair = record.form == PivotForm::FIRST;
        if record.form.is_left() || record.form == PivotForm::SECOND {
            continue;
        }
        let values = PivotValues {
            own: diagonal(pivot),
            below: is_pair.then(|| triangle[(pivot + 1) * (pivot + 2) / 2 + pivot]),
        };
        let next = if is_pair { diagonal(pivot + 1) } else { T::of(0.0) };
        for row in 0..n {
            let at = row * k + pivot;
            let second = if is_pair { b[at + 1] } else { T::of(0.0) };
            let [one, other] = scaled(&values, next, kind, b[at], second);
            w[at] = one;
            if is_pair {
                w[at + 1] = other;
            }
        }
    }
}

fn subtract_scaled<T: FactorScalar>(
    [m, n, k]: [usize; 3],
    kind: PivotedKind,
    is_square: bool,
    [a, w]: [&[u8]; 2],
    c: &mut [u8],
) {
    let (a, w) = (
        MatRef::<T>::from_row_major_slice(bytemuck::cast_slice(a), m, k),
        MatRef::<T>::from_row_major_slice(bytemuck::cast_slice(w), n, k),
    );
    let c = rows::<T>(bytemuck::cast_slice_mut(c), m, n);
    if !is_square {
        return subtract_product(c, a, (w.transpose(), kind.conjugation()));
    }
    triangular::matmul_with_conj(
        c,
        BlockStructure::TriangularLower,
        Accum::Add,
        a,
        BlockStructure::Rectangular,
        Conj::No,
        w.transpose(),
        BlockStructure::Rectangular,
        kind.conjugation(),
        T::of(-1.0),
        Par::Seq,
    );
}

fn subtract_rows<T: FactorScalar>([m, n, k]: [usize; 3], pivots: usize, a: &[u8], b: &[u8], c: &mut [u8]) {
    let (a, b) = (
        MatRef::<T>::from_row_major_slice(bytemuck::cast_slice(a), m, k),
        MatRef::<T>::from_row_major_slice(bytemuck::cast_slice(b), k, n),
    );
    let c = rows::<T>(bytemuck::cast_slice_mut(c), m, n);
    subtract_product(c, a.get(.., ..pivots), (b.get(..pivots, ..), Conj::No));
}

fn solve_unit_rows<T: FactorScalar>([n, pivots, k]: [usize; 3], l: &[u8], b: &mut [u8]) {
    let l = MatRef::<T>::from_row_major_slice(bytemuck::cast_slice(l), n, n);
    let b = rows::<T>(bytemuck::cast_slice_mut(b), n, k);
    let (mut upper, lower) = b.split_at_row_mut(pivots);
    solve::solve_unit_lower_triangular_in_place_with_conj(
        l.get(..pivots, ..pivots),
        Conj::No,
        upper.as_mut(),
        Par::Seq,
    );
    subtract_product(lower, l.get(pivots.., ..pivots), (upper.as_ref(), Conj::No));
}
