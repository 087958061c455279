//! A session: the memory limit, the disks and the tiles kept between programs.
//!
//! Uses `place` and the rooms below. Start with `Session` below.

pub mod aside;
pub mod estimate;
mod lock;
pub mod nesting;
pub mod opening;
pub mod overhead;
pub mod progress;
pub mod residency;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outcore_store::{
    hold_factor, hold_sparse, Annotations, ArrayUpdate, FactorFile, Faults, FilePart, FramePool, Held, Io, IoPool,
    Ledger, Reclaim, Resumable, Scratch, ScratchFolder, SparseFile, Turn,
};

use crate::place::Policy;
use crate::plan::PlanOptions;
use crate::run::session::estimate::Paces;
pub(in crate::run) use crate::run::session::lock::locked;
use crate::run::session::overhead::Overhead;
use crate::run::session::progress::{IoPools, Progress, ProgressReport};
use crate::run::session::residency::{KeptArray, KeptTiles};
use crate::EngineError;

/// How long a caller waits at most, for its turn or for a plan, before it looks for signals.
pub(in crate::run) const POLL: Duration = Duration::from_millis(50);

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

/// The target of a result.
#[derive(Clone, Debug)]
pub enum Target {
    Memory,
    Path {
        path: PathBuf,
        overwrite: bool,
        chunks: Option<Vec<u64>>,
        /// What an earlier run left is gone on with, and what this one leaves can be.
        resume: bool,
        /// Annotations that the output is written with, in formats that have any.
        annotations: Option<Arc<Annotations>>,
        /// The part that this is of an array which is there.
        update: Option<ArrayUpdate>,
        /// Codecs of chunks, a list in JSON as Zarr v3 has them.
        codecs: Option<Arc<str>>,
        /// The place in a file that is there which this fills.
        part: Option<FilePart>,
    },
    /// An output that is begun or gone on with.
    Resumed(Arc<Resumable>),
}

/// Invariants:
/// 1. Programs of all sessions of a process run one after the other.
/// 2. While one runs, what its ledger may grant and what the other sessions hold are together at most `room`; so is what
///    all hold afterwards, until the next one runs.
pub struct Session {
    pub(in crate::run) options: SessionOptions,
    pub(in crate::run) overhead: Overhead,
    pub(in crate::run) pool: FramePool,
    pub(in crate::run) io: Io,
    io_pools: Mutex<Option<Arc<IoPools>>>,
    scratch: Mutex<Option<Scratch>>,
    folder: Mutex<Option<Arc<ScratchFolder>>>,
    pub(in crate::run) kept: Arc<KeptTiles>,
    pub(in crate::run) closed: AtomicBool,
    pub(in crate::run) paces: Mutex<Paces>,
    /// The process that made the session.
    process: u32,
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ours() {
            // A forked child has neither the threads to join nor the right to remove its parent's scratch.
            let folder = locked(&self.folder).take();
            Box::leak(Box::new((
                locked(&self.io_pools).take(),
                locked(&self.scratch).take(),
                folder,
            )));
        }
    }
}

impl Session {
    /// # Errors
    /// A limit below what the process itself takes; a fault description that cannot be read.
    pub fn new(options: SessionOptions) -> Result<Session, EngineError> {
        let overhead = Overhead::measure(options.threads.max(1) as u64);
        let room = options.memory_limit.saturating_sub(overhead.bytes());
        let io = if options.direct_io {
            Io::direct()
        } else {
            Io::buffered()
        };
        let ledger = Ledger::new(options.pool_limit.map_or(room, |pool| pool.min(room)) as usize);
        let kept = Arc::new(KeptTiles::default());
        let as_kept: Arc<dyn Reclaim> = kept.clone();
        ledger.set_kept(Arc::downgrade(&as_kept));
        let session = Session {
            overhead,
            pool: FramePool::new(ledger.clone()),
            io,
            io_pools: Mutex::new(None),
            scratch: Mutex::new(None),
            folder: Mutex::new(None),
            kept,
            closed: AtomicBool::new(false),
            paces: Mutex::default(),
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

    /// Memory of the process that no ledger counts.
    pub fn overhead(&self) -> u64 {
        self.overhead.bytes()
    }

    /// What the sessions of the process may hold together: the memory limit less the overhead.
    pub(in crate::run) fn room(&self) -> u64 {
        self.options.memory_limit.saturating_sub(self.overhead())
    }

    /// Most bytes that the ledger can grant, with the process to itself.
    pub fn budget(&self) -> u64 {
        self.options
            .pool_limit
            .map_or(self.room(), |pool| pool.min(self.room()))
    }

    /// The limit that decides how much memory there is: of the process, or of this session's pool where that is less.
    pub fn named_limit(&self) -> u64 {
        let budget = self.budget();
        self.options
            .pool_limit
            .filter(|pool| *pool <= budget)
            .unwrap_or(self.options.memory_limit)
    }

    pub fn ledger(&self) -> &Ledger {
        self.pool.ledger()
    }

    pub fn io(&self) -> &Io {
        &self.io
    }

    /// Bytes of tiles, values and pages kept between programs, part of what the ledger has granted.
    pub fn kept_bytes(&self) -> usize {
        self.kept.bytes() + self.ledger().page_bytes()
    }

    /// Which arrays the tiles that are kept are of, and the values that are, the most bytes first.
    pub fn kept_arrays(&self) -> Vec<KeptArray> {
        self.kept.arrays()
    }

    /// Drops the tiles, values and pages kept between programs.
    pub fn clear(&self) {
        self.kept.clear();
        self.ledger().shrink_pages(0);
        self.pool.trim();
    }

    /// Drops tiles, threads and scratch; no program is planned or run afterwards. One that runs is not stopped.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if !self.is_ours() {
            return;
        }
        self.kept.clear();
        self.ledger().shrink_pages(0);
        self.pool.close();
        locked(&self.io_pools).take();
        locked(&self.scratch).take();
        locked(&self.folder).take();
    }

    pub(in crate::run) fn io_pools(&self) -> Arc<IoPools> {
        locked(&self.io_pools)
            .get_or_insert_with(|| {
                Arc::new(IoPools {
                    touches: IoPool::new(self.options.threads),
                    reads: IoPool::new(self.options.io_threads),
                    writes: IoPool::new(self.options.io_threads),
                })
            })
            .clone()
    }

    pub(in crate::run) fn scratch(&self) -> Result<Scratch, EngineError> {
        let mut scratch = locked(&self.scratch);
        if scratch.is_none() {
            *scratch = Some(Scratch::new(
                &self.options.scratch,
                self.options.scratch_quota,
                &self.io,
            )?);
        }
        let scratch = scratch.clone().expect("just made");
        scratch.measure()?;
        Ok(scratch)
    }

    /// The folder for results of stages.
    pub(in crate::run) fn folder(&self) -> Result<Arc<ScratchFolder>, EngineError> {
        self.check_ours()?;
        let mut folder = locked(&self.folder);
        if folder.is_none() {
            *folder = Some(Arc::new(ScratchFolder::make(&self.options.scratch)?));
        }
        Ok(folder.clone().expect("just made"))
    }

    /// Waits for the disk to be free of results of stages that were removed; whether anything had to be waited for.
    pub(in crate::run) fn wait_for_scratch(&self) -> bool {
        let folder = locked(&self.folder).clone();
        folder.is_some_and(|folder| folder.wait_for_removals())
    }

    /// A path for an array that is to be held in scratch.
    ///
    /// # Errors
    /// No folder can be made for it.
    pub fn unused_path(&self) -> Result<PathBuf, EngineError> {
        Ok(self.folder()?.unused())
    }

    /// The array stored at such a path, which goes away with its last reader.
    ///
    /// # Errors
    /// As for opening any file.
    pub fn hold(&self, path: &Path) -> Result<Held, EngineError> {
        Ok(Held::open(self.folder()?, path, &self.io)?)
    }

    /// A sparse matrix in a file at such a path, which goes away with its last reader.
    ///
    /// # Errors
    /// No folder can be made for scratch.
    pub fn hold_sparse(&self, file: &SparseFile) -> Result<Arc<SparseFile>, EngineError> {
        Ok(hold_sparse(self.folder()?, file))
    }

    /// As [`Session::hold_sparse`], of a factor.
    ///
    /// # Errors
    /// No folder can be made for scratch.
    pub fn hold_factor(&self, file: FactorFile) -> Result<Arc<FactorFile>, EngineError> {
        Ok(hold_factor(self.folder()?, file))
    }

    /// Empties the files of scratch after a program.
    pub(in crate::run) fn shrink_scratch(&self) {
        if let Some(scratch) = locked(&self.scratch).as_ref() {
            scratch.shrink();
        }
    }

    /// Waits until no other program runs in this process, telling `progress` so that signals are seen.
    pub(in crate::run) fn wait_for_turn(&self, progress: Progress<'_>) -> Result<Turn, EngineError> {
        let turn = Turn::queue(self.ledger());
        while !turn.has_come(POLL) {
            nesting::check_welcome(&turn)?;
            progress(&ProgressReport::default())?;
        }
        Ok(turn)
    }

    /// Threads and locks do not survive a fork.
    pub(in crate::run) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    fn check_ours(&self) -> Result<(), EngineError> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(EngineError::Session(
                "this session belongs to the parent process; make a new one after a fork".into(),
            )),
        }
    }

    pub(in crate::run) fn check_usable(&self) -> Result<(), EngineError> {
        self.check_ours()?;
        if self.closed.load(Ordering::SeqCst) {
            return Err(EngineError::Session(
                "the session is closed; arrays opened under it can be computed in another".into(),
            ));
        }
        Ok(())
    }
}
