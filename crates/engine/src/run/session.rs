//! A session: the memory limit, the disks and the tiles kept between programs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use outcore_store::{
    Faults, Frame, FramePool, Io, IoPool, Ledger, MemorySink, Reclaim, Region, Reservation, Scratch, Sink, SinkPlan,
    StoreError, Turn, GROUP_STAGING_BYTES,
};

use super::nesting;
use super::player::{play, IoPools, Progress, ProgressReport, Stage};
use super::state::{Event, Shared};
use super::task::{workspace_bytes, Workspace};
use super::value::TileMemory;
use crate::expr::Expr;
use crate::ops;
use crate::place::slabs::{find_slabs, Slab};
use crate::place::{self, Limits, Placed, Policy, Shortage};
use crate::plan::{self, ArrayKind, Plan, PlanOptions};
use crate::schedule::tiles::{number_tiles, tile_region, OutputCost};
use crate::schedule::{TileId, TileTable};
use crate::EngineError;

/// Memory of the process that the ledger does not see: what is resident before anything runs, thread stacks, packing
/// buffers of products, the allocator's slack. The first part is measured, the rest are allowances.
const OVERHEAD_FIXED: u64 = 24 << 20;
const OVERHEAD_PER_WORKER: u64 = 6 << 20;
const OVERHEAD_STEP: u64 = 8 << 20;
/// Frames' worth of memory left to frames that wait to be used again.
const SPARE_FRAMES: u64 = 4;
/// Bytes that tasks, tiles and instructions take, per task and per tile, while a program is made and played.
const BYTES_PER_TASK: u64 = 160;
const BYTES_PER_TILE: u64 = 96;
/// How long a caller waits at most, for its turn or for a plan, before it looks for signals.
const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Resident bytes of the whole process.
    pub memory_limit: u64,
    /// A lower cap on what the ledger grants, for tests and for comparisons with other systems' pools.
    pub pool_limit: Option<u64>,
    pub threads: usize,
    /// Threads that read; half as many write.
    pub io_threads: usize,
    /// Tasks at work or read ahead for; chosen from the threads when absent.
    pub window: Option<usize>,
    pub scratch: Vec<PathBuf>,
    pub scratch_quota: Option<u64>,
    pub policy: Policy,
    pub plan: PlanOptions,
    pub direct_io: bool,
    pub faults: Option<String>,
}

/// Where a result goes.
#[derive(Clone, Debug)]
pub enum Target {
    Memory,
    Path {
        path: PathBuf,
        overwrite: bool,
        chunks: Option<Vec<u64>>,
    },
}

/// Invariants:
/// 1. Programs of all sessions of a process run one after the other.
/// 2. While one runs, what its ledger may grant and what the other sessions hold are together at most `room`; so is what
///    all hold afterwards, until the next one runs.
pub struct Session {
    options: SessionOptions,
    overhead: u64,
    /// What the sessions of the process may hold together: the memory limit less the overhead.
    room: u64,
    pool: FramePool,
    io: Io,
    io_pools: Mutex<Option<Arc<IoPools>>>,
    scratch: Mutex<Option<Scratch>>,
    kept: Arc<Kept>,
    closed: AtomicBool,
    /// The process that made the session.
    process: u32,
}

/// Clean tiles left by the last program, by source identity, tile shape and position.
#[derive(Default)]
struct Kept(Mutex<HashMap<KeptKey, Arc<TileMemory>>>);

fn kept_bytes(tile: &TileMemory) -> usize {
    FramePool::frame_bytes(tile.padded().len())
}

impl Reclaim for Kept {
    fn bytes(&self) -> usize {
        locked(&self.0).values().map(|tile| kept_bytes(tile)).sum()
    }

    fn shrink_to(&self, allowed: usize) {
        let mut tiles = locked(&self.0);
        let mut left: usize = tiles.values().map(|tile| kept_bytes(tile)).sum();
        tiles.retain(|_, tile| {
            let stays = left <= allowed;
            if !stays {
                left -= kept_bytes(tile);
            }
            stays
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ours() {
            // A forked child has neither the threads to join nor the right to remove its parent's scratch.
            Box::leak(Box::new((locked(&self.io_pools).take(), locked(&self.scratch).take())));
        }
    }
}

type KeptKey = (String, Vec<u64>, u64);

/// A placed program with its outputs checked: what `explain` prints and `run` plays.
pub struct Program {
    pub session: Arc<Session>,
    pub plan: Plan,
    pub tiles: TileTable,
    pub placed: Placed,
    pub slabs: Vec<Vec<Slab>>,
    pub fixed_bytes: u64,
    /// What tiles and partial results may take.
    pub memory: u64,
    /// Bytes of headers and metadata the outputs write.
    pub metadata_bytes: u64,
    pub plan_seconds: f64,
    outputs: Vec<Output>,
    start: Vec<(TileId, KeptKey)>,
}

/// A program that fits, and the memory it was given.
struct Placement {
    placed: Placed,
    fixed_bytes: u64,
    memory: u64,
    start: Vec<(TileId, KeptKey)>,
}

enum Output {
    Memory {
        shape: Vec<u64>,
        dtype: outcore_dtype::DType,
        tile: Vec<u64>,
    },
    File(SinkPlan),
}

/// Counted while the program ran.
#[derive(Default)]
pub struct Outcome {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub spilled_bytes: u64,
    pub peak_bytes: u64,
    pub seconds: f64,
    pub read_seconds: f64,
    pub write_seconds: f64,
    pub compute_seconds: f64,
    pub events: Vec<Event>,
    /// One per requested output: the frame of a result in memory.
    pub results: Vec<Option<Frame>>,
}

struct Costs<'a>(&'a [Output]);

impl OutputCost for Costs<'_> {
    fn frame_is_borrowed(&self, output: usize, region: &Region) -> bool {
        match &self.0[output] {
            Output::Memory { shape, .. } => region.is_contiguous_in(shape),
            Output::File(_) => false,
        }
    }

    fn write_bytes(&self, output: usize, region: &Region) -> u64 {
        match &self.0[output] {
            Output::Memory { .. } => 0,
            Output::File(sink) => sink.write_bytes(region),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Resident bytes of this process.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| {
        text.split_whitespace()
            .nth(1)
            .and_then(|field| field.parse::<u64>().ok())
    });
    pages.map_or(64 << 20, |pages| pages * outcore_store::PAGE as u64)
}

/// Resident bytes of this process beside what its sessions hold.
fn own_bytes() -> u64 {
    Ledger::uncounted(resident_bytes() as usize) as u64
}

impl Session {
    /// # Errors
    /// A limit below what the process itself takes; a fault description that cannot be read.
    pub fn new(options: SessionOptions) -> Result<Session, EngineError> {
        let workers = options.threads.max(1) as u64;
        let overhead = own_bytes().next_multiple_of(OVERHEAD_STEP) + OVERHEAD_FIXED + workers * OVERHEAD_PER_WORKER;
        let room = options.memory_limit.saturating_sub(overhead);
        let io = if options.direct_io {
            Io::direct()
        } else {
            Io::buffered()
        };
        let ledger = Ledger::new(options.pool_limit.map_or(room, |pool| pool.min(room)) as usize);
        let kept = Arc::new(Kept::default());
        let as_kept: Arc<dyn Reclaim> = kept.clone();
        ledger.set_kept(Arc::downgrade(&as_kept));
        let session = Session {
            overhead,
            room,
            pool: FramePool::new(ledger.clone()),
            io,
            io_pools: Mutex::new(None),
            scratch: Mutex::new(None),
            kept,
            closed: AtomicBool::new(false),
            process: std::process::id(),
            options,
        };
        session.arm_faults()?;
        // What a killed process left is removed by whoever comes next, spilling or not.
        for directory in session.options.scratch.iter().filter(|directory| directory.is_dir()) {
            outcore_store::clean(directory)?;
        }
        Ok(session)
    }

    fn arm_faults(&self) -> Result<(), EngineError> {
        let Some(text) = &self.options.faults else {
            return Ok(());
        };
        if let Some(nth) = text.strip_prefix("reserve:") {
            let nth = nth
                .parse()
                .map_err(|_| EngineError::Plan(format!("faults: {text} names no call")))?;
            self.pool.ledger().fail_at(Some(nth));
            return Ok(());
        }
        let faults = Faults::parse(text).map_err(EngineError::Plan)?;
        self.io.set_faults(Some(faults));
        Ok(())
    }

    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Most bytes that the ledger can grant, with the process to itself.
    pub fn budget(&self) -> u64 {
        self.options.pool_limit.map_or(self.room, |pool| pool.min(self.room))
    }

    pub fn ledger(&self) -> &Ledger {
        self.pool.ledger()
    }

    pub fn io(&self) -> &Io {
        &self.io
    }

    /// Drops the tiles kept between programs.
    pub fn clear(&self) {
        self.kept.shrink_to(0);
        self.pool.trim();
    }

    /// Drops tiles, threads and scratch; no program is planned or run afterwards. One that runs is not stopped.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.kept.shrink_to(0);
        self.pool.close();
        locked(&self.io_pools).take();
        locked(&self.scratch).take();
    }

    fn io_pools(&self) -> Arc<IoPools> {
        locked(&self.io_pools)
            .get_or_insert_with(|| {
                Arc::new(IoPools {
                    reads: IoPool::new(self.options.io_threads),
                    writes: IoPool::new(self.write_threads()),
                })
            })
            .clone()
    }

    fn write_threads(&self) -> usize {
        self.options.io_threads.div_ceil(2)
    }

    fn scratch(&self) -> Result<Scratch, EngineError> {
        let mut scratch = locked(&self.scratch);
        if scratch.is_none() {
            *scratch = Some(Scratch::new(
                &self.options.scratch,
                self.options.scratch_quota,
                &self.io,
            )?);
        }
        Ok(scratch.clone().expect("just made"))
    }

    /// Waits until no other program runs in this process, telling `progress` so that signals are seen.
    fn wait_for_turn(&self, progress: Progress<'_>) -> Result<Turn, EngineError> {
        let turn = self.ledger().queue();
        while !turn.has_come(POLL) {
            progress(&ProgressReport::default())?;
        }
        Ok(turn)
    }

    /// Threads and locks do not survive a fork.
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    fn check_usable(&self) -> Result<(), EngineError> {
        if !self.is_ours() {
            return Err(EngineError::Session(
                "this session belongs to the parent process; make a new one after a fork".into(),
            ));
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(EngineError::Session(
                "the session is closed; arrays opened under it can be computed in another".into(),
            ));
        }
        Ok(())
    }

    /// Plans and places a program for `outputs`, checking sources and targets. Nothing is created and no data is read.
    ///
    /// # Errors
    /// Bad targets, changed sources, or a program that cannot fit.
    pub fn prepare(self: &Arc<Session>, outputs: &[Expr], targets: &[Target]) -> Result<Program, EngineError> {
        self.prepare_watched(outputs, targets, &mut || Ok(()))
    }

    /// As `prepare`, asking `watch` now and then whether the plan is still wanted: an error of its is returned at once.
    /// The planner changes nothing that others see, so it is left to itself then and ends when it looks up.
    pub fn prepare_watched(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<Program, EngineError> {
        let (session, outputs, targets) = (self.clone(), outputs.to_vec(), targets.to_vec());
        let unwanted = Arc::new(AtomicBool::new(false));
        let seen = unwanted.clone();
        let (sender, receiver) = channel();
        // Deep expressions are walked recursively in places; this stack is reserved, not resident.
        let planner = std::thread::Builder::new()
            .name("outcore-plan".into())
            .stack_size(1 << 30)
            .spawn(move || {
                let program = session.prepare_here(&outputs, &targets, &seen);
                drop((session, outputs, targets));
                // Nobody takes the program when the caller has gone.
                let _ = sender.send(program);
            })
            .map_err(|error| EngineError::Plan(format!("cannot start the planner: {error}")))?;
        loop {
            if let Err(error) = watch() {
                unwanted.store(true, Ordering::Relaxed);
                return Err(error);
            }
            match receiver.recv_timeout(POLL) {
                Ok(program) => return program,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(stopped_by(planner.join().err())),
            }
        }
    }

    fn prepare_here(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        unwanted: &AtomicBool,
    ) -> Result<Program, EngineError> {
        self.check_usable()?;
        let begin = Instant::now();
        let requested: Vec<Expr> = outputs
            .iter()
            .zip(targets)
            .map(|(output, target)| match target {
                Target::Path {
                    chunks: Some(chunks), ..
                } if *chunks != output.tile => {
                    let tile = chunks
                        .iter()
                        .zip(&output.shape)
                        .map(|(&chunk, &length)| chunk.clamp(1, length.max(1)));
                    ops::copy_tiled(output, tile.collect())
                }
                _ => output.clone(),
            })
            .collect();
        let plan = plan::plan(&requested, self.options.plan)?;
        check_wanted(unwanted)?;
        for array in &plan.arrays {
            if let ArrayKind::Source(source) = &array.kind {
                source.check_unchanged()?;
            }
        }
        let outputs = check_targets(&plan, targets)?;
        let tiles = number_tiles(&plan, &Costs(&outputs))?;
        check_wanted(unwanted)?;
        let metadata_bytes = outputs
            .iter()
            .map(|output| {
                if let Output::File(sink) = output {
                    sink.overhead_bytes()
                } else {
                    0
                }
            })
            .sum();
        let fixed_bytes = self.fixed_bytes(&plan, &tiles, &outputs);
        let start = self.find_start(&plan);
        let Placement {
            placed,
            fixed_bytes,
            memory,
            start,
        } = self.place(&plan, &tiles, fixed_bytes, start, unwanted)?;
        check_wanted(unwanted)?;
        let slabs = find_slabs(&plan, &placed.tasks, placed.program.window);
        Ok(Program {
            session: self.clone(),
            plan,
            tiles,
            placed,
            slabs,
            fixed_bytes,
            memory,
            metadata_bytes,
            plan_seconds: begin.elapsed().as_secs_f64(),
            outputs,
            start,
        })
    }

    /// Memory reserved for the whole run: workspaces, buffers of encoded I/O, results in memory, the program itself.
    fn fixed_bytes(&self, plan: &Plan, tiles: &TileTable, outputs: &[Output]) -> u64 {
        let functions = function_bytes(plan);
        let workers = self.options.threads.max(1) as u64 * (workspace_bytes(plan) + functions);
        let results: u64 = outputs
            .iter()
            .map(|output| match output {
                Output::Memory { shape, dtype, .. } => {
                    FramePool::frame_bytes(shape.iter().product::<u64>() as usize * dtype.size()) as u64
                }
                Output::File(_) => 0,
            })
            .sum();
        workers + results + self.io_bytes(plan, outputs) + program_bytes(plan, tiles)
    }

    /// Buffers that encoded reads and padded writes use while they run, one per I/O thread.
    fn io_bytes(&self, plan: &Plan, outputs: &[Output]) -> u64 {
        let (mut read, mut written) = (0, 0);
        for (id, array) in plan.arrays.iter().enumerate() {
            for index in edge_tiles(&array.counts) {
                let region = tile_region(plan, id as u32, index);
                if let ArrayKind::Source(source) = &array.kind {
                    read = read.max(source.workspace_bytes(&region));
                }
                for &output in &array.outputs {
                    if let Output::File(sink) = &outputs[output] {
                        written = written.max(sink.workspace_bytes(&region));
                    }
                }
            }
        }
        (self.options.io_threads.max(1) * read + self.write_threads().max(1) * written) as u64
    }

    /// Kept tiles that the plan can start from.
    fn find_start(&self, plan: &Plan) -> Vec<(TileId, KeptKey)> {
        let kept = locked(&self.kept.0);
        let mut first = 0;
        let mut found = Vec::new();
        for array in &plan.arrays {
            if let ArrayKind::Source(source) = &array.kind {
                if !kept.is_empty() {
                    for index in 0..array.tiles() {
                        let key = (source.identity().to_string(), array.node.tile.clone(), index);
                        if kept.contains_key(&key) {
                            found.push((first + index as TileId, key));
                        }
                    }
                }
            }
            first += array.tiles() as TileId;
        }
        found
    }

    fn place(
        &self,
        plan: &Plan,
        tiles: &TileTable,
        fixed_bytes: u64,
        start: Vec<(TileId, KeptKey)>,
        unwanted: &AtomicBool,
    ) -> Result<Placement, EngineError> {
        let held = Held {
            here: self.ledger().held() as u64,
            elsewhere: self.ledger().held_by_others() as u64,
        };
        let budget = self.budget_beside(held);
        // Tiles kept from before are an offer: as many as fit are taken.
        let mut start = start;
        let mut offered = 0;
        start.retain(|&(tile, _)| {
            offered += tiles.weights[tile as usize].frame;
            offered + fixed_bytes <= budget - budget / 20
        });
        self.attempt(plan, tiles, fixed_bytes, budget, start)
            .or_else(|shortage| {
                let smallest = smallest_budget(shortage.need, &|budget| {
                    check_wanted(unwanted)?;
                    Ok(self.attempt(plan, tiles, fixed_bytes, budget, vec![]).is_ok())
                })?;
                Err(self.refuse(plan, shortage, held, smallest))
            })
    }

    /// What a program may take: kept tiles and idle frames, here and in other sessions, give way to it.
    fn budget_beside(&self, held: Held) -> u64 {
        self.budget()
            .min(self.room.saturating_sub(held.elsewhere))
            .saturating_sub(held.here)
    }

    /// Places in a budget: reading tiles one by one, and neighbours together where that is possible and moves less.
    fn attempt(
        &self,
        plan: &Plan,
        tiles: &TileTable,
        fixed_bytes: u64,
        budget: u64,
        start: Vec<(TileId, KeptKey)>,
    ) -> Result<Placement, Shortage> {
        let ids: Vec<TileId> = start.iter().map(|&(tile, _)| tile).collect();
        let (placed, memory) = self.attempt_reading(plan, tiles, fixed_bytes, budget, &ids, false)?;
        let alone = Placement {
            placed,
            fixed_bytes,
            memory,
            start,
        };
        if !plan.arrays.iter().any(|array| array.grouped_source().is_some()) {
            return Ok(alone);
        }
        let fixed_bytes = fixed_bytes + self.staging_bytes();
        match self.attempt_reading(plan, tiles, fixed_bytes, budget, &ids, true) {
            Ok((placed, memory))
                if placed.program.reads_groups() && placed.moved_bytes() < alone.placed.moved_bytes() =>
            {
                Ok(Placement {
                    placed,
                    fixed_bytes,
                    memory,
                    start: alone.start,
                })
            }
            _ => Ok(alone),
        }
    }

    fn attempt_reading(
        &self,
        plan: &Plan,
        tiles: &TileTable,
        fixed_bytes: u64,
        budget: u64,
        start: &[TileId],
        group: bool,
    ) -> Result<(Placed, u64), Shortage> {
        if fixed_bytes > budget {
            return Err(Shortage {
                pass: 0,
                need: fixed_bytes,
                available: budget,
            });
        }
        let memory = budget - fixed_bytes;
        let limits = |memory| Limits {
            memory,
            window: self.window(plan, tiles, memory),
            policy: self.options.policy,
            sample: true,
            group,
        };
        // Frames just freed are kept for the next tile of their size only while they fit beside what is reserved:
        // with nothing left over, every tile would be mapped, and zeroed by the kernel, anew.
        let spare = spare_bytes(tiles, memory);
        let within = |memory| place::place(plan, tiles, self.options.plan, limits(memory), start);
        within(memory - spare)
            .map(|placed| (placed, memory - spare))
            .or_else(|_| within(memory).map(|placed| (placed, memory)))
            .map_err(|shortage| Shortage {
                need: shortage.need + fixed_bytes,
                available: budget,
                ..shortage
            })
    }

    /// Memory through which neighbouring tiles are read together.
    fn staging_bytes(&self) -> u64 {
        (self.options.io_threads.max(1) * FramePool::frame_bytes(GROUP_STAGING_BYTES)) as u64
    }

    fn window(&self, plan: &Plan, tiles: &TileTable, memory: u64) -> usize {
        let threads = self.options.threads.max(1);
        if let Some(window) = self.options.window {
            return window;
        }
        let tile = tiles
            .weights
            .iter()
            .map(|weight| weight.frame)
            .max()
            .unwrap_or(0)
            .max(1);
        let ahead = if plan.passes.iter().any(crate::schedule::blocking::is_blocked) {
            4 * threads
        } else {
            4 * threads + 8
        };
        // A quarter of the memory at most is for tiles that are only passing through.
        ahead.min((memory / (4 * tile)) as usize).max(threads)
    }

    /// The error for a program that does not fit, with the smallest limit that would do: of the pool where that is what
    /// it does not fit, else of the process.
    fn refuse(&self, plan: &Plan, shortage: Shortage, held: Held, budget: u64) -> EngineError {
        let Held { here, elsewhere } = held;
        let pool = self.options.pool_limit.filter(|&pool| budget + here > pool);
        let smallest = match pool {
            Some(_) => budget + here,
            None => budget + here + elsewhere + self.overhead,
        };
        let operator = plan
            .passes
            .get(shortage.pass as usize)
            .map_or_else(String::new, |pass| pass.label.clone());
        EngineError::Memory {
            operator,
            need: shortage.need,
            available: self.budget_beside(held),
            smallest,
            detail: format!(
                "limit {} bytes, of which {} are the process itself, {here} are held by earlier results and {elsewhere} \
                 by results of other sessions",
                self.options.memory_limit, self.overhead
            ),
        }
    }
}

/// Bytes that results take which the caller still has, of this session and of the process's others.
#[derive(Clone, Copy)]
struct Held {
    here: u64,
    elsewhere: u64,
}

/// The smallest budget that fits, by bisection from a guess.
fn smallest_budget(guess: u64, fits: &dyn Fn(u64) -> Result<bool, EngineError>) -> Result<u64, EngineError> {
    let (mut low, mut high) = (0, guess.max(1 << 20));
    while high <= 1 << 60 && !fits(high)? {
        low = high;
        high *= 2;
    }
    while high - low > 64 << 10 {
        let middle = low + (high - low) / 2;
        if fits(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Room for frames that wait to be used again.
fn spare_bytes(tiles: &TileTable, memory: u64) -> u64 {
    let frame = tiles.weights.iter().map(|weight| weight.frame).max().unwrap_or(0);
    (SPARE_FRAMES * frame).min(memory / 20)
}

fn check_wanted(unwanted: &AtomicBool) -> Result<(), EngineError> {
    if unwanted.load(Ordering::Relaxed) {
        return Err(EngineError::Cancelled);
    }
    Ok(())
}

/// The error for a planner that panicked.
fn stopped_by(panic: Option<Box<dyn std::any::Any + Send>>) -> EngineError {
    let text = panic.and_then(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
    });
    EngineError::Plan(format!(
        "the planner stopped: {}",
        text.unwrap_or_else(|| "unknown cause".into())
    ))
}

/// First, last and one inner tile of a grid: the shapes a grid has.
fn edge_tiles(counts: &[u64]) -> Vec<u64> {
    let total: u64 = counts.iter().product();
    if total == 0 {
        return vec![];
    }
    let mut tiles = vec![0, total - 1];
    let mut stride = 1;
    for &count in counts.iter().rev() {
        tiles.push((count - 1) * stride);
        stride *= count;
    }
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}

/// Memory that a worker's functions of the user say they allocate, at most.
fn function_bytes(plan: &Plan) -> u64 {
    plan.passes
        .iter()
        .map(|pass| pass.function_bytes as u64)
        .max()
        .unwrap_or(0)
}

fn program_bytes(plan: &Plan, tiles: &TileTable) -> u64 {
    let tasks: u64 = plan.passes.iter().map(|pass| pass.domain.cells()).sum();
    (tasks * BYTES_PER_TASK + tiles.len() as u64 * BYTES_PER_TILE).next_multiple_of(outcore_store::PAGE as u64)
}

fn check_targets(plan: &Plan, targets: &[Target]) -> Result<Vec<Output>, EngineError> {
    let mut seen: Vec<&PathBuf> = Vec::new();
    targets
        .iter()
        .zip(&plan.outputs)
        .map(|(target, &array)| {
            let node = &plan.arrays[array as usize].node;
            Ok(match target {
                Target::Memory => Output::Memory {
                    shape: node.shape.clone(),
                    dtype: node.dtype,
                    tile: node.tile.clone(),
                },
                Target::Path { path, overwrite, .. } => {
                    if seen.contains(&path) {
                        return Err(EngineError::Plan(format!(
                            "store: {} is named for two outputs",
                            path.display()
                        )));
                    }
                    seen.push(path);
                    Output::File(SinkPlan::new(path, &node.shape, node.dtype, &node.tile, *overwrite)?)
                }
            })
        })
        .collect()
}

impl Program {
    /// Most bytes the ledger grants while the program runs.
    pub fn peak_bytes(&self) -> u64 {
        self.fixed_bytes + self.placed.program.totals.peak_bytes
    }

    pub fn read_bytes(&self) -> u64 {
        self.placed.program.totals.read_bytes
    }

    pub fn written_bytes(&self) -> u64 {
        self.placed.program.totals.written_bytes + self.metadata_bytes
    }

    /// Plays the program once. Outputs appear under their names when everything is complete and synced.
    ///
    /// # Errors
    /// The first error of any read, write, reservation or function, or of `progress`; nothing is left behind then.
    pub fn run(&self, tracing: bool, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        let session = &self.session;
        session.check_usable()?;
        if nesting::is_inside() {
            return Err(EngineError::Plan(
                "a computation was started inside a running one (by a function over tiles or a progress callback)"
                    .into(),
            ));
        }
        let _turn = session.wait_for_turn(progress)?;
        session.check_usable()?;
        let _inside = nesting::enter();
        for array in &self.plan.arrays {
            if let ArrayKind::Source(source) = &array.kind {
                source.check_unchanged()?;
            }
        }
        self.make_room()?;
        let resident = self.take_kept()?;
        let ledger = session.ledger();
        let held = ledger.held();
        ledger.reset_peak();
        let before = session.io.counters();
        let begin = Instant::now();
        let shared = Arc::new(Shared::new(tracing));
        let mut sinks = Sinks {
            all: Vec::new(),
            memory: Vec::new(),
        };
        let result = self.play(
            &shared,
            resident,
            before.bytes_read + before.bytes_written,
            &mut sinks,
            progress,
        );
        let left = match result {
            Ok(left) => left,
            Err(error) => {
                sinks.abort();
                return Err(error);
            }
        };
        // All outputs are durable before the first gets its name.
        let sealed = sinks.all.iter().try_for_each(|sink| sink.seal(&session.io));
        let finished = sealed.and_then(|()| sinks.all.iter().try_for_each(|sink| sink.publish()));
        if let Err(error) = finished {
            sinks.abort();
            return Err(error.into());
        }
        let counters = session.io.counters().since(&before);
        let peak_bytes = ledger.peak().saturating_sub(held) as u64;
        self.keep(left);
        let state = shared.lock();
        Ok(Outcome {
            read_bytes: counters.bytes_read,
            written_bytes: counters.bytes_written,
            spilled_bytes: self.placed.program.totals.spilled_bytes,
            peak_bytes,
            seconds: begin.elapsed().as_secs_f64(),
            read_seconds: state.busy.read_ns as f64 * 1e-9,
            write_seconds: state.busy.write_ns as f64 * 1e-9,
            compute_seconds: state.busy.compute_ns as f64 * 1e-9,
            events: state.events.clone(),
            results: sinks
                .memory
                .iter()
                .map(|sink| sink.as_ref().and_then(|sink| sink.buffer().take()))
                .collect(),
        })
    }

    fn play(
        &self,
        shared: &Arc<Shared>,
        resident: Vec<(TileId, Arc<TileMemory>)>,
        bytes_before: u64,
        sinks: &mut Sinks,
        progress: Progress<'_>,
    ) -> Result<Vec<(TileId, Arc<TileMemory>)>, EngineError> {
        let session = &self.session;
        let workers = session.options.threads.max(1);
        let workspaces = (0..workers)
            .map(|_| Workspace::new(&self.plan, &session.pool))
            .collect::<Result<Vec<_>, _>>()?;
        let staging = if self.placed.program.reads_groups() {
            (0..session.options.io_threads.max(1))
                .map(|_| session.pool.allocate(GROUP_STAGING_BYTES, "buffer of a reading thread"))
                .collect::<Result<Vec<_>, _>>()?
        } else {
            vec![]
        };
        self.create_sinks(sinks)?;
        let _unseen = self.reserve_unseen()?;
        let scratch = if self.placed.program.totals.spilled_bytes > 0 {
            Some(session.scratch()?)
        } else {
            None
        };
        let io_pools = session.io_pools();
        let stage = Stage {
            plan: &self.plan,
            tiles: &self.tiles,
            tasks: &self.placed.tasks,
            program: &self.placed.program,
            slabs: &self.slabs,
            sinks: &sinks.all,
            pool: &session.pool,
            io: &session.io,
            io_pools: &io_pools,
            scratch: scratch.as_ref(),
            staging: Arc::new(Mutex::new(staging)),
            shared: shared.clone(),
            bytes_before,
        };
        play(&stage, workspaces, resident, progress)
    }

    fn create_sinks(&self, sinks: &mut Sinks) -> Result<(), EngineError> {
        for output in &self.outputs {
            match output {
                Output::Memory { shape, dtype, tile } => {
                    let sink = Arc::new(MemorySink::new(shape, *dtype, tile, &self.session.pool)?);
                    sinks.all.push(sink.clone());
                    sinks.memory.push(Some(sink));
                }
                Output::File(plan) => {
                    // Half-written outputs of killed processes lie beside the names they were meant for.
                    outcore_store::clean_partials(&plan.directory())?;
                    sinks.all.push(plan.create(&self.session.io)?);
                    sinks.memory.push(None);
                }
            }
        }
        Ok(())
    }

    /// Reserves what is allocated outside of frames: buffers of encoded I/O, functions of the user, the program.
    fn reserve_unseen(&self) -> Result<Reservation, StoreError> {
        let options = &self.session.options;
        let functions = function_bytes(&self.plan);
        let bytes = self.session.io_bytes(&self.plan, &self.outputs)
            + program_bytes(&self.plan, &self.tiles)
            + options.threads.max(1) as u64 * functions;
        self.session
            .ledger()
            .reserve(bytes as usize, "I/O buffers and the program")
    }

    /// Settles what the ledger may grant: what the other sessions leave, after they gave up what they can do without
    /// and the program needs. They can only shrink until the turn is over.
    fn make_room(&self) -> Result<(), EngineError> {
        let session = &self.session;
        let ledger = session.ledger();
        let need = ledger.held() as u64 + self.peak_bytes();
        let wish = need + spare_bytes(&self.tiles, self.memory);
        let others = ledger.shrink_others(session.room.saturating_sub(wish) as usize) as u64;
        let limit = session.budget().min(session.room.saturating_sub(others));
        if need > limit {
            return Err(EngineError::Stale(
                "more memory is held by results than when this program was planned; plan it again".into(),
            ));
        }
        ledger.set_limit(limit as usize);
        Ok(())
    }

    /// Takes the tiles the program starts from out of the session and drops the others.
    fn take_kept(&self) -> Result<Vec<(TileId, Arc<TileMemory>)>, EngineError> {
        let mut kept = std::mem::take(&mut *locked(&self.session.kept.0));
        self.start
            .iter()
            .map(|(tile, key)| {
                let memory = kept.remove(key).ok_or_else(|| {
                    EngineError::Stale("the tiles this program starts from have been dropped; plan it again".into())
                })?;
                Ok((*tile, memory))
            })
            .collect()
    }

    fn keep(&self, left: Vec<(TileId, Arc<TileMemory>)>) {
        let mut kept = locked(&self.session.kept.0);
        if self.session.closed.load(Ordering::SeqCst) {
            return;
        }
        for (tile, memory) in left {
            let (array, index) = self.tiles.locate(tile);
            let info = &self.plan.arrays[array as usize];
            if let ArrayKind::Source(source) = &info.kind {
                kept.insert((source.identity().to_string(), info.node.tile.clone(), index), memory);
            }
        }
    }
}

/// The outputs being written.
struct Sinks {
    all: Vec<Arc<dyn Sink>>,
    memory: Vec<Option<Arc<MemorySink>>>,
}

impl Sinks {
    fn abort(&self) {
        self.all.iter().for_each(|sink| sink.abort());
    }
}
