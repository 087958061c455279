//! Elimination with threshold pivoting: of a matrix whose first columns and rows are candidates, those that pass the test
//! against all of their column are eliminated, and the others are left for a later front (Duff, Reid, The multifrontal solution
//! of indefinite sparse symmetric linear systems, TOMS 9 (1983); Duff, Reid, TOMS 22 (1996), for pairs).
//!
//! A = L D Lᴴ takes pivots of one row and of two, A = L U rows as well as columns. Columns lie one behind the other; each is
//! brought up to date with the pivots before it when it is looked at, the others in blocks. Of a symmetric matrix columns have
//! the rows of D Lᴴ from when a pivot is taken.

use bytemuck::{Pod, Zeroable};
use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, Par};

use super::scalar::FactorScalar;

/// Pivots that are applied to later columns in one block.
const BLOCK: usize = 32;

/// The threshold that candidates are tested by first: elements grow little where it holds for all, as with the pivots of Bunch
/// and Kaufman (Some stable methods for calculating inertia and solving symmetric linear systems, Math. Comp. 31 (1977)).
const PREFERRED: f64 = 0.35;

/// The factors of a matrix: A = L D Lᴴ, A = L D Lᵀ or A = L U.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PivotedKind {
    Hermitian,
    Symmetric,
    Unsymmetric,
}

/// How pivots are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PivotRule {
    pub kind: PivotedKind,
    /// Elements of a column by its pivot are at most the inverse of this.
    pub threshold: f64,
    /// A pivot that is no larger is none.
    pub zero: f64,
    /// The pivot that is taken where there is none, and none can be left.
    pub perturbation: f64,
}

/// The candidate that a place of the order of elimination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PivotRecord {
    /// The number of the candidate's column, and row.
    pub column: u32,
    pub row: u32,
    pub form: PivotForm,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct PivotForm(pub u32);

impl PivotForm {
    pub const ONE: PivotForm = PivotForm(0);
    /// The first and the second of a pivot of two rows.
    pub const FIRST: PivotForm = PivotForm(1);
    pub const SECOND: PivotForm = PivotForm(2);
    /// A pivot that is another number, for it would make elements below large.
    pub const PERTURBED: PivotForm = PivotForm(3);
    /// A pivot that was 0 with nothing below, and is another number.
    pub const ZERO: PivotForm = PivotForm(4);
    /// No pivot: the first place that the columns left have.
    pub const LEFT: PivotForm = PivotForm(5);

    pub fn is_left(self) -> bool {
        self.0 >= PivotForm::LEFT.0
    }
}

/// The columns of the candidates of a front: `height` rows of which the first `width` are the candidates' own, column after
/// column at a distance of `lead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateSides {
    pub height: usize,
    pub width: usize,
    pub lead: usize,
}

/// Candidates that are pivots next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PivotChoice {
    One { row: usize, column: usize },
    Two([usize; 2]),
    Perturbed { column: usize },
}

/// Columns while they are eliminated.
pub(super) struct Candidates<'a, T> {
    pub data: &'a mut [T],
    pub sides: CandidateSides,
    pub rule: PivotRule,
    /// The threshold of the test, which is that of the rule in the end.
    pub threshold: f64,
    pub records: &'a mut [PivotRecord],
    /// Pivots that each column is up to date with.
    applied: Vec<usize>,
    /// Pivots so far; columns from there to `fresh` are up to date, those from `end` on have failed.
    pub done: usize,
    pub fresh: usize,
    pub end: usize,
    /// Pivots when the others were brought up to date.
    block: usize,
    /// Off-diagonal elements of pivots of two rows, while their places are 0.
    pairs: Vec<(usize, T)>,
}

impl<'a, T: FactorScalar> Candidates<'a, T> {
    pub fn new(
        data: &'a mut [T],
        sides: CandidateSides,
        rule: PivotRule,
        records: &'a mut [PivotRecord],
    ) -> Candidates<'a, T> {
        for (number, record) in records.iter_mut().enumerate() {
            *record = PivotRecord {
                column: number as u32,
                row: number as u32,
                form: PivotForm::LEFT,
            };
        }
        Candidates {
            data,
            sides,
            rule,
            threshold: PREFERRED,
            records,
            applied: vec![0; sides.width],
            done: 0,
            fresh: 0,
            end: sides.width,
            block: 0,
            pairs: vec![],
        }
    }

    /// Eliminates what passes the test, and at least so much that no more than `most_left` columns are left. Gives the pivots.
    pub fn eliminate(mut self, most_left: usize) -> usize {
        for threshold in [PREFERRED.max(self.rule.threshold), self.rule.threshold] {
            self.threshold = threshold;
            let mut before = self.sides.width;
            while self.done != before && self.done < self.sides.width {
                before = self.done;
                self.end = self.sides.width;
                self.pass();
            }
        }
        while self.sides.width - self.done > most_left {
            self.catch_up();
            let choice = self.forced();
            self.take(choice);
        }
        self.catch_up();
        for &(place, value) in &self.pairs {
            self.data[place] = value;
        }
        self.done
    }

    /// Looks at each column once.
    fn pass(&mut self) {
        self.fresh = self.fresh.clamp(self.done, self.end);
        while self.done < self.end {
            if self.done == self.fresh {
                if self.done - self.block >= BLOCK {
                    self.catch_up();
                }
                self.refresh(self.fresh);
            }
            match self.choose(self.done) {
                Some(choice) => self.take(choice),
                None => {
                    self.end -= 1;
                    // The last of those up to date takes its place, and the last that was not looked at that one's.
                    let last = self.fresh - 1;
                    self.exchange(self.done, last);
                    self.exchange(last, self.end);
                    self.fresh = last;
                }
            }
        }
        self.fresh = self.done;
    }

    pub fn at(&self, row: usize, column: usize) -> T {
        self.data[column * self.sides.lead + row]
    }

    fn is_symmetric(&self) -> bool {
        self.rule.kind != PivotedKind::Unsymmetric
    }

    pub fn has_rows_below(&self) -> bool {
        self.sides.height > self.sides.width
    }

    /// Brings a column up to date, and those up to date to it.
    pub fn refresh(&mut self, column: usize) -> usize {
        self.update(column);
        let place = self.fresh;
        self.exchange(place, column);
        self.fresh += 1;
        place
    }

    /// Exchanges two columns, and their rows where the matrix is symmetric.
    pub fn exchange(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        let (one, other) = (one.min(other), one.max(other));
        let (lead, height) = (self.sides.lead, self.sides.height);
        let (before, after) = self.data.split_at_mut(other * lead);
        before[one * lead..one * lead + height].swap_with_slice(&mut after[..height]);
        self.applied.swap(one, other);
        let [a, b] = [self.records[one].column, self.records[other].column];
        (self.records[one].column, self.records[other].column) = (b, a);
        if self.is_symmetric() {
            self.exchange_rows(one, other);
        }
    }

    pub fn exchange_rows(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        for column in 0..self.sides.width {
            let start = column * self.sides.lead;
            self.data.swap(start + one, start + other);
        }
        let [a, b] = [self.records[one].row, self.records[other].row];
        (self.records[one].row, self.records[other].row) = (b, a);
    }

    /// Applies to a column the pivots that it is not up to date with.
    fn update(&mut self, column: usize) {
        let (lead, height) = (self.sides.lead, self.sides.height);
        for pivot in self.applied[column]..self.done {
            let factor = self.at(pivot, column);
            if factor.size() == 0.0 {
                continue;
            }
            let begin = match self.is_symmetric() {
                true => self.done,
                false => pivot + 1,
            };
            let (low, high) = (pivot.min(column), pivot.max(column));
            let (before, after) = self.data.split_at_mut(high * lead);
            let (low, high) = (
                &mut before[low * lead + begin..low * lead + height],
                &mut after[begin..height],
            );
            let (from, to) = if pivot < column { (low, high) } else { (high, low) };
            for (to, from) in to.iter_mut().zip(&*from) {
                *to -= from.times(factor);
            }
        }
        self.applied[column] = self.done;
    }

    /// Brings all columns up to date, those that are as old as the last block in one product.
    fn catch_up(&mut self) {
        let mut column = self.done;
        while column < self.sides.width {
            let mut end = column;
            while end < self.sides.width && self.applied[end] == self.block {
                end += 1;
            }
            if end == column {
                self.update(column);
                column += 1;
                continue;
            }
            self.update_block(column, end);
            self.applied[column..end].fill(self.done);
            column = end;
        }
        self.block = self.done;
        self.fresh = self.done;
    }

    /// Applies the pivots since the last block to columns that have none of them.
    fn update_block(&mut self, begin: usize, end: usize) {
        let (block, done, lead, height) = (self.block, self.done, self.sides.lead, self.sides.height);
        if block == done {
            return;
        }
        let is_symmetric = self.is_symmetric();
        let (pivots, columns) = self.data.split_at_mut(begin * lead);
        let pivots = &pivots[block * lead..done * lead];
        let pivots = faer::MatRef::from_column_major_slice(pivots, lead, done - block);
        let columns = &mut columns[..(end - begin) * lead];
        let columns = MatMut::from_column_major_slice_mut(columns, lead, end - begin);
        let (_, rest) = columns.split_at_row_mut(block);
        let (mut upper, lower) = rest.split_at_row_mut(done - block);
        if !is_symmetric {
            let triangle = pivots.get(block..done, ..);
            solve::solve_unit_lower_triangular_in_place_with_conj(triangle, Conj::No, upper.as_mut(), Par::Seq);
        }
        let (lower, _) = lower.split_at_row_mut(height - done);
        matmul_with_conj(
            lower,
            Accum::Add,
            pivots.get(done..height, ..),
            Conj::No,
            upper.as_ref(),
            Conj::No,
            T::of(-1.0),
            Par::Seq,
        );
    }

    /// Makes candidates pivots.
    fn take(&mut self, choice: PivotChoice) {
        let pivot = self.done;
        match choice {
            PivotChoice::One { row, column } => {
                self.exchange(pivot, column);
                if !self.is_symmetric() {
                    self.exchange_rows(pivot, row);
                }
                self.records[pivot].form = PivotForm::ONE;
                self.round_diagonal(pivot);
                self.scale();
            }
            PivotChoice::Perturbed { column } => {
                self.exchange(pivot, column);
                let place = pivot * self.sides.lead + pivot;
                let value = self.data[place].real();
                self.data[place] = T::of(self.rule.perturbation.copysign(value));
                self.records[pivot].form = match self.has_rows_below() {
                    true => PivotForm::PERTURBED,
                    false => PivotForm::ZERO,
                };
                self.scale();
            }
            PivotChoice::Two([one, other]) => {
                self.exchange(pivot, one);
                let other = if other == pivot { one } else { other };
                self.exchange(pivot + 1, other);
                self.records[pivot].form = PivotForm::FIRST;
                self.records[pivot + 1].form = PivotForm::SECOND;
                self.round_diagonal(pivot);
                self.round_diagonal(pivot + 1);
                self.scale_pair();
            }
        }
        self.fresh = self.fresh.max(self.done);
        for column in self.done..self.fresh {
            self.update(column);
        }
    }

    /// The diagonal of a Hermitian matrix is real, but for rounding.
    fn round_diagonal(&mut self, pivot: usize) {
        if self.rule.kind == PivotedKind::Hermitian {
            let place = pivot * self.sides.lead + pivot;
            self.data[place] = T::of(self.data[place].real());
        }
    }

    /// The rows of D Lᴴ of the next pivots, from their columns. Elements on both sides of the diagonal differ by rounding, which
    /// would grow if rows were of the one and columns of the other.
    fn mirror(&mut self, pivots: usize) {
        if !self.is_symmetric() {
            return;
        }
        for pivot in self.done..self.done + pivots {
            for column in self.done + pivots..self.sides.width {
                let value = self.mirrored(self.at(column, pivot));
                self.data[column * self.sides.lead + pivot] = value;
            }
        }
    }

    /// The column of L of the next pivot.
    fn scale(&mut self) {
        self.mirror(1);
        let (pivot, lead) = (self.done, self.sides.lead);
        let column = &mut self.data[pivot * lead + pivot..pivot * lead + self.sides.height];
        let inverse = column[0].inverse();
        column[1..].iter_mut().for_each(|value| *value = value.times(inverse));
        self.done += 1;
    }

    /// The columns of L of the next two pivots, by the inverse of their two rows.
    fn scale_pair(&mut self) {
        self.mirror(2);
        let (pivot, lead, height) = (self.done, self.sides.lead, self.sides.height);
        let (a, b, c) = (
            self.at(pivot, pivot),
            self.at(pivot + 1, pivot),
            self.at(pivot + 1, pivot + 1),
        );
        let across = self.mirrored(b);
        // By the largest element first, so that the determinant does not overflow.
        let (a1, c1) = (a.times(b.inverse()), c.times(across.inverse()));
        let determinant = a1.times(c1) - T::of(1.0);
        let (by_b, by_across) = (b.times(determinant).inverse(), across.times(determinant).inverse());
        let (before, after) = self.data.split_at_mut((pivot + 1) * lead);
        let first = &mut before[pivot * lead + pivot + 2..pivot * lead + height];
        let second = &mut after[pivot + 2..height];
        for (x, y) in first.iter_mut().zip(second.iter_mut()) {
            let (own, other) = (*x, *y);
            // The inverse of [a b̄; b c] is [c −b̄; −b a] ÷ (a c − b b̄).
            *x = own.times(c1).times(by_b) - other.times(by_across);
            *y = other.times(a1).times(by_across) - own.times(by_b);
        }
        let place = pivot * lead + pivot + 1;
        self.pairs.push((place, b));
        self.data[place] = T::of(0.0);
        self.done += 2;
    }

    /// The element on the other side of the diagonal.
    pub fn mirrored(&self, value: T) -> T {
        match self.rule.kind {
            PivotedKind::Hermitian => value.conjugate(),
            _ => value,
        }
    }
}
