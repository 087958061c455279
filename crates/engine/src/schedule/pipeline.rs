//! Interleaving of passes: a consumer's task runs as soon as its last input tile exists, so temporaries that flow tile
//! by tile die young (the tile-at-a-time pipeline of Kim 2023, for whole programs).

use super::blocking::is_blocked;
use super::tasks::InputFinder;
use super::tiles::{TileId, TileTable};
use super::writes::each_written;
use crate::cancel;
use crate::plan::{ArrayKind, Plan, Producer, WorkStep};

/// When one task makes more than this many others ready, they are a pass of their own, not a pipeline.
const READY_AT_ONCE_MAX: usize = 32;

/// Reads of computed tiles: who waits for what.
struct TileReaders {
    /// Per task (numbered pass by pass, in the given cell order): computed input tiles not yet made.
    missing: Vec<u32>,
    /// Per task: all of them have been made, after some were missing.
    made: Vec<bool>,
    /// Per tile: the tasks that read it, as a range of `readers`.
    reader_ends: Vec<u32>,
    readers: Vec<u32>,
    /// Tasks still to run before an accumulated tile is complete.
    contributions: Vec<u32>,
}

/// The order of all tasks when `sequential` gives each pass's own order.
pub fn interleave(plan: &Plan, tiles: &TileTable, sequential: &[Vec<u32>]) -> Vec<(u32, u32)> {
    let flat: Vec<(u32, u32)> = sequential
        .iter()
        .enumerate()
        .flat_map(|(pass, cells)| cells.iter().map(move |&cell| (pass as u32, cell)))
        .collect();
    let mut waiting = find_waiting(plan, tiles, &flat);
    let mut done = vec![false; flat.len()];
    let mut order = Vec::with_capacity(flat.len());
    let mut stack: Vec<u32> = Vec::new();
    for start in 0..flat.len() as u32 {
        stack.push(start);
        while let Some(task) = stack.pop() {
            cancel::check();
            if std::mem::replace(&mut done[task as usize], true) {
                continue;
            }
            order.push(flat[task as usize]);
            let mut ready = complete(plan, tiles, &mut waiting, flat[task as usize]);
            let producer = flat[task as usize].0;
            ready.retain(|&other| {
                let pass = flat[other as usize].0;
                let may_come = match &plan.producers[pass as usize] {
                    // Large products keep their own order: it is the order of their additions.
                    Producer::Pass(pass) => !is_blocked(pass),
                    // So do the tasks of an algorithm, and its works.
                    Producer::Work(step) => match other.checked_sub(1).map(|before| before as usize) {
                        Some(before) => done[before] || !is_of_same(plan, flat[before].0, step),
                        None => true,
                    },
                };
                !done[other as usize] && pass != producer && may_come
            });
            // A task of an algorithm whose tiles were there already, but not its turn.
            let next = task + 1;
            if plan.pass(producer).is_none()
                && flat.get(next as usize).is_some_and(|&(other, _)| other == producer)
                && waiting.made[next as usize]
                && !done[next as usize]
            {
                stack.push(next);
            }
            if ready.len() <= READY_AT_ONCE_MAX {
                ready.sort_unstable_by(|a, b| b.cmp(a));
                stack.extend(ready);
            }
        }
    }
    order
}

/// Whether a producer is a work of the algorithm that `step` is a work of.
fn is_of_same(plan: &Plan, producer: u32, step: &WorkStep) -> bool {
    let work = plan.producers[producer as usize].work();
    work.is_some_and(|work| work.sets == step.sets)
}

/// Marks a task's outputs and gives the tasks that need nothing more.
fn complete(plan: &Plan, tiles: &TileTable, waiting: &mut TileReaders, task: (u32, u32)) -> Vec<u32> {
    let mut ready = Vec::new();
    each_written(plan, tiles, task, |tile| {
        let tile = tile as usize;
        waiting.contributions[tile] -= 1;
        if waiting.contributions[tile] > 0 {
            return;
        }
        let begin = if tile == 0 { 0 } else { waiting.reader_ends[tile - 1] };
        for &reader in &waiting.readers[begin as usize..waiting.reader_ends[tile] as usize] {
            waiting.missing[reader as usize] -= 1;
            if waiting.missing[reader as usize] == 0 {
                waiting.made[reader as usize] = true;
                ready.push(reader);
            }
        }
    });
    ready
}

fn find_waiting(plan: &Plan, tiles: &TileTable, flat: &[(u32, u32)]) -> TileReaders {
    let mut contributions = vec![0u32; tiles.len()];
    let mut pairs: Vec<(TileId, u32)> = Vec::new();
    let mut missing = vec![0u32; flat.len()];
    let mut finder = InputFinder::new(plan, tiles);
    let mut inputs = Vec::new();
    for (task, &(pass_index, cell_index)) in flat.iter().enumerate() {
        each_written(plan, tiles, (pass_index, cell_index), |tile| {
            contributions[tile as usize] += 1
        });
        inputs.clear();
        finder.find_task(&plan.producers[pass_index as usize], cell_index, &mut inputs);
        for &tile in &inputs {
            let (array, _) = tiles.locate(tile);
            if matches!(plan.arrays[array as usize].kind, ArrayKind::Computed) {
                pairs.push((tile, task as u32));
                missing[task] += 1;
            }
        }
    }
    pairs.sort_unstable();
    let mut reader_ends = vec![0u32; tiles.len()];
    for &(tile, _) in &pairs {
        reader_ends[tile as usize] += 1;
    }
    let mut end = 0;
    for ends in &mut reader_ends {
        end += *ends;
        *ends = end;
    }
    TileReaders {
        made: vec![false; missing.len()],
        missing,
        reader_ends,
        readers: pairs.into_iter().map(|(_, task)| task).collect(),
        contributions,
    }
}
