//! The walk: tasks in order, a pool of bytes, and the program that comes out.

use std::collections::VecDeque;

use super::policy::{Cost, Policy, Victims};
use super::program::{Instruction, Program, Traffic};
use super::slabs::{find_slabs, Slab};
use super::uses::{farthest, standing, Uses, WalkedTile, NEVER};
use super::Limits;
use crate::cancel;
use crate::plan::{ArrayKind, Plan};
use crate::schedule::{Role, TaskList, TileId, TileTable};

/// A task whose operands do not fit together.
#[derive(Clone, Debug)]
pub struct Shortage {
    pub pass: u32,
    pub need: u64,
    pub available: u64,
}

/// Tiles already in memory when the program starts: clean tiles of sources.
pub type Start = [TileId];

struct Walk<'a> {
    plan: &'a Plan,
    weights: &'a TileTable,
    tasks: &'a TaskList,
    limits: Limits,
    uses: Uses,
    tiles: Vec<WalkedTile>,
    victims: Victims,
    /// Tiles touched within the window: task and tile, in task order.
    window: VecDeque<(u32, TileId)>,
    /// Dead outputs whose writes are given time: the task that drops them and the tile, in task order.
    written: VecDeque<(u32, TileId)>,
    /// Passes whose partial results are given back when the window has passed their last task.
    closing: VecDeque<(u32, u32)>,
    /// Tasks whose workspace is given back when the window has passed them, and its bytes.
    working: VecDeque<(u32, u64)>,
    slabs: Vec<u64>,
    used: u64,
    program: Program,
    pass: usize,
    /// Per tile: how long the program was when the tile last left the window.
    idle_since: Vec<u32>,
    /// Instructions that may come earlier: where to, and where they stand.
    earlier: Vec<(u32, u32)>,
}

/// Walks `tasks` in order and emits the program.
///
/// # Errors
/// The first task whose operands do not fit even when everything else has left; a start that does not fit.
pub fn simulate(
    plan: &Plan,
    weights: &TileTable,
    tasks: &TaskList,
    limits: Limits,
    start: &Start,
) -> Result<Program, Shortage> {
    let reach = limits.window.over(tasks, weights);
    let slabs = find_slabs(plan, tasks, reach.tasks);
    let mut walk = Walk {
        plan,
        weights,
        tasks,
        limits,
        uses: Uses::collect(weights.len(), tasks),
        tiles: vec![WalkedTile::default(); weights.len()],
        victims: Victims::new(limits.policy, limits.sample),
        window: VecDeque::new(),
        written: VecDeque::new(),
        closing: VecDeque::new(),
        working: VecDeque::new(),
        slabs: slabs
            .iter()
            .map(|slabs| slabs.iter().map(Slab::reserved).sum())
            .collect(),
        used: 0,
        program: Program {
            reach,
            ..Program::default()
        },
        pass: 0,
        idle_since: vec![0; weights.len()],
        earlier: Vec::new(),
    };
    walk.program.instructions.reserve(tasks.len() * 4);
    walk.program.totals.per_pass = vec![Traffic::default(); plan.producers.len()];
    walk.mark_computed();
    let standing = plan.left.iter().flat_map(|left| &left.standing);
    standing.for_each(|&tile| walk.tiles[tile as usize].written = true);
    walk.seed(start);
    walk.run()?;
    walk.move_earlier(start);
    // More may have been resident at the start than there is room for.
    let need = walk.program.totals.peak_bytes;
    if need > limits.memory {
        return Err(Shortage {
            pass: 0,
            need,
            available: limits.memory,
        });
    }
    Ok(walk.program)
}

impl Walk<'_> {
    fn mark_computed(&mut self) {
        for (id, array) in self.plan.arrays.iter().enumerate() {
            if matches!(array.kind, ArrayKind::Computed) {
                let begin = self.weights.first[id] as usize;
                for tile in &mut self.tiles[begin..begin + array.tiles() as usize] {
                    tile.computed = true;
                }
            }
        }
    }

    fn seed(&mut self, start: &Start) {
        for &tile in start {
            let state = &mut self.tiles[tile as usize];
            state.resident = true;
            self.used += self.weights.weights[tile as usize].frame;
        }
        for &tile in start {
            self.leave_window(tile);
        }
    }

    fn run(&mut self) -> Result<(), Shortage> {
        let mut last_task: Vec<Option<u32>> = vec![None; self.plan.producers.len()];
        for task in 0..self.tasks.len() {
            last_task[self.tasks.pass[task] as usize] = Some(task as u32);
        }
        let mut opened = vec![false; self.plan.producers.len()];
        for task in 0..self.tasks.len() {
            self.pass = self.tasks.pass[task] as usize;
            cancel::check();
            self.expire(task);
            let opens = !std::mem::replace(&mut opened[self.pass], true);
            self.issue(task, opens)?;
            if last_task[self.pass] == Some(task as u32) {
                self.closing.push_back((task as u32, self.pass as u32));
            }
        }
        self.end();
        Ok(())
    }

    /// Lets go of what the window has passed.
    fn expire(&mut self, task: usize) {
        let oldest = self.program.reach.oldest(task);
        while let Some(&(used_at, tile)) = self.window.front() {
            if used_at >= oldest {
                break;
            }
            self.window.pop_front();
            if self.tiles[tile as usize].last_use == used_at {
                self.leave_window(tile);
            }
        }
        while self.working.front().is_some_and(|&(used_at, _)| used_at < oldest) {
            self.close_task();
        }
        while self.written.front().is_some_and(|&(due, _)| due as usize <= task) {
            let (_, tile) = self.written.pop_front().expect("looked at");
            self.drop_tile(tile);
        }
        while let Some(&(used_at, pass)) = self.closing.front() {
            if used_at >= oldest {
                break;
            }
            self.closing.pop_front();
            self.close(pass);
        }
    }

    fn close(&mut self, pass: u32) {
        let bytes = self.slabs[pass as usize];
        if bytes > 0 {
            self.used -= bytes;
            self.program.instructions.push(Instruction::ClosePass(pass));
        }
    }

    /// Gives back the workspace of the oldest task that has any.
    fn close_task(&mut self) {
        if let Some((task, bytes)) = self.working.pop_front() {
            self.used -= bytes;
            self.program.instructions.push(Instruction::CloseTask(task));
        }
    }

    fn next_use(&self, tile: TileId) -> u64 {
        let uses = self.uses.of(tile);
        uses.get(self.tiles[tile as usize].cursor as usize)
            .map_or(NEVER, |&task| u64::from(task))
    }

    /// A tile that no task at work uses: drop it when it is known to be dead, else offer it to the policy.
    fn leave_window(&mut self, tile: TileId) {
        let state = self.tiles[tile as usize];
        if !state.resident || state.candidate {
            return;
        }
        let next_use = self.next_use(tile);
        let policy = self.limits.policy;
        let known_dead = if state.computed {
            policy.drops_dead_temporaries()
        } else {
            false
        };
        if next_use == NEVER && known_dead {
            if self.weights.writes[tile as usize] > 0 && self.is_output(tile) {
                // Its write may still wait behind the reads of the window: dropping it now would wait for both.
                let around = self.program.reach.around(state.last_use as usize);
                self.written.push_back((state.last_use + 2 * around + 1, tile));
            } else {
                self.drop_tile(tile);
            }
            return;
        }
        // A result computed in place has no frame to win, and no copy to come back from.
        if state.computed && self.weights.weights[tile as usize].frame == 0 {
            return;
        }
        let cost = match (state.computed && state.dirty, self.weights.weights[tile as usize].read) {
            (_, 0) => Cost::Free,
            // A dead tile whose copy is on disk, or that never has to be written, costs nothing to lose.
            _ if next_use == NEVER && policy == Policy::NextUse => Cost::Free,
            (true, _) => Cost::Dirty,
            (false, _) => Cost::Clean,
        };
        let last_use = u64::from(state.last_use);
        let key = self.victims.key(last_use, farthest(next_use, state.last_use));
        self.tiles[tile as usize].candidate = true;
        self.idle_since[tile as usize] = self.program.instructions.len() as u32;
        // The clock keeps a tile's place on the ring for as long as it is resident.
        if policy != Policy::Clock || !std::mem::replace(&mut self.tiles[tile as usize].on_ring, true) {
            self.victims.insert(tile, key, cost);
        }
    }

    fn drop_tile(&mut self, tile: TileId) {
        let state = &mut self.tiles[tile as usize];
        state.resident = false;
        state.candidate = false;
        state.on_ring = false;
        let frame = self.weights.weights[tile as usize].frame;
        self.used -= frame;
        if state.computed && state.dirty && !state.spilled && !self.is_output(tile) {
            self.program.totals.discarded_bytes += frame;
        }
        self.program.instructions.push(Instruction::Free(tile));
    }

    fn is_output(&self, tile: TileId) -> bool {
        let (array, _) = self.weights.locate(tile);
        !self.plan.arrays[array as usize].outputs.is_empty()
    }

    /// Makes room for `bytes`, evicting and, when nothing else is left, waiting for tasks inside the window.
    fn make_room(&mut self, task: usize, bytes: u64) -> Result<(), Shortage> {
        let capacity = self.limits.memory;
        let is_patient = self.limits.patient && self.limits.policy == Policy::NextUse;
        while !self.find_room(task, bytes, is_patient) {
            if let Some((_, tile)) = self.written.pop_front() {
                self.drop_tile(tile);
                continue;
            }
            let oldest = self.window.front().map_or(task as u32, |&(used_at, _)| used_at);
            if self
                .working
                .front()
                .is_some_and(|&(used_at, _)| used_at < oldest.min(task as u32))
            {
                self.close_task();
                continue;
            }
            if let Some(&(used_at, tile)) = self.window.front() {
                if (used_at as usize) < task {
                    self.window.pop_front();
                    if self.tiles[tile as usize].last_use == used_at {
                        self.leave_window(tile);
                    }
                    continue;
                }
            }
            if let Some((_, pass)) = self.closing.pop_front() {
                self.close(pass);
                continue;
            }
            if is_patient && self.find_room(task, bytes, false) {
                break;
            }
            return Err(Shortage {
                pass: self.pass as u32,
                need: self.used + bytes,
                available: capacity,
            });
        }
        Ok(())
    }

    fn evict(&mut self, tile: TileId) {
        let state = self.tiles[tile as usize];
        let needed_again = self.next_use(tile) != NEVER || !self.limits.policy.drops_dead_temporaries();
        let is_written_output = self.weights.writes[tile as usize] > 0 && self.next_use(tile) == NEVER;
        if state.computed && state.dirty && !state.spilled && needed_again && !is_written_output {
            let bytes = self.weights.weights[tile as usize].frame;
            if bytes > 0 {
                self.come_earlier(tile);
                self.program.instructions.push(Instruction::Spill(tile));
                self.program.totals.spilled_bytes += bytes;
                self.count_write(bytes);
            }
            self.tiles[tile as usize].spilled = true;
            self.tiles[tile as usize].dirty = false;
        } else {
            self.come_earlier(tile);
        }
        self.drop_tile(tile);
    }

    /// The next instruction concerns a tile that nobody has used since it left the window, so it may stand there.
    fn come_earlier(&mut self, tile: TileId) {
        let stands = self.program.instructions.len() as u32;
        self.earlier.push((self.idle_since[tile as usize], stands));
    }

    /// Moves instructions to the earliest place they may have: a tile that is given up before its next use goes at
    /// once, so that its frame serves the next read and memory grows by kept tiles only; a spill is written behind the
    /// tasks between it and the moment its frame is needed.
    fn move_earlier(&mut self, start: &Start) {
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.sort_unstable();
        let old = std::mem::take(&mut self.program.instructions);
        let mut moved = vec![false; old.len()];
        earlier.iter().for_each(|&(_, from)| moved[from as usize] = true);
        let mut next = earlier.into_iter().peekable();
        let mut instructions = Vec::with_capacity(old.len());
        for (position, &instruction) in old.iter().enumerate() {
            while let Some((_, from)) = next.next_if(|&(to, _)| to as usize <= position) {
                instructions.push(old[from as usize]);
            }
            if !moved[position] {
                instructions.push(instruction);
            }
        }
        self.program.instructions = instructions;
        self.program.totals.peak_bytes = self.peak(start);
        let scratch_bytes = self.program.scratch_peak(|tile| frame_of(self.weights, tile));
        self.program.totals.scratch_bytes = scratch_bytes;
    }

    /// Most bytes of frames and partial results that the program holds at once.
    fn peak(&self, start: &Start) -> u64 {
        let frame = |tile: TileId| frame_of(self.weights, tile);
        let mut used: u64 = start.iter().map(|&tile| frame(tile)).sum();
        let mut peak = used;
        for &instruction in &self.program.instructions {
            match instruction {
                Instruction::Read(tile) | Instruction::ReadBack(tile) | Instruction::Allocate(tile) => {
                    used += frame(tile);
                }
                Instruction::ReadGroup(tile, count) => {
                    used += (tile..tile + TileId::from(count)).map(frame).sum::<u64>();
                }
                Instruction::OpenPass(pass) => used += self.slabs[pass as usize],
                Instruction::ClosePass(pass) => used -= self.slabs[pass as usize],
                Instruction::OpenTask(task) => used += self.tasks.workspace(self.plan, task as usize),
                Instruction::CloseTask(task) => used -= self.tasks.workspace(self.plan, task as usize),
                Instruction::Free(tile) => used -= frame(tile),
                Instruction::Run(_) | Instruction::Write(_) | Instruction::Spill(_) => {}
            }
            peak = peak.max(used);
        }
        peak
    }

    fn count_write(&mut self, bytes: u64) {
        self.program.totals.written_bytes += bytes;
        self.program.totals.per_pass[self.pass].written += bytes;
    }

    fn issue(&mut self, task: usize, opens: bool) -> Result<(), Shortage> {
        let tasks = self.tasks;
        let (inputs, outputs) = (tasks.inputs(task), tasks.outputs(task));
        // Operands are marked first, so that making room for one never evicts another. Two operands of an algorithm may be
        // one array: its tile takes room once.
        let mut need = 0;
        for tile in inputs.iter().copied().chain(outputs.iter().map(|output| output.tile)) {
            if self.touch(tile, task) && !self.tiles[tile as usize].resident {
                need += frame_of(self.weights, tile);
            }
        }
        if opens {
            need += self.slabs[self.pass];
        }
        let workspace = tasks.workspace(self.plan, task);
        need += workspace;
        self.make_room(task, need)?;
        self.used += need;
        if workspace > 0 {
            self.working.push_back((task as u32, workspace));
            self.program.instructions.push(Instruction::OpenTask(task as u32));
        }
        if opens && self.slabs[self.pass] > 0 {
            self.program.instructions.push(Instruction::OpenPass(self.pass as u32));
        }
        for &tile in inputs {
            if !self.tiles[tile as usize].resident && !self.bring_group(tile, task) {
                self.bring(tile);
            }
        }
        for output in outputs {
            let state = self.tiles[output.tile as usize];
            if !state.resident {
                if state.spilled || state.written {
                    self.bring(output.tile);
                } else {
                    self.tiles[output.tile as usize].resident = true;
                    self.program.instructions.push(Instruction::Allocate(output.tile));
                    if !self.is_output(output.tile) {
                        self.program.totals.temporary_bytes += frame_of(self.weights, output.tile);
                    }
                }
            }
            let state = &mut self.tiles[output.tile as usize];
            state.dirty = true;
            state.spilled = false;
            state.written = false;
        }
        self.program.instructions.push(Instruction::Run(task as u32));
        for output in outputs {
            let complete = !matches!(output.role, Role::Accumulate { last: false, .. });
            let bytes = self.weights.writes[output.tile as usize];
            if complete && self.is_output(output.tile) {
                self.program.instructions.push(Instruction::Write(output.tile));
                self.count_write(bytes);
                if self.weights.is_read_back(output.tile) {
                    let state = &mut self.tiles[output.tile as usize];
                    (state.dirty, state.written) = (false, true);
                }
            }
        }
        Ok(())
    }

    /// Marks a use: the tile is in the window now, and its next use is a later one. False when the task has marked it
    /// before.
    fn touch(&mut self, tile: TileId, task: usize) -> bool {
        let state = &mut self.tiles[tile as usize];
        state.referenced = state.resident;
        state.candidate = false;
        state.last_use = task as u32;
        let uses = self.uses.of(tile);
        let before = state.cursor;
        while uses
            .get(state.cursor as usize)
            .is_some_and(|&used_at| used_at <= task as u32)
        {
            state.cursor += 1;
        }
        let is_first = state.cursor > before;
        if is_first {
            self.window.push_back((task as u32, tile));
        }
        is_first
    }

    /// Brings a tile and those that follow it in the same rows and are needed within the window, read in one go. They
    /// stay until they are used. False when there are none, or no room for them.
    fn bring_group(&mut self, tile: TileId, task: usize) -> bool {
        if !self.limits.group {
            return false;
        }
        let (array, index) = self.weights.locate(tile);
        let info = &self.plan.arrays[array as usize];
        let Some(source) = info.grouped_source() else {
            return false;
        };
        let across = *info.counts.last().expect("grouped tiles have axes");
        let horizon = (task + self.program.reach.tasks) as u64;
        let mut count = 1;
        while index % across + count < across && count < u64::from(u16::MAX) {
            let next = tile + count as TileId;
            if self.tiles[next as usize].resident || self.next_use(next) > horizon && !self.is_input(task, next) {
                break;
            }
            count += 1;
        }
        if count == 1 {
            return false;
        }
        let members = tile..tile + count as TileId;
        let apart: u64 = members
            .clone()
            .map(|tile| self.weights.weights[tile as usize].read)
            .sum();
        let together = self.weights.group_bytes(self.plan, source.as_ref(), tile, count);
        let Some(bytes) = together.filter(|&bytes| bytes < apart) else {
            return false;
        };
        let more: u64 = members
            .clone()
            .filter(|&member| member != tile && !self.is_input(task, member))
            .map(|member| frame_of(self.weights, member))
            .sum();
        if !self.find_room(task, more, self.limits.patient) {
            return false;
        }
        self.used += more;
        members.for_each(|member| self.tiles[member as usize].resident = true);
        self.program
            .instructions
            .push(Instruction::ReadGroup(tile, count as u16));
        self.count_read(bytes);
        true
    }

    fn is_input(&self, task: usize, tile: TileId) -> bool {
        self.tasks.inputs(task).contains(&tile)
    }

    /// Evicts until `bytes` fit, with `freely` only what costs nothing. False when what may be evicted does not suffice.
    fn find_room(&mut self, task: usize, bytes: u64, freely: bool) -> bool {
        while self.used + bytes > self.limits.memory {
            let (tiles, uses, policy) = (&mut self.tiles, &self.uses, self.limits.policy);
            let of = |tile, key| standing(policy, tiles, uses, tile, key);
            let chosen = match freely {
                true => self.victims.pop_free(of),
                false => self.victims.pop(task as u64, of),
            };
            match chosen {
                Some(tile) => self.evict(tile),
                None => return false,
            }
        }
        true
    }

    fn count_read(&mut self, bytes: u64) {
        self.program.totals.read_bytes += bytes;
        self.program.totals.per_pass[self.pass].read += bytes;
    }

    fn bring(&mut self, tile: TileId) {
        let state = &mut self.tiles[tile as usize];
        if state.resident {
            return;
        }
        debug_assert!(
            !state.computed || state.spilled || state.written,
            "only what was spilled or written is read back"
        );
        state.resident = true;
        let read = match state.written {
            true => Instruction::ReadBack(tile),
            false => Instruction::Read(tile),
        };
        let bytes = self.weights.weights[tile as usize].read;
        self.program.instructions.push(read);
        self.count_read(bytes);
    }

    /// The program's end: temporaries go, clean source tiles stay for the next program.
    fn end(&mut self) {
        while let Some((_, pass)) = self.closing.pop_front() {
            self.close(pass);
        }
        while !self.working.is_empty() {
            self.close_task();
        }
        for tile in 0..self.tiles.len() as u32 {
            let state = self.tiles[tile as usize];
            if !state.resident {
                continue;
            }
            if state.computed {
                self.drop_tile(tile);
            } else {
                self.program.left.push(tile);
            }
        }
    }
}

fn frame_of(weights: &TileTable, tile: TileId) -> u64 {
    weights.weights[tile as usize].frame
}
