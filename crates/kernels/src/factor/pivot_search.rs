//! The search for pivots among candidates: threshold partial pivoting, with pivots of two rows where the matrix is symmetric.

use super::candidates::{Candidates, PivotChoice, PivotedKind};
use super::scalar::FactorScalar;

/// The share of the largest element that a diagonal element has at least to be taken alone (Bunch, Parlett, Direct methods for
/// solving symmetric indefinite systems of linear equations, SIAM J. Numer. Anal. 8 (1971)).
const ALONE: f64 = 0.640_388_203_202_207_8;
/// The share of its terms that a determinant keeps at least.
const CANCELLED: f64 = 1e-10;

/// Sizes that are compared side by side.
const LANES: usize = 8;

fn largest_of<T: FactorScalar>(values: &[T]) -> f64 {
    let mut lanes = [0.0; LANES];
    let larger = |size: f64, other: f64| if size > other { size } else { other };
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(chunk[lane].size(), lanes[lane]);
        }
    }
    let rest = rest.iter().map(|value| value.size());
    rest.chain(lanes).fold(0.0, larger)
}

impl<T: FactorScalar> Candidates<'_, T> {
    /// Pivots that the column of a place makes, which is up to date.
    pub(super) fn choose(&mut self, column: usize) -> Option<PivotChoice> {
        match self.rule.kind {
            PivotedKind::Unsymmetric => self.choose_row(column),
            _ => self.choose_pair(column),
        }
    }

    /// The largest size in a column that is not eliminated, without two rows.
    fn largest(&self, column: usize, without: [usize; 2]) -> f64 {
        let own = &self.data[column * self.sides.lead..][..self.sides.height];
        let (first, last) = (without[0].min(without[1]), without[0].max(without[1]));
        let parts = [self.done..first, first + 1..last.max(first + 1), last + 1..own.len()];
        parts.into_iter().map(|part| largest_of(&own[part])).fold(0.0, f64::max)
    }

    /// The row of the largest size in a column among some, but for the diagonal, and that size.
    fn partner(&self, column: usize, rows: std::ops::Range<usize>) -> (usize, f64) {
        let own = &self.data[column * self.sides.lead..][..self.sides.height];
        let (mut place, mut largest) = (column, 0.0);
        for row in rows {
            let size = own[row].size();
            if size > largest && row != column {
                (place, largest) = (row, size);
            }
        }
        (place, largest)
    }

    fn choose_row(&self, column: usize) -> Option<PivotChoice> {
        let own = self.at(column, column).size();
        let least = self.threshold * self.largest(column, [column; 2]).max(own);
        if own >= least && own > self.rule.zero {
            return Some(PivotChoice::One { row: column, column });
        }
        let (row, size) = self.partner(column, self.done..self.sides.width);
        (size >= least && size > self.rule.zero).then_some(PivotChoice::One { row, column })
    }

    fn choose_pair(&mut self, column: usize) -> Option<PivotChoice> {
        let own = self.at(column, column).size();
        if own >= self.threshold * self.largest(column, [column; 2]) && own > self.rule.zero {
            return Some(PivotChoice::One { row: column, column });
        }
        let (row, size) = self.partner(column, self.done..self.end);
        if size <= self.rule.zero {
            return None;
        }
        let other = if row < self.fresh { row } else { self.refresh(row) };
        let both = [column, other];
        let rests = both.map(|one| self.largest(one, both));
        if self.is_pair(both, rests) {
            return Some(PivotChoice::Two(both));
        }
        let alone = self.at(other, other).size();
        let is_alone = alone >= self.threshold * rests[1].max(size) && alone > self.rule.zero;
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
        let least = match self.has_rows_below() {
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
