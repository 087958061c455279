//! Duals of the rows and columns that searches left out, and of those without partner.

use super::assignment::Assignment;
use super::columns::{NONE, STEPS_PER_VISIT};
use super::heap::DEAD;
use super::paths::FIRST;
use crate::watch::{Patience, Stopped};

impl Assignment<'_> {
    /// Makes all slacks at least 0, in a structurally singular matrix.
    ///
    /// Rows of a failed search hold all entries of their columns but those in rows of earlier ones. So all duals of
    /// these rows may sink together, while those of their columns rise: later searches first, whose columns need
    /// earlier rows to sink.
    pub(super) fn settle(&mut self, dead: &[u32], patience: &Patience<'_>) -> Result<(), Stopped> {
        for &row in dead {
            self.rows[(row & !FIRST) as usize].distance = 0.0;
        }
        if !dead.is_empty() {
            for column in 0..self.column_duals.len() {
                let row = self.row_of_column[column];
                if row != NONE && self.rows[row as usize].place != DEAD {
                    self.demand(column, patience)?;
                }
            }
        }
        let mut end = dead.len();
        while let Some(start) = dead[..end].iter().rposition(|&row| row & FIRST != 0) {
            let rows = dead[start..end].iter().map(|&row| (row & !FIRST) as usize);
            end = start;
            let sunk = rows.clone().map(|row| self.rows[row].distance).fold(0.0, f64::max);
            for row in rows {
                let state = &mut self.rows[row];
                state.dual -= sunk;
                let column = state.column as usize;
                self.column_duals[column] += sunk;
                self.demand(column, patience)?;
            }
        }
        for column in 0..self.column_duals.len() {
            if self.row_of_column[column] == NONE {
                patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
                self.raise_column(column);
            }
        }
        // Rows without partner are tight: their duals were the largest at the beginning, and those of columns only rise.
        Ok(())
    }

    /// Notes by how much the duals of dead rows are to sink below a column's.
    fn demand(&mut self, column: usize, patience: &Patience<'_>) -> Result<(), Stopped> {
        patience.work(STEPS_PER_VISIT * self.length(column) + 1)?;
        for at in self.matrix.range(column) {
            let row = self.matrix.indices[at] as usize;
            let beyond = -self.slack(row, self.costs[at], column);
            let state = &mut self.rows[row];
            if state.place == DEAD && beyond > state.distance {
                state.distance = beyond;
            }
        }
        Ok(())
    }
}
