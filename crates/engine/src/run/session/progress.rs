//! What callers are told of a run, and the threads that every run has for its transfers.

use outcore_store::IoPool;

use crate::EngineError;

/// Told how far the run is; an error stops it.
pub type Progress<'a> = &'a mut dyn FnMut(&ProgressReport) -> Result<(), EngineError>;

#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressReport {
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub tasks_done: u64,
    pub tasks_total: u64,
    /// What that is of the whole run's time, and how much is left of it.
    pub estimate: Estimate,
}

/// How far a run is by time, not by bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of the whole run's time, from 0 to 1.
    pub fraction: f64,
    /// Nothing before the first task is complete.
    pub seconds_left: Option<f64>,
}

/// Threads for reads and for writes: a write waits for the file system, and reads must not wait behind it. The kernel
/// clears memory when it is touched first, for longer than a read takes where a host has to find it, so that is not
/// left to the threads that read either.
pub struct IoPools {
    pub touches: IoPool,
    pub reads: IoPool,
    pub writes: IoPool,
}
