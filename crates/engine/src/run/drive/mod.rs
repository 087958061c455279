//! A placed program, and one run of it: room is made, outputs are created, played, sealed and published.

mod chain;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outcore_store::{Frame, MemorySink, Reservation, Sink, StoreError, Turn, GROUP_STAGING_BYTES};

use crate::place::slabs::Slab;
use crate::place::Placed;
use crate::plan::{ArrayKind, Plan};
use crate::run::compute::value::TileMemory;
use crate::run::compute::workspace::Workspace;
use crate::run::play::player::{play, Progress, ProgressReport, Stage};
use crate::run::play::state::{Event, Shared};
use crate::run::prepare::budget::spare_bytes;
use crate::run::prepare::planning::ReturnFreed;
use crate::run::prepare::{function_bytes, Output};
use crate::run::session::nesting;
use crate::run::session::{locked, KeptKey, Session};
use crate::schedule::tiles::tile_region;
use crate::schedule::{TileId, TileTable};
use crate::EngineError;

pub use chain::Chain;

/// A placed program with its outputs checked: what `explain` prints and `run` plays.
pub struct Program {
    pub session: Arc<Session>,
    pub plan: Plan,
    pub tiles: TileTable,
    pub placed: Placed,
    pub slabs: Vec<Vec<Slab>>,
    pub fixed_bytes: u64,
    /// The part of them that buffers of encoded I/O and the program itself take.
    pub(in crate::run) unseen_bytes: u64,
    /// What tiles and partial results may take.
    pub memory: u64,
    /// Bytes of headers and metadata the outputs write.
    pub metadata_bytes: u64,
    pub plan_seconds: f64,
    pub(in crate::run) outputs: Vec<Output>,
    pub(in crate::run) start: Vec<(TileId, KeptKey)>,
    /// Dropped after the rest.
    pub(in crate::run) _freed: ReturnFreed,
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

impl Outcome {
    /// Adds what another program of the same computation did after this one.
    fn add(&mut self, later: &Outcome) {
        self.read_bytes += later.read_bytes;
        self.written_bytes += later.written_bytes;
        self.spilled_bytes += later.spilled_bytes;
        self.peak_bytes = self.peak_bytes.max(later.peak_bytes);
        let before = Duration::from_secs_f64(self.seconds);
        self.events.extend(later.events.iter().cloned().map(|mut event| {
            event.start += before;
            event
        }));
        self.seconds += later.seconds;
        self.read_seconds += later.read_seconds;
        self.write_seconds += later.write_seconds;
        self.compute_seconds += later.compute_seconds;
    }
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
        nesting::check_outside()?;
        let turn = session.wait_for_turn(progress)?;
        self.run_in(&turn, tracing, progress)
    }

    /// As `run`, by whoever has the turn.
    fn run_in(&self, turn: &Turn, tracing: bool, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        let session = &self.session;
        session.check_usable()?;
        let _inside = nesting::enter();
        self.plan.sources().try_for_each(|source| source.check_unchanged())?;
        self.make_room()?;
        session.io.begin_run();
        let resident = self.take_kept()?;
        self.check_kept(progress)?;
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
        let result = self.play(&shared, resident, turn, &mut sinks, progress);
        session.shrink_scratch();
        let left = match result {
            Ok(left) => left,
            Err(error) => {
                sinks.abort();
                return Err(error);
            }
        };
        // What was read while somebody wrote is of no time. All outputs are durable before the first gets its name.
        let unwritten = self.plan.sources().try_for_each(|source| source.check_unwritten());
        let sealed = unwritten.and_then(|()| sinks.all.iter().try_for_each(|sink| sink.seal(&session.io)));
        let finished = sealed.and_then(|()| outcore_store::publish(&sinks.all, &session.io));
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
            spilled_bytes: state.spilled_bytes,
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
        turn: &Turn,
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
        // Headers are written by now, and are no part of what progress is measured by.
        let before = session.io.counters();
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
            bytes_before: before.bytes_read + before.bytes_written,
            io_threads: session.options.io_threads.max(1),
            turn,
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
        let bytes = self.unseen_bytes + options.threads.max(1) as u64 * functions;
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
        let (limit, _) = session.claim_room(wish);
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

    /// Refuses tiles whose files changed since: a run starts from them without looking at the files again.
    fn check_kept(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        for &(tile, _) in &self.start {
            let (array, index) = self.tiles.locate(tile);
            if let ArrayKind::Source(source) = &self.plan.arrays[array as usize].kind {
                source.check_region(&tile_region(&self.plan, array, index))?;
            }
            progress(&ProgressReport::default())?;
        }
        Ok(())
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
