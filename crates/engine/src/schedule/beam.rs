//! Orders of few tasks by a beam search: several beginnings of orders are kept, each with what it leaves in memory.
//!
//! Beginnings are ranked by the bytes that they have moved and those that the rest must bring in at least, so that what leaves
//! memory counts at once (beam search: Lowerre, The HARPY speech recognition system, 1976).

use std::collections::HashSet;
use std::rc::Rc;

use super::search::there_before;
use super::task_graph::TaskGraph;
use super::{TileId, TileTable};
use crate::cancel;
use crate::plan::{ArrayKind, Plan};

/// Tiles of plans that are searched so.
const TILES_MAX: usize = 2048;
/// Beginnings that are kept.
const WIDTH: usize = 8;
/// Ready tasks that each of them is tried with.
const TRIED: usize = 16;

/// The last task of a beginning, and those before it.
struct LastTask {
    task: u32,
    before: Option<Rc<LastTask>>,
}

/// The beginning of an order.
#[derive(Clone)]
struct Beginning {
    last: Option<Rc<LastTask>>,
    is_done: Vec<bool>,
    missing: Vec<u32>,
    is_made: Vec<bool>,
    is_resident: Vec<bool>,
    resident: Vec<TileId>,
    is_dirty: Vec<bool>,
    /// Tasks that are left of those that touch each tile, and that write it.
    uses: Vec<u32>,
    writes: Vec<u32>,
    moved: u64,
    /// Bytes that the rest brings in at least.
    ahead: u64,
    held: u64,
    /// Of the tasks done, the tiles in memory and those of them that are dirty.
    hash: u64,
}

/// A beginning with one task more.
struct Longer {
    beginning: usize,
    task: u32,
    leaving: Vec<TileId>,
    least: u64,
    held: u64,
}

struct BeamSearch<'a> {
    tiles: &'a TileTable,
    graph: &'a TaskGraph,
    memory: u64,
    users: Vec<Vec<u32>>,
    is_output: Vec<bool>,
}

/// All tasks of a plan of few but those that make tiles out of nothing, where tiles have so much memory; nothing where that is never enough.
pub fn beam_schedule(plan: &Plan, tiles: &TileTable, graph: &TaskGraph, memory: u64) -> Option<Vec<(u32, u32)>> {
    if tiles.len() > TILES_MAX {
        return None;
    }
    let workspace = (0..graph.tasks.len()).map(|task| graph.tasks.workspace(plan, task));
    let mut search = BeamSearch {
        tiles,
        graph,
        memory: memory.saturating_sub(workspace.max().unwrap_or(0)),
        users: vec![vec![]; tiles.len()],
        is_output: vec![false; tiles.len()],
    };
    for (array, &first) in plan.arrays.iter().zip(&tiles.first) {
        let is_result = matches!(array.kind, ArrayKind::Computed) && !array.outputs.is_empty();
        search.is_output[first as usize..][..array.tiles() as usize].fill(is_result);
    }
    let first = search.first(there_before(plan, tiles));
    let tasks = first.is_done.iter().filter(|&&is_done| !is_done).count();
    let mut level = vec![first];
    for _ in 0..tasks {
        level = search.next(level);
    }
    let mut order = vec![];
    let mut last = level.into_iter().next()?.last;
    while let Some(step) = last.take() {
        order.push(graph.key(step.task));
        last.clone_from(&step.before);
    }
    order.reverse();
    Some(order)
}

/// A number for a fact, by which states of equal facts are equal (Zobrist, 1970).
fn fact(kind: u64, number: u32) -> u64 {
    let mut mixed = (u64::from(number) << 2 | kind)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl BeamSearch<'_> {
    fn first(&mut self, is_made: Vec<bool>) -> Beginning {
        let count = self.tiles.len();
        let mut writes = vec![0; count];
        let tasks = 0..self.graph.tasks.len() as u32;
        let is_done: Vec<bool> = tasks.clone().map(|task| self.graph.is_from_nothing(task)).collect();
        for task in tasks.filter(|&task| !is_done[task as usize]) {
            for tile in self.touched(task) {
                self.users[tile as usize].push(task);
            }
            for output in self.graph.tasks.outputs(task as usize) {
                writes[output.tile as usize] += 1;
            }
        }
        let needed = (0..count).filter(|&tile| !self.users[tile].is_empty());
        let ahead = needed.map(|tile| self.content(tile as TileId, is_made[tile])).sum();
        Beginning {
            last: None,
            is_done,
            missing: self.graph.missing(),
            is_made,
            is_resident: vec![false; count],
            resident: vec![],
            is_dirty: vec![false; count],
            uses: self.users.iter().map(|users| users.len() as u32).collect(),
            writes,
            moved: 0,
            ahead,
            held: 0,
            hash: 0,
        }
    }

    fn frame(&self, tile: TileId) -> u64 {
        self.tiles.weights[tile as usize].frame
    }

    /// Bytes that bring a tile in which is not in memory.
    fn content(&self, tile: TileId, is_made: bool) -> u64 {
        match is_made {
            true => self.tiles.weights[tile as usize].read,
            false => 0,
        }
    }

    /// The tiles of a task, each once.
    fn touched(&self, task: u32) -> Vec<TileId> {
        let mut tiles: Vec<TileId> = self.graph.tiles_of(task).collect();
        tiles.sort_unstable();
        tiles.dedup();
        tiles
    }

    /// The best beginnings of one task more.
    fn next(&self, level: Vec<Beginning>) -> Vec<Beginning> {
        let mut longer: Vec<Longer> = vec![];
        for (number, beginning) in level.iter().enumerate() {
            let ready = self.ready(beginning);
            longer.extend(
                ready
                    .into_iter()
                    .filter_map(|task| self.longer(number, beginning, task)),
            );
        }
        longer.sort_by_key(|longer| (longer.least, longer.held, longer.task));
        let mut seen = HashSet::new();
        let mut next = vec![];
        for longer in longer {
            cancel::check();
            let beginning = self.done(&level[longer.beginning], &longer);
            if seen.insert(beginning.hash) {
                next.push(beginning);
            }
            if next.len() == WIDTH {
                break;
            }
        }
        next
    }

    /// Tasks that may come next: the oldest of those that make tiles of others, and of those for which all is made.
    fn ready(&self, beginning: &Beginning) -> Vec<u32> {
        let left = || (0..self.graph.tasks.len() as u32).filter(|&task| !beginning.is_done[task as usize]);
        let is_made = |tile| {
            self.graph
                .maker(tile)
                .is_none_or(|maker| beginning.is_done[maker as usize])
        };
        let makers = left().filter(|&task| self.graph.is_maker[task as usize]);
        let others = left().filter(|&task| {
            let at = task as usize;
            !self.graph.is_maker[at] && beginning.missing[at] == 0 && self.graph.tiles_of(task).all(is_made)
        });
        makers.take(TRIED).chain(others.take(TRIED)).collect()
    }

    /// A beginning with a task, and the tiles that leave for it; nothing where there is no room.
    fn longer(&self, number: usize, beginning: &Beginning, task: u32) -> Option<Longer> {
        let touched = self.touched(task);
        let more: u64 = touched
            .iter()
            .filter(|&&tile| !beginning.is_resident[tile as usize])
            .map(|&tile| self.frame(tile))
            .sum();
        let mut held = beginning.held + more;
        let mut least = beginning.moved + beginning.ahead;
        let mut leaving = vec![];
        if held > self.memory {
            let oldest = beginning.is_done.iter().position(|is_done| !is_done).unwrap_or(0) as u32;
            let resident = beginning.resident.iter().copied();
            let mut others: Vec<(u64, TileId)> = resident
                .filter(|tile| touched.binary_search(tile).is_err())
                .map(|tile| {
                    let mut users = self.users[tile as usize].iter();
                    let next = users.find(|&&user| !beginning.is_done[user as usize] && user != task);
                    let distance = 2 * u64::from(next.map_or(u32::MAX, |next| next - oldest));
                    (distance >> u32::from(beginning.is_dirty[tile as usize]), tile)
                })
                .collect();
            others.sort_unstable();
            while held > self.memory {
                let (_, tile) = others.pop()?;
                held -= self.frame(tile);
                least += self.tiles.weights[tile as usize].read;
                least += u64::from(beginning.is_dirty[tile as usize]) * self.frame(tile);
                leaving.push(tile);
            }
        }
        let dead = touched.iter().filter(|&&tile| beginning.uses[tile as usize] == 1);
        held -= dead.map(|&tile| self.frame(tile)).sum::<u64>();
        Some(Longer {
            beginning: number,
            task,
            leaving,
            least,
            held,
        })
    }

    fn done(&self, before: &Beginning, longer: &Longer) -> Beginning {
        let mut after = before.clone();
        let task = longer.task;
        for &tile in &longer.leaving {
            if std::mem::take(&mut after.is_dirty[tile as usize]) {
                after.moved += self.frame(tile);
                after.hash ^= fact(2, tile);
            }
            after.ahead += self.tiles.weights[tile as usize].read;
            after.is_resident[tile as usize] = false;
            after.hash ^= fact(1, tile);
        }
        for tile in self.touched(task) {
            let at = tile as usize;
            if !std::mem::replace(&mut after.is_resident[at], true) {
                let bytes = self.content(tile, after.is_made[at]);
                after.moved += bytes;
                after.ahead -= bytes;
                after.hash ^= fact(1, tile);
            }
            if !std::mem::replace(&mut after.is_made[at], true) && !std::mem::replace(&mut after.is_dirty[at], true) {
                after.hash ^= fact(2, tile);
            }
        }
        for output in self.graph.tasks.outputs(task as usize) {
            let at = output.tile as usize;
            after.writes[at] -= 1;
            // Results are written as soon as they are complete, and read back from there.
            let is_dirty = after.writes[at] > 0 || !self.is_output[at];
            if std::mem::replace(&mut after.is_dirty[at], is_dirty) != is_dirty {
                after.hash ^= fact(2, output.tile);
            }
        }
        for tile in self.touched(task) {
            let at = tile as usize;
            after.uses[at] -= 1;
            if after.uses[at] == 0 {
                after.is_resident[at] = false;
                after.hash ^= fact(1, tile);
                if std::mem::take(&mut after.is_dirty[at]) {
                    after.hash ^= fact(2, tile);
                }
            }
        }
        after.resident.extend(self.touched(task));
        after.resident.sort_unstable();
        after.resident.dedup();
        after.resident.retain(|&tile| after.is_resident[tile as usize]);
        after.held = longer.held;
        after.is_done[task as usize] = true;
        after.hash ^= fact(0, task);
        for &later in &self.graph.later[task as usize] {
            after.missing[later as usize] -= 1;
        }
        after.last = Some(Rc::new(LastTask {
            task,
            before: before.last.clone(),
        }));
        after
    }
}
