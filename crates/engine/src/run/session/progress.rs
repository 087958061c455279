//! What callers are told of a run, and the threads that every run has for its transfers.

use std::sync::Arc;

use outcore_store::IoPool;

use crate::run::session::estimate::{Estimate, Pace};
use crate::EngineError;

/// Told how far the run is; an error stops it.
pub type Progress<'a> = &'a mut dyn FnMut(&ProgressReport) -> Result<(), EngineError>;

#[derive(Clone, Debug, Default)]
pub struct ProgressReport {
    pub doing: Doing,
    /// Which of a computation's stages that is of; nothing where it has one.
    pub stage: Option<StageReport>,
    /// Of the program that runs.
    pub pass: Option<PassReport>,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub tasks_done: u64,
    pub tasks_total: u64,
    /// What that is of the whole run's time, and how much is left of it.
    pub estimate: Estimate,
    /// The pace of the program that runs.
    pub pace: Pace,
}

impl ProgressReport {
    /// Of work whose end nobody knows.
    pub fn of(doing: Doing) -> ProgressReport {
        ProgressReport {
            doing,
            ..ProgressReport::default()
        }
    }
}

/// The part of the work that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// For another program of the process to end.
    #[default]
    Waiting,
    Planning,
    Running,
    /// Outputs are made durable and get their names.
    Finishing,
    /// Half-written outputs of processes that were killed are removed.
    Cleaning,
}

/// A stage of a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// From 1.
    pub number: usize,
    /// As many as were planned.
    pub of: usize,
    pub label: Arc<str>,
}

/// The first pass that is not complete; others may be under way beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassReport {
    /// From 1.
    pub number: usize,
    pub of: usize,
}

/// Threads for reads and for writes: a write waits for the file system, and reads must not wait behind it. The kernel
/// clears memory when it is touched first, for longer than a read takes where a host has to find it, so that is not
/// left to the threads that read either.
pub struct IoPools {
    pub touches: IoPool,
    pub reads: IoPool,
    pub writes: IoPool,
}
