//! Shortest augmenting paths, by Dijkstra's algorithm on slacks (Duff and Koster 2001, section 4).

use super::assignment::Assignment;
use super::columns::{NONE, STEPS_PER_VISIT};
use super::heap::{RowHeap, DEAD, DONE};
use crate::watch::{Patience, Stopped};

/// Marks the first row of a failed search in the list of dead rows.
pub(super) const FIRST: u32 = 1 << 31;

/// Lists for one search after the other.
pub(super) struct PathSearch {
    heap: RowHeap,
    /// Matched rows that have a distance.
    reached: Vec<u32>,
    /// Rows of final distance whose columns are still to be looked at.
    ready: Vec<u32>,
    dead: Vec<u32>,
}

/// The end of the shortest path known to a free row.
struct PathEnd {
    row: u32,
    length: f64,
}

impl PathSearch {
    pub(super) fn new(rows: usize) -> PathSearch {
        PathSearch {
            heap: RowHeap::new(rows),
            reached: Vec::with_capacity(rows),
            ready: Vec::with_capacity(rows),
            dead: Vec::with_capacity(rows),
        }
    }

    /// Rows that no augmenting path meets, one failed search after the other, the first row of each with `FIRST`.
    pub(super) fn into_dead(self) -> Vec<u32> {
        self.dead
    }

    /// Matches a free column, if there is an augmenting path, and keeps the slacks.
    pub(super) fn augment(
        &mut self,
        assignment: &mut Assignment<'_>,
        root: u32,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        self.heap.clear();
        self.reached.clear();
        self.ready.clear();
        let mut end = PathEnd {
            row: NONE,
            length: f64::INFINITY,
        };
        let (mut column, mut distance) = (root as usize, 0.0);
        loop {
            patience.work(STEPS_PER_VISIT * assignment.length(column) + 1)?;
            self.relax(assignment, column, distance, &mut end);
            let row = if end.length <= distance {
                break;
            } else if let Some(row) = self.ready.pop() {
                row
            } else if self.heap.least(&assignment.rows) < end.length {
                self.heap.pop(&mut assignment.rows)
            } else {
                break;
            };
            let state = &assignment.rows[row as usize];
            (column, distance) = (state.column as usize, state.distance);
        }
        patience.work(STEPS_PER_VISIT * self.reached.len())?;
        if end.row == NONE {
            self.bury(assignment);
        } else {
            self.shift_duals(assignment, root as usize, end.length);
            flip(assignment, root, end.row);
        }
        Ok(())
    }

    /// Rows of a column get the distance by way of it, if that is less than theirs and than the length of the path.
    #[inline]
    fn relax(&mut self, assignment: &mut Assignment<'_>, column: usize, distance: f64, end: &mut PathEnd) {
        for at in assignment.matrix.range(column) {
            let row = assignment.matrix.indices[at];
            let length = distance + assignment.slack(row as usize, assignment.costs[at], column).max(0.0);
            let state = &mut assignment.rows[row as usize];
            // Infinite lengths, those of zeros, end here too.
            if length >= end.length || state.place == DONE || state.place == DEAD {
                continue;
            }
            if state.column == NONE {
                state.parent = column as u32;
                *end = PathEnd { row, length };
                if length <= distance {
                    return;
                }
            } else if state.place == NONE {
                state.parent = column as u32;
                state.distance = length;
                self.reached.push(row);
                if length <= distance {
                    state.place = DONE;
                    self.ready.push(row);
                } else {
                    self.heap.insert(&mut assignment.rows, row);
                }
            } else if length < state.distance {
                state.parent = column as u32;
                state.distance = length;
                self.heap.decrease(&mut assignment.rows, row);
            }
        }
    }

    /// Rows and columns nearer than the path's end move apart by what they are nearer.
    fn shift_duals(&self, assignment: &mut Assignment<'_>, root: usize, length: f64) {
        assignment.column_duals[root] += length;
        for &row in &self.reached {
            let state = &mut assignment.rows[row as usize];
            if std::mem::replace(&mut state.place, NONE) == DONE {
                let nearer = length - state.distance;
                state.dual -= nearer;
                assignment.column_duals[state.column as usize] += nearer;
            }
        }
    }

    /// Rows reached by a failed search lead to no free row now, and never will: entries of their columns are in rows
    /// reached, too.
    fn bury(&mut self, assignment: &mut Assignment<'_>) {
        let mut mark = FIRST;
        for &row in &self.reached {
            assignment.rows[row as usize].place = DEAD;
            self.dead.push(row | std::mem::replace(&mut mark, 0));
        }
    }
}

/// Matches the entries of a path that were not, and no others of it.
fn flip(assignment: &mut Assignment<'_>, root: u32, end: u32) {
    let mut row = end;
    loop {
        let column = assignment.rows[row as usize].parent;
        let next = assignment.row_of_column[column as usize];
        assignment.join(row as usize, column as usize);
        if column == root {
            break;
        }
        row = next;
    }
    assignment.matched += 1;
}
