//! The search for pivots among candidates: threshold partial pivoting, with pivots of two rows where the matrix is symmetric.

use super::candidates::{Candidates, PivotedKind};
use super::scalar::FactorScalar;

/// The share of the largest element that a diagonal element has at least to be taken alone (Bunch, Parlett, Direct methods for
/// solving symmetric indefinite systems of linear equations, SIAM J. Numer. Anal. 8 (1971)).
const ALONE: f64 = 0.640_388_203_202_207_8;
/// The share of its terms that a determinant keeps at least.
const CANCELLED: f64 = 1e-10;

/// Candidates that are pivots next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PivotChoice {
    One { row: usize, column: usize },
    Two([usize; 2]),
    Perturbed { column: usize },
}

/// Sizes of the elements of a column that are not eliminated.
#[derive(Clone, Copy, Debug)]
struct ColumnSizes {
    /// The largest beside the element on the diagonal.
    largest: f64,
    /// The row of the largest among the candidates that may be pivots with it, and its size.
    row: usize,
    candidate: f64,
}

impl<T: FactorScalar> Candidates<'_, T> {
    /// Pivots that the column of a place makes, which is up to date.
    pub(super) fn choose(&mut self, column: usize) -> Option<PivotChoice> {
        match self.rule.kind {
            PivotedKind::Unsymmetric => self.choose_row(column),
            _ => self.choose_pair(column),
        }
    }

    fn sizes(&self, column: usize, other: usize, rows: std::ops::Range<usize>) -> ColumnSizes {
        let own = &self.data[column * self.sides.lead..][..self.sides.height];
        let mut sizes = ColumnSizes {
            largest: 0.0,
            row: column,
            candidate: 0.0,
        };
        for row in rows.clone() {
            let size = own[row].size();
            if row != column && size > sizes.candidate {
                (sizes.candidate, sizes.row) = (size, row);
            }
        }
        for (row, value) in own.iter().enumerate().skip(self.done) {
            if row != column && row != other {
                sizes.largest = sizes.largest.max(value.size());
            }
        }
        sizes
    }

    fn choose_row(&self, column: usize) -> Option<PivotChoice> {
        let sizes = self.sizes(column, column, self.done..self.sides.width);
        let own = self.at(column, column).size();
        let largest = sizes.largest.max(own);
        let least = self.threshold * largest;
        if own >= least && own > self.rule.zero {
            return Some(PivotChoice::One { row: column, column });
        }
        let row = sizes.row;
        (sizes.candidate >= least && sizes.candidate > self.rule.zero).then_some(PivotChoice::One { row, column })
    }

    fn choose_pair(&mut self, column: usize) -> Option<PivotChoice> {
        let sizes = self.sizes(column, column, self.done..self.end);
        let own = self.at(column, column).size();
        if own >= self.threshold * sizes.largest && own > self.rule.zero {
            return Some(PivotChoice::One { row: column, column });
        }
        if sizes.candidate <= self.rule.zero {
            return None;
        }
        let other = match sizes.row < self.fresh {
            true => sizes.row,
            false => self.refresh(sizes.row),
        };
        let with = self.sizes(other, column, self.done..self.done);
        let alone = self.sizes(column, other, self.done..self.done);
        if self.is_pair([column, other], [alone.largest, with.largest]) {
            return Some(PivotChoice::Two([column, other]));
        }
        let size = self.at(other, other).size();
        let largest = with.largest.max(sizes.candidate);
        let is_alone = size >= self.threshold * largest && size > self.rule.zero;
        is_alone.then_some(PivotChoice::One {
            row: other,
            column: other,
        })
    }

    /// Whether the inverse of the rows of two candidates keeps columns of L with such largest elements within the threshold.
    fn is_pair(&self, [one, other]: [usize; 2], [first, second]: [f64; 2]) -> bool {
        let (a, b, c) = (self.at(one, one), self.at(other, one), self.at(other, other));
        let product = b.times(self.mirrored(b));
        let determinant = (a.times(c) - product).size();
        let (a, b, c) = (a.size(), b.size(), c.size());
        if determinant <= CANCELLED * (a * c).max(b * b) || determinant <= self.rule.zero * self.rule.zero {
            return false;
        }
        let most = determinant / self.threshold;
        c * first + b * second <= most && b * first + a * second <= most
    }

    /// Pivots by their size among the candidates alone, all of which are up to date.
    pub(super) fn forced(&self) -> PivotChoice {
        let places = self.done..self.sides.width;
        let (mut largest, mut place) = (0.0, [self.done; 2]);
        let (mut diagonal, mut alone) = (0.0, self.done);
        for column in places.clone() {
            for row in places.clone() {
                let size = self.at(row, column).size();
                if size > largest {
                    (largest, place) = (size, [row, column]);
                }
                if row == column && size > diagonal {
                    (diagonal, alone) = (size, column);
                }
            }
        }
        let [row, column] = place;
        // Without rows below, a small pivot makes no other element large.
        let least = match self.sides.height > self.sides.width {
            true => self.rule.perturbation,
            false => self.rule.zero,
        };
        if largest <= least {
            return PivotChoice::Perturbed { column: alone };
        }
        if self.rule.kind == PivotedKind::Unsymmetric {
            return PivotChoice::One { row, column };
        }
        match diagonal >= ALONE * largest {
            true => PivotChoice::One {
                row: alone,
                column: alone,
            },
            false => PivotChoice::Two([column, row]),
        }
    }
}
