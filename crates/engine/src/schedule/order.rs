//! Walks over the cells of each pass, one pass after another.

use std::collections::HashMap;

use super::blocking::{blocks_of, is_blocked, product_dims};
use super::sharing::{may_share, shared_cells};
use super::{Candidate, TileTable};
use crate::cancel;
use crate::plan::{ArrayId, Pass, Plan, Producer, RootKind, WorkStep};
use crate::task::Access;

/// The cells of every pass in order. `memory` is what tiles may take, for the blocks of large products.
pub fn sequential(plan: &Plan, tiles: &TileTable, candidate: &Candidate, memory: u64) -> Vec<Vec<u32>> {
    let mut backwards: HashMap<Vec<u64>, bool> = HashMap::new();
    plan.producers
        .iter()
        .map(|producer| {
            let pass = match producer {
                Producer::Pass(pass) => pass,
                Producer::Work(step) => return work_tasks(step, candidate, memory),
            };
            if candidate.shared && may_share(pass) {
                return shared_cells(plan, tiles, pass, memory);
            }
            let mut cells = pass_cells(pass, candidate, memory);
            if !pass.domain.shape.is_empty() && !is_blocked(pass) {
                let turn = backwards.entry(pass.domain.shape.clone());
                let turn = turn.and_modify(|turn| *turn ^= candidate.alternate);
                if *turn.or_insert(candidate.backwards) {
                    cells.reverse();
                }
            }
            cells
        })
        .collect()
}

/// The tasks of one producer after those of another.
pub fn in_turn(cells: &[Vec<u32>]) -> Vec<(u32, u32)> {
    let passes = cells.iter().enumerate();
    passes
        .flat_map(|(pass, cells)| cells.iter().map(move |&cell| (pass as u32, cell)))
        .collect()
}

/// The tasks of a work by the order of the candidate's name, or by their numbers.
fn work_tasks(step: &WorkStep, candidate: &Candidate, memory: u64) -> Vec<u32> {
    let tasks = step.work.tasks();
    let wanted = |name| step.work.orders(memory).into_iter().find(|order| order.name == name);
    let order = candidate.proposed.and_then(wanted);
    match order.filter(|order| keeps_conflicts(step, &order.tasks)) {
        Some(order) => order.tasks,
        None => (0..tasks as u32).collect(),
    }
}

/// Whether it is an order of all tasks in which those that touch one tile, one of them writing, stand by their numbers.
fn keeps_conflicts(step: &WorkStep, order: &[u32]) -> bool {
    let tasks = step.work.tasks();
    let mut seen = vec![false; tasks as usize];
    // Of each tile: the highest number that touched it, and that wrote it, each one higher so that 0 is none.
    let mut latest: HashMap<(ArrayId, u64), [u64; 2]> = HashMap::new();
    let mut keeps = order.len() as u64 == tasks;
    for &task in order {
        cancel::check();
        match seen.get_mut(task as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => return false,
        }
        let number = u64::from(task) + 1;
        step.operands(u64::from(task), &mut |array, tile, access| {
            let [touched, written] = latest.entry((array, tile)).or_default();
            let before = if access == Access::Read { *written } else { *touched };
            keeps &= before < number;
            *touched = number.max(*touched);
            if access != Access::Read {
                *written = number.max(*written);
            }
        });
    }
    keeps
}

fn pass_cells(pass: &Pass, candidate: &Candidate, memory: u64) -> Vec<u32> {
    let counts = pass.domain.counts();
    if is_blocked(pass) {
        return blocked_cells(pass, &counts, (memory as f64 * candidate.blocking) as u64);
    }
    let mut dims: Vec<usize> = (0..counts.len()).collect();
    if let Some(root) = pass.roots.iter().find(|root| root.kind != RootKind::Map) {
        // Reduced dimensions innermost: the fewest partial results are open at a time.
        let kept = root.kept_dims();
        dims.sort_by_key(|dim| !kept.contains(dim));
    } else if candidate.columns && candidate.pipeline {
        // Down each band of columns, as the algorithms go that hold one whole.
        let first = usize::from(!dims.is_empty());
        dims.rotate_left(first);
    } else if candidate.columns {
        dims.reverse();
    }
    walk(&counts, &dims)
}

/// All cells with `dims[0]` outermost.
fn walk(counts: &[u64], dims: &[usize]) -> Vec<u32> {
    let total: u64 = counts.iter().product();
    let stride = |dim: usize| counts[dim + 1..].iter().product::<u64>();
    let mut cells = Vec::with_capacity(total as usize);
    let lengths: Vec<u64> = dims.iter().map(|&dim| counts[dim]).collect();
    let strides: Vec<u64> = dims.iter().map(|&dim| stride(dim)).collect();
    let mut at = vec![0u64; dims.len()];
    let mut cell = 0;
    for _ in 0..total {
        cancel::check();
        cells.push(cell as u32);
        for axis in (0..dims.len()).rev() {
            at[axis] += 1;
            cell += strides[axis];
            if at[axis] < lengths[axis] {
                break;
            }
            cell -= strides[axis] * lengths[axis];
            at[axis] = 0;
        }
    }
    cells
}

/// Blocks of result tiles; within one, the inner dimension outermost, so that consecutive tasks add to different tiles.
fn blocked_cells(pass: &Pass, counts: &[u64], memory: u64) -> Vec<u32> {
    let dims = product_dims(pass);
    let count = |dim: Option<usize>| dim.map_or(1, |dim| counts[dim]);
    let (rows, columns, inner) = (count(dims.rows), count(dims.columns), counts[dims.inner]);
    let [p, q] = blocks_of(pass, memory);
    let stride = |dim: usize| counts[dim + 1..].iter().product::<u64>();
    let batches: u64 = counts.iter().product::<u64>() / (rows * columns * inner);
    let offset = |dim: Option<usize>, at: u64| dim.map_or(0, |dim| at * stride(dim));
    let per_batch = rows * columns * inner;
    let mut cells = Vec::with_capacity((batches * per_batch) as usize);
    for batch in 0..batches {
        for row_block in 0..rows.div_ceil(p) {
            for turn in 0..columns.div_ceil(q) {
                // Back and forth, so that the operand tiles at the turn are used again at once.
                let column_block = if row_block % 2 == 0 {
                    turn
                } else {
                    columns.div_ceil(q) - 1 - turn
                };
                for k in 0..inner {
                    cancel::check();
                    for row in row_block * p..((row_block + 1) * p).min(rows) {
                        for column in column_block * q..((column_block + 1) * q).min(columns) {
                            let cell = batch * per_batch
                                + offset(dims.rows, row)
                                + offset(dims.columns, column)
                                + offset(Some(dims.inner), k);
                            cells.push(cell as u32);
                        }
                    }
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_visit_every_cell_once_in_the_order_asked() {
        assert_eq!(walk(&[2, 3], &[0, 1]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(walk(&[2, 3], &[1, 0]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(walk(&[], &[]), [0]);
        assert_eq!(walk(&[0, 3], &[0, 1]), Vec::<u32>::new());
    }
}
