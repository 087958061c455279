//! Tasks of a factorization by slabs, and their orders: groups of slabs that stay in memory together, so that each tile of L on
//! their left is read once for all of them.
//!
//! With groups of c columns n³ / (3 c) elements are read again; c is what memory holds, S / n, so these are n⁴ / (3 S).

use std::sync::Arc;

use super::slabs::SlabCut;
use crate::task::TaskOrder;

/// A part of the work on a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlabStep {
    /// Takes some rows of a tile from the matrix.
    Assemble { row: u32, part: u32 },
    /// Exchanges rows as another slab did, solves with its triangle, and subtracts within that tile.
    Exchange { from: u32 },
    /// Subtracts products of another slab's L from a tile below.
    Update { from: u32, row: u32 },
    /// Factorizes the slab.
    Finish,
}

/// The tasks of all slabs: their tiles taken by rows, then what each slab contributes to all on its right, with the end of the next one
/// behind the contribution to it.
#[derive(Clone, Debug)]
pub(super) struct SlabTasks {
    cut: SlabCut,
    /// The first task of the contributions of each slab, and the end.
    starts: Arc<[u32]>,
}

impl SlabTasks {
    pub fn new(cut: &SlabCut) -> SlabTasks {
        let slabs = cut.slabs();
        // The first slab ends before all contributions.
        let mut starts = vec![slabs * cut.all_parts() + 1];
        for from in 0..slabs {
            let behind = slabs - 1 - from;
            let ends = u32::from(behind > 0);
            starts.push(starts[from as usize] + behind * parts_of(cut, from) + ends);
        }
        SlabTasks {
            cut: *cut,
            starts: starts.into(),
        }
    }

    pub fn count(&self) -> u64 {
        u64::from(self.starts[self.starts.len() - 1])
    }

    /// The slab of a task, and its part of the work.
    pub fn step(&self, task: u64) -> (u32, SlabStep) {
        let (task, slabs) = (task as u32, self.cut.slabs());
        if task < slabs * self.cut.all_parts() {
            let [row, part] = self.cut.part(task / slabs);
            return (task % slabs, SlabStep::Assemble { row, part });
        }
        if task < self.starts[0] {
            return (0, SlabStep::Finish);
        }
        let from = self.starts.partition_point(|&start| start <= task) as u32 - 1;
        let (at, parts) = (task - self.starts[from as usize], parts_of(&self.cut, from));
        if at == parts {
            return (from + 1, SlabStep::Finish);
        }
        let at = if at > parts { at - 1 } else { at };
        let step = match at % parts {
            0 => SlabStep::Exchange { from },
            below => SlabStep::Update {
                from,
                row: self.cut.pivot_tile(from) + below,
            },
        };
        (from + 1 + at / parts, step)
    }

    fn assembly(&self, slab: u32, part: u32) -> u32 {
        part * self.cut.slabs() + slab
    }

    /// The tasks for the contribution of a slab.
    fn contribution(&self, from: u32, slab: u32) -> std::ops::Range<u32> {
        let (behind, parts) = (slab - from - 1, parts_of(&self.cut, from));
        let first = self.starts[from as usize] + behind * parts + u32::from(behind > 0);
        first..first + parts
    }

    fn finish(&self, slab: u32) -> u32 {
        match slab.checked_sub(1) {
            None => self.starts[0] - 1,
            Some(from) => self.contribution(from, slab).end,
        }
    }
}

/// Tasks for the contribution of a slab to another.
fn parts_of(cut: &SlabCut, from: u32) -> u32 {
    cut.tiles() - cut.pivot_tile(from)
}

/// Slabs of a group, and what orders are called: those that take tiles of the matrix as slabs need them, and those that take all
/// columns of each tile at once, for slabs of later groups too.
macro_rules! groups {
    ($($group:literal)*) => {
        &[
            $((
                $group,
                [
                    concat!($group, " slabs at once"),
                    concat!($group, " slabs at once, tiles of the matrix once"),
                ],
            ),)*
        ]
    };
}
const GROUPS: &[(u32, [&str; 2])] =
    groups!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20 22 24 28 32 40 48 56 64 80 96 128);
/// Groups that are tried: the largest that fit into memory.
const TRIED: usize = 3;

/// Orders beside that of the numbers, for a matrix whose tiles have so many columns.
pub(super) fn slab_orders(tasks: &SlabTasks, cut: &SlabCut, columns: u64, memory: u64) -> Vec<TaskOrder> {
    let slabs = cut.slabs();
    if slabs < 3 {
        return vec![];
    }
    let count = GROUPS
        .iter()
        .filter(|(group, _)| u64::from(slabs.min(*group)) * cut.slab_bytes() <= memory)
        .count()
        .max(1);
    let mut tried = GROUPS[count.saturating_sub(TRIED)..count].to_vec();
    // The order of the numbers has all slabs at once.
    tried.retain(|(group, _)| *group < slabs);
    let together = (columns / cut.width()).clamp(1, slabs.into()) as u32;
    let mut orders = vec![];
    for (group, [name, whole]) in tried {
        let mut add = |name, together| {
            orders.push(TaskOrder {
                name,
                tasks: by_groups(tasks, cut, group, together),
            });
        };
        add(name, 1);
        if together > 1 {
            add(whole, together);
        }
    }
    orders
}

/// Groups of slabs; tiles of the matrix are taken for so many slabs together.
fn by_groups(tasks: &SlabTasks, cut: &SlabCut, group: u32, together: u32) -> Vec<u32> {
    let slabs = cut.slabs();
    let mut order = Vec::with_capacity(tasks.count() as usize);
    let mut assembled = 0;
    for left in (0..slabs).step_by(group as usize) {
        let right = slabs.min(left + group);
        let end = slabs.min(right.next_multiple_of(together));
        for part in 0..cut.all_parts() {
            order.extend((assembled..end).map(|slab| tasks.assembly(slab, part)));
        }
        assembled = end.max(assembled);
        for from in 0..left {
            // Each tile of the slab on the left for all slabs of the group.
            for part in 0..tasks.contribution(from, left).len() as u32 {
                order.extend((left..right).map(|slab| tasks.contribution(from, slab).start + part));
            }
        }
        order.push(tasks.finish(left));
        for from in left..right {
            for slab in from + 1..right {
                order.extend(tasks.contribution(from, slab));
                if slab == from + 1 {
                    // The next slab ends while the others take the contribution of this one.
                    order.push(tasks.finish(slab));
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;

    use super::*;

    #[test]
    fn orders_have_each_task_once_and_keep_those_of_a_slab_in_order() {
        for rows in [700, 2000, 20_000] {
            let cut = SlabCut::new(rows, DType::F64);
            let tasks = SlabTasks::new(&cut);
            let finished = (0..tasks.count()).filter(|&task| tasks.step(task).1 == SlabStep::Finish);
            assert_eq!(finished.count(), cut.slabs() as usize);
            for memory in [0, 3 * cut.slab_bytes(), 7 * cut.slab_bytes(), u64::MAX] {
                for order in slab_orders(&tasks, &cut, 4096, memory) {
                    let mut place = vec![u32::MAX; tasks.count() as usize];
                    for (at, &task) in order.tasks.iter().enumerate() {
                        assert_eq!(std::mem::replace(&mut place[task as usize], at as u32), u32::MAX);
                    }
                    assert_eq!(order.tasks.len(), place.len());
                    for task in 0..tasks.count() {
                        let (slab, step) = tasks.step(task);
                        let own = match step {
                            SlabStep::Assemble { row, part } => {
                                let before: u32 = (0..row).map(|_| cut.height().div_ceil(256) as u32).sum();
                                tasks.assembly(slab, before + part)
                            }
                            SlabStep::Exchange { from } => tasks.contribution(from, slab).start,
                            SlabStep::Update { from, row } => {
                                tasks.contribution(from, slab).start + row - cut.pivot_tile(from)
                            }
                            SlabStep::Finish => tasks.finish(slab),
                        };
                        assert_eq!(u64::from(own), task);
                        if let SlabStep::Exchange { from } | SlabStep::Update { from, .. } = step {
                            assert!(place[tasks.finish(from) as usize] < place[task as usize]);
                            assert!(place[task as usize] < place[tasks.finish(slab) as usize]);
                        }
                    }
                }
            }
        }
    }
}
