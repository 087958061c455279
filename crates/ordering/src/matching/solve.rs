//! The phases of a matching, one after the other.

use super::assignment::Assignment;
use super::columns::{SparseColumns, NONE};
use super::paths::PathSearch;
use crate::watch::{Patience, Stopped};

/// Solves an assignment problem; its `costs` are gone, as they are of no more use. Entries outside of kept rows and
/// columns are left out.
pub(super) fn solve<'a>(
    matrix: SparseColumns<'a>,
    kept: Option<&[bool]>,
    patience: &Patience<'_>,
) -> Result<Assignment<'a>, Stopped> {
    let mut assignment = Assignment::new(matrix, kept, patience)?;
    assignment.tighten(patience)?;
    assignment.look_ahead(patience)?;
    assignment.outbid(patience)?;
    if (assignment.matched as usize) < matrix.columns() {
        let mut search = PathSearch::new(matrix.rows as usize);
        for column in 0..matrix.columns() {
            if assignment.row_of_column[column] == NONE {
                search.augment(&mut assignment, column as u32, patience)?;
            }
        }
        let dead = search.into_dead();
        assignment.settle(&dead, patience)?;
    }
    assignment.costs = Vec::new();
    Ok(assignment)
}
