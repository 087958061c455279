//! Orders found by search: list schedules over the dependences of all tasks, each time the task that brings in fewest bytes.
//!
//! Tasks that touch one tile, one of them writing, keep their order, so no result changes by a bit. Of the ready tasks that share
//! tiles with those that ran last, the one that brings in least comes next, then the one that shares most, then the oldest
//! (the locality set graph of Kandemir, Son, Karakoy, FAST 2008, section 4, with tiles in the place of disks).

use std::collections::{BTreeMap, BTreeSet};

use super::task_graph::{TaskGraph, NONE};
use super::{NestBlocks, TileId, TileTable};
use crate::cancel;
use crate::plan::{ArrayKind, Plan};
use crate::schedule::Role;
use crate::task::Work;

/// Ready tasks that are compared with each other, altogether and of one tile.
const COMPARED: usize = 64;
const COMPARED_OF_TILE: usize = 16;

/// Tiles in memory, by the last task that used them.
struct Residency {
    since: Vec<u32>,
    by_age: BTreeMap<u32, TileId>,
    next: u32,
    bytes: u64,
}

impl Residency {
    fn has(&self, tile: TileId) -> bool {
        self.since[tile as usize] != NONE
    }

    fn touch(&mut self, tile: TileId, bytes: u64) {
        let before = std::mem::replace(&mut self.since[tile as usize], self.next);
        match before {
            NONE => self.bytes += bytes,
            before => {
                self.by_age.remove(&before);
            }
        }
        self.by_age.insert(self.next, tile);
        self.next += 1;
    }

    fn drop(&mut self, tile: TileId, bytes: u64) {
        let before = std::mem::replace(&mut self.since[tile as usize], NONE);
        if before != NONE {
            self.by_age.remove(&before);
            self.bytes -= bytes;
        }
    }
}

/// Bytes that a task brings in, and those of its tiles that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TaskTraffic {
    brought_bytes: u64,
    shared_bytes: u64,
}

impl TaskTraffic {
    fn is_before(&self, other: TaskTraffic) -> bool {
        (self.brought_bytes, other.shared_bytes) < (other.brought_bytes, self.shared_bytes)
    }
}

struct ListSchedule<'a> {
    tiles: &'a TileTable,
    graph: &'a TaskGraph,
    /// Tiles that have been made, or were there.
    made: Vec<bool>,
    resident: Residency,
    /// Ready tasks, all and those that touch each tile.
    ready: BTreeSet<u32>,
    ready_of: Vec<BTreeSet<u32>>,
}

impl ListSchedule<'_> {
    fn operands(&self, task: u32) -> impl Iterator<Item = (TileId, bool)> + '_ {
        let outputs = self.graph.tasks.outputs(task as usize).iter();
        let written = outputs.map(|output| {
            (
                output.tile,
                !matches!(output.role, Role::Accumulate { first: false, .. }),
            )
        });
        let read = self.graph.tasks.inputs(task as usize).iter().map(|&tile| (tile, false));
        read.chain(written)
    }

    fn bytes(&self, tile: TileId) -> u64 {
        self.tiles.weights[tile as usize].frame
    }

    fn traffic(&self, task: u32) -> TaskTraffic {
        let mut traffic = TaskTraffic::default();
        for (tile, is_created) in self.operands(task) {
            if self.resident.has(tile) {
                traffic.shared_bytes += self.bytes(tile);
            } else if !is_created {
                traffic.brought_bytes += match self.made[tile as usize] {
                    true => self.bytes(tile),
                    false => self.graph.made_of[tile as usize],
                };
            }
        }
        traffic
    }

    fn add(&mut self, task: u32) {
        self.ready.insert(task);
        let tiles: Vec<TileId> = self.operands(task).map(|(tile, _)| tile).collect();
        for tile in tiles {
            self.ready_of[tile as usize].insert(task);
        }
    }

    /// The task that comes next.
    fn next(&self) -> Option<u32> {
        let mut seen = 0;
        let mut best: Option<(TaskTraffic, u32)> = None;
        for &tile in self.resident.by_age.values().rev() {
            for &task in self.ready_of[tile as usize].iter().take(COMPARED_OF_TILE) {
                let traffic = self.traffic(task);
                if best.is_none_or(|(least, other)| traffic.is_before(least) || traffic == least && task < other) {
                    best = Some((traffic, task));
                }
                seen += 1;
            }
            if seen >= COMPARED {
                break;
            }
        }
        best.map(|(_, task)| task).or_else(|| self.ready.first().copied())
    }
}

/// All tasks of a list with so many sweeps over the same tiles together, each behind the one before it: time tiling by tiles (Wolf,
/// Lam, A data locality optimizing algorithm, PLDI 1991).
pub fn sweeps_together(plan: &Plan, graph: &TaskGraph, together: u32) -> Vec<(u32, u32)> {
    ranked(plan, graph, &|work, task| {
        let place = work.sweep_place(task)?;
        let behind = i64::from(place.sweep % together) * place.lag;
        Some([
            i64::from(place.sweep / together),
            place.position + behind,
            place.sweep.into(),
            0,
            0,
            0,
        ])
    })
}

/// All tasks of a list with nests gone through in blocks.
pub fn in_blocks(plan: &Plan, graph: &TaskGraph, blocks: NestBlocks) -> Vec<(u32, u32)> {
    ranked(plan, graph, &|work, task| {
        let place = work.nest_place(task)?;
        let mut others = (0..3).filter(|&at| at != blocks.streamed).map(|at| place.pieces[at]);
        let [first, second] = [others.next()?, others.next()?];
        let [p, q] = blocks.sides;
        let block_row = first / p;
        // Back and forth, so that tiles at the turn are used again at once.
        let block_column = if block_row % 2 == 0 {
            i64::from(second / q)
        } else {
            -i64::from(second / q)
        };
        let streamed = place.pieces[blocks.streamed];
        let rank = [
            place.nest.into(),
            block_row.into(),
            block_column,
            streamed.into(),
            first.into(),
            second.into(),
        ];
        Some(rank)
    })
}

/// All tasks of a list with nests gone through in cubes, so many pieces of each of three loops: for each slab of the first loop the
/// cube on the diagonal, then those in its row and column, then the others; a factorization by blocks of blocks.
pub fn in_cubes(plan: &Plan, graph: &TaskGraph, side: u32) -> Vec<(u32, u32)> {
    ranked(plan, graph, &|work, task| {
        let place = work.nest_place(task)?;
        let off_diagonal = |[along, row, column]: [u32; 3]| i64::from(row != along) + i64::from(column != along);
        let cube @ [slab, row, column] = place.pieces.map(|piece| piece / side);
        // Back and forth, so that tiles at the turn are used again at once.
        let turned = |piece: u32, turns: u32| {
            if turns.is_multiple_of(2) {
                i64::from(piece)
            } else {
                -i64::from(piece)
            }
        };
        let [along, own_row, own_column] = place.pieces;
        let own = i64::from(own_row) << 24 | i64::from(own_column);
        Some([
            i64::from(place.nest) << 32 | i64::from(slab),
            off_diagonal(cube),
            turned(row, slab),
            turned(column, row),
            along.into(),
            off_diagonal(place.pieces) << 48 | own,
        ])
    })
}

/// The rank that a work gives a task.
type RankOf<'a> = dyn Fn(&dyn Work, u64) -> Option<[i64; 6]> + 'a;

/// Tasks by a rank that works give them. Tasks that others wait for come just before them, and tasks without a rank at the end.
fn ranked(plan: &Plan, graph: &TaskGraph, rank: &RankOf<'_>) -> Vec<(u32, u32)> {
    let tasks = &graph.tasks;
    let mut earlier: Vec<Vec<u32>> = vec![vec![]; tasks.len()];
    for (from, later) in graph.later.iter().enumerate() {
        later.iter().for_each(|&to| earlier[to as usize].push(from as u32));
    }
    let rank_of = |task: u32| {
        let step = plan.producers[tasks.pass[task as usize] as usize].work()?;
        Some((rank(step.work.as_ref(), tasks.cell[task as usize].into())?, task))
    };
    let mut wanted: Vec<([i64; 6], u32)> = (0..tasks.len() as u32).filter_map(rank_of).collect();
    wanted.sort_unstable();
    let mut is_done = vec![false; tasks.len()];
    let mut order = Vec::with_capacity(tasks.len());
    let rest = 0..tasks.len() as u32;
    let mut stack: Vec<u32> = vec![];
    for task in wanted.into_iter().map(|(_, task)| task).chain(rest) {
        stack.push(task);
        while let Some(&task) = stack.last() {
            cancel::check();
            if is_done[task as usize] {
                stack.pop();
                continue;
            }
            let before = stack.len();
            stack.extend(earlier[task as usize].iter().filter(|&&from| !is_done[from as usize]));
            if stack.len() == before {
                is_done[task as usize] = true;
                order.push(graph.key(task));
                stack.pop();
            }
        }
    }
    order
}

/// All tasks but makers in an order found by search, where tiles have so much memory.
pub fn list_schedule(plan: &Plan, tiles: &TileTable, graph: &TaskGraph, memory: u64) -> Vec<(u32, u32)> {
    let mut missing = graph.missing();
    let mut search = ListSchedule {
        tiles,
        graph,
        made: there_before(plan, tiles),
        resident: Residency {
            since: vec![NONE; tiles.len()],
            by_age: BTreeMap::new(),
            next: 0,
            bytes: 0,
        },
        ready: BTreeSet::new(),
        ready_of: vec![BTreeSet::new(); tiles.len()],
    };
    let mut uses = vec![0u32; tiles.len()];
    let searched = (0..graph.tasks.len() as u32).filter(|&task| !graph.is_maker[task as usize]);
    for task in searched {
        search.operands(task).for_each(|(tile, _)| uses[tile as usize] += 1);
        if missing[task as usize] == 0 {
            search.add(task);
        }
    }
    let mut order = Vec::with_capacity(graph.tasks.len());
    while let Some(task) = search.next() {
        cancel::check();
        order.push(graph.key(task));
        search.ready.remove(&task);
        let operands: Vec<TileId> = search.operands(task).map(|(tile, _)| tile).collect();
        for tile in operands {
            search.ready_of[tile as usize].remove(&task);
            search.made[tile as usize] = true;
            let bytes = search.bytes(tile);
            search.resident.touch(tile, bytes);
            uses[tile as usize] -= 1;
            if uses[tile as usize] == 0 {
                search.resident.drop(tile, bytes);
            }
        }
        while search.resident.bytes > memory {
            let Some((_, &tile)) = search.resident.by_age.first_key_value() else {
                break;
            };
            let bytes = search.bytes(tile);
            search.resident.drop(tile, bytes);
        }
        for &later in &graph.later[task as usize] {
            missing[later as usize] -= 1;
            if missing[later as usize] == 0 {
                search.add(later);
            }
        }
    }
    order
}

/// Which tiles are there before the program.
pub(super) fn there_before(plan: &Plan, tiles: &TileTable) -> Vec<bool> {
    let mut there = vec![false; tiles.len()];
    for (array, &first) in plan.arrays.iter().zip(&tiles.first) {
        let is_there = !matches!(array.kind, ArrayKind::Computed);
        there[first as usize..][..array.tiles() as usize].fill(is_there);
    }
    there
}
