//! What the issuer, the workers and the I/O threads share while a program is played.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use outcore_store::Frame;

use crate::run::compute::tree::Tree;
use crate::run::compute::value::TileMemory;
use crate::run::play::trace::{Subject, Trace, TraceLevel, WorkKind, WorkMark};
use crate::run::session::estimate::PassDone;
use crate::schedule::TileId;
use crate::EngineError;

/// One resident tile.
#[derive(Default)]
pub struct TileState {
    /// The bytes; absent while a task or a read holds them.
    pub memory: Option<Arc<TileMemory>>,
    /// The bytes have been there: they were read, or the first task to write them has the frame.
    pub arrived: bool,
    /// Issued tasks, not yet complete, that read or write it, in program order.
    queue: VecDeque<User>,
    /// Users at the front of the queue that need not wait for others: readers, or one that writes.
    open: usize,
    /// Writes to outputs or scratch not yet complete.
    pub writes: u32,
    /// Write it to its outputs when ready.
    pub write_when_ready: bool,
    /// The accumulator has been started.
    pub started: bool,
}

/// A task that uses a tile.
#[derive(Clone, Copy)]
struct User {
    task: u32,
    writes: bool,
}

impl TileState {
    pub fn resident(memory: TileMemory) -> TileState {
        TileState::shared(Arc::new(memory))
    }

    pub fn shared(memory: Arc<TileMemory>) -> TileState {
        TileState {
            memory: Some(memory),
            arrived: true,
            ..TileState::default()
        }
    }

    /// No task at work or waiting uses it.
    pub fn is_unused(&self) -> bool {
        self.queue.is_empty()
    }

    /// Complete as far as the program has been issued.
    pub fn is_ready(&self) -> bool {
        self.arrived && !self.queue.iter().any(|user| user.writes)
    }

    /// Puts a task into the queue. True when it has to wait: for the bytes, or for those before it. What writes waits
    /// for all of them, what reads for those that write, so accesses take effect in program order.
    pub fn enter(&mut self, task: u32, writes: bool) -> bool {
        let free = match self.queue.len() {
            0 => true,
            users => !writes && self.open == users && !self.queue[0].writes,
        };
        let waits = !(self.arrived && free);
        self.queue.push_back(User { task, writes });
        self.open += usize::from(!waits);
        waits
    }

    /// Takes a task that is done out of the queue. Gives those that wait no more.
    fn leave(&mut self, task: u32) -> Vec<u32> {
        let at = self.queue.iter().take(self.open).position(|user| user.task == task);
        self.queue.remove(at.expect("tasks at work are at the front"));
        self.open -= 1;
        self.open_front()
    }

    fn open_front(&mut self) -> Vec<u32> {
        if self.open > 0 || !self.arrived {
            return vec![];
        }
        let readers = self.queue.iter().take_while(|user| !user.writes).count();
        self.open = readers.max(1).min(self.queue.len());
        self.queue.iter().take(self.open).map(|user| user.task).collect()
    }

    /// The task at the head of the queue.
    fn first(&self) -> Option<u32> {
        self.queue.front().map(|user| user.task)
    }
}

/// The error for a thread that panicked, which would be a bug of ours.
pub fn stopped(who: &str, panic: Box<dyn std::any::Any + Send>) -> EngineError {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    EngineError::Internal(format!(
        "{who} stopped: {}",
        text.unwrap_or_else(|| "unknown cause".into())
    ))
}

/// Busy time of one kind of work, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    pub read_ns: u64,
    pub write_ns: u64,
    pub compute_ns: u64,
}

pub type TreeKey = (u32, u32, u64);

/// A task that a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTask {
    pub pass: u32,
    pub begin: Instant,
}

#[derive(Default)]
pub struct RunState {
    pub tiles: HashMap<TileId, TileState>,
    /// Operands that issued tasks still wait for.
    pub missing: HashMap<u32, usize>,
    /// Tasks whose operands are all there, lowest number first.
    pub ready: BTreeSet<u32>,
    /// Every task below this number is complete.
    pub completed_below: u32,
    pub completed_above: HashSet<u32>,
    /// Issued tasks per pass that are not complete.
    pub open_tasks: HashMap<u32, u32>,
    pub trees: HashMap<TreeKey, Tree<Frame>>,
    /// Results whose tree is complete before their tile was issued.
    pub finished_trees: HashMap<TreeKey, Frame>,
    /// Workspaces of issued tasks of algorithms.
    pub workspaces: HashMap<u32, Frame>,
    /// Free partial results, by pass and root.
    pub slabs: HashMap<(u32, u32), Vec<Frame>>,
    /// Writes and reads under way, for a clean stop.
    pub transfers: u32,
    pub running: Vec<RunningTask>,
    /// Those at work that call functions of the user, which may wait for anything.
    pub in_functions: u32,
    /// By pass.
    pub done: Vec<PassDone>,
    pub error: Option<EngineError>,
    pub stopping: bool,
    pub busy: Busy,
    pub spilled_bytes: u64,
    pub tasks_done: u64,
    /// Where the run is traced.
    pub trace: Option<Box<Trace>>,
}

impl RunState {
    pub fn fail(&mut self, error: EngineError) {
        // The first error is the one to tell.
        if self.error.is_none() {
            self.error = Some(error);
        }
        self.stopping = true;
    }

    pub fn tile(&mut self, tile: TileId) -> &mut TileState {
        self.tiles
            .get_mut(&tile)
            .expect("the program keeps used tiles resident")
    }

    /// One operand of a task has arrived.
    pub fn count_down(&mut self, task: u32) {
        let missing = self.missing.get_mut(&task).expect("issued tasks are known");
        *missing -= 1;
        if *missing == 0 {
            self.missing.remove(&task);
            self.ready.insert(task);
        }
    }

    /// The bytes of a tile were read: those at the front of its queue may go on.
    pub fn arrive(&mut self, tile: TileId, memory: TileMemory) {
        let state = self.tile(tile);
        state.memory = Some(Arc::new(memory));
        state.started = true;
        state.arrived = true;
        let next = state.open_front();
        next.into_iter().for_each(|task| self.count_down(task));
    }

    /// A task is done with a tile.
    pub fn leave(&mut self, tile: TileId, task: u32) {
        let next = self.tile(tile).leave(task);
        next.into_iter().for_each(|task| self.count_down(task));
    }

    /// A tree's tile is filled: the task that stands for the tree leaves its queue.
    pub fn leave_first(&mut self, tile: TileId) {
        let first = self.tile(tile).first();
        self.leave(tile, first.expect("the closing task stands for the tree"));
    }

    /// Work begins, where the run is traced.
    pub fn begin(&mut self, kind: WorkKind, at: Instant) -> Option<WorkMark> {
        self.trace.as_mut().map(|trace| trace.begin(kind, at))
    }

    /// Work ends that has begun: of a producer, or on an array.
    pub fn end(&mut self, begun: Option<WorkMark>, subject: Subject, at: Instant) {
        if let (Some(trace), Some(begun)) = (&mut self.trace, begun) {
            trace.end(begun, subject, at);
        }
    }

    pub fn is_complete(&self, task: u32) -> bool {
        task < self.completed_below || self.completed_above.contains(&task)
    }

    pub fn mark_complete(&mut self, task: u32) {
        self.tasks_done += 1;
        self.completed_above.insert(task);
        while self.completed_above.remove(&self.completed_below) {
            self.completed_below += 1;
        }
    }
}

/// The state and its one condition: any change wakes everybody who waits.
pub struct SharedState {
    state: Mutex<RunState>,
    changed: Condvar,
    pub start: Instant,
    is_traced: bool,
    /// Set where the run has failed or is given up: tasks that look end early.
    pub unwanted: Arc<AtomicBool>,
}

impl SharedState {
    /// State of a program of which so many events are kept, where the level has any.
    pub fn new(level: TraceLevel, events_max: usize) -> SharedState {
        let start = Instant::now();
        let state = RunState {
            trace: Trace::new(level, start, events_max),
            ..RunState::default()
        };
        SharedState {
            is_traced: state.trace.is_some(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            start,
            unwanted: Arc::default(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn notify(&self) {
        self.changed.notify_all();
    }

    pub fn wait<'a>(&self, guard: MutexGuard<'a, RunState>) -> MutexGuard<'a, RunState> {
        self.changed
            .wait(guard)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn wait_timeout<'a>(&self, guard: MutexGuard<'a, RunState>, timeout: Duration) -> MutexGuard<'a, RunState> {
        self.changed
            .wait_timeout(guard, timeout)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0
    }

    pub fn is_traced(&self) -> bool {
        self.is_traced
    }

    /// Work begins, where the run is traced.
    pub fn begin(&self, kind: WorkKind) -> Option<WorkMark> {
        match self.is_traced {
            true => self.lock().begin(kind, Instant::now()),
            false => None,
        }
    }

    /// Work on an array ends that has begun.
    pub fn end(&self, begun: Option<WorkMark>, subject: Subject) {
        if begun.is_some() {
            self.lock().end(begun, subject, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug_of_ours_and_says_so() {
        let panic = std::panic::catch_unwind(|| panic!("outputs are given back")).unwrap_err();
        let error = stopped("a worker", panic);
        assert_eq!(error.code(), "internal");
        let text = error.to_string();
        assert!(text.starts_with("a worker stopped: outputs are given back"), "{text}");
        assert!(text.contains("bug in outcore"), "{text}");
    }
}
