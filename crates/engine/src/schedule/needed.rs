//! What is left of a program when some tiles of its outputs are durable already: the tasks that the others depend on.

use super::tasks::InputFinder;
use super::tiles::{TileId, TileTable};
use super::writes::{each_updated, WrittenTiles};
use crate::cancel;
use crate::plan::{ArrayKind, LeftWork, Needed, Plan};

/// The work that an earlier run has done on a plan's outputs.
pub struct DoneWork<'a> {
    /// The tiles that are durable.
    pub tiles: &'a [TileId],
    /// By array: whether its tiles count only for others that are made of them.
    pub is_beside: &'a [bool],
}

/// The tasks that outputs other than the tiles that are done need. Tasks that write to a needed tile are needed, all of them,
/// and what they read is needed in turn, but tiles that are done and can be read back; so every needed tile is made as if
/// nothing were there, with the same bits.
pub fn find_needed(plan: &Plan, tiles: &TileTable, done: &DoneWork<'_>) -> LeftWork {
    let mut search = NeededSearch {
        plan,
        tiles,
        done,
        stands: vec![false; tiles.len()],
        wanted: vec![],
    };
    let standing = done.tiles.iter().filter(|&&tile| tiles.is_read_back(tile));
    standing.for_each(|&tile| search.stands[tile as usize] = true);
    loop {
        let tasks = search.find();
        // A tile that a task writes to is made anew from its first task on, and so are those that these write to.
        let mut remade = done
            .tiles
            .iter()
            .filter(|&&tile| search.wanted[tile as usize])
            .peekable();
        let mut is_last = true;
        for &tile in &mut remade {
            is_last &= !std::mem::take(&mut search.stands[tile as usize]);
        }
        if is_last {
            let stands = |tile: &&TileId| search.stands[**tile as usize];
            return LeftWork {
                tasks,
                standing: done.tiles.iter().filter(stands).copied().collect(),
            };
        }
    }
}

struct NeededSearch<'a> {
    plan: &'a Plan,
    tiles: &'a TileTable,
    done: &'a DoneWork<'a>,
    /// Tiles that are read back, and written by no task.
    stands: Vec<bool>,
    /// Tiles that are made.
    wanted: Vec<bool>,
}

impl NeededSearch<'_> {
    fn find(&mut self) -> Needed {
        let plan = self.plan;
        self.begin();
        let mut finder = InputFinder::new(plan, self.tiles);
        let written = WrittenTiles::new(plan, self.tiles);
        let mut needed: Needed = Vec::with_capacity(plan.producers.len());
        let mut read = Vec::new();
        // Every tile is written before it is read, by earlier producers or earlier tasks of the same.
        for (index, producer) in plan.producers.iter().enumerate().rev() {
            let mut tasks = vec![false; producer.tasks() as usize];
            for task in (0..tasks.len() as u32).rev() {
                cancel::check();
                if !self.takes(&written, (index as u32, task)) {
                    continue;
                }
                tasks[task as usize] = true;
                read.clear();
                finder.find_task(producer, task, &mut read);
                for &tile in &read {
                    let (array, _) = self.tiles.locate(tile);
                    let is_made = matches!(plan.arrays[array as usize].kind, ArrayKind::Computed);
                    self.wanted[tile as usize] |= is_made && !self.stands[tile as usize];
                }
            }
            needed.push(tasks);
        }
        needed.reverse();
        needed
    }

    /// Wants the tiles of outputs that are not done.
    fn begin(&mut self) {
        self.wanted = vec![false; self.tiles.len()];
        for (id, array) in self.plan.arrays.iter().enumerate() {
            if !array.outputs.is_empty() && !self.done.is_beside[id] {
                let first = self.tiles.first[id] as usize;
                self.wanted[first..first + array.tiles() as usize].fill(true);
            }
        }
        for &tile in self.done.tiles {
            let is_remade = self.tiles.is_read_back(tile) && !self.stands[tile as usize];
            self.wanted[tile as usize] = is_remade;
        }
    }

    /// Whether a task is needed; what it writes beside is then as good as wanted: all tasks of it run too.
    fn takes(&mut self, written: &WrittenTiles<'_>, task: (u32, u32)) -> bool {
        let (plan, tiles) = (self.plan, self.tiles);
        let mut is_needed = false;
        written.each(task, |tile| is_needed |= self.wanted[tile as usize]);
        if !is_needed {
            return false;
        }
        // Of outputs that are durable and cannot be read back only tiles that a work updates, which it reads.
        written.each(task, |tile| {
            let array = tiles.locate(tile).0 as usize;
            let is_within = plan.arrays[array].outputs.is_empty() || self.done.is_beside[array];
            self.wanted[tile as usize] |= is_within || self.stands[tile as usize];
        });
        each_updated(plan, tiles, task, |tile| self.wanted[tile as usize] = true);
        true
    }
}
