//! Programs on paper: planned and placed without files, and played by a checker of its own.
//!
//! The checker knows what tasks do to tiles from the plan alone: each time that a tile is written it has a new version,
//! and a task must find the version that the tasks before it, by their numbers, leave behind.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use outcore_engine::expr::Expr;
use outcore_engine::place::slabs::find_slabs;
use outcore_engine::place::{place, Instruction, Limits, Placed, Policy, Shortage, Totals, Traffic, Window};
use outcore_engine::plan::{plan, ArrayKind, Pass, Plan, PlanOptions, Producer, RootKind};
use outcore_engine::run::PreparedProgram;
use outcore_engine::schedule::needed::{find_needed, DoneWork};
use outcore_engine::schedule::tasks::{root_tile, InputFinder};
use outcore_engine::schedule::tiles::{coordinates, number_tiles, tile_region, OutputCost};
use outcore_engine::schedule::{TileId, TileTable};
use outcore_engine::task::Access;
use outcore_store::{FramePool, Io, Region};

mod facts;

use facts::*;

pub struct Case {
    pub plan: Plan,
    pub tiles: TileTable,
    facts: Facts,
}

impl Case {
    /// A program whose results are written.
    pub fn new(outputs: &[Expr], options: PlanOptions) -> Case {
        Case::of(outputs, options, false)
    }

    /// A program whose results lie in memory.
    pub fn in_memory(outputs: &[Expr], options: PlanOptions) -> Case {
        Case::of(outputs, options, true)
    }

    /// What is left of a program when some tiles of its results are done.
    pub fn gone_on_with(mut self, done: &[TileId]) -> Case {
        let work = DoneWork {
            tiles: done,
            is_beside: &vec![false; self.plan.arrays.len()],
        };
        self.plan.left = Some(find_needed(&self.plan, &self.tiles, &work));
        self.facts = Facts::new(&self.plan, &self.tiles);
        let mut missing = self.result_tiles().into_iter().filter(|tile| !done.contains(tile));
        assert!(
            missing.all(|tile| !self.facts.unfinished.contains(&tile)),
            "a task is missing"
        );
        self
    }

    /// The tiles of the results.
    pub fn result_tiles(&self) -> Vec<TileId> {
        let all = 0..self.tiles.len() as TileId;
        all.filter(|&tile| is_output(&self.plan, &self.tiles, tile)).collect()
    }

    fn of(outputs: &[Expr], options: PlanOptions, in_memory: bool) -> Case {
        let plan = plan(outputs, options).expect("a plan");
        let tiles = number_tiles(&plan, &Results { in_memory }, &Io::memory()).expect("weights");
        let facts = Facts::new(&plan, &tiles);
        Case { plan, tiles, facts }
    }

    pub fn place(&self, options: PlanOptions, memory: u64, window: usize, policy: Policy) -> Option<Placed> {
        let limits = Limits {
            policy,
            ..Limits::new(memory, Window::of_tasks(window))
        };
        self.place_within(options, limits).ok()
    }

    pub fn place_within(&self, options: PlanOptions, limits: Limits) -> Result<Placed, Shortage> {
        place(&self.plan, &self.tiles, options, limits, &[])
    }

    /// Most bytes that one task takes: its tiles, each once, and its workspace. No memory below it can do.
    pub fn largest_task(&self) -> u64 {
        let frame = |touch: &Touch| self.tiles.weights[touch.tile as usize].frame;
        let producers = self.facts.touches.iter().enumerate();
        let tasks = producers.flat_map(|(producer, tasks)| {
            tasks.iter().enumerate().map(move |(task, touches)| {
                let complete = touches.iter().filter(|touch| touch.kind != Kind::Part);
                complete.map(frame).sum::<u64>() + workspace(&self.plan, producer as u32, task as u32)
            })
        });
        tasks.max().unwrap_or(0)
    }

    /// The bytes of all tiles.
    pub fn all_tiles(&self) -> u64 {
        self.tiles.weights.iter().map(|weight| weight.frame).sum()
    }
}

fn is_computed(plan: &Plan, tiles: &TileTable, tile: TileId) -> bool {
    matches!(plan.arrays[tiles.locate(tile).0 as usize].kind, ArrayKind::Computed)
}

fn is_output(plan: &Plan, tiles: &TileTable, tile: TileId) -> bool {
    !plan.arrays[tiles.locate(tile).0 as usize].outputs.is_empty()
}

/// What a program has been seen to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub groups: u32,
    pub workspaces: u32,
    /// Tiles of works that came back from scratch and were updated then.
    pub updates_of_spilled: u32,
    /// Tiles of results that came back from their output.
    pub read_back: u32,
    /// Tasks of passes that run while a work has tasks to come.
    pub passes_between: u32,
}

impl Seen {
    pub fn add(&mut self, other: Seen) {
        self.groups += other.groups;
        self.workspaces += other.workspaces;
        self.updates_of_spilled += other.updates_of_spilled;
        self.read_back += other.read_back;
        self.passes_between += other.passes_between;
    }
}

/// What a player on paper has before it.
struct Replay<'a> {
    plan: &'a Plan,
    tiles: &'a TileTable,
    placed: &'a Placed,
    facts: &'a Facts,
    memory: u64,
    /// The version that each tile in memory has, and each in scratch.
    resident: HashMap<TileId, u32>,
    scratch: HashMap<TileId, u32>,
    /// The version that is current.
    current: Vec<u32>,
    parts: HashMap<TileId, u64>,
    uses: Vec<u32>,
    /// Reads still to come of what was spilled.
    read_backs: HashMap<TileId, u32>,
    written: HashSet<TileId>,
    done: HashSet<(u32, u32)>,
    /// Tasks whose workspace is there, and passes whose partial results are.
    open: BTreeSet<u32>,
    open_passes: BTreeSet<u32>,
    /// Tasks of each producer that have not run.
    left: Vec<u64>,
    slabs: Vec<u64>,
    tasks: u32,
    used: u64,
    scratch_used: u64,
    counted: Totals,
    seen: Seen,
}

/// Plays a program on paper. Panics when it uses what is not there, loses what is needed, takes more than the memory, or
/// does not do what its totals say.
pub fn replay(case: &Case, placed: &Placed, memory: u64) -> Seen {
    replay_parts((&case.plan, &case.tiles, &case.facts), placed, memory)
}

/// The same for a program of a session that begins with nothing in memory.
pub fn replay_program(program: &PreparedProgram) -> Seen {
    assert_eq!(program.starts_from().0, 0, "tiles in memory are not played with");
    let facts = Facts::new(&program.plan, &program.tiles);
    replay_parts((&program.plan, &program.tiles, &facts), &program.placed, program.memory)
}

fn replay_parts((plan, tiles, facts): (&Plan, &TileTable, &Facts), placed: &Placed, memory: u64) -> Seen {
    let slabs = find_slabs(plan, &placed.tasks, placed.program.reach.tasks);
    let tasks = |producer: usize| (0..plan.producers[producer].tasks() as u32).map(move |task| (producer as u32, task));
    let count = |producer| tasks(producer).filter(|&(producer, task)| plan.is_needed(producer, task));
    let needed = (0..plan.producers.len()).map(|producer| count(producer).count() as u64);
    let needed: Vec<u64> = needed.collect();
    let mut replay = Replay {
        plan,
        tiles,
        placed,
        facts,
        memory,
        resident: HashMap::new(),
        scratch: HashMap::new(),
        current: vec![0; tiles.len()],
        parts: facts.parts.clone(),
        uses: facts.uses.clone(),
        read_backs: HashMap::new(),
        written: HashSet::new(),
        done: HashSet::new(),
        open: BTreeSet::new(),
        open_passes: BTreeSet::new(),
        left: needed,
        slabs: slabs
            .iter()
            .map(|slabs| slabs.iter().map(|slab| slab.reserved()).sum())
            .collect(),
        tasks: 0,
        used: 0,
        scratch_used: 0,
        counted: Totals::default(),
        seen: Seen::default(),
    };
    for instruction in &placed.program.instructions {
        if let Instruction::Read(tile) = instruction {
            *replay.read_backs.entry(*tile).or_insert(0) += 1;
        }
    }
    for &instruction in &placed.program.instructions {
        replay.play(instruction);
        assert!(
            replay.used <= memory,
            "{} of {memory} bytes in use after {instruction:?}",
            replay.used
        );
        replay.counted.peak_bytes = replay.counted.peak_bytes.max(replay.used);
    }
    replay.end()
}

impl Replay<'_> {
    fn frame(&self, tile: TileId) -> u64 {
        self.tiles.weights[tile as usize].frame
    }

    fn work_of(&self, task: u32) -> (u32, u32) {
        let tasks = &self.placed.tasks;
        (tasks.pass[task as usize], tasks.cell[task as usize])
    }

    fn touches(&self, task: u32) -> Vec<Touch> {
        let (producer, number) = self.work_of(task);
        self.facts.touches[producer as usize][number as usize].clone()
    }

    fn workspace(&self, task: u32) -> u64 {
        let (producer, number) = self.work_of(task);
        workspace(self.plan, producer, number)
    }

    fn play(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::Read(tile) => self.read(tile),
            Instruction::ReadBack(tile) => self.read_back(tile),
            Instruction::ReadGroup(first, count) => self.read_group(first, count),
            Instruction::Allocate(tile) => self.allocate(tile),
            Instruction::Run(task) => self.run(task),
            Instruction::Write(tile) => self.write(tile),
            Instruction::Spill(tile) => self.spill(tile),
            Instruction::Free(tile) => self.free(tile),
            Instruction::OpenTask(task) => {
                self.seen.workspaces += 1;
                assert_eq!(task, self.tasks, "the workspace of another task than the next");
                assert!(self.open.insert(task), "task {task} is opened twice");
                self.used += self.workspace(task);
            }
            Instruction::CloseTask(task) => {
                assert!(task < self.tasks, "task {task} has not run yet");
                assert!(self.open.remove(&task), "task {task} is not open");
                self.used -= self.workspace(task);
            }
            Instruction::OpenPass(pass) => {
                assert!(self.open_passes.insert(pass), "pass {pass} is opened twice");
                self.used += self.slabs[pass as usize];
            }
            Instruction::ClosePass(pass) => {
                assert_eq!(
                    self.left[pass as usize], 0,
                    "pass {pass} has tasks that have not run yet"
                );
                assert!(self.open_passes.remove(&pass), "pass {pass} is not open");
                self.used -= self.slabs[pass as usize];
            }
        }
    }

    fn arrive(&mut self, tile: TileId, version: u32) {
        assert!(
            self.resident.insert(tile, version).is_none(),
            "tile {tile} comes and is there already"
        );
        self.used += self.frame(tile);
    }

    fn read(&mut self, tile: TileId) {
        let version = match is_computed(self.plan, self.tiles, tile) {
            false => 0,
            true => {
                let spilled = self.scratch.get(&tile);
                *spilled.unwrap_or_else(|| panic!("tile {tile} is read back and was never spilled"))
            }
        };
        assert_eq!(version, self.current[tile as usize], "scratch holds an old tile {tile}");
        *self.read_backs.get_mut(&tile).expect("counted before") -= 1;
        self.arrive(tile, version);
        self.counted.read_bytes += self.tiles.weights[tile as usize].read;
    }

    fn read_back(&mut self, tile: TileId) {
        let current = self.current[tile as usize];
        assert!(
            self.is_written_back(tile),
            "tile {tile} is read back and is in no output"
        );
        assert_eq!(
            current, self.facts.versions[tile as usize],
            "the output holds an old tile {tile}"
        );
        self.seen.read_back += 1;
        self.arrive(tile, current);
        self.counted.read_bytes += self.tiles.weights[tile as usize].read;
    }

    /// Whether an output has a tile, and gives it back.
    fn is_written_back(&self, tile: TileId) -> bool {
        self.written.contains(&tile) && self.tiles.is_read_back(tile)
    }

    fn read_group(&mut self, first: TileId, count: u16) {
        let (array, index) = self.tiles.locate(first);
        let info = &self.plan.arrays[array as usize];
        let ArrayKind::Source(source) = &info.kind else {
            panic!("only sources are read in groups")
        };
        let across = *info.counts.last().expect("groups are of tiles side by side");
        assert!(
            count > 1 && index % across + u64::from(count) <= across,
            "a group lies in a row"
        );
        let regions: Vec<Region> = (0..u64::from(count))
            .map(|at| tile_region(self.plan, array, index + at))
            .collect();
        self.seen.groups += 1;
        self.counted.read_bytes += source.group_bytes(&regions).expect("a group");
        (first..first + u32::from(count)).for_each(|tile| self.arrive(tile, 0));
    }

    fn allocate(&mut self, tile: TileId) {
        assert_eq!(
            self.current[tile as usize], 0,
            "tile {tile} gets a new frame and has been written"
        );
        self.arrive(tile, 0);
        if !is_output(self.plan, self.tiles, tile) {
            self.counted.temporary_bytes += self.frame(tile);
        }
    }

    fn run(&mut self, task: u32) {
        let (producer, number) = self.work_of(task);
        assert_eq!(task, self.tasks, "tasks are issued in order");
        assert!(
            self.done.insert((producer, number)),
            "task {number} of {producer} runs twice"
        );
        assert_eq!(
            self.open.contains(&task),
            self.workspace(task) > 0,
            "workspace of {task}"
        );
        if self.slabs[producer as usize] > 0 {
            assert!(self.open_passes.contains(&producer), "pass {producer} is not open");
        }
        if let Some(before) = task.checked_sub(1) {
            let (before, _) = self.work_of(before);
            let is_pass = |producer: u32| self.plan.pass(producer).is_some();
            let goes_on = !is_pass(before) && self.left[before as usize] > 0;
            self.seen.passes_between += u32::from(goes_on && is_pass(producer));
        }
        self.tasks += 1;
        self.left[producer as usize] -= 1;
        for touch in self.touches(task) {
            self.uses[touch.tile as usize] -= 1;
            self.touch(task, touch);
        }
    }

    fn touch(&mut self, task: u32, touch: Touch) {
        let Touch { tile, kind, finds } = touch;
        let current = &mut self.current[tile as usize];
        assert_eq!(
            *current,
            finds,
            "task {task} ({:?}) comes in another turn than its number says: {touch:?}",
            (
                self.placed.tasks.pass[task as usize],
                self.placed.tasks.cell[task as usize]
            )
        );
        if kind == Kind::Part && self.facts.unfinished.contains(&tile) {
            return;
        }
        if kind == Kind::Part {
            let left = self.parts.get_mut(&tile).expect("counted before");
            *left -= 1;
            if *left > 0 {
                return;
            }
        }
        let held = self.resident.get_mut(&tile);
        let held = held.unwrap_or_else(|| panic!("task {task} uses tile {tile}, which is not there"));
        assert_eq!(*held, finds, "task {task} finds an old tile {tile}");
        let came_back = self.scratch.get(&tile) == Some(&finds);
        self.seen.updates_of_spilled += u32::from(kind == Kind::Update && came_back);
        if kind != Kind::Read {
            *current += 1;
            *held = *current;
        }
    }

    fn write(&mut self, tile: TileId) {
        assert!(
            !self.facts.unfinished.contains(&tile),
            "unfinished tile {tile} is written"
        );
        assert!(is_output(self.plan, self.tiles, tile), "tile {tile} is no result");
        assert_eq!(
            self.resident.get(&tile),
            Some(&self.facts.versions[tile as usize]),
            "tile {tile} is written and not complete"
        );
        assert!(self.written.insert(tile), "tile {tile} is written twice");
        self.counted.written_bytes += self.tiles.writes[tile as usize];
    }

    fn spill(&mut self, tile: TileId) {
        assert!(
            is_computed(self.plan, self.tiles, tile),
            "tile {tile} is on disk already"
        );
        let version = *self.resident.get(&tile).expect("only resident tiles are spilled");
        assert_eq!(version, self.current[tile as usize], "an old tile {tile} is spilled");
        assert!(version > 0, "tile {tile} is spilled and was never written");
        let before = self.scratch.insert(tile, version);
        assert_ne!(before, Some(version), "only new contents are spilled");
        let bytes = self.frame(tile);
        if before.is_none() {
            self.scratch_used += bytes;
            self.counted.scratch_bytes = self.counted.scratch_bytes.max(self.scratch_used);
        }
        self.counted.written_bytes += bytes;
        self.counted.spilled_bytes += bytes;
    }

    fn free(&mut self, tile: TileId) {
        let version = self.resident.remove(&tile).expect("only resident tiles are dropped");
        self.used -= self.frame(tile);
        // Between the two nothing that the task needs may go. Once it is issued, a tile waits for it before it goes.
        if self.open.contains(&self.tasks) {
            let next = self.touches(self.tasks);
            assert!(
                next.iter().all(|touch| touch.tile != tile),
                "tile {tile} leaves an open task"
            );
        }
        let scratch = self.scratch.get(&tile).copied();
        if is_computed(self.plan, self.tiles, tile) {
            assert!(version > 0, "tile {tile} had a frame and was never written");
            let is_needed = self.uses[tile as usize] > 0;
            assert!(
                !is_needed || scratch == Some(version) || self.is_written_back(tile),
                "tile {tile} is lost and needed again"
            );
            if is_output(self.plan, self.tiles, tile) {
                let is_wanted = !self.facts.unfinished.contains(&tile);
                assert!(
                    !is_wanted || is_needed || self.written.contains(&tile),
                    "result tile {tile} is lost"
                );
            } else if scratch != Some(version) {
                self.counted.discarded_bytes += self.frame(tile);
            }
        }
        if scratch.is_some() && self.read_backs.get(&tile).is_none_or(|&left| left == 0) {
            self.scratch.remove(&tile);
            self.scratch_used -= self.frame(tile);
        }
    }

    fn end(self) -> Seen {
        let totals = &self.placed.program.totals;
        assert!(self.left.iter().all(|&left| left == 0), "every task runs");
        assert!(
            self.open.is_empty(),
            "workspaces that nobody gives back: {:?}",
            self.open
        );
        assert!(
            self.open_passes.is_empty(),
            "passes that nobody closes: {:?}",
            self.open_passes
        );
        let results = (0..self.tiles.len() as TileId).filter(|&tile| is_output(self.plan, self.tiles, tile));
        for tile in results {
            let is_wanted = !self.facts.unfinished.contains(&tile);
            assert_eq!(
                self.written.contains(&tile),
                is_wanted,
                "whether result tile {tile} is written"
            );
        }
        let resident: BTreeSet<TileId> = self.resident.keys().copied().collect();
        assert!(resident.iter().all(|&tile| !is_computed(self.plan, self.tiles, tile)));
        assert_eq!(resident, self.placed.program.left.iter().copied().collect());
        assert!(totals.peak_bytes <= self.memory);
        let sum = |pick: fn(&Traffic) -> u64| totals.per_pass.iter().map(pick).sum::<u64>();
        assert_eq!(
            (sum(|pass| pass.read), sum(|pass| pass.written)),
            (totals.read_bytes, totals.written_bytes)
        );
        let per_pass = totals.per_pass.clone();
        assert_eq!(
            &Totals {
                per_pass,
                ..self.counted
            },
            totals,
            "the totals are those counted"
        );
        self.seen
    }
}
