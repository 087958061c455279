//! Reading lists and working on them: read ahead by some threads, worked on by others, handed over in order by the caller.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outcore_dtype::DType;
use outcore_graph::{decode, Malformed, Vertex};
use outcore_kernels::cast_kernel;
use outcore_store::cache::CachedFile;
use outcore_store::{AlignedBuffer, Direction, GraphFile, Io, Part, StoreError, PAGE};

use super::activity::Activity;
use super::batch::{batches, spans, Batch, Chosen, WeightIndex, BATCH_VERTICES};
use crate::EngineError;

/// Watches for what ends the work early.
pub type Watch<'a> = dyn FnMut() -> Result<(), EngineError> + 'a;

/// What the work is done with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Bytes that are held for what is read and what is sent.
    pub memory: u64,
    pub threads: usize,
    /// Threads that read long runs; short ones are read by more.
    pub io_threads: usize,
    pub io: &'a Io,
    pub frames: &'a Frames,
    /// What short runs are read by way of: whoever asks for few lists asks for others of their pages soon.
    pub cache: Option<&'a CachedFile>,
    /// What is told of iterations.
    pub activity: &'a Activity,
}

impl Means<'_> {
    /// An iteration begins with so many active vertices.
    pub(super) fn iteration(&self, active: u64) {
        self.activity.begin(active, self.cache);
    }
}

/// Memory that was read into and waits for the next batch: fresh pages cost more than reading does.
#[derive(Default)]
pub struct Frames(Mutex<Vec<AlignedBuffer>>);

impl Frames {
    fn take(&self, wanted: &Wanted<'_>, bytes: u64) -> Result<AlignedBuffer, EngineError> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = spare.iter().position(|frame| frame.len() as u64 >= bytes);
        if let Some(place) = fits {
            return Ok(spare.swap_remove(place));
        }
        drop(spare);
        // Usual batches are alike, so that each frame serves any of them.
        AlignedBuffer::new(bytes.max(FRAME_BYTES) as usize).map_err(|cause| {
            EngineError::Store(StoreError::Io {
                path: wanted.file.path().to_path_buf(),
                offset: 0,
                action: "map memory",
                cause: cause.into(),
            })
        })
    }

    /// Keeps the frame; the memory of a large one is given back.
    fn give(&self, frame: AlignedBuffer) {
        if frame.len() as u64 <= FRAME_BYTES {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
        }
    }
}

/// Lists that are read and worked on together: some hundred of them keep every thread busy.
const BATCH_PAGES: u64 = 256;
/// Bytes of a frame: a batch ends with the list that fills it.
const FRAME_BYTES: u64 = (BATCH_PAGES + BATCH_PAGES / 16) * PAGE as u64;
/// Threads that wait for short reads.
const SHORT_READERS: usize = 16;
/// Batches that are worked on and not handed over, for each thread.
const BACKLOG: usize = 4;
const POLL: Duration = Duration::from_millis(50);

/// The least memory that a sweep does with, where each neighbour is sent a message of so many bytes.
pub fn least_memory(file: &GraphFile, message_bytes: u64) -> u64 {
    let weight = file.shape().weights.map_or(0, |dtype| dtype.size() as u64);
    let largest = largest_list(file);
    // A neighbour takes a byte of a list at least: it is read, decoded and told, with its weight.
    let neighbour = 4 + weight + 8 * u64::from(weight > 0) + 2 * (4 + message_bytes.next_multiple_of(4));
    // What is found at a vertex is sixteen bytes at most, in lists that have grown.
    let waiting = BACKLOG as u64 * 32 * file.shape().vertices.min(u64::from(BATCH_VERTICES));
    let batch = BATCH_PAGES * PAGE as u64;
    4 * batch + 2 * neighbour * batch.max(largest) + waiting
}

const BATCH_BYTES: u64 = BATCH_PAGES * PAGE as u64;
/// Threads that look at lists that are handed over: one who takes them does not keep pace with more.
const PARTS_THREADS: usize = 4;

/// Bytes of lists that may be read before the first of them is taken: where one is larger than a batch, those that wait are
/// weighed, else it is enough to count them.
pub(super) fn parts_round(file: &GraphFile) -> u64 {
    match largest_list(file) > BATCH_BYTES {
        true => BACKLOG as u64 * BATCH_BYTES,
        false => u64::MAX,
    }
}

/// What lists take that are handed over part by part, and the means for it.
pub fn for_parts<'a>(file: &GraphFile, means: Means<'a>) -> (u64, Means<'a>) {
    let largest = largest_list(file);
    let weight = file.shape().weights.map_or(0, |dtype| dtype.size() as u64);
    // A neighbour takes a byte of a list at least; it is decoded with its weight, in what has grown.
    let neighbour = 4 + 8 * u64::from(weight > 0);
    let threads = means.threads.clamp(1, PARTS_THREADS);
    let frames = 4 * BATCH_BYTES + (1 + weight) * largest;
    let waiting = ((threads * BACKLOG + 2) as u64 * BATCH_BYTES).max(2 * largest);
    let means = Means {
        memory: 4 * BATCH_BYTES,
        threads,
        ..means
    };
    (frames + neighbour * waiting, means)
}

fn largest_list(file: &GraphFile) -> u64 {
    let of = |direction| {
        let large = file.section(direction).index.large();
        large.map(|(_, bytes)| bytes).max().unwrap_or(0)
    };
    of(Direction::Out).max(of(Direction::In))
}

/// Which lists a sweep reads.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub file: &'a GraphFile,
    pub direction: Direction,
    pub chosen: Chosen<'a>,
    pub weights: Option<WeightIndex<'a>>,
}

/// What a thread needs to look at lists.
#[derive(Default)]
pub struct Scratch {
    neighbours: Vec<Vertex>,
    weights: Vec<f64>,
}

/// A vertex and its neighbours.
pub struct List<'a> {
    pub vertex: Vertex,
    /// Ascending.
    pub neighbours: &'a [Vertex],
    /// One for each, where the sweep reads them.
    pub weights: &'a [f64],
}

/// The lists of a batch that has been read.
pub struct Lists<'a> {
    wanted: &'a Wanted<'a>,
    batch: &'a Batch,
    frame: &'a [u8],
}

impl Lists<'_> {
    /// The vertices of the batch; those of all batches follow on each other.
    pub fn vertices(&self) -> Range<Vertex> {
        self.batch.vertices.clone()
    }

    /// Calls `each` with every list, by ascending vertices. Those without neighbours are left out.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn each(&self, scratch: &mut Scratch, mut each: impl FnMut(&List<'_>)) -> Result<(), EngineError> {
        let Lists { wanted, batch, frame } = self;
        let section = wanted.file.section(wanted.direction);
        let (lists, weights) = frame.split_at(batch.lists.pages as usize * PAGE);
        let (vertices, dtype) = (wanted.file.shape().vertices, wanted.file.shape().weights);
        let (mut run, mut weight_run) = (0, 0);
        let mut found = Ok(());
        spans(section, wanted.chosen, batch.vertices.clone(), |vertex, span| {
            if found.is_err() {
                return;
            }
            let bytes = &lists[batch.lists.place(span, &mut run)];
            found = decode(vertex, bytes, vertices, &mut scratch.neighbours);
            if found.is_err() {
                return;
            }
            scratch.weights.clear();
            if let (Some(index), Some(dtype)) = (wanted.weights, dtype) {
                let span = index.span(vertex);
                if span.bytes != scratch.neighbours.len() as u64 * index.item {
                    found = Err(Malformed("a list with more or fewer neighbours than its degree"));
                    return;
                }
                let bytes = &weights[batch.weights.place(span, &mut weight_run)];
                scratch.weights.resize(scratch.neighbours.len(), 0.0);
                let out = bytemuck::cast_slice_mut(&mut scratch.weights);
                cast_kernel(dtype, DType::F64)(bytes, out);
            }
            each(&List {
                vertex,
                neighbours: &scratch.neighbours,
                weights: &scratch.weights,
            });
        });
        found.map_err(|Malformed(what)| EngineError::Store(wanted.file.malformed(what)))
    }
}

impl Wanted<'_> {
    fn read(&self, batch: &Batch, frame: &mut [u8], means: &Means<'_>) -> Result<(), EngineError> {
        let (lists, weights) = frame.split_at_mut(batch.lists.pages as usize * PAGE);
        for (part, runs, area) in [
            (Part::Lists, &batch.lists, lists),
            (Part::Weights, &batch.weights, weights),
        ] {
            let cache = means.cache.filter(|_| runs.are_short());
            if cache.is_none() {
                means.activity.read(runs.pages * PAGE as u64);
            }
            let runs: Vec<_> = runs.placed().collect();
            self.file
                .read_pages(self.direction, part, &runs, area, cache, means.io)?;
        }
        Ok(())
    }
}

/// A sweep that is cut into batches.
pub struct Sweep<'a> {
    wanted: Wanted<'a>,
    activity: &'a Activity,
    batches: Vec<Batch>,
}

impl<'a> Sweep<'a> {
    /// Looks up what has to be read.
    pub fn new(wanted: Wanted<'a>, means: &Means<'a>) -> Sweep<'a> {
        let pages = BATCH_PAGES.min(means.memory / PAGE as u64 / 4).max(1);
        let section = wanted.file.section(wanted.direction);
        Sweep {
            batches: batches(section, wanted.weights, wanted.chosen, pages),
            wanted,
            activity: means.activity,
        }
    }

    fn ask(&self) {
        let vertices = self.wanted.file.shape().vertices;
        self.activity.ask(self.wanted.chosen.count(vertices));
    }

    /// The sweep in rounds, in each of which no more bytes of lists are read than these, or one batch.
    pub fn rounds(&self, list_bytes: u64) -> impl Iterator<Item = Round<'_>> {
        self.ask();
        let mut rest = &self.batches[..];
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|batch| {
                bytes += batch.lists.pages * PAGE as u64;
                bytes <= list_bytes
            });
            let (round, behind) = rest.split_at(fits.count().max(1).min(rest.len()));
            rest = behind;
            (!round.is_empty()).then_some(Round {
                wanted: &self.wanted,
                batches: round,
            })
        })
    }

    /// All of it.
    pub fn whole(&self) -> Round<'_> {
        self.ask();
        Round {
            wanted: &self.wanted,
            batches: &self.batches,
        }
    }
}

/// Some of the batches of a sweep.
pub struct Round<'a> {
    wanted: &'a Wanted<'a>,
    batches: &'a [Batch],
}

impl Round<'_> {
    /// Reads the lists and works on them in batches: `work` in any thread and order, `take` here and by ascending vertices.
    /// So results do not depend on the number of threads.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `work`, `take` and `watch` say.
    pub fn run<W: Send, T: Send>(
        &self,
        means: &Means<'_>,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync,
        mut take: impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let Round { wanted, batches } = *self;
        if batches.len() < 2 {
            let mut worker = worker();
            for batch in batches {
                let mut frame = means.frames.take(wanted, batch.bytes())?;
                wanted.read(batch, &mut frame, means)?;
                let lists = Lists {
                    wanted,
                    batch,
                    frame: &frame,
                };
                take(work(&mut worker, &lists)?)?;
                means.frames.give(frame);
            }
            return watch();
        }
        let queue = Queue::new(means.memory, means.threads.max(1) * BACKLOG);
        std::thread::scope(|scope| {
            for _ in 0..readers(batches, means) {
                scope.spawn(|| queue.run(|| queue.read(wanted, batches, means)));
            }
            for _ in 0..means.threads.max(1) {
                scope.spawn(|| {
                    queue.run(|| {
                        let mut worker = worker();
                        queue.work(batches, means.frames, |number, frame| {
                            let lists = Lists {
                                wanted,
                                batch: &batches[number],
                                frame,
                            };
                            work(&mut worker, &lists)
                        })
                    })
                });
            }
            let taken = queue.take(batches.len(), &mut take, watch);
            queue.stop(taken.err());
        });
        queue.outcome()
    }
}

impl Round<'_> {
    /// What is found at the lists, by ascending vertices. It is as much as `memory` has to be beside.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn collect<W: Send, T: Send>(
        &self,
        means: &Means<'_>,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &List<'_>) -> Option<T> + Sync,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<T>, EngineError> {
        let mut found = vec![];
        self.run(
            means,
            || (Scratch::default(), worker()),
            |(scratch, worker), lists| {
                let mut part = vec![];
                lists.each(scratch, |list| part.extend(work(worker, list)))?;
                Ok(part)
            },
            |part: Vec<T>| {
                found.extend(part);
                Ok(())
            },
            watch,
        )?;
        Ok(found)
    }
}

/// How many threads read: where there is no cache that has many requests under way, each short one waits for the disk.
fn readers(batches: &[Batch], means: &Means<'_>) -> usize {
    let are_short = means.cache.is_none() && batches.iter().any(|batch| batch.lists.are_short());
    let readers = if are_short { SHORT_READERS } else { 0 };
    readers.max(means.io_threads).clamp(1, batches.len())
}

/// What readers, workers and the one who takes tell each other.
///
/// Invariants:
/// 1. Batches are claimed in order, so that the next to be taken is read or being read.
/// 2. `held_bytes` is that of batches that are being read, wait or are worked on; beyond one batch it is at most `memory`.
struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    memory: u64,
    backlog: usize,
}

struct State<T> {
    next: usize,
    held_bytes: u64,
    read: BTreeMap<usize, AlignedBuffer>,
    done: BTreeMap<usize, T>,
    taken: usize,
    stopped: bool,
    error: Option<EngineError>,
}

/// Stops the others when its thread panics.
struct Leaving<'a, T>(&'a Queue<T>, bool);

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        if !self.1 {
            self.0
                .stop(Some(EngineError::Internal("a thread of a sweep panicked".into())));
        }
    }
}

impl<T> Queue<T> {
    fn new(memory: u64, backlog: usize) -> Queue<T> {
        Queue {
            state: Mutex::new(State {
                next: 0,
                held_bytes: 0,
                read: BTreeMap::new(),
                done: BTreeMap::new(),
                taken: 0,
                stopped: false,
                error: None,
            }),
            changed: Condvar::new(),
            memory,
            backlog,
        }
    }

    fn run(&self, thread: impl FnOnce() -> Result<(), EngineError>) {
        let mut leaving = Leaving(self, false);
        let ended = thread();
        leaving.1 = true;
        if let Err(error) = ended {
            self.stop(Some(error));
        }
    }

    /// Reads batches until all are read.
    fn read(&self, wanted: &Wanted<'_>, batches: &[Batch], means: &Means<'_>) -> Result<(), EngineError> {
        while let Some(number) = self.claim(batches) {
            let batch = &batches[number];
            let mut frame = means.frames.take(wanted, batch.bytes())?;
            wanted.read(batch, &mut frame, means)?;
            self.lock().read.insert(number, frame);
            self.changed.notify_all();
        }
        Ok(())
    }

    fn claim(&self, batches: &[Batch]) -> Option<usize> {
        let mut state = self.lock();
        loop {
            let batch = batches.get(state.next).filter(|_| !state.stopped)?;
            let fits = state.held_bytes == 0 || state.held_bytes + batch.bytes() <= self.memory;
            if fits && state.next < state.taken + self.backlog {
                state.held_bytes += batch.bytes();
                state.next += 1;
                return Some(state.next - 1);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Works on batches until none is left.
    fn work(
        &self,
        batches: &[Batch],
        frames: &Frames,
        mut work: impl FnMut(usize, &[u8]) -> Result<T, EngineError>,
    ) -> Result<(), EngineError> {
        loop {
            let mut state = self.lock();
            let (number, frame) = loop {
                if state.stopped {
                    return Ok(());
                }
                if let Some(found) = state.read.pop_first() {
                    break found;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            let done = work(number, &frame)?;
            frames.give(frame);
            let mut state = self.lock();
            state.done.insert(number, done);
            state.held_bytes -= batches[number].bytes();
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Hands all over, in order.
    fn take(
        &self,
        batches: usize,
        take: &mut impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        for number in 0..batches {
            let done = loop {
                let mut state = self.lock();
                if state.stopped {
                    return Ok(());
                }
                if let Some(done) = state.done.remove(&number) {
                    state.taken += 1;
                    break done;
                }
                let waited = self.changed.wait_timeout(state, POLL);
                let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                drop(state);
                if timeout.timed_out() {
                    watch()?;
                }
            };
            self.changed.notify_all();
            take(done)?;
            watch()?;
        }
        Ok(())
    }

    /// Ends all threads; the first error is kept.
    fn stop(&self, error: Option<EngineError>) {
        let mut state = self.lock();
        state.stopped = true;
        if state.error.is_none() {
            state.error = error;
        }
        drop(state);
        self.changed.notify_all();
    }

    fn outcome(self) -> Result<(), EngineError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
