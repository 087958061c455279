//! The memory of a placed program over its instructions: by use, and by array.
//!
//! Instructions are counted in columns, so that a program of millions is drawn like one of ten. Sums are exact: those of
//! all arrays are the totals of the program, and the fullest column is its peak.

use std::collections::BTreeMap;
use std::ops::Range;

use super::program::{Instruction, Program};
use super::simulate::Start;
use super::slabs::Slab;
use crate::plan::{ArrayKind, Plan};
use crate::schedule::tiles::tile_region;
use crate::schedule::{TaskList, TileId, TileTable};

/// Columns at most.
pub const COLUMNS: usize = 240;

/// The column of an instruction of so many.
pub fn column(number: usize, of: usize) -> usize {
    match of <= COLUMNS {
        true => number,
        false => number * COLUMNS / of,
    }
}

/// Bits for the events of an array's tiles in a column.
pub mod happening {
    pub const READ: u8 = 1;
    pub const READ_AGAIN: u8 = 2;
    pub const SPILLED: u8 = 4;
    pub const WRITTEN: u8 = 8;
    pub const CREATED: u8 = 16;
}

/// Bytes by their use, at one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Tiles that no task of the window uses.
    pub kept: u64,
    /// Tiles that tasks of the window use, or that are read ahead for them.
    pub passing: u64,
    /// Partial results of open passes and workspaces of tasks.
    pub partial: u64,
}

impl MemoryUse {
    pub fn sum(&self) -> u64 {
        self.kept + self.passing + self.partial
    }
}

/// One column in which tiles of an array come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripColumn {
    pub column: u16,
    /// Most bytes resident in it, and those at its end, which stay until the next such column.
    pub most: u64,
    pub end: u64,
    /// Bits of `happening`.
    pub happens: u8,
}

/// An array over a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayOccupancy {
    /// Bytes of the frames of its tiles that are ever in memory, and their number.
    pub bytes: u64,
    pub tiles: u64,
    /// Bytes that its reads transfer, and those of them that were read before.
    pub read: u64,
    pub read_again: u64,
    pub tiles_again: u64,
    /// Bytes that are written to its outputs, and to scratch.
    pub written: u64,
    pub spilled: u64,
    /// Most bytes resident at once.
    pub peak: u64,
    pub strip: Vec<StripColumn>,
}

/// Bytes of tiles of an array that the tasks of a producer take, and that they make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub taken: u64,
    pub made: u64,
}

/// Arrays and uses of memory over a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    pub columns: usize,
    /// By column, where it is fullest.
    pub memory: Vec<MemoryUse>,
    /// By number of the array in the plan.
    pub arrays: Vec<ArrayOccupancy>,
    /// The columns in which tasks of a producer run, by its number.
    pub producers: Vec<Option<Range<usize>>>,
    /// By the numbers of a producer and an array.
    pub flows: BTreeMap<(u32, u32), Flow>,
}

/// A program that is walked through once more.
#[derive(Clone, Copy)]
pub struct PlacedTasks<'a> {
    pub plan: &'a Plan,
    pub tiles: &'a TileTable,
    pub tasks: &'a TaskList,
    pub program: &'a Program,
    pub slabs: &'a [Vec<Slab>],
    pub start: &'a Start,
}

impl PlacedTasks<'_> {
    /// Its occupancy of memory.
    pub fn occupancy(self) -> Occupancy {
        let mut walk = OccupancyWalk::new(self);
        let instructions = &self.program.instructions;
        for (number, &instruction) in instructions.iter().enumerate() {
            walk.column = column(number, instructions.len());
            walk.step(instruction);
            walk.measure();
        }
        walk.occupancy
    }

    /// Bytes that `occupancy` takes while it works.
    pub fn occupancy_bytes(self) -> u64 {
        let arrays = self.plan.arrays.len() * size_of::<ArrayOccupancy>();
        (self.tiles.len() * size_of::<WalkedUse>() + arrays + self.plan.producers.len() * 24) as u64
    }
}

#[derive(Clone, Copy, Default)]
struct WalkedUse {
    /// One more than the last task that used the tile.
    last_use: u32,
    has_been_read: bool,
    has_come: bool,
    is_resident: bool,
    is_kept: bool,
}

struct OccupancyWalk<'a> {
    placed: PlacedTasks<'a>,
    uses: Vec<WalkedUse>,
    resident: Vec<u64>,
    now: MemoryUse,
    column: usize,
    /// Tasks before this one have left the window.
    oldest: usize,
    /// One more than the last task that was issued.
    issued: u32,
    occupancy: Occupancy,
}

impl<'a> OccupancyWalk<'a> {
    fn new(placed: PlacedTasks<'a>) -> OccupancyWalk<'a> {
        let (plan, tiles) = (placed.plan, placed.tiles);
        let columns = placed.program.instructions.len().min(COLUMNS);
        let mut walk = OccupancyWalk {
            placed,
            uses: vec![WalkedUse::default(); tiles.len()],
            resident: vec![0; plan.arrays.len()],
            now: MemoryUse::default(),
            column: 0,
            oldest: 0,
            issued: 0,
            occupancy: Occupancy {
                columns,
                memory: vec![MemoryUse::default(); columns],
                arrays: vec![ArrayOccupancy::default(); plan.arrays.len()],
                producers: vec![None; plan.producers.len()],
                flows: BTreeMap::new(),
            },
        };
        for &tile in placed.start {
            walk.uses[tile as usize].has_been_read = true;
            walk.come(tile, 0);
            walk.keep(tile);
        }
        walk
    }

    fn frame(&self, tile: TileId) -> u64 {
        self.placed.tiles.weights[tile as usize].frame
    }

    /// Bytes of a tile in memory: results that are computed in place have them beside the pool.
    fn size(&self, tile: TileId) -> u64 {
        let PlacedTasks { plan, tiles, .. } = self.placed;
        match self.frame(tile) {
            0 => {
                let (array, index) = tiles.locate(tile);
                plan.arrays[array as usize].tile_bytes(index, &tile_region(plan, array, index))
            }
            frame => frame,
        }
    }

    fn step(&mut self, instruction: Instruction) {
        let PlacedTasks {
            plan,
            tiles,
            tasks,
            slabs,
            ..
        } = self.placed;
        let slab = |pass: u32| slabs[pass as usize].iter().map(Slab::reserved).sum::<u64>();
        match instruction {
            Instruction::OpenPass(pass) => self.now.partial += slab(pass),
            Instruction::ClosePass(pass) => self.now.partial -= slab(pass),
            Instruction::OpenTask(task) => self.now.partial += tasks.workspace(plan, task as usize),
            Instruction::CloseTask(task) => self.now.partial -= tasks.workspace(plan, task as usize),
            Instruction::Read(tile) | Instruction::ReadBack(tile) => {
                self.read(tile, tiles.weights[tile as usize].read);
            }
            Instruction::ReadGroup(first, count) => self.read_group(first, u64::from(count)),
            Instruction::Allocate(tile) => self.come(tile, happening::CREATED),
            Instruction::Run(task) => self.run(task),
            Instruction::Write(tile) => {
                let array = self.happens(tile, happening::WRITTEN);
                self.occupancy.arrays[array].written += tiles.writes[tile as usize];
            }
            Instruction::Spill(tile) => {
                let array = self.happens(tile, happening::SPILLED);
                self.occupancy.arrays[array].spilled += self.frame(tile);
            }
            Instruction::Free(tile) => self.go(tile),
        }
    }

    fn read(&mut self, tile: TileId, bytes: u64) {
        let (array, _) = self.placed.tiles.locate(tile);
        let is_stored = matches!(self.placed.plan.arrays[array as usize].kind, ArrayKind::Source(_));
        // A temporary that comes back was in memory before.
        let is_again = std::mem::replace(&mut self.uses[tile as usize].has_been_read, true) || !is_stored;
        let account = &mut self.occupancy.arrays[array as usize];
        account.read += bytes;
        if is_again {
            account.read_again += bytes;
            account.tiles_again += 1;
        }
        let happens = match is_again {
            true => happening::READ_AGAIN,
            false => happening::READ,
        };
        self.come(tile, happens);
    }

    /// Neighbours that are read together share the bytes of the read evenly.
    fn read_group(&mut self, first: TileId, count: u64) {
        let PlacedTasks { plan, tiles, .. } = self.placed;
        let (array, _) = tiles.locate(first);
        let source = plan.arrays[array as usize].grouped_source();
        let together = source.and_then(|source| tiles.group_bytes(plan, source.as_ref(), first, count));
        let together = together.unwrap_or(0);
        for at in 0..count {
            let share = together * (at + 1) / count - together * at / count;
            self.read(first + at as TileId, share);
        }
    }

    fn run(&mut self, task: u32) {
        let tasks = self.placed.tasks;
        self.issued = self.issued.max(task + 1);
        for tile in operands(tasks, task as usize) {
            let state = &mut self.uses[tile as usize];
            state.last_use = task + 1;
            if std::mem::take(&mut state.is_kept) {
                let frame = self.frame(tile);
                self.now.kept -= frame;
                self.now.passing += frame;
            }
        }
        self.flow(task);
        let producer = &mut self.occupancy.producers[tasks.pass[task as usize] as usize];
        let begin = producer.as_ref().map_or(self.column, |columns| columns.start);
        *producer = Some(begin..self.column + 1);
        let oldest = self.placed.program.reach.oldest(task as usize) as usize;
        while self.oldest < oldest {
            let left = self.oldest as u32 + 1;
            for tile in operands(tasks, self.oldest) {
                if self.uses[tile as usize].last_use == left {
                    self.keep(tile);
                }
            }
            self.oldest += 1;
        }
    }

    fn flow(&mut self, task: u32) {
        let (tiles, tasks) = (self.placed.tiles, self.placed.tasks);
        let producer = tasks.pass[task as usize];
        let frame = |tile: TileId| tiles.weights[tile as usize].frame;
        for &tile in tasks.inputs(task as usize) {
            let flow = self
                .occupancy
                .flows
                .entry((producer, tiles.locate(tile).0))
                .or_default();
            flow.taken += frame(tile);
        }
        for output in tasks.outputs(task as usize) {
            let flow = self
                .occupancy
                .flows
                .entry((producer, tiles.locate(output.tile).0))
                .or_default();
            flow.made += frame(output.tile);
        }
    }

    /// A tile becomes resident.
    fn come(&mut self, tile: TileId, happens: u8) {
        let state = &mut self.uses[tile as usize];
        if state.is_resident {
            return;
        }
        (state.is_resident, state.is_kept) = (true, false);
        state.last_use = state.last_use.max(self.issued);
        let is_first = !std::mem::replace(&mut state.has_come, true);
        let (frame, size) = (self.frame(tile), self.size(tile));
        let array = self.placed.tiles.locate(tile).0 as usize;
        if is_first {
            self.occupancy.arrays[array].bytes += size;
            self.occupancy.arrays[array].tiles += 1;
        }
        self.now.passing += frame;
        self.resident[array] += size;
        self.happens(tile, happens);
    }

    /// No task of the window uses a resident tile.
    fn keep(&mut self, tile: TileId) {
        let state = &mut self.uses[tile as usize];
        if state.is_resident && !state.is_kept {
            state.is_kept = true;
            let frame = self.frame(tile);
            self.now.passing -= frame;
            self.now.kept += frame;
        }
    }

    fn go(&mut self, tile: TileId) {
        let state = &mut self.uses[tile as usize];
        state.is_resident = false;
        let frame = self.placed.tiles.weights[tile as usize].frame;
        match std::mem::take(&mut state.is_kept) {
            true => self.now.kept -= frame,
            false => self.now.passing -= frame,
        }
        self.resident[self.placed.tiles.locate(tile).0 as usize] -= self.size(tile);
        self.happens(tile, 0);
    }

    /// Notes a change of an array in its strip.
    fn happens(&mut self, tile: TileId, what: u8) -> usize {
        let array = self.placed.tiles.locate(tile).0 as usize;
        let (resident, column) = (self.resident[array], self.column as u16);
        let account = &mut self.occupancy.arrays[array];
        account.peak = account.peak.max(resident);
        match account.strip.last_mut().filter(|last| last.column == column) {
            Some(last) => {
                last.most = last.most.max(resident);
                last.end = resident;
                last.happens |= what;
            }
            None => {
                let before = account.strip.last().map_or(0, |last| last.end);
                account.strip.push(StripColumn {
                    column,
                    most: resident.max(before),
                    end: resident,
                    happens: what,
                });
            }
        }
        array
    }

    fn measure(&mut self) {
        let fullest = &mut self.occupancy.memory[self.column];
        if self.now.sum() >= fullest.sum() {
            *fullest = self.now;
        }
    }
}

fn operands(tasks: &TaskList, task: usize) -> impl Iterator<Item = TileId> + '_ {
    let outputs = tasks.outputs(task).iter().map(|output| output.tile);
    tasks.inputs(task).iter().copied().chain(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_even_and_ordered() {
        assert_eq!(column(7, 10), 7);
        assert_eq!(column(0, 10_000), 0);
        assert_eq!(column(9_999, 10_000), COLUMNS - 1);
        let columns: Vec<usize> = (0..1_000).map(|number| column(number, 1_000)).collect();
        assert!(columns
            .windows(2)
            .all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + 1));
    }
}
