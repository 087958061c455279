//! The assignment problem in logarithms.

use super::columns::{SparseColumns, NONE, STEPS_PER_VISIT};
use super::logarithm::log2;
use crate::watch::{Patience, Stopped};

/// Rows and columns fewer than this leave room for marks.
const SIZE_MAX: usize = 1 << 31;

/// What is known of a row: its dual and column, and its state in the search for a shortest path.
#[derive(Clone, Copy)]
pub(super) struct MatchedRow {
    /// Logarithm of the scale.
    pub(super) dual: f64,
    /// Length of the shortest path known.
    pub(super) distance: f64,
    /// The matched column, or `NONE`.
    pub(super) column: u32,
    /// The column before the row on that path.
    pub(super) parent: u32,
    /// Place in the heap, or one of its marks.
    pub(super) place: u32,
}

/// The least sum of costs `-log |a[i,j]|` over a matching, and its duals.
///
/// **Invariant.** Slacks `cost - row dual - column dual` are at least 0, and 0 on matched entries; searches leave out
/// rows that no augmenting path meets, whose slacks `settle` repairs.
pub(super) struct Assignment<'a> {
    pub(super) matrix: SparseColumns<'a>,
    /// By entry; infinite for zeros.
    pub(super) costs: Vec<f64>,
    pub(super) rows: Vec<MatchedRow>,
    pub(super) column_duals: Vec<f64>,
    pub(super) row_of_column: Vec<u32>,
    pub(super) matched: u32,
}

impl<'a> Assignment<'a> {
    /// Nothing matched, duals zero.
    pub(super) fn new(
        matrix: SparseColumns<'a>,
        kept: Option<&[bool]>,
        patience: &Patience<'_>,
    ) -> Result<Assignment<'a>, Stopped> {
        let (rows, columns) = (matrix.rows as usize, matrix.columns());
        assert!(
            rows < SIZE_MAX && columns < SIZE_MAX,
            "a matching takes fewer than 2^31 rows and columns"
        );
        let is_kept = |at: usize| kept.is_none_or(|kept| kept[at]);
        let mut costs = Vec::with_capacity(matrix.indices.len());
        for column in 0..columns {
            let range = matrix.range(column);
            patience.work(4 * range.len() + 1)?;
            costs.extend(range.map(|at| match log2(matrix.sizes[at]) {
                Some(logarithm) if is_kept(column) && is_kept(matrix.indices[at] as usize) => -logarithm,
                _ => f64::INFINITY,
            }));
        }
        let row = MatchedRow {
            dual: 0.0,
            distance: 0.0,
            column: NONE,
            parent: NONE,
            place: NONE,
        };
        Ok(Assignment {
            matrix,
            costs,
            rows: vec![row; rows],
            column_duals: vec![0.0; columns],
            row_of_column: vec![NONE; columns],
            matched: 0,
        })
    }

    /// Rows and costs of a column.
    #[inline]
    pub(super) fn entries(&self, column: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.matrix.range(column);
        let rows = self.matrix.indices[range.clone()].iter();
        rows.map(|&row| row as usize).zip(self.costs[range].iter().copied())
    }

    #[inline]
    pub(super) fn length(&self, column: usize) -> usize {
        self.matrix.range(column).len()
    }

    /// What an entry's cost leaves beside its duals; below 0 by rounding only.
    #[inline]
    pub(super) fn slack(&self, row: usize, cost: f64, column: usize) -> f64 {
        cost - self.rows[row].dual - self.column_duals[column]
    }

    pub(super) fn join(&mut self, row: usize, column: usize) {
        self.rows[row].column = column as u32;
        self.row_of_column[column] = row as u32;
    }

    /// The largest dual that the entries of a column allow, or 0 without entries.
    pub(super) fn raise_column(&mut self, column: usize) {
        let costs = self.entries(column).map(|(row, cost)| cost - self.rows[row].dual);
        self.column_duals[column] = finite(costs.fold(f64::INFINITY, f64::min));
    }

    /// The same for all rows.
    pub(super) fn raise_rows(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        for row in &mut self.rows {
            row.dual = f64::INFINITY;
        }
        for column in 0..self.column_duals.len() {
            let range = self.matrix.range(column);
            patience.work(STEPS_PER_VISIT * range.len() + 1)?;
            let dual = self.column_duals[column];
            for (&row, &cost) in self.matrix.indices[range.clone()].iter().zip(&self.costs[range]) {
                let row = &mut self.rows[row as usize];
                row.dual = row.dual.min(cost - dual);
            }
        }
        for row in &mut self.rows {
            row.dual = finite(row.dual);
        }
        Ok(())
    }
}

/// A dual without bound is 0.
pub(super) fn finite(dual: f64) -> f64 {
    if dual.is_finite() {
        dual
    } else {
        0.0
    }
}
