//! The first part of a matching, without searches: tight entries, paths of two columns, and bids.

use super::assignment::{finite, Assignment};
use super::columns::{NONE, STEPS_PER_VISIT};
use crate::watch::{Patience, Stopped};

/// Bids in all, as a multiple of the columns, and in a chain: prices may rise for long, step by small step.
const BIDS_EACH: usize = 8;
const BIDS_OF_CHAIN: usize = 1000;
/// Bids lower no dual of a row below this. More columns than rows would bid without end, and scales leave the range.
const BID_DUAL_MIN: f64 = -64.0;

impl Assignment<'_> {
    /// The largest duals of columns, then of rows, then of columns; tight entries of free rows are matched.
    pub(super) fn tighten(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        for column in 0..self.column_duals.len() {
            patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
            let least = self.entries(column).map(|(_, cost)| cost).fold(f64::INFINITY, f64::min);
            self.column_duals[column] = finite(least);
        }
        self.raise_rows(patience)?;
        for column in 0..self.column_duals.len() {
            patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
            self.raise_column(column);
            let free = self
                .entries(column)
                .find(|&(row, cost)| self.rows[row].column == NONE && self.slack(row, cost, column) <= 0.0);
            if let Some((row, _)) = free {
                self.join(row, column);
                self.matched += 1;
            }
        }
        Ok(())
    }

    /// Augmenting paths of two columns along tight entries. Tight entries of free rows only get fewer, so that each
    /// column looks for them once.
    pub(super) fn look_ahead(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        let mut next = vec![0u32; self.column_duals.len()];
        for column in 0..self.column_duals.len() {
            if self.row_of_column[column] != NONE {
                continue;
            }
            patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
            for at in self.matrix.range(column) {
                let row = self.matrix.indices[at] as usize;
                if self.slack(row, self.costs[at], column) > 0.0 {
                    continue;
                }
                let other = self.rows[row].column as usize;
                let length = self.length(other);
                let first = next[other] as usize;
                let free = self
                    .entries(other)
                    .skip(first)
                    .position(|(free, cost)| self.rows[free].column == NONE && self.slack(free, cost, other) <= 0.0);
                next[other] = free.map_or(length, |free| first + free) as u32;
                patience.work(STEPS_PER_VISIT * (next[other] as usize - first + 1))?;
                if free.is_some() {
                    let start = self.matrix.range(other).start;
                    self.join(self.matrix.indices[start + next[other] as usize] as usize, other);
                    self.join(row, column);
                    self.matched += 1;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lets each free column take its best row at the price of the second best, from a column that then looks for
    /// another one (augmenting row reduction of Jonker, Volgenant, "A shortest augmenting path algorithm for dense and
    /// sparse linear assignment problems", Computing 38 (1987)). Columns that find two rows alike are left to the
    /// search.
    pub(super) fn outbid(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        let mut bids = BIDS_EACH * self.column_duals.len();
        for root in 0..self.column_duals.len() {
            let mut column = root;
            if self.row_of_column[root] != NONE {
                continue;
            }
            for _ in 0..BIDS_OF_CHAIN.min(bids) {
                bids -= 1;
                patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
                let Some((row, best, second)) = self.two_best(column) else {
                    break;
                };
                let other = self.rows[row].column;
                let dual = self.rows[row].dual - (second - best);
                if other != NONE && (second <= best || dual < BID_DUAL_MIN) {
                    break;
                }
                self.column_duals[column] = second;
                self.rows[row].dual = dual;
                self.join(row, column);
                if other == NONE {
                    self.matched += 1;
                    break;
                }
                column = other as usize;
                self.row_of_column[column] = NONE;
            }
        }
        Ok(())
    }

    /// The best row of a column, a free one of equals, and the two least `cost - row dual`. None without two entries.
    fn two_best(&self, column: usize) -> Option<(usize, f64, f64)> {
        let (mut best, mut second) = ((0, f64::INFINITY), f64::INFINITY);
        for (row, cost) in self.entries(column) {
            let value = cost - self.rows[row].dual;
            if value < best.1 || (value == best.1 && self.rows[row].column == NONE) {
                second = best.1;
                best = (row, value);
            } else if value < second {
                second = value;
            }
        }
        second.is_finite().then_some((best.0, best.1, second))
    }
}
