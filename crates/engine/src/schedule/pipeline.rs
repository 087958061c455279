//! Interleaving of passes: a consumer's task runs as soon as its last input tile exists, so temporaries that flow tile
//! by tile die young (the tile-at-a-time pipeline of Kim 2023, for whole programs).

use super::blocking::is_blocked;
use super::tasks::InputFinder;
use super::tiles::{TileId, TileTable};
use super::writes::WrittenTiles;
use crate::cancel;
use crate::plan::{ArrayKind, Plan, Producer, WorkStep};

/// When one task makes more than this many others ready, they are a pass of their own, not a pipeline.
const READY_AT_ONCE_MAX: usize = 32;
/// Tasks of an algorithm that come with one behind them at most.
const TURNS_MAX: usize = 1024;

/// Reads of computed tiles: who waits for what.
struct TileReaders {
    /// Per task (numbered pass by pass, in the given cell order): computed input tiles not yet made.
    missing: Vec<u32>,
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
    let written = WrittenTiles::new(plan, tiles);
    let mut waiting = find_waiting(plan, tiles, &written, &flat);
    let mut done = vec![false; flat.len()];
    let mut order = Vec::with_capacity(flat.len());
    let mut stack: Vec<u32> = Vec::new();
    let few = begins_early(plan, &flat, &waiting.missing);
    for start in few.into_iter().chain(0..flat.len() as u32) {
        stack.push(start);
        while let Some(task) = stack.pop() {
            cancel::check();
            if std::mem::replace(&mut done[task as usize], true) {
                continue;
            }
            order.push(flat[task as usize]);
            let mut ready = complete(&written, &mut waiting, flat[task as usize]);
            let producer = flat[task as usize].0;
            ready.retain(|&other| !done[other as usize] && flat[other as usize].0 != producer);
            if ready.len() > READY_AT_ONCE_MAX {
                ready.clear();
            }
            let mut ready: Vec<u32> = ready
                .into_iter()
                .flat_map(|other| match &plan.producers[flat[other as usize].0 as usize] {
                    // Large products keep their own order: it is the order of their additions.
                    Producer::Pass(pass) if is_blocked(pass) => 0..0,
                    Producer::Pass(_) => other..other + 1,
                    Producer::Work(step) => turn_of(plan, &flat, step, &waiting.missing, &done, other),
                })
                .collect();
            // A task of an algorithm whose tiles were there already, but not its turn.
            let next = task + 1;
            if plan.pass(producer).is_none()
                && flat.get(next as usize).is_some_and(|&(other, _)| other == producer)
                && waiting.missing[next as usize] == 0
                && !done[next as usize]
            {
                stack.push(next);
            }
            ready.sort_unstable_by(|a, b| b.cmp(a));
            stack.extend(ready);
        }
    }
    order
}

/// Tasks of passes over few tiles that wait for nothing, in plans with works: a work that needs them and another's tiles may
/// begin with the first of these.
fn begins_early(plan: &Plan, flat: &[(u32, u32)], missing: &[u32]) -> Vec<u32> {
    if plan.producers.iter().all(|producer| producer.work().is_none()) {
        return vec![];
    }
    let mut counts = vec![0; plan.producers.len()];
    let mut waits = vec![false; plan.producers.len()];
    for (&(producer, _), &missing) in flat.iter().zip(missing) {
        counts[producer as usize] += 1;
        waits[producer as usize] |= missing > 0;
    }
    let is_early = |producer: usize| {
        plan.pass(producer as u32).is_some() && counts[producer] <= READY_AT_ONCE_MAX && !waits[producer]
    };
    let early = flat
        .iter()
        .enumerate()
        .filter(|(_, (producer, _))| is_early(*producer as usize));
    early.map(|(task, _)| task as u32).collect()
}

/// The tasks of an algorithm up to one whose tiles are there, as far as they have not run: all of them may, or none. Tasks of an
/// algorithm, and its works, keep their order.
fn turn_of(
    plan: &Plan,
    flat: &[(u32, u32)],
    step: &WorkStep,
    missing: &[u32],
    done: &[bool],
    task: u32,
) -> std::ops::Range<u32> {
    let mut first = task as usize;
    while let Some(before) = first.checked_sub(1) {
        if task as usize - before > TURNS_MAX {
            return 0..0;
        }
        if done[before] || !is_of_same(plan, flat[before].0, step) {
            break;
        }
        if missing[before] > 0 {
            return 0..0;
        }
        first = before;
    }
    first as u32..task + 1
}

/// Whether a producer is a work of the algorithm that `step` is a work of.
fn is_of_same(plan: &Plan, producer: u32, step: &WorkStep) -> bool {
    let work = plan.producers[producer as usize].work();
    work.is_some_and(|work| work.sets == step.sets)
}

/// Marks a task's outputs and gives the tasks that need nothing more.
fn complete(written: &WrittenTiles<'_>, waiting: &mut TileReaders, task: (u32, u32)) -> Vec<u32> {
    let mut ready = Vec::new();
    written.each(task, |tile| {
        let tile = tile as usize;
        waiting.contributions[tile] -= 1;
        if waiting.contributions[tile] > 0 {
            return;
        }
        let begin = if tile == 0 { 0 } else { waiting.reader_ends[tile - 1] };
        for &reader in &waiting.readers[begin as usize..waiting.reader_ends[tile] as usize] {
            waiting.missing[reader as usize] -= 1;
            if waiting.missing[reader as usize] == 0 {
                ready.push(reader);
            }
        }
    });
    ready
}

fn find_waiting(plan: &Plan, tiles: &TileTable, written: &WrittenTiles<'_>, flat: &[(u32, u32)]) -> TileReaders {
    let mut contributions = vec![0u32; tiles.len()];
    let mut writers = vec![u32::MAX; tiles.len()];
    let mut pairs: Vec<(TileId, u32)> = Vec::new();
    let mut missing = vec![0u32; flat.len()];
    let mut finder = InputFinder::new(plan, tiles);
    let mut inputs = Vec::new();
    for &(pass_index, cell_index) in flat {
        written.each((pass_index, cell_index), |tile| {
            contributions[tile as usize] += 1;
            writers[tile as usize] = pass_index;
        });
    }
    for (task, &(pass_index, cell_index)) in flat.iter().enumerate() {
        inputs.clear();
        finder.find_task(&plan.producers[pass_index as usize], cell_index, &mut inputs);
        if let Producer::Work(step) = &plan.producers[pass_index as usize] {
            // Tiles of its own are as earlier tasks leave them, which come in the order of their numbers.
            inputs.retain(|&tile| {
                let writer = writers[tile as usize];
                writer == u32::MAX || !is_of_same(plan, writer, step)
            });
        }
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
        missing,
        reader_ends,
        readers: pairs.into_iter().map(|(_, task)| task).collect(),
        contributions,
    }
}
