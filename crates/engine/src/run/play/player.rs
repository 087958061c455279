//! Plays a program: issues its instructions in order, never decides, and stops at the first error.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore_store::Slot;

use crate::place::occupancy::column;
use crate::place::{Instruction, Program};
use crate::plan::ArrayKind;
use crate::run::compute::value::TileMemory;
use crate::run::compute::workspace::Workspace;
use crate::run::play::stage::Stage;
use crate::run::play::state::{stopped, RunState, TileState};
use crate::run::play::worker;
use crate::run::session::estimate::{estimate, Estimate, Measured, PassDone, PassRunning, PassWork};
use crate::run::session::progress::{Doing, PassReport, Progress, ProgressReport};
use crate::schedule::tiles::tile_region;
use crate::schedule::{Role, TileId};
use crate::EngineError;

/// How long the issuer sleeps at most before it looks for signals and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// The issuer's own books.
pub(in crate::run) struct Issuer<'a, 'p> {
    pub(in crate::run) stage: &'a Stage<'a>,
    pub(in crate::run) slots: HashMap<TileId, Arc<Slot>>,
    /// How often each spilled tile is still to be read back.
    pub(in crate::run) read_backs: HashMap<TileId, u32>,
    progress: Progress<'p>,
    reported: Instant,
    work: Vec<PassWork>,
    workers: usize,
    /// What tasks are run with here, where there are no other threads for them.
    own: Option<Workspace>,
}

/// Tiles that a program leaves in memory.
pub type LeftTiles = Vec<(TileId, Arc<TileMemory>)>;

/// A placed program that is about to be played, with the resources of its run.
pub struct PlayableRun<'a> {
    pub(in crate::run) stage: &'a Stage<'a>,
    pub(in crate::run) workspaces: Vec<Workspace>,
    pub(in crate::run) resident: LeftTiles,
}

impl PlayableRun<'_> {
    pub fn program(&self) -> &Program {
        self.stage.program
    }

    /// The end of a run that was not played.
    pub fn refused(self, error: EngineError) -> Played {
        Played {
            left: self.resident,
            result: Err(error),
        }
    }
}

/// The end of a program.
pub struct Played {
    /// Tiles of stored arrays that it leaves resident, also where it failed.
    pub(in crate::run) left: LeftTiles,
    pub(in crate::run) result: Result<(), EngineError>,
}

/// A player of placed programs: in threads of this process, or elsewhere.
///
/// 1. When `play` returns nothing is at work, and every frame of the program is given back but those of tiles that are left.
/// 2. Instructions take effect as the program has them; the player decides nothing.
pub trait Player: Send + Sync {
    fn play(&self, run: PlayableRun<'_>, progress: Progress<'_>) -> Played;
}

/// Plays by as many workers as there are workspaces, and the I/O threads of the session.
pub struct ThreadPlayer;

impl Player for ThreadPlayer {
    fn play(&self, run: PlayableRun<'_>, progress: Progress<'_>) -> Played {
        let (left, result) = by_threads(run.stage, run.workspaces, run.resident, progress);
        Played { left, result }
    }
}

fn by_threads(
    stage: &Stage<'_>,
    workspaces: Vec<Workspace>,
    resident: LeftTiles,
    progress: Progress<'_>,
) -> (LeftTiles, Result<(), EngineError>) {
    {
        let mut state = stage.shared.lock();
        state.done = vec![PassDone::default(); stage.plan.producers.len()];
        for (tile, memory) in resident {
            state.tiles.insert(tile, TileState::shared(memory));
        }
    }
    let workers = workspaces.len();
    let mut workspaces = workspaces.into_iter();
    let result = std::thread::scope(|scope| {
        let own = if stage.is_little_work() {
            workspaces.next()
        } else {
            None
        };
        if own.is_none() {
            for workspace in workspaces.by_ref() {
                scope.spawn(move || worker::work(stage, workspace));
            }
        }
        let mut issuer = Issuer {
            stage,
            slots: HashMap::new(),
            read_backs: stage.program.read_backs(),
            progress,
            reported: Instant::now(),
            work: PassWork::of(stage.plan, stage.program),
            workers,
            own,
        };
        let issue = AssertUnwindSafe(|| issuer.issue_all());
        let result = std::panic::catch_unwind(issue).unwrap_or_else(|panic| Err(stopped("the issuer", panic)));
        issuer.wind_down(result)
    });
    let mut state = stage.shared.lock();
    let error = state.error.take();
    let left = std::mem::take(&mut state.tiles);
    state.trees.clear();
    state.finished_trees.clear();
    state.slabs.clear();
    state.workspaces.clear();
    drop(state);
    let left = left
        .into_iter()
        .filter_map(|(tile, state)| state.memory.map(|memory| (tile, memory)))
        .collect();
    (left, result.and(error.map_or(Ok(()), Err)))
}

impl<'a> Issuer<'a, '_> {
    fn issue_all(&mut self) -> Result<(), EngineError> {
        let instructions = &self.stage.program.instructions;
        // The lock is taken once for each column: others wait for it.
        let mut next_column = if self.stage.shared.is_traced() { 0 } else { usize::MAX };
        for (number, &instruction) in instructions.iter().enumerate() {
            let column = column(number, instructions.len());
            if column >= next_column {
                if let Some(trace) = &mut self.stage.shared.lock().trace {
                    trace.issue(column, Instant::now());
                }
                next_column = column + 1;
            }
            self.issue(instruction)?;
        }
        self.wait_until(|state| {
            state.ready.is_empty() && state.missing.is_empty() && state.running.is_empty() && state.transfers == 0
        })?;
        self.report(true)
    }

    fn issue(&mut self, instruction: Instruction) -> Result<(), EngineError> {
        match instruction {
            Instruction::OpenPass(pass) => self.open_pass(pass),
            Instruction::ClosePass(pass) => {
                self.wait_until(|state| state.open_tasks.get(&pass).is_none_or(|&open| open == 0))?;
                self.stage.shared.lock().slabs.retain(|key, _| key.0 != pass);
                Ok(())
            }
            Instruction::OpenTask(task) => self.open_task(task),
            Instruction::CloseTask(task) => {
                self.wait_until(|state| state.is_complete(task))?;
                let workspace = self.stage.shared.lock().workspaces.remove(&task);
                drop(workspace);
                Ok(())
            }
            Instruction::Read(tile) => self.read(tile),
            Instruction::ReadBack(tile) => self.read_back(tile),
            Instruction::ReadGroup(first, count) => self.read_group(first, count),
            Instruction::Allocate(tile) => self.allocate(tile),
            Instruction::Run(task) => self.run(task),
            Instruction::Write(tile) => {
                let mut state = self.stage.shared.lock();
                state.tile(tile).write_when_ready = true;
                self.stage.start_writes(&mut state, tile);
                Ok(())
            }
            Instruction::Spill(tile) => self.spill(tile),
            Instruction::Free(tile) => self.free(tile),
        }
    }

    /// Waits for `condition`, watching for errors and signals.
    pub(in crate::run) fn wait_until(
        &mut self,
        mut condition: impl FnMut(&mut RunState) -> bool,
    ) -> Result<(), EngineError> {
        let stage = self.stage;
        let shared = &stage.shared;
        let mut guard = shared.lock();
        loop {
            if let Some(error) = guard.error.take() {
                guard.stopping = true;
                return Err(error);
            }
            if condition(&mut guard) {
                drop(guard);
                return self.report(false);
            }
            guard = match (&mut self.own, guard.ready.first().copied()) {
                (Some(workspace), Some(task)) => {
                    guard.ready.pop_first();
                    worker::run_task(stage, guard, task, workspace)
                }
                _ => shared.wait_timeout(guard, POLL),
            };
            if self.reported.elapsed() >= POLL {
                drop(guard);
                self.report(false)?;
                guard = shared.lock();
            }
        }
    }

    fn report(&mut self, last: bool) -> Result<(), EngineError> {
        if !last && self.reported.elapsed() < POLL {
            return Ok(());
        }
        self.reported = Instant::now();
        let report = self.measure();
        (self.progress)(&report)
    }

    fn measure(&self) -> ProgressReport {
        let stage = self.stage;
        let counters = stage.io.counters();
        let totals = &stage.program.totals;
        let bytes_done = counters.bytes_read + counters.bytes_written - stage.bytes_before;
        let mut state = stage.shared.lock();
        if let Some(trace) = &mut state.trace {
            trace.sample_at(Instant::now());
        }
        let measured = Measured {
            seconds: stage.shared.start.elapsed().as_secs_f64(),
            transfer_ns: state.busy.read_ns + state.busy.write_ns,
            transfer_bytes: bytes_done,
            workers: self.workers,
            io_threads: stage.io_threads,
        };
        let now = Instant::now();
        let running = state.running.iter();
        let running: Vec<PassRunning> = running
            .map(|task| PassRunning {
                pass: task.pass as usize,
                seconds: (now - task.begin).as_secs_f64(),
            })
            .collect();
        let (estimate, pace) = estimate(&self.work, &state.done, &running, &measured);
        let passes = || self.work.iter().zip(&state.done).filter(|(pass, _)| pass.tasks > 0);
        let complete = passes().filter(|(pass, done)| pass.tasks == done.tasks).count();
        let of = passes().count();
        ProgressReport {
            doing: Doing::Running,
            stage: None,
            pass: Some(PassReport {
                number: (complete + 1).min(of),
                of,
            }),
            bytes_done,
            bytes_total: totals.read_bytes + totals.written_bytes,
            tasks_done: state.tasks_done,
            tasks_total: stage.tasks.len() as u64,
            estimate: match state.tasks_done == stage.tasks.len() as u64 {
                true => Estimate::DONE,
                false => estimate,
            },
            pace,
        }
    }

    fn open_pass(&mut self, pass: u32) -> Result<(), EngineError> {
        for (root, slab) in self.stage.slabs[pass as usize].iter().enumerate() {
            for _ in 0..slab.frames {
                let frame = self.stage.pool.allocate(slab.bytes as usize, "partial result")?;
                self.stage
                    .shared
                    .lock()
                    .slabs
                    .entry((pass, root as u32))
                    .or_default()
                    .push(frame);
            }
        }
        Ok(())
    }

    fn open_task(&mut self, task: u32) -> Result<(), EngineError> {
        let stage = self.stage;
        let bytes = stage.tasks.workspace(stage.plan, task as usize) as usize;
        let frame = stage.pool.allocate(bytes, "workspace of a task")?;
        stage.shared.lock().workspaces.insert(task, frame);
        Ok(())
    }

    fn allocate(&mut self, tile: TileId) -> Result<(), EngineError> {
        let stage = self.stage;
        let (array, index) = stage.tiles.locate(tile);
        let bytes = stage.tiles.weights[tile as usize].frame as usize;
        let memory = if bytes > 0 {
            TileMemory::Frame {
                frame: stage.pool.allocate(bytes, "tile")?,
                offset: 0,
            }
        } else {
            let region = tile_region(stage.plan, array, index);
            let outputs = &stage.plan.arrays[array as usize].outputs;
            let claimed = outputs.iter().find_map(|&output| stage.sinks[output].borrow(&region));
            TileMemory::Claimed(
                claimed.ok_or_else(|| EngineError::Internal("a result tile could not be borrowed".into()))?,
            )
        };
        stage.shared.lock().tiles.insert(tile, TileState::resident(memory));
        Ok(())
    }

    fn run(&mut self, task: u32) -> Result<(), EngineError> {
        let oldest = self.stage.program.reach.oldest(task as usize);
        self.wait_until(|state| state.completed_below >= oldest)?;
        let stage = self.stage;
        let index = task as usize;
        let mut state = stage.shared.lock();
        let mut missing = 0;
        for &tile in stage.tasks.inputs(index) {
            missing += usize::from(state.tile(tile).enter(task, false));
        }
        for output in stage.tasks.outputs(index) {
            let waits = state.tile(output.tile).enter(task, true);
            debug_assert!(!waits || matches!(output.role, Role::Accumulate { .. }));
            missing += usize::from(waits);
        }
        *state.open_tasks.entry(stage.tasks.pass[index]).or_default() += 1;
        if missing == 0 {
            state.ready.insert(task);
        } else {
            state.missing.insert(task, missing);
        }
        for output in stage.tasks.outputs(index) {
            if output.role == Role::Closing {
                let (array, position) = stage.tiles.locate(output.tile);
                debug_assert_eq!(
                    stage
                        .plan
                        .pass(stage.tasks.pass[index])
                        .map(|pass| pass.roots[output.root as usize].array),
                    Some(array)
                );
                worker::finish_tree(stage, &mut state, (stage.tasks.pass[index], output.root, position));
            }
        }
        drop(state);
        stage.shared.notify();
        Ok(())
    }

    fn free(&mut self, tile: TileId) -> Result<(), EngineError> {
        self.wait_until(|state| {
            let resident = state.tile(tile);
            resident.is_unused() && resident.writes == 0 && !resident.write_when_ready && resident.memory.is_some()
        })?;
        let state = self.stage.shared.lock().tiles.remove(&tile);
        drop(state);
        if self.read_backs.get(&tile) == Some(&0) {
            self.slots.remove(&tile);
        }
        Ok(())
    }

    fn is_stored(&self, tile: TileId) -> bool {
        let (array, _) = self.stage.tiles.locate(tile);
        matches!(self.stage.plan.arrays[array as usize].kind, ArrayKind::Source(_))
    }

    /// Stops the workers and waits until nothing is at work any more. Gives back `result`, or why a run that failed
    /// otherwise was given up by its caller while it was waited for.
    ///
    /// A function of the user, or an array of another library, may wait for another computation, which waits for this one to
    /// end. Once the caller has given up, those that wait are turned away for as long as that function runs; before that it
    /// may still return.
    fn wind_down(&mut self, mut result: Result<(), EngineError>) -> Result<(), EngineError> {
        let shared = self.stage.shared.clone();
        let failed = result.is_err();
        let mut given_up = matches!(result, Err(EngineError::Cancelled));
        if failed {
            shared.unwanted.store(true, Ordering::Relaxed);
        }
        let mut state = shared.lock();
        state.stopping = true;
        shared.notify();
        while state.transfers > 0 || !state.running.is_empty() {
            state = shared.wait_timeout(state, POLL);
            if !failed || state.transfers == 0 && state.in_functions == 0 {
                continue;
            }
            if given_up {
                self.stage.turn.turn_others_away();
            } else {
                drop(state);
                let report = self.measure();
                if let Err(error) = (self.progress)(&report) {
                    (given_up, result) = (true, Err(error));
                }
                state = shared.lock();
            }
        }
        if failed {
            // What was read is what a file holds, whatever became of the program.
            state
                .tiles
                .retain(|&tile, found| found.is_ready() && self.is_stored(tile));
        }
        drop(state);
        shared.notify();
        result
    }
}
