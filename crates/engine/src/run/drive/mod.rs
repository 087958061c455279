//! A placed program, and one run of it: room is made, outputs are created, played, sealed and published.
//!
//! Uses `prepare` and `play`. Start with `chain.rs`.

mod chain;
mod ladder;
mod resume;
mod running;
mod steps;
mod sweep;
mod traced;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use outcore_store::{
    clean_partials, discard_replaced, publish, Counters, Frame, Io, MemorySink, Reclaim, Reservation, Scratch, Sink,
    StoreError, Turn, GROUP_STAGING_BYTES,
};

use crate::plan::ArrayKind;
use crate::run::compute::workspace::Workspace;
use crate::run::play::player::{LeftTiles, PlayableRun, Played, Player, ThreadPlayer};
use crate::run::play::stage::{IoAccounts, Stage};
use crate::run::play::state::SharedState;
use crate::run::play::trace::{EventsRoom, TraceLevel};
use crate::run::prepare::budget::spare_bytes;
use crate::run::prepare::function_bytes;
use crate::run::prepare::program::{Output, PreparedProgram};
use crate::run::session::aside::{aside, Demand};
use crate::run::session::estimate::{estimate, Measured, Pace, PassWork};
use crate::run::session::progress::{Doing, Progress, ProgressReport};
use crate::run::session::residency::frame_bytes;
use crate::run::session::{locked, nesting};
use crate::schedule::tiles::tile_region;
use crate::EngineError;

pub use chain::Chain;
pub use resume::is_begun_for;
pub use sweep::SweepPoint;
use traced::{bound_events, keep_longest};
pub use traced::{timeline, ProgramTrace};

/// What one program was forecast to do and did: bytes read and written, and most memory reserved at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCounts {
    pub forecast: [u64; 3],
    pub counted: [u64; 3],
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
    /// Of programs that were traced, in the order in which they ran: the longest `TRACES_MAX`.
    pub traces: Vec<ProgramTrace>,
    /// One for each program, in the order in which they ran.
    pub stages: Vec<StageCounts>,
    /// One per requested output: the frame of a result in memory.
    pub results: Vec<Option<Frame>>,
}

impl Outcome {
    /// Adds what another program of the same computation did after this one.
    fn add(&mut self, later: &mut Outcome) {
        self.read_bytes += later.read_bytes;
        self.written_bytes += later.written_bytes;
        self.spilled_bytes += later.spilled_bytes;
        self.stages.extend_from_slice(&later.stages);
        self.peak_bytes = self.peak_bytes.max(later.peak_bytes);
        let before = self.seconds;
        self.traces.extend(later.traces.drain(..).map(|mut trace| {
            trace.begin_seconds += before;
            trace
        }));
        keep_longest(&mut self.traces);
        bound_events(&mut self.traces);
        self.seconds += later.seconds;
        self.read_seconds += later.read_seconds;
        self.write_seconds += later.write_seconds;
        self.compute_seconds += later.compute_seconds;
    }
}

impl PreparedProgram {
    /// Plays the program once. Outputs appear under their names when everything is complete and synced.
    ///
    /// # Errors
    /// The first error of any read, write, reservation or function, or of `progress`; nothing is left behind then.
    pub fn run(&self, level: TraceLevel, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        self.run_by(&ThreadPlayer, level, progress)
    }

    /// As `run`, by a player.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_by(
        &self,
        player: &dyn Player,
        level: TraceLevel,
        progress: Progress<'_>,
    ) -> Result<Outcome, EngineError> {
        let session = &self.session;
        session.check_usable()?;
        nesting::check_outside()?;
        let turn = session.wait_for_turn(progress)?;
        self.run_in(player, &turn, level, progress)
    }

    /// As `run`, by whoever has the turn.
    fn run_in(
        &self,
        player: &dyn Player,
        turn: &Turn,
        level: TraceLevel,
        progress: Progress<'_>,
    ) -> Result<Outcome, EngineError> {
        let session = &self.session;
        session.check_usable()?;
        let _inside = nesting::enter();
        self.plan.sources().try_for_each(|source| source.check_unchanged())?;
        self.used.iter().try_for_each(|value| value.check(true))?;
        let resident = self.take_kept()?;
        let beside = match self.make_room(&resident).and_then(|beside| {
            self.check_kept(progress)?;
            Ok(beside)
        }) {
            Ok(beside) => beside,
            Err(error) => {
                self.keep(resident);
                return Err(error);
            }
        };
        session.io.begin_run();
        let ledger = session.ledger();
        ledger.reset_peak();
        let io = session.io.scoped_with_workspaces();
        let begin = Instant::now();
        let events = (level == TraceLevel::Events).then(|| {
            let need = ledger.held() + self.peak_bytes() as usize;
            EventsRoom::within(ledger, ledger.limit().saturating_sub(need) as u64)
        });
        let (events_max, events_bytes) = events.as_ref().map_or((0, 0), |room| (room.events, room.bytes()));
        let shared = Arc::new(SharedState::new(level, events_max));
        let mut sinks = Sinks {
            all: Vec::new(),
            memory: Vec::new(),
        };
        let accounts = shared
            .is_traced()
            .then(|| IoAccounts::within(&io, self.plan.arrays.len(), self.outputs.len()));
        let playing = Playing {
            accounts: accounts.as_ref(),
            player,
            shared: &shared,
            turn,
            io: &io,
        };
        let Played { left, result } = self.play(&playing, resident, &mut sinks, &mut *progress);
        session.shrink_scratch();
        if let Err(error) = result {
            self.keep(left);
            return Err(sinks.abort(&io, error, progress));
        }
        // What was read while somebody wrote is of no time.
        if let Err(error) = self.plan.sources().try_for_each(|source| source.check_unwritten()) {
            return Err(sinks.abort(&io, error.into(), progress));
        }
        sinks.publish(&io, progress)?;
        let counters = io.counters();
        let peak_bytes = (ledger.peak() as u64).saturating_sub(beside + events_bytes);
        self.keep(left);
        let results = self.remember(&sinks);
        let played = self.counted(&shared, accounts.as_ref(), begin);
        let paces = &session.paces;
        locked(paces).add(played.seconds, || self.pace(&shared, &counters, played.seconds));
        Ok(Outcome {
            read_bytes: counters.bytes_read,
            written_bytes: counters.bytes_written,
            peak_bytes,
            stages: vec![StageCounts {
                forecast: [self.read_bytes(), self.written_bytes(), self.peak_bytes()],
                counted: [counters.bytes_read, counters.bytes_written, peak_bytes],
            }],
            results,
            ..played
        })
    }

    /// The counters of the threads that played the program, and its trace.
    fn counted(&self, shared: &SharedState, accounts: Option<&IoAccounts>, begin: Instant) -> Outcome {
        let mut state = shared.lock();
        let seconds = begin.elapsed().as_secs_f64();
        let traces = match (state.trace.take(), accounts) {
            (Some(trace), Some(accounts)) if trace.is_worth(seconds) => {
                vec![self.traced(trace, &state.done, accounts, seconds)]
            }
            _ => vec![],
        };
        Outcome {
            traces,
            spilled_bytes: state.spilled_bytes,
            seconds,
            read_seconds: state.busy.read_ns as f64 * 1e-9,
            write_seconds: state.busy.write_ns as f64 * 1e-9,
            compute_seconds: state.busy.compute_ns as f64 * 1e-9,
            ..Outcome::default()
        }
    }

    /// The pace of the program, which tells the time that others take.
    fn pace(&self, shared: &SharedState, counters: &Counters, seconds: f64) -> Pace {
        let options = &self.session.options;
        let state = shared.lock();
        let measured = Measured {
            seconds,
            transfer_ns: state.busy.read_ns + state.busy.write_ns,
            transfer_bytes: counters.bytes_read + counters.bytes_written,
            workers: options.threads.max(1),
            io_threads: options.io_threads.max(1),
        };
        estimate(&self.work(), &state.done, &[], &measured).1
    }

    /// The work of each pass.
    fn work(&self) -> Vec<PassWork> {
        PassWork::of(&self.plan, &self.placed.program)
    }

    fn play(&self, playing: &Playing<'_>, resident: LeftTiles, sinks: &mut Sinks, progress: Progress<'_>) -> Played {
        let (session, io) = (&self.session, playing.io);
        let taken = match self.take_room(io, sinks, progress) {
            Ok(taken) => taken,
            Err(error) => {
                let (left, result) = (resident, Err(error));
                return Played { left, result };
            }
        };
        let io_pools = session.io_pools();
        // Headers are written by now, and are no part of what progress is measured by.
        let before = io.counters();
        let stage = Stage {
            plan: &self.plan,
            tiles: &self.tiles,
            tasks: &self.placed.tasks,
            program: &self.placed.program,
            slabs: &self.slabs,
            sinks: &sinks.all,
            pool: &session.pool,
            io,
            accounts: playing.accounts,
            io_pools: &io_pools,
            scratch: taken.scratch.as_ref(),
            staging: Arc::new(Mutex::new(taken.staging)),
            shared: playing.shared.clone(),
            bytes_before: before.bytes_read + before.bytes_written,
            io_threads: session.options.io_threads.max(1),
            turn: playing.turn,
        };
        let run = PlayableRun {
            stage: &stage,
            workspaces: taken.workspaces,
            resident,
        };
        playing.player.play(run, progress)
    }

    /// Takes what is reserved for the whole run.
    fn take_room(&self, io: &Io, sinks: &mut Sinks, progress: Progress<'_>) -> Result<Taken, EngineError> {
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
        self.create_sinks(io, sinks, progress)?;
        let unseen = self.reserve_unseen()?;
        let scratch = if self.placed.program.totals.spilled_bytes > 0 {
            Some(session.scratch()?)
        } else {
            None
        };
        Ok(Taken {
            workspaces,
            staging,
            scratch,
            _unseen: unseen,
        })
    }

    fn create_sinks(&self, io: &Io, sinks: &mut Sinks, progress: Progress<'_>) -> Result<(), EngineError> {
        self.clean_up(progress)?;
        for output in &self.outputs {
            match output {
                Output::Memory { shape, dtype, tile } => {
                    let sink = Arc::new(MemorySink::new(shape, *dtype, tile, &self.session.pool)?);
                    sinks.all.push(sink.clone());
                    sinks.memory.push(Some(sink));
                }
                Output::File(plan) => {
                    sinks.all.push(plan.create(io)?);
                    sinks.memory.push(None);
                }
                Output::Resumed(resumable) => {
                    sinks.all.push(resumable.create(io)?);
                    sinks.memory.push(None);
                }
            }
        }
        Ok(())
    }

    /// Removes half-written outputs of killed processes, which lie beside the names they were meant for.
    fn clean_up(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        let plans = self.outputs.iter().filter_map(Output::file);
        let folders: BTreeSet<PathBuf> = plans.map(|plan| plan.directory()).collect();
        if folders.is_empty() {
            return Ok(());
        }
        let clean = move |_: &_| folders.iter().try_for_each(|folder| clean_partials(folder).map(drop));
        let mut watch = || progress(&ProgressReport::of(Doing::Cleaning));
        Ok(aside(&mut watch, clean)??)
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
    /// and the program needs. They can only shrink until the turn is over. What this session keeps beside the tiles that
    /// the program starts from leaves as far as its memory is needed. Gives the bytes in use beside the program.
    fn make_room(&self, resident: &LeftTiles) -> Result<u64, EngineError> {
        let session = &self.session;
        let ledger = session.ledger();
        let need = ledger.held() as u64 + self.peak_bytes();
        let spare = spare_bytes(&self.tiles, self.memory);
        let limit = session.claim_room(need + spare + session.kept.bytes() as u64);
        let mut beside = session.give_way(limit.saturating_sub(need + spare));
        if beside + need > limit {
            beside = session.give_way(limit.saturating_sub(need));
        }
        if beside + need > limit {
            return Err(EngineError::Stale(
                "more memory is held by results than when this program was planned; plan it again".into(),
            ));
        }
        ledger.set_limit(limit as usize);
        let start: usize = resident.iter().map(|(_, memory)| frame_bytes(memory)).sum();
        Ok(ledger.used().saturating_sub(start) as u64)
    }

    /// Takes the tiles the program starts from out of the session.
    fn take_kept(&self) -> Result<LeftTiles, EngineError> {
        let taken = self.session.kept.take_tiles(self.start.iter().map(|(_, key)| key));
        let taken = taken.ok_or_else(|| {
            EngineError::Stale("the tiles this program starts from have been dropped; plan it again".into())
        })?;
        Ok(self.start.iter().map(|&(tile, _)| tile).zip(taken).collect())
    }

    /// Refuses tiles whose files changed since: a run starts from them without looking at the files again.
    fn check_kept(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        for &(tile, _) in &self.start {
            let (array, index) = self.tiles.locate(tile);
            if let ArrayKind::Source(source) = &self.plan.arrays[array as usize].kind {
                source.check_region(&tile_region(&self.plan, array, index))?;
            }
            progress(&ProgressReport::of(Doing::Planning))?;
        }
        Ok(())
    }

    fn keep(&self, left: LeftTiles) {
        if self.session.closed.load(Ordering::SeqCst) {
            return;
        }
        self.session.kept.keep(left.into_iter().filter_map(|(tile, memory)| {
            let (array, index) = self.tiles.locate(tile);
            self.session.ledger().kept_used();
            let info = &self.plan.arrays[array as usize];
            matches!(info.kind, ArrayKind::Source(_)).then(|| (info.node.clone(), index, memory))
        }));
    }

    /// Takes the results out of the sinks, and remembers what is worth it.
    fn remember(&self, sinks: &Sinks) -> Vec<Option<Frame>> {
        let session = &self.session;
        let closed = session.closed.load(Ordering::SeqCst);
        let frames = sinks.memory.iter();
        let mut frames: Vec<Option<Frame>> = frames
            .map(|sink| sink.as_ref().and_then(|sink| sink.buffer().take()))
            .collect();
        let made = frames.split_off(self.requested);
        for (frame, worth) in made.into_iter().zip(&self.worths[self.requested..]) {
            if let (Some(frame), Some(worth), false) = (frame, worth, closed) {
                session.kept.remember(worth.clone(), frame);
            }
        }
        for (frame, worth) in frames.iter().zip(&self.worths) {
            if let (Some(frame), Some(worth), false) = (frame, worth, closed) {
                session.kept.remember_copy(worth.clone(), frame, &session.pool);
            }
        }
        frames
    }
}

/// Who plays a program, and with what.
struct Playing<'a> {
    player: &'a dyn Player,
    shared: &'a Arc<SharedState>,
    turn: &'a Turn,
    io: &'a Io,
    accounts: Option<&'a IoAccounts>,
}

/// What a run takes before it starts.
struct Taken {
    workspaces: Vec<Workspace>,
    staging: Vec<Frame>,
    scratch: Option<Scratch>,
    _unseen: Reservation,
}

/// The outputs being written.
struct Sinks {
    all: Vec<Arc<dyn Sink>>,
    memory: Vec<Option<Arc<MemorySink>>>,
}

impl Sinks {
    /// Seals outputs and gives them their names. Nobody has to wait for what they replace to be removed.
    ///
    /// # Errors
    /// What went wrong first, and nothing is published; of `progress`, and nothing is or will be unless all is already.
    fn publish(&self, io: &Io, progress: Progress<'_>) -> Result<(), EngineError> {
        let files: Vec<Arc<dyn Sink>> = self.all.iter().filter(|sink| sink.is_durable()).cloned().collect();
        if files.is_empty() {
            return Ok(());
        }
        let io = io.clone();
        let finish = move |demand: &Demand| {
            // All are durable before the first gets its name.
            let mut sealed = files
                .iter()
                .try_for_each(|sink| sink.seal(&io))
                .map_err(EngineError::from);
            if sealed.is_ok() && !demand.bind() {
                sealed = Err(EngineError::Cancelled);
            }
            let published = sealed.and_then(|()| Ok(publish(&files, &io)?));
            demand.release();
            match &published {
                Ok(()) => discard_replaced(&files),
                Err(_) => files.iter().for_each(|sink| sink.abort(&io)),
            }
            published
        };
        aside(&mut || progress(&ProgressReport::of(Doing::Finishing)), finish)?
    }

    /// Removes what is half written, and closes it: file systems may write it back before. Gives the error that it is for.
    /// A caller who was interrupted waits a moment only.
    fn abort(self, io: &Io, error: EngineError, progress: Progress<'_>) -> EngineError {
        let (io, files) = (io.clone(), self.all);
        let is_left = matches!(error, EngineError::Cancelled | EngineError::Function(_));
        let mut watch = || match is_left {
            true => Err(EngineError::Cancelled),
            false => progress(&ProgressReport::of(Doing::Finishing)),
        };
        let is_vain = error.is_of_values();
        let remove = move |_: &Demand| {
            files.into_iter().for_each(|sink| match is_vain {
                true => sink.give_up(),
                false => sink.abort(&io),
            });
        };
        let _ = aside(&mut watch, remove);
        error
    }
}
