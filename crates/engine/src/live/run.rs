//! A run of live work: it reserves, refuses, counts and gives back.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outcore_store::{return_freed_memory, Io, Reservation};

use super::activity::Activity;
use super::memory::{grown, is_spared, shares, CacheShare, LiveMemory, LiveShares, CACHE_LEAST};
use super::operator::{IoBound, LiveOperator};
use super::resources::{Frames, Resources, Watch, PORTION_PAGES};
use crate::run::Session;
use crate::EngineError;

/// Less memory than this stays with the allocator.
const FREED_LEAST: u64 = 1 << 20;

/// A run in a session, of one operator or of some that follow each other.
///
/// Invariant: its counters are its own reads, whatever else the session reads meanwhile; reads by way of a page cache that two
/// runs use at a time count for both.
pub struct LiveRun {
    session: Arc<Session>,
    io: Io,
    /// Bytes that page caches of the session read for the run.
    cached_bytes: Arc<AtomicU64>,
    activity: Activity,
    reserved_bytes: AtomicU64,
    held: Mutex<HeldMemory>,
}

/// Memory that a run holds until it is released.
#[derive(Default)]
struct HeldMemory {
    states: Vec<Reservation>,
    /// For vertices and messages of an iteration, and the bytes that were asked for.
    meanwhile: Vec<Reservation>,
    meanwhile_bytes: u64,
}

/// The memory that a run of an operator would begin with, and its bound of I/O.
#[derive(Clone, Debug)]
pub struct LiveForecast {
    pub shares: LiveShares,
    /// Bytes that the session could reserve.
    pub spare: u64,
    pub bound: IoBound,
    /// Bytes that are read, where that is known exactly.
    pub exact: Option<u64>,
}

/// The forecast of an operator in a session. No I/O.
pub fn forecast<O: LiveOperator + ?Sized>(session: &Session, operator: &O) -> LiveForecast {
    let memory = operator.memory(session.options().threads);
    let spare = session.spare();
    let shares = shares(&memory, spare, pages_bytes(operator));
    let bound = operator.bound();
    let is_cold = operator.paged().is_some_and(|paged| !paged.pages().is_read_in(session));
    // With the tables of the cache.
    let has_room = shares.cache >= bound.once / 8 * 9 + CACHE_LEAST && shares.reserved() <= spare;
    LiveForecast {
        exact: bound.cold.filter(|_| is_cold && has_room),
        shares,
        spare,
        bound,
    }
}

fn pages_bytes<O: LiveOperator + ?Sized>(operator: &O) -> u64 {
    operator.paged().map_or(0, |paged| paged.pages_bytes())
}

impl LiveRun {
    pub fn new(session: Arc<Session>) -> LiveRun {
        LiveRun {
            io: session.io().scoped(),
            session,
            cached_bytes: Arc::default(),
            activity: Activity::default(),
            reserved_bytes: AtomicU64::new(0),
            held: Mutex::default(),
        }
    }

    /// A run within another one, which counts its reads too.
    pub fn within(outer: &LiveRun) -> LiveRun {
        LiveRun {
            io: outer.io.clone(),
            cached_bytes: outer.cached_bytes.clone(),
            ..LiveRun::new(outer.session.clone())
        }
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The iterations so far.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Bytes that were read for it.
    pub fn bytes_read(&self) -> u64 {
        self.io.counters().bytes_read + self.cached_bytes.load(Relaxed)
    }

    /// The most that it has reserved at a time for an operator.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Relaxed)
    }

    /// Runs an operator in memory of the session.
    ///
    /// # Errors
    /// The session has less than it needs; the errors of the operator; the error of `watch`.
    pub fn work<O: LiveOperator + ?Sized>(
        &self,
        operator: &O,
        watch: &mut Watch<'_>,
    ) -> Result<O::Output, EngineError> {
        let memory = operator.memory(self.session.options().threads);
        let output = self.once(operator, &memory, watch)?;
        if operator.is_enough(&output) {
            return Ok(output);
        }
        // Where the session has too little for all of it, the refusal says how much it needs.
        let whole = LiveMemory { frugal: None, ..memory };
        self.once(operator, &whole, watch)
    }

    fn once<O: LiveOperator + ?Sized>(
        &self,
        operator: &O,
        memory: &LiveMemory,
        watch: &mut Watch<'_>,
    ) -> Result<O::Output, EngineError> {
        let session = &self.session;
        let shared = || shares(memory, session.spare(), pages_bytes(operator));
        let (name, is_turn) = (operator.name(), memory.cache != CacheShare::Beside);
        let mut aside = is_turn.then(|| session.set_aside(name, 0)).transpose()?;
        if let Some(aside) = &mut aside {
            aside.wait_for_turn(shared().reserved(), watch)?;
        }
        // Others have given back what they held by the time of the turn.
        let shares = shared();
        let bytes = shares.reserved();
        if let Some(aside) = &mut aside {
            aside.grow(bytes)?;
        }
        let in_turn = Mutex::new(aside);
        let beside = Mutex::new((!is_turn).then(|| session.hold_beside(name, bytes)).transpose()?);
        let grow = |more: u64| match &mut *locked(&in_turn) {
            Some(held) => held.grow(more),
            None => session
                .hold_beside(name, more)
                .map(|more| locked(&beside).get_or_insert_default().extend(more)),
        };
        self.reserved_bytes.fetch_max(bytes, Relaxed);
        let paged = operator.paged().filter(|_| memory.cache != CacheShare::Nothing);
        let cache = paged.and_then(|paged| paged.by_cache(session, shares.cache, memory.cache));
        let counters = || cache.as_ref().map(|file| file.cache().counters()).unwrap_or_default();
        let (before, frames) = (counters(), Frames::default());
        let resources = Resources {
            known: shares.known,
            memory: shares.reading,
            portion_pages: PORTION_PAGES,
            threads: session.options().threads,
            io_threads: session.options().io_threads,
            io: &self.io,
            frames: &frames,
            cache: cache.as_deref(),
            activity: &self.activity,
            memory_limit: session.named_limit(),
            grow: &grow,
            scratch: &|| session.unused_path(),
        };
        let output = operator.run(&resources, watch);
        let after = counters();
        let read_bytes = after.bytes_read - before.bytes_read;
        self.cached_bytes.fetch_add(read_bytes, Relaxed);
        match is_turn {
            true => self.activity.end(cache.as_deref()),
            false => self.activity.read_by_cache(read_bytes, after.hits - before.hits),
        }
        // Messages and partial results are nobody's now, and others count on their memory.
        if operator.freed_bytes() > FREED_LEAST {
            return_freed_memory();
        }
        output
    }

    fn held(&self) -> MutexGuard<'_, HeldMemory> {
        locked(&self.held)
    }

    /// Has memory for states of vertices until it is released: computations run in the rest.
    ///
    /// # Errors
    /// There is not so much.
    pub fn hold(&self, operator: &'static str, bytes: u64) -> Result<(), EngineError> {
        let more = self.session.hold_beside(operator, bytes)?;
        self.held().states.extend(more);
        Ok(())
    }

    /// The same for memory that only saves time: whether there is enough, and it is little beside the rest.
    pub fn hold_spared(&self, operator: &'static str, bytes: u64) -> bool {
        is_spared(bytes, self.session.spare()) && self.hold(operator, bytes).is_ok()
    }

    /// Has memory for vertices and messages of an iteration, if it is more than was held for them before, in place of that.
    ///
    /// # Errors
    /// There is not so much.
    pub fn hold_meanwhile(&self, need: u64) -> Result<(), EngineError> {
        let mut held = self.held();
        if need <= held.meanwhile_bytes {
            return Ok(());
        }
        held.meanwhile.clear();
        held.meanwhile_bytes = grown(need);
        let bytes = held.meanwhile_bytes;
        held.meanwhile = self.session.hold_beside("graph: vertices and messages", bytes)?;
        Ok(())
    }

    /// Gives all of that back.
    pub fn release(&self) {
        *self.held() = HeldMemory::default();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
