//! The pipeline of a sweep: some threads read batches ahead, others work on them, the caller takes results in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outcore_coding::lists::Vertex;
use outcore_store::AlignedBuffer;

use super::batch::{ListBatch, WeightIndex};
use super::heading::Heading;
use super::memory::BACKLOG;
use crate::live::{Frames, Watch};
use crate::EngineError;

/// Batches that are read and not handed over, for each thread.
const AHEAD: usize = 12;
const POLL: Duration = Duration::from_millis(50);

/// Batches that a round has read for the next, by their first vertices.
pub(crate) type Ahead = HashMap<Vertex, AlignedBuffer>;

/// The memory for results of a sweep.
pub struct ResultBudget<T> {
    pub bytes: u64,
    /// Bytes of what is found at so many neighbours, at most.
    pub most: fn(u64) -> u64,
    /// Bytes of what was found.
    pub weigh: fn(&T) -> u64,
}

/// Work on a batch with a number whose lists are in a frame; gives the bytes of its result.
pub(crate) type BatchWork<'a> = dyn FnMut(usize, &ListBatch, &[u8]) -> Result<u64, EngineError> + 'a;

/// Bytes of a vector of so many vertices, at most: one that has grown is half empty.
pub(crate) fn most_bytes_of_vertices(neighbours: u64) -> u64 {
    2 * neighbours * size_of::<Vertex>() as u64
}

/// Bytes of a vector of vertices.
pub(crate) fn bytes_of_vertices(vertices: &Vec<Vertex>) -> u64 {
    (vertices.capacity() * size_of::<Vertex>()) as u64
}

/// A budget as the queue sees it, which knows no results.
#[derive(Clone, Copy)]
pub(crate) struct QueueBudget<'a> {
    pub(crate) bytes: u64,
    pub(crate) most: fn(u64) -> u64,
    pub(crate) weights: Option<WeightIndex<'a>>,
}

/// Batches in the order in which they are read.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub(crate) batches: &'a [ListBatch],
    pub(crate) heading: Heading,
}

impl<'a> Stretch<'a> {
    fn get(self, number: usize) -> Option<&'a ListBatch> {
        let place = match self.heading {
            Heading::Ascending => number,
            Heading::Descending => self.batches.len().checked_sub(number + 1)?,
        };
        self.batches.get(place)
    }

    fn at(self, number: usize) -> &'a ListBatch {
        self.get(number).expect("it was claimed")
    }
}

/// What readers, workers and the one who takes tell each other.
///
/// Invariants:
/// 1. Batches are claimed in order, so that the next to be taken is read or being read.
/// 2. `held_bytes` is that of batches that are being read, wait or are worked on; beyond one batch it is at most `memory`.
/// 3. Batches are admitted in order too, read or not, and worked on once they are. `result_bytes` is what was found, and the
///    most that can be found in the `working` ones, which are admitted and not done; beyond one batch there is room for it.
///    `full` is set once no further one has room, and none is working.
pub(crate) struct SweepQueue<'a> {
    state: Mutex<QueueState>,
    /// Readers wait for room, workers for what is read, the one who takes for what is next. Readers wait for the same batch:
    /// one is woken, and wakes another if it finds room.
    has_room: Condvar,
    is_read: Condvar,
    is_done: Condvar,
    memory: u64,
    backlog: usize,
    ahead: usize,
    budget: Option<QueueBudget<'a>>,
}

struct QueueState {
    next: usize,
    held_bytes: u64,
    admitted: usize,
    working: usize,
    result_bytes: u64,
    full: bool,
    /// Whether a worker waits for room.
    is_short: bool,
    ahead: Ahead,
    read: BTreeMap<usize, AlignedBuffer>,
    /// Batches whose results are there.
    done: BTreeSet<usize>,
    taken: usize,
    stopped: bool,
    error: Option<EngineError>,
}

/// Stops the others when its thread panics.
struct Leaving<'a>(&'a SweepQueue<'a>, bool);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0
                .stop(Some(EngineError::Internal("a thread of a sweep panicked".into())));
        }
    }
}

impl SweepQueue<'_> {
    pub(crate) fn new<'a>(
        memory: u64,
        threads: usize,
        budget: Option<QueueBudget<'a>>,
        ahead: Ahead,
    ) -> SweepQueue<'a> {
        SweepQueue {
            state: Mutex::new(QueueState {
                next: 0,
                held_bytes: 0,
                admitted: 0,
                working: 0,
                result_bytes: 0,
                full: false,
                is_short: false,
                ahead,
                read: BTreeMap::new(),
                done: BTreeSet::new(),
                taken: 0,
                stopped: false,
                error: None,
            }),
            has_room: Condvar::new(),
            is_read: Condvar::new(),
            is_done: Condvar::new(),
            memory,
            backlog: threads.max(1) * BACKLOG,
            ahead: threads.max(1) * AHEAD,
            budget,
        }
    }

    pub(crate) fn run(&self, thread: &mut dyn FnMut() -> Result<(), EngineError>) {
        let mut leaving = Leaving(self, false);
        let ended = thread();
        leaving.1 = true;
        if let Err(error) = ended {
            self.stop(Some(error));
        }
    }

    /// Reads batches until all are read.
    pub(crate) fn read(
        &self,
        stretch: Stretch<'_>,
        read: &dyn Fn(&ListBatch) -> Result<AlignedBuffer, EngineError>,
    ) -> Result<(), EngineError> {
        while let Some((number, ahead)) = self.claim(stretch) {
            let batch = stretch.at(number);
            let frame = ahead.map_or_else(|| read(batch), Ok)?;
            self.lock().read.insert(number, frame);
            self.is_read.notify_one();
        }
        Ok(())
    }

    /// The next batch to be read, and what it holds if that is known.
    fn claim(&self, stretch: Stretch<'_>) -> Option<(usize, Option<AlignedBuffer>)> {
        let mut state = self.lock();
        loop {
            let is_over = state.stopped || state.full;
            let batch = stretch.get(state.next).filter(|_| !is_over)?;
            let fits = state.held_bytes == 0 || state.held_bytes + batch.bytes() <= self.memory;
            if fits && state.next < state.taken + self.ahead {
                state.held_bytes += batch.bytes();
                state.next += 1;
                self.has_room.notify_one();
                let ahead = state.ahead.remove(&batch.vertices.start);
                return Some((state.next - 1, ahead));
            }
            state = self.has_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The most that can be found in a batch.
    fn most(&self, batch: &ListBatch) -> u64 {
        self.budget
            .map_or(0, |budget| (budget.most)(batch.most_neighbours(budget.weights)))
    }

    /// The first batch that has been read, if there is room for what is found in it and in those before.
    fn admit(&self, state: &mut QueueState, stretch: Stretch<'_>) -> Option<(usize, AlignedBuffer)> {
        let first = *state.read.first_key_value()?.0;
        if first >= state.taken + self.backlog {
            return None;
        }
        while state.admitted <= first {
            let most = self.most(stretch.at(state.admitted));
            let has_room = self
                .budget
                .is_none_or(|budget| state.result_bytes + most <= budget.bytes);
            if state.full || state.admitted > 0 && !has_room {
                state.is_short = true;
                if state.working == 0 && !state.full {
                    state.full = true;
                    self.has_room.notify_all();
                    self.is_done.notify_all();
                }
                return None;
            }
            state.admitted += 1;
            state.working += 1;
            state.result_bytes += most;
        }
        state.read.pop_first()
    }

    /// Works on batches until none is left.
    pub(crate) fn work(
        &self,
        stretch: Stretch<'_>,
        frames: &Frames,
        work: &mut BatchWork<'_>,
    ) -> Result<(), EngineError> {
        loop {
            let mut state = self.lock();
            let (number, frame) = loop {
                if state.stopped {
                    return Ok(());
                }
                if let Some(admitted) = self.admit(&mut state, stretch) {
                    break admitted;
                }
                state = self.is_read.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            let batch = stretch.at(number);
            let bytes = work(number, batch, &frame)?;
            frames.give(frame);
            let mut state = self.lock();
            state.done.insert(number);
            state.held_bytes -= batch.bytes();
            state.result_bytes = state.result_bytes - self.most(batch) + bytes;
            state.working -= 1;
            if number == state.taken {
                self.is_done.notify_one();
            }
            if std::mem::take(&mut state.is_short) {
                self.is_read.notify_one();
            }
            drop(state);
            self.has_room.notify_one();
        }
    }

    /// Hands all over by their numbers, in order, or as many as there was room for.
    pub(crate) fn take(
        &self,
        batches: usize,
        take: &mut dyn FnMut(usize) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        for number in 0..batches {
            loop {
                let mut state = self.lock();
                if state.stopped || state.full && number == state.admitted {
                    return Ok(());
                }
                if state.done.remove(&number) {
                    state.taken += 1;
                    break;
                }
                let waited = self.is_done.wait_timeout(state, POLL);
                let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                drop(state);
                if timeout.timed_out() {
                    watch()?;
                }
            }
            self.has_room.notify_one();
            self.is_read.notify_one();
            take(number)?;
            watch()?;
        }
        Ok(())
    }

    /// Ends all threads; the first error is kept.
    pub(crate) fn stop(&self, error: Option<EngineError>) {
        let mut state = self.lock();
        state.stopped = true;
        if state.error.is_none() {
            state.error = error;
        }
        drop(state);
        for waiting in [&self.has_room, &self.is_read, &self.is_done] {
            waiting.notify_all();
        }
    }

    /// How many were handed over, and what has been read of others.
    pub(crate) fn outcome(self, stretch: Stretch<'_>) -> Result<(usize, Ahead), EngineError> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        let rest = state.read.into_iter();
        let rest = rest.map(|(number, frame)| (stretch.at(number).vertices.start, frame));
        state.ahead.extend(rest);
        Ok((state.taken, state.ahead))
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
