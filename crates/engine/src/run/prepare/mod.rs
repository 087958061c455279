//! From expressions to a placed program: plan, check sources and targets, count what the run reserves.
//!
//! Finds the memory (`budget.rs`) or refuses with a limit that works (`refusal.rs`). Uses `plan`, `schedule`, `place` and
//! `session`. Start with `prepare` below.

pub mod accesses;
pub mod budget;
mod least;
pub mod planning;
pub mod program;
pub mod refusal;
mod remember;
pub mod report;
mod tilings;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Instant;

use outcore_store::{check_space, scratch_room, Annotations, Region, SinkPlan, StoreError};

use crate::expr::{topological, Expr};
use crate::ops;
use crate::place::slabs::find_slabs;
use crate::place::{Instruction, Placed};
use crate::plan::{self, few, ArrayInfo, ArrayKind, Plan};
use crate::run::compute::workspace::workspace_bytes;
use crate::run::play::state::stopped;
use crate::run::prepare::budget::{Placement, PlacementRequest};
use crate::run::prepare::planning::{Asker, Asking, Now, PlanningMemory, ReturnFreed, Supposed};
use crate::run::prepare::program::{results_bytes, Output, PreparedProgram};
use crate::run::prepare::remember::Request;
use crate::run::prepare::tilings::Planner;
use crate::run::session::residency::{KeptKey, KeptTiles};
use crate::run::session::{Session, Target, POLL};
use crate::schedule::needed::{find_needed, DoneWork};
use crate::schedule::tiles::{number_tiles, tile_region, OutputCost};
use crate::schedule::{TileId, TileTable};
use crate::task::FileOutput;
use crate::{cancel, EngineError};

/// Bytes that tasks, tiles and instructions take, per task and per tile.
const BYTES_PER_TASK: u64 = 160;
const BYTES_PER_TILE: u64 = 96;

/// A plan of no more operators, none over more tiles, is made in its caller's thread.
const SMALL_OPERATORS: usize = 48;
const SMALL_TILES: u64 = 16;

/// More than any machine has, and small enough that sums of a few do not wrap.
const BYTES_MAX: u64 = 1 << 60;

struct Costs<'a>(&'a [Output]);

impl OutputCost for Costs<'_> {
    fn frame_is_borrowed(&self, output: usize, region: &Region) -> bool {
        match &self.0[output] {
            Output::Memory { shape, .. } => region.is_contiguous_in(shape),
            _ => false,
        }
    }

    fn write_bytes(&self, output: usize, region: &Region) -> u64 {
        self.0[output].file().map_or(0, |sink| sink.write_bytes(region))
    }

    fn is_read_back(&self, output: usize) -> bool {
        self.0[output].file().is_some_and(SinkPlan::is_read_back)
    }
}

impl Session {
    /// Plans and places a program for `outputs`, checking sources and targets. Nothing is created and no data is read.
    ///
    /// # Errors
    /// Bad targets, changed sources, or a program that cannot fit.
    pub fn prepare(self: &Arc<Session>, outputs: &[Expr], targets: &[Target]) -> Result<PreparedProgram, EngineError> {
        self.prepare_watched(outputs, targets, &mut || Ok(()))
    }

    /// As `prepare`, asking `watch` now and then whether the plan is still wanted: an error of its is returned at once.
    /// The planner changes nothing that others see, so it is left to itself then and ends when it looks up.
    ///
    /// # Errors
    /// Those of `prepare`, and of `watch`.
    pub fn prepare_watched(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<PreparedProgram, EngineError> {
        self.prepare_for(Asking::of(Asker::here()), outputs, targets, watch)
    }

    /// As `prepare_watched`, for somebody who may have the turn already, or for a program that others will run before.
    pub(in crate::run) fn prepare_for(
        self: &Arc<Session>,
        asking: Asking,
        outputs: &[Expr],
        targets: &[Target],
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<PreparedProgram, EngineError> {
        if is_small(outputs) {
            watch()?;
            let plan = AssertUnwindSafe(|| self.prepare_here(outputs, targets, asking));
            return catch_unwind(|| cancel::until(&Arc::default(), plan))
                .unwrap_or_else(|panic| Err(stopped("the planner", panic)));
        }
        let (session, outputs, targets) = (self.clone(), outputs.to_vec(), targets.to_vec());
        let unwanted = Arc::new(AtomicBool::new(false));
        let seen = unwanted.clone();
        let (sender, receiver) = channel();
        // Deep expressions are walked recursively in places; this stack is reserved, not resident.
        let planner = std::thread::Builder::new()
            .name("outcore-plan".into())
            .stack_size(1 << 30)
            .spawn(move || {
                let program = cancel::until(&seen, || session.prepare_here(&outputs, &targets, asking));
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
                Ok(program) => {
                    // Its stack is gone before anything runs.
                    let _ = planner.join();
                    return program;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = planner.join().err();
                    return Err(panic.map_or(EngineError::Cancelled, |panic| stopped("the planner", panic)));
                }
            }
        }
    }

    pub(in crate::run) fn prepare_here(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        asking: Asking,
    ) -> Result<PreparedProgram, EngineError> {
        self.check_usable()?;
        self.yield_to_process();
        let begin = Instant::now();
        let requested: Vec<Expr> = outputs
            .iter()
            .zip(targets)
            .map(|(output, target)| in_chunks(output, target))
            .collect();
        let plain = || self.prepare_request(&Request::plain(&requested), false, targets, asking, true);
        if asking.now == Now::MayPass {
            return plain();
        }
        let in_memory: Vec<bool> = targets.iter().map(|target| matches!(target, Target::Memory)).collect();
        let budget = self.budget_for(asking.memory);
        let nothing = KeptTiles::default();
        let kept = match asking.memory {
            Supposed::Limit(_) => &nothing,
            _ => &*self.kept,
        };
        let request = remember::cut(&requested, &in_memory, kept, budget);
        request.used.iter().try_for_each(|value| value.check(false))?;
        let program = self.prepare_remembering(request, targets, asking);
        // Without what earlier programs know, the memory of that is free.
        let program = program.unwrap_or_else(plain)?;
        Ok(PreparedProgram {
            plan_seconds: begin.elapsed().as_secs_f64(),
            ..program
        })
    }

    /// The program that makes use of values computed before, and remembers what is worth it. Nothing where it does not
    /// fit, or there is nothing of the kind.
    fn prepare_remembering(
        self: &Arc<Session>,
        request: Request,
        targets: &[Target],
        asking: Asking,
    ) -> Option<Result<PreparedProgram, EngineError>> {
        let prepare = |remember: bool| {
            let last = !remember && request.used.is_empty();
            match self.prepare_request(&request, remember, targets, asking, last) {
                Err(EngineError::Memory { .. }) if !last => None,
                program => Some(program),
            }
        };
        let with = (!request.named.is_empty()).then(|| prepare(true)).flatten();
        let with = match with {
            Some(Ok(program)) if !program.moves_least() => program,
            Some(program) => return Some(program),
            None => return prepare(false),
        };
        // What is remembered takes memory that tiles would be kept in; it must save more than that costs.
        if with.plan.tasks() > remember::TASKS_TO_COMPARE {
            return Some(Ok(with));
        }
        match prepare(false) {
            Some(Ok(without)) if with.moved_bytes() > without.moved_bytes() + request.saved_bytes() => {
                Some(Ok(without))
            }
            Some(Err(error)) => Some(Err(error)),
            _ => Some(Ok(with)),
        }
    }

    /// The program of one plan; nothing where there is none.
    pub(in crate::run) fn prepare_plan(
        self: &Arc<Session>,
        request: &Request,
        remember: bool,
        targets: &[Target],
        (asking, last): (Asking, bool),
        planned: &Planner<'_>,
    ) -> Result<Option<PreparedProgram>, EngineError> {
        let (mut wanted, mut targets) = (request.outputs.clone(), targets.to_vec());
        let mut worths = request.worths.clone();
        if remember {
            for (node, worth) in &request.named {
                wanted.push(node.clone());
                targets.push(Target::Memory);
                worths.push(Some(worth.clone()));
            }
        }
        let (requested, targets) = (request.outputs.len(), &targets[..]);
        let mut memory = PlanningMemory::new(self, asking.asker);
        let operators = topological(&wanted).len();
        memory.reserve_operators(operators)?;
        let Some(mut plan) = planned(&wanted)? else {
            return Ok(None);
        };
        few::select_few(&mut plan, &self.io)?;
        plan.is_searched = asking.now == Now::IsThen;
        let program_bytes = program_bytes(&plan);
        memory.reserve(program_bytes)?;
        plan.sources().try_for_each(|source| source.check_unchanged())?;
        let outputs = check_targets(&plan, targets)?;
        leave_complete(&mut plan, &outputs);
        let tiles = number_tiles(&plan, &Costs(&outputs), &self.io)?;
        plan.left = left_work(&plan, &tiles, &outputs);
        let unseen_bytes = self.io_bytes(&plan, &tiles, &outputs) + program_bytes;
        let fixed_bytes = self.fixed_bytes(&plan, &outputs) + unseen_bytes;
        let start = match asking.now {
            Now::IsThen if !matches!(asking.memory, Supposed::Limit(_)) => self.find_start(&plan),
            _ => vec![],
        };
        let to_place = PlacementRequest {
            plan: &plan,
            tiles: &tiles,
            used: request.used_bytes(),
            memory: asking.memory,
            called: asking.called,
            last,
        };
        let Placement {
            placed,
            fixed_bytes,
            memory,
            start,
        } = self.place(to_place, fixed_bytes, start)?;
        self.check_disks(&outputs, placed.program.totals.scratch_bytes)?;
        let metadata_bytes = metadata_bytes(&plan, &tiles, &outputs, &placed);
        let slabs = find_slabs(&plan, &placed.tasks, placed.program.reach.tasks);
        Ok(Some(PreparedProgram {
            session: self.clone(),
            plan,
            tiles,
            placed,
            slabs,
            fixed_bytes,
            unseen_bytes,
            memory,
            metadata_bytes,
            plan_seconds: 0.0,
            outputs,
            start,
            used: request.used.clone(),
            worths,
            requested,
            _freed: ReturnFreed::after(program_bytes),
        }))
    }

    /// Memory reserved for the whole run in frames: workspaces, results in memory.
    pub(in crate::run) fn fixed_bytes(&self, plan: &Plan, outputs: &[Output]) -> u64 {
        let functions = function_bytes(plan);
        let workers = self.options.threads.max(1) as u64 * (workspace_bytes(plan) + functions);
        workers + results_bytes(outputs)
    }

    /// Buffers that encoded reads and padded writes use while they run, one per I/O thread.
    pub(in crate::run) fn io_bytes(&self, plan: &Plan, tiles: &TileTable, outputs: &[Output]) -> u64 {
        let (read, mut written) = (tiles.read_workspace, 0usize);
        for (id, array) in plan.arrays.iter().enumerate() {
            let region = |index| tile_region(plan, id as u32, index);
            for index in edge_tiles(&array.counts) {
                for &output in &array.outputs {
                    if let Some(sink) = outputs[output].file() {
                        written = written.max(sink.workspace_bytes(&region(index)));
                    }
                }
            }
        }
        let threads = self.options.io_threads.max(1);
        // Files say how large their chunks are: no sum of such figures may wrap.
        (threads.saturating_mul(read.saturating_add(written)) as u64).min(BYTES_MAX)
    }

    /// Refuses a program whose outputs and spills together do not fit on the disks, or its spills in the quota.
    fn check_disks(&self, outputs: &[Output], scratch_bytes: u64) -> Result<(), EngineError> {
        match self.check_free(outputs, scratch_bytes) {
            // Some of it may be on its way.
            Err(_) if self.wait_for_scratch() => self.check_free(outputs, scratch_bytes),
            checked => checked,
        }
    }

    fn check_free(&self, outputs: &[Output], scratch_bytes: u64) -> Result<(), EngineError> {
        let quota = self.options.scratch_quota.unwrap_or(u64::MAX);
        if scratch_bytes > quota {
            let (need, used) = (scratch_bytes, 0);
            return Err(StoreError::Quota { need, used, quota }.into());
        }
        let mut needs: Vec<(PathBuf, u64)> = outputs
            .iter()
            .filter_map(Output::file)
            .map(|sink| (sink.target().to_path_buf(), sink.bytes()))
            .collect();
        // Spills go to each directory in turn while it has room.
        if scratch_bytes == 0 {
            return Ok(check_space(&needs)?);
        }
        let directories = self.options.scratch.iter().zip(scratch_room(&self.options.scratch)?);
        let mut roomy: Vec<_> = directories.collect();
        roomy.sort_by_key(|&(_, room)| room);
        let mut left = scratch_bytes;
        for (index, &(directory, room)) in roomy.iter().enumerate() {
            let share = left.div_ceil((roomy.len() - index) as u64);
            let share = if index + 1 < roomy.len() {
                share.min(room)
            } else {
                share
            };
            needs.push((directory.clone(), share));
            left -= share;
        }
        Ok(check_space(&needs)?)
    }

    /// Kept tiles that the plan can start from.
    pub(in crate::run) fn find_start(&self, plan: &Plan) -> Vec<(TileId, KeptKey)> {
        let mut first = 0;
        let mut start = Vec::new();
        for array in &plan.arrays {
            if matches!(array.kind, ArrayKind::Source(_)) {
                let digest = array.node.digest();
                let here = self.kept.tiles_of(digest, array.tiles());
                start.extend(here.into_iter().map(|index| (first + index as TileId, (digest, index))));
            }
            first += array.tiles() as TileId;
        }
        start
    }
}

/// Whether planning is so little work that a thread of its own would take longer: few operators over few tiles, which the
/// caller's stack holds.
fn is_small(outputs: &[Expr]) -> bool {
    let mut seen: Vec<u64> = Vec::with_capacity(SMALL_OPERATORS);
    let mut due: Vec<&Expr> = outputs.iter().collect();
    while let Some(node) = due.pop() {
        if seen.contains(&node.id) {
            continue;
        }
        if seen.len() == SMALL_OPERATORS || node.grid().tiles() > SMALL_TILES {
            return false;
        }
        seen.push(node.id);
        due.extend(&node.inputs);
    }
    true
}

/// An output in the chunks that its target asks for.
pub(in crate::run) fn in_chunks(output: &Expr, target: &Target) -> Expr {
    match target {
        Target::Path {
            chunks: Some(chunks), ..
        } if *chunks != output.tile => {
            let lengths = chunks.iter().zip(&output.shape);
            let tile = lengths.map(|(&chunk, &length)| chunk.clamp(1, length.max(1)));
            ops::copy_tiled(output, tile.collect())
        }
        _ => output.clone(),
    }
}

/// Nothing is written to outputs that are durable as a whole, also where other outputs need the pass that they are of: what
/// stands for them has no values.
fn leave_complete(plan: &mut Plan, outputs: &[Output]) {
    let is_complete = |output: &Output| matches!(output, Output::Resumed(resumable) if resumable.is_left_alone());
    for array in &mut plan.arrays {
        array.outputs.retain(|&output| !is_complete(&outputs[output]));
    }
}

/// The tasks that are left where outputs are gone on with; nothing where all are.
fn left_work(plan: &Plan, tiles: &TileTable, outputs: &[Output]) -> Option<plan::LeftWork> {
    let goes_on = |output: &Output| matches!(output, Output::Resumed(resumable) if !resumable.done().is_empty());
    if !outputs.iter().any(goes_on) {
        return None;
    }
    let mut done = Vec::new();
    for (id, array) in plan.arrays.iter().enumerate() {
        // A tile is done where it is in every place that it goes to.
        let mut everywhere: Option<Vec<u64>> = None;
        for &output in &array.outputs {
            let here: &[u64] = match &outputs[output] {
                Output::Resumed(resumable) => resumable.done(),
                _ => &[],
            };
            everywhere = Some(match everywhere {
                None => here.to_vec(),
                Some(before) => before
                    .into_iter()
                    .filter(|tile| here.binary_search(tile).is_ok())
                    .collect(),
            });
        }
        done.extend(everywhere.into_iter().flatten().map(|index| tiles.id(id as u32, index)));
    }
    let is_beside = |&output: &usize| matches!(&outputs[output], Output::Resumed(resumable) if resumable.is_beside());
    let arrays = plan.arrays.iter();
    let done = DoneWork {
        tiles: &done,
        is_beside: &arrays
            .map(|array| array.outputs.iter().all(is_beside))
            .collect::<Vec<_>>(),
    };
    Some(find_needed(plan, tiles, &done))
}

/// Bytes of headers, metadata and journals.
fn metadata_bytes(plan: &Plan, tiles: &TileTable, outputs: &[Output], placed: &Placed) -> u64 {
    // A run finishes outputs that are complete and have not their names yet.
    let complete = outputs.iter().map(|output| match output {
        Output::Resumed(resumable) if resumable.is_left_alone() => resumable.overhead_bytes(0),
        _ => 0,
    });
    let mut bytes = complete.sum();
    for (id, array) in plan.arrays.iter().enumerate() {
        for &output in &array.outputs {
            bytes += match &outputs[output] {
                Output::Memory { .. } => 0,
                Output::File(sink) => sink.overhead_bytes(),
                Output::Resumed(resumable) => {
                    let range = tiles.first[id]..tiles.first[id] + array.tiles() as TileId;
                    let written =
                        placed.program.instructions.iter().filter(
                            |instruction| matches!(instruction, Instruction::Write(tile) if range.contains(tile)),
                        );
                    resumable.overhead_bytes(written.count() as u64)
                }
            };
        }
    }
    bytes
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
pub(in crate::run) fn function_bytes(plan: &Plan) -> u64 {
    plan.passes().map(|pass| pass.function_bytes as u64).max().unwrap_or(0)
}

/// What a program takes while it is made and played.
fn program_bytes(plan: &Plan) -> u64 {
    let tiles: u64 = plan.arrays.iter().map(ArrayInfo::tiles).sum();
    let bytes = plan.bytes() + plan.tasks() * BYTES_PER_TASK + tiles * BYTES_PER_TILE;
    bytes.next_multiple_of(outcore_store::PAGE as u64)
}

/// The output that a node becomes at a path.
pub(in crate::run) fn sink_plan(
    node: &Expr,
    path: &Path,
    overwrite: bool,
    annotations: Option<&Annotations>,
    codecs: Option<&str>,
) -> Result<SinkPlan, StoreError> {
    let plan = match (node.file_output(), codecs) {
        (Some(FileOutput::Sparse(output)), _) => return SinkPlan::sparse(path, &output, overwrite),
        (Some(FileOutput::Factor(output)), _) => return SinkPlan::factor(path, &output, overwrite),
        (None, Some(codecs)) => SinkPlan::encoded(path, &node.shape, node.dtype, &node.tile, overwrite, codecs),
        (None, None) => SinkPlan::new(path, &node.shape, node.dtype, &node.tile, overwrite),
    };
    plan.map(|plan| annotations.map_or_else(|| plan.clone(), |own| plan.annotated(own)))
}

fn check_targets(plan: &Plan, targets: &[Target]) -> Result<Vec<Output>, EngineError> {
    let mut seen: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut check_alone = |sink: &SinkPlan| {
        if let Some((_, other)) = seen.iter().find(|(target, _)| target == sink.target()) {
            return Err(EngineError::Plan(format!(
                "store: {} and {} are one place, and two outputs cannot both be there",
                other.display(),
                sink.path().display()
            )));
        }
        seen.push((sink.target().to_path_buf(), sink.path().to_path_buf()));
        Ok(())
    };
    targets
        .iter()
        .zip(&plan.outputs)
        .map(|(target, &array)| {
            let node = &plan.arrays[array as usize].node;
            Ok(match target {
                Target::Memory if node.sparse_output().is_some() => {
                    return Err(EngineError::Argument(format!(
                        "{}: a sparse matrix is no array; outcore.store({{'a.ocs': A}}) or A.copy(path=) stores it",
                        node.label()
                    )));
                }
                Target::Memory if node.file_output().is_some() => {
                    return Err(EngineError::Argument(format!(
                        "{}: a factor is no array; factorize(path) stores it",
                        node.label()
                    )));
                }
                Target::Memory => Output::Memory {
                    shape: node.shape.clone(),
                    dtype: node.dtype,
                    tile: node.tile.clone(),
                },
                Target::Path {
                    path,
                    overwrite,
                    annotations,
                    update,
                    codecs,
                    part,
                    ..
                } => {
                    let sink = match (update, part) {
                        (Some(update), _) => SinkPlan::update(path, update, &node.shape, node.dtype)?,
                        (_, Some(part)) => SinkPlan::part(path, part, &node.shape, node.dtype, &node.tile)?,
                        _ => sink_plan(node, path, *overwrite, annotations.as_deref(), codecs.as_deref())?,
                    };
                    check_alone(&sink)?;
                    Output::File(sink)
                }
                Target::Resumed(resumable) => {
                    check_alone(resumable.plan())?;
                    Output::Resumed(resumable.clone())
                }
            })
        })
        .collect()
}
