//! The tasks of a plan as orders are searched for: which come behind which, and which only make tiles for others.

use super::{order, Candidate, Role, TaskList, TileId, TileTable};
use crate::cancel;
use crate::plan::{ArrayKind, Plan, Producer, RootKind};

pub(super) const NONE: u32 = u32::MAX;

/// Tasks in the order of their text, with what searches ask of them.
pub struct TaskGraph {
    pub(super) tasks: TaskList,
    /// Edges, by the earlier task.
    pub(super) later: Vec<Vec<u32>>,
    /// Tasks that only make tiles for others, out of nothing or of stored tiles: each comes just before the first that
    /// touches one of its tiles, and no edges are theirs.
    pub(super) is_maker: Vec<bool>,
    /// By tile: its maker, and the bytes that it is made of.
    maker: Vec<u32>,
    pub(super) made_of: Vec<u64>,
    /// The places of tasks, by producer and cell.
    places: Vec<Vec<u32>>,
}

impl TaskGraph {
    /// The tasks of a plan in the order of a candidate.
    pub fn of(plan: &Plan, tiles: &TileTable, plain: &Candidate, memory: u64) -> TaskGraph {
        let cells = order::sequential(plan, tiles, plain, memory);
        let tasks = super::tasks::build_tasks(plan, tiles, &order::in_turn(&cells));
        let mut places: Vec<Vec<u32>> = cells.iter().map(|cells| vec![NONE; cells.len()]).collect();
        for (task, (&producer, &cell)) in tasks.pass.iter().zip(&tasks.cell).enumerate() {
            places[producer as usize][cell as usize] = task as u32;
        }
        let mut graph = TaskGraph {
            later: vec![vec![]; tasks.len()],
            is_maker: vec![false; tasks.len()],
            maker: vec![NONE; tiles.len()],
            made_of: vec![0; tiles.len()],
            tasks,
            places,
        };
        graph.find_makers(plan, tiles);
        graph.find_edges(plan, tiles);
        graph
    }

    pub(super) fn tiles_of(&self, task: u32) -> impl Iterator<Item = TileId> + '_ {
        let written = self.tasks.outputs(task as usize).iter().map(|output| output.tile);
        self.tasks.inputs(task as usize).iter().copied().chain(written)
    }

    fn find_makers(&mut self, plan: &Plan, tiles: &TileTable) {
        let mut users = vec![0u32; tiles.len()];
        for task in 0..self.tasks.len() as u32 {
            self.tiles_of(task).for_each(|tile| users[tile as usize] += 1);
        }
        for task in 0..self.tasks.len() {
            cancel::check();
            let (producer, cell) = (self.tasks.pass[task], self.tasks.cell[task]);
            let makes = match &plan.producers[producer as usize] {
                Producer::Pass(pass) => pass.roots.iter().all(|root| root.kind == RootKind::Map),
                Producer::Work(step) => step.work.is_preparation(cell.into()),
            };
            let is_stored = |&tile: &TileId| {
                let (array, _) = tiles.locate(tile);
                !matches!(plan.arrays[array as usize].kind, ArrayKind::Computed) || self.maker[tile as usize] != NONE
            };
            let is_used = |tile: TileId| users[tile as usize] > 1;
            let outputs = self.tasks.outputs(task);
            if !makes
                || !self.tasks.inputs(task).iter().all(is_stored)
                || !outputs
                    .iter()
                    .all(|output| is_used(output.tile) && is_first(output.role))
            {
                continue;
            }
            let of = |&tile: &TileId| match self.maker[tile as usize] {
                NONE => tiles.weights[tile as usize].read,
                _ => self.made_of[tile as usize],
            };
            let bytes = self.tasks.inputs(task).iter().map(of).sum();
            for output in self.tasks.outputs(task) {
                self.maker[output.tile as usize] = task as u32;
                self.made_of[output.tile as usize] = bytes;
            }
            self.is_maker[task] = true;
        }
    }

    fn find_edges(&mut self, plan: &Plan, tiles: &TileTable) {
        let mut writer = vec![NONE; tiles.len()];
        let mut readers: Vec<Vec<u32>> = vec![vec![]; tiles.len()];
        // Tasks whose partial results are combined come in their order.
        let in_order: Vec<bool> = plan.producers.iter().map(is_in_order).collect();
        let mut latest = vec![NONE; plan.producers.len()];
        let mut edges = std::mem::take(&mut self.later);
        let mut edge = |from: u32, to: u32| {
            if from != NONE && from != to {
                edges[from as usize].push(to);
            }
        };
        for task in 0..self.tasks.len() as u32 {
            cancel::check();
            if self.is_maker[task as usize] {
                continue;
            }
            let producer = self.tasks.pass[task as usize] as usize;
            if in_order[producer] {
                edge(std::mem::replace(&mut latest[producer], task), task);
            }
            for &tile in self.tasks.inputs(task as usize) {
                edge(writer[tile as usize], task);
                readers[tile as usize].push(task);
            }
            for output in self.tasks.outputs(task as usize) {
                let tile = output.tile as usize;
                edge(writer[tile], task);
                for reader in readers[tile].drain(..) {
                    edge(reader, task);
                }
                writer[tile] = task;
            }
        }
        self.later = edges;
    }

    /// How many earlier tasks each waits for.
    pub(super) fn missing(&self) -> Vec<u32> {
        let mut missing = vec![0; self.tasks.len()];
        for &task in self.later.iter().flatten() {
            missing[task as usize] += 1;
        }
        missing
    }

    pub(super) fn key(&self, task: u32) -> (u32, u32) {
        (self.tasks.pass[task as usize], self.tasks.cell[task as usize])
    }

    /// Whether a task makes tiles out of nothing.
    pub(super) fn is_from_nothing(&self, task: u32) -> bool {
        self.is_maker[task as usize] && self.tasks.inputs(task as usize).is_empty()
    }

    /// The maker of a tile, if it has one.
    pub(super) fn maker(&self, tile: TileId) -> Option<u32> {
        Some(self.maker[tile as usize]).filter(|&maker| maker != NONE)
    }

    /// An order with every maker just before the first task that touches what it makes; with `copies_stay`, those that make
    /// tiles of others stand where they are.
    pub fn with_makers_late(&self, order: &[(u32, u32)], copies_stay: bool) -> Vec<(u32, u32)> {
        let is_moved = |task: u32| self.is_maker[task as usize] && (!copies_stay || self.is_from_nothing(task));
        let mut late = Vec::with_capacity(self.tasks.len());
        let mut is_done = vec![false; self.tasks.len()];
        let mut stack = vec![];
        for &(producer, cell) in order {
            cancel::check();
            let task = self.places[producer as usize][cell as usize];
            if is_moved(task) {
                continue;
            }
            stack.push(task);
            while let Some(&task) = stack.last() {
                let before = stack.len();
                let made = self.tiles_of(task).filter(|&tile| {
                    let maker = self.maker[tile as usize];
                    maker != NONE && maker != task && !is_done[maker as usize]
                });
                let mut made: Vec<TileId> = made.collect();
                // Copies come before zeros: they hold what they copy beside what they make.
                made.sort_by_key(|&tile| self.made_of[tile as usize]);
                stack.extend(made.into_iter().map(|tile| self.maker[tile as usize]));
                if stack.len() == before {
                    stack.pop();
                    if !std::mem::replace(&mut is_done[task as usize], true) {
                        late.push(self.key(task));
                    }
                }
            }
        }
        late
    }
}

fn is_first(role: Role) -> bool {
    matches!(role, Role::Whole | Role::Accumulate { first: true, .. })
}

fn is_in_order(producer: &Producer) -> bool {
    let roots = producer.pass().map(|pass| &pass.roots);
    roots.is_some_and(|roots| roots.iter().any(|root| root.kind != RootKind::Map))
}
