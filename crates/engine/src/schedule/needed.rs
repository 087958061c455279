//! What is left of a program when some tiles of its outputs are durable already: the tasks that the others depend on.

use super::tasks::InputFinder;
use super::tiles::{TileId, TileTable};
use super::writes::{each_updated, each_written};
use crate::cancel;
use crate::plan::{ArrayKind, Needed, Plan};

/// The tasks that outputs other than the tiles `done` need. Tasks that write to a needed tile are needed, all of them, and
/// what they read is needed in turn; so every needed tile is made as if nothing were there, with the same bits.
pub fn find_needed(plan: &Plan, tiles: &TileTable, done: &[TileId]) -> Needed {
    let mut wanted = vec![false; tiles.len()];
    for (id, array) in plan.arrays.iter().enumerate() {
        if !array.outputs.is_empty() {
            let first = tiles.first[id] as usize;
            wanted[first..first + array.tiles() as usize].fill(true);
        }
    }
    done.iter().for_each(|&tile| wanted[tile as usize] = false);
    let mut finder = InputFinder::new(plan, tiles);
    let mut needed: Needed = Vec::with_capacity(plan.producers.len());
    let mut read = Vec::new();
    // Every tile is written before it is read, by earlier producers or earlier tasks of the same.
    for (index, producer) in plan.producers.iter().enumerate().rev() {
        let mut tasks = vec![false; producer.tasks() as usize];
        for task in (0..tasks.len() as u32).rev() {
            cancel::check();
            let mut is_needed = false;
            each_written(plan, tiles, (index as u32, task), |tile| {
                is_needed |= wanted[tile as usize]
            });
            if !is_needed {
                continue;
            }
            tasks[task as usize] = true;
            // Tiles that a task writes beside are as good as wanted: all tasks of theirs run too. Of outputs that are durable
            // only tiles that a work updates, which it reads.
            each_written(plan, tiles, (index as u32, task), |tile| {
                let (array, _) = tiles.locate(tile);
                wanted[tile as usize] |= plan.arrays[array as usize].outputs.is_empty();
            });
            each_updated(plan, tiles, (index as u32, task), |tile| wanted[tile as usize] = true);
            read.clear();
            finder.find_task(producer, task, &mut read);
            for &tile in &read {
                let (array, _) = tiles.locate(tile);
                wanted[tile as usize] |= matches!(plan.arrays[array as usize].kind, ArrayKind::Computed);
            }
        }
        needed.push(tasks);
    }
    needed.reverse();
    needed
}
