//! Tasks in order, with the tiles each touches, in flat arrays: a program may have millions.

use outcore_store::{FramePool, Interval};

use super::tiles::{coordinates, TileId, TileTable};
use crate::cancel;
use crate::plan::{too_many, ArrayKind, Pass, Plan, Producer, RootKind, StepKind, WorkStep};
use crate::task::Access;

/// What a task does to a tile it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The task alone computes the tile.
    Whole,
    /// The task is the last, in program order, of those whose partial results make the tile.
    Closing,
    /// The task adds to the tile, which stays an accumulator.
    Accumulate { first: bool, last: bool },
}

#[derive(Clone, Copy, Debug)]
pub struct TaskOutput {
    pub tile: TileId,
    pub root: u32,
    pub role: Role,
}

/// Tasks in program order.
#[derive(Debug, Default)]
pub struct TaskList {
    pub pass: Vec<u32>,
    pub cell: Vec<u32>,
    pub input_ends: Vec<u32>,
    pub inputs: Vec<TileId>,
    pub output_ends: Vec<u32>,
    pub outputs: Vec<TaskOutput>,
}

impl TaskList {
    pub fn len(&self) -> usize {
        self.pass.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pass.is_empty()
    }

    pub fn inputs(&self, task: usize) -> &[TileId] {
        let begin = if task == 0 {
            0
        } else {
            self.input_ends[task - 1] as usize
        };
        &self.inputs[begin..self.input_ends[task] as usize]
    }

    pub fn outputs(&self, task: usize) -> &[TaskOutput] {
        let begin = if task == 0 {
            0
        } else {
            self.output_ends[task - 1] as usize
        };
        &self.outputs[begin..self.output_ends[task] as usize]
    }

    /// Workspace of a task of an algorithm, as its frame is charged; workers hold that of passes.
    pub fn workspace(&self, plan: &Plan, task: usize) -> u64 {
        match plan.producers[self.pass[task] as usize].work() {
            Some(step) => match step.work.workspace_bytes(u64::from(self.cell[task])) {
                0 => 0,
                bytes => FramePool::frame_bytes(bytes as usize) as u64,
            },
            None => 0,
        }
    }

    /// Bytes the list itself holds.
    pub fn bytes(&self) -> usize {
        self.pass.capacity() * 4
            + self.cell.capacity() * 4
            + (self.input_ends.capacity() + self.output_ends.capacity() + self.inputs.capacity()) * 4
            + self.outputs.capacity() * std::mem::size_of::<TaskOutput>()
    }
}

/// The block that is the whole cell: an interval along each dimension.
pub fn cell_extent(pass: &Pass, cell: &[u64]) -> Vec<Interval> {
    along_cell(pass, cell).collect()
}

fn along_cell<'a>(pass: &'a Pass, cell: &'a [u64]) -> impl Iterator<Item = Interval> + 'a {
    let along = cell.iter().zip(&pass.domain.tile).zip(&pass.domain.shape);
    along.map(|((&at, &tile), &length)| Interval::new(at * tile, tile.min(length - at * tile)))
}

/// Walks the tiles a task of `pass` at `cell` reads, each once.
pub struct InputFinder<'a> {
    plan: &'a Plan,
    tiles: &'a TileTable,
    /// The last task that touched each tile, so that each is listed once.
    stamp: Vec<u32>,
    task: u32,
    /// The box of a step.
    region: Vec<Interval>,
}

impl<'a> InputFinder<'a> {
    pub fn new(plan: &'a Plan, tiles: &'a TileTable) -> InputFinder<'a> {
        InputFinder {
            plan,
            tiles,
            stamp: vec![0; tiles.len()],
            task: 0,
            region: Vec::new(),
        }
    }

    /// As `find`, for a task of any producer.
    pub fn find_task(&mut self, producer: &Producer, cell: u32, inputs: &mut Vec<TileId>) {
        match producer {
            Producer::Pass(pass) => {
                let mut at = Vec::new();
                coordinates(&pass.domain.counts(), u64::from(cell), &mut at);
                self.find(pass, &cell_extent(pass, &at), inputs);
            }
            Producer::Work(step) => self.find_work(step, cell, inputs),
        }
    }

    fn find_work(&mut self, step: &WorkStep, task: u32, inputs: &mut Vec<TileId>) {
        cancel::check();
        step.operands(u64::from(task), &mut |array, index, access| {
            if access == Access::Read {
                inputs.push(self.tiles.id(array, index));
            }
        });
    }

    pub fn find(&mut self, pass: &Pass, extent: &[Interval], inputs: &mut Vec<TileId>) {
        cancel::check();
        self.task += 1;
        let (plan, tiles, task) = (self.plan, self.tiles, self.task);
        let (stamp, region) = (&mut self.stamp, &mut self.region);
        for step in &pass.steps {
            let StepKind::Gather(gather) = &step.kind else { continue };
            region.clear();
            region.extend(step.spans.iter().map(|span| span.resolve(extent)));
            gather.visit(region, &mut |array, region| {
                let info = &plan.arrays[array as usize];
                if matches!(info.kind, ArrayKind::Memory(_)) {
                    return;
                }
                each_tile(&info.node.tile, &info.counts, region, &mut |index| {
                    let tile = tiles.first[array as usize] + index as TileId;
                    if stamp[tile as usize] != task {
                        stamp[tile as usize] = task;
                        inputs.push(tile);
                    }
                });
            });
        }
    }
}

/// Calls `touch` with the position of every tile that a box overlaps, in C order.
pub fn each_tile(tile: &[u64], counts: &[u64], region: &[Interval], touch: &mut impl FnMut(u64)) {
    fn walk(before: u64, tile: &[u64], counts: &[u64], region: &[Interval], touch: &mut impl FnMut(u64)) {
        let (Some((&side, tile)), [Interval { start, length }, region @ ..]) = (tile.split_first(), region) else {
            return touch(before);
        };
        let (places, first) = (start / side..=(start + length - 1) / side, before * counts[0]);
        match tile.is_empty() {
            true => places.for_each(|at| touch(first + at)),
            false => places.for_each(|at| walk(first + at, tile, &counts[1..], region, touch)),
        }
    }
    walk(0, tile, counts, region, touch);
}

/// Position of a root's tile for a cell of its pass.
pub fn root_tile(kept: &[usize], counts: &[u64], cell: &[u64]) -> u64 {
    kept.iter().fold(0, |index, &dim| index * counts[dim] + cell[dim])
}

/// A count that is numbered in 32 bits.
fn narrow(count: usize, what: &str) -> u32 {
    count
        .try_into()
        .unwrap_or_else(|_| cancel::refuse(too_many(count as u64, what)))
}

/// Builds the task list of an order: `(pass, cell)` pairs.
pub fn build_tasks(plan: &Plan, tiles: &TileTable, order: &[(u32, u32)]) -> TaskList {
    let mut list = TaskList::default();
    list.pass.reserve_exact(order.len());
    list.cell.reserve_exact(order.len());
    list.input_ends.reserve_exact(order.len());
    list.output_ends.reserve_exact(order.len());
    let mut finder = InputFinder::new(plan, tiles);
    let mut progress = RootProgress::new(plan);
    let (mut cell, mut extent) = (Vec::new(), Vec::new());
    let mut writers = Writers::count(plan, tiles);
    let passes = plan.producers.iter().map(Producer::pass);
    let counts: Vec<Vec<u64>> = passes
        .map(|pass| pass.map_or(vec![], |pass| pass.domain.counts()))
        .collect();
    for &(pass_index, cell_index) in order {
        let pass = plan.pass(pass_index);
        if let Some(pass) = pass {
            coordinates(&counts[pass_index as usize], u64::from(cell_index), &mut cell);
            extent.clear();
            extent.extend(along_cell(pass, &cell));
            finder.find(pass, &extent, &mut list.inputs);
        }
        if let Some(step) = plan.producers[pass_index as usize].work() {
            finder.find_work(step, cell_index, &mut list.inputs);
            writers.list(tiles, step, u64::from(cell_index), &mut list.outputs);
        }
        for (root_index, root) in pass.iter().flat_map(|pass| &pass.roots).enumerate() {
            let kept = &progress.kept[pass_index as usize][root_index];
            let index = root_tile(kept, &counts[pass_index as usize], &cell);
            let tile = tiles.first[root.array as usize] + index as TileId;
            let role = match root.kind {
                RootKind::Algorithm => unreachable!("algorithms are no passes"),
                RootKind::Map => Some(Role::Whole),
                RootKind::Blocked => {
                    let (first, last) = progress.advance(pass_index, root_index, index);
                    Some(Role::Accumulate { first, last })
                }
                RootKind::Reduce | RootKind::Contraction => {
                    let (_, last) = progress.advance(pass_index, root_index, index);
                    last.then_some(Role::Closing)
                }
            };
            list.outputs.extend(role.map(|role| TaskOutput {
                tile,
                root: root_index as u32,
                role,
            }));
        }
        list.pass.push(pass_index);
        list.cell.push(cell_index);
        list.input_ends.push(narrow(list.inputs.len(), "operands"));
        list.output_ends.push(narrow(list.outputs.len(), "results"));
    }
    list
}

/// Tasks of algorithms that are still to write each tile. Tasks that are left out count too: a tile that an earlier run
/// made, and of which this one makes only what its tasks put beside other tiles, is never complete and so never written.
struct Writers {
    left: Vec<u32>,
}

impl Writers {
    fn count(plan: &Plan, tiles: &TileTable) -> Writers {
        let mut left = Vec::new();
        for step in plan.works() {
            left.resize(tiles.len(), 0);
            for task in 0..step.work.tasks() {
                cancel::check();
                step.operands(task, &mut |array, index, access| {
                    if access != Access::Read {
                        left[tiles.id(array, index) as usize] += 1;
                    }
                });
            }
        }
        Writers { left }
    }

    /// Lists what a task writes. Tasks of a work that touch one tile come in the order of their numbers.
    fn list(&mut self, tiles: &TileTable, step: &WorkStep, task: u64, outputs: &mut Vec<TaskOutput>) {
        let mut position = 0;
        step.operands(task, &mut |array, index, access| {
            let first = match access {
                Access::Read => return,
                Access::Create => true,
                Access::Update => false,
            };
            let tile = tiles.id(array, index);
            let left = &mut self.left[tile as usize];
            *left -= 1;
            outputs.push(TaskOutput {
                tile,
                root: position,
                role: Role::Accumulate {
                    first,
                    last: *left == 0,
                },
            });
            position += 1;
        });
    }
}

/// How many tasks of each accumulated tile have been seen.
struct RootProgress {
    kept: Vec<Vec<Vec<usize>>>,
    /// Per pass and root: tasks per tile, and tasks seen so far.
    expected: Vec<Vec<u64>>,
    seen: Vec<Vec<Vec<u32>>>,
}

impl RootProgress {
    fn new(plan: &Plan) -> RootProgress {
        let mut progress = RootProgress {
            kept: vec![],
            expected: vec![],
            seen: vec![],
        };
        for producer in &plan.producers {
            let Producer::Pass(pass) = producer else {
                progress.expected.push(vec![]);
                progress.seen.push(vec![]);
                progress.kept.push(vec![]);
                continue;
            };
            let counts = pass.domain.counts();
            let kept: Vec<Vec<usize>> = pass.roots.iter().map(|root| root.kept_dims()).collect();
            let tiles = |dims: &[usize]| dims.iter().map(|&dim| counts[dim]).product::<u64>();
            progress.expected.push(
                kept.iter()
                    .map(|dims| pass.domain.cells() / tiles(dims).max(1))
                    .collect(),
            );
            progress.seen.push(
                kept.iter()
                    .zip(&pass.roots)
                    .map(|(dims, root)| {
                        if root.kind == RootKind::Map {
                            vec![]
                        } else {
                            vec![0; tiles(dims) as usize]
                        }
                    })
                    .collect(),
            );
            progress.kept.push(kept);
        }
        progress
    }

    fn advance(&mut self, pass: u32, root: usize, index: u64) -> (bool, bool) {
        let seen = &mut self.seen[pass as usize][root][index as usize];
        *seen += 1;
        (*seen == 1, u64::from(*seen) == self.expected[pass as usize][root])
    }
}
