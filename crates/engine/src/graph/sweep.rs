//! Reading lists and working on them: read ahead by some threads, worked on by others, handed over in order by the caller.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outcore_coding::lists::{decode, has_any, Extent, Vertex};
use outcore_coding::Malformed;
use outcore_store::cache::PageCache;
use outcore_store::{AlignedBuffer, Direction, GraphFile, PAGE};

use super::activity::Activity;
use super::batch::{most_neighbours, plan_bytes, rank, spans, Batch, Cutting, WeightIndex, BATCH_VERTICES, LONG_BYTES};
use super::heading::Heading;
use super::long::LongList;
use super::means::{Frames, Means, Watch, BATCH_PAGES};
use super::wanted::{List, Scratch, Wanted};
use crate::EngineError;

/// Batches that are worked on and not handed over, for each thread; and those that are read and not handed over.
const BACKLOG: usize = 4;
const AHEAD: usize = 12;
/// Threads that read, for each that the session has for it: while one checks and copies what has come, the disk has the requests of
/// another.
const READERS: usize = 2;
const POLL: Duration = Duration::from_millis(50);

/// The least memory that a sweep does with, where each neighbour is sent a message of so many bytes.
pub fn least_memory(file: &GraphFile, message_bytes: u64) -> u64 {
    memory_for(file, message_bytes, BATCH_BYTES.max(largest_list(file)), true)
}

/// The same where long lists are taken in parts, so that the longest does not count, with or without their weights.
pub fn least_memory_of_parts(file: &GraphFile, message_bytes: u64, is_weighed: bool) -> u64 {
    memory_for(file, message_bytes, BATCH_BYTES, is_weighed)
}

/// With more memory than this a sweep does not do better: all lists are worked on and told at once.
pub fn most_memory(file: &GraphFile, message_bytes: u64, is_weighed: bool) -> u64 {
    memory_for(file, message_bytes, u64::MAX, is_weighed)
}

/// With so many bytes of lists in work, or all there are.
fn memory_for(file: &GraphFile, message_bytes: u64, list_bytes: u64, is_weighed: bool) -> u64 {
    let weights = file.shape().weights.filter(|_| is_weighed);
    let weight = weights.map_or(0, |dtype| dtype.size() as u64);
    // A neighbour is read, decoded and told, with its weight.
    let neighbour = 4 + weight + 8 * u64::from(weight > 0) + 2 * (4 + message_bytes.next_multiple_of(4));
    let neighbours = most_neighbours(list_bytes.min(all_list_bytes(file))).min(file.shape().edges);
    // What is found at a vertex is sixteen bytes at most, in lists that have grown.
    let waiting = BACKLOG as u64 * 32 * file.shape().vertices.min(u64::from(BATCH_VERTICES));
    (4 * BATCH_BYTES + 2 * neighbour * neighbours + waiting).max(CALL_BYTES)
}

/// Bytes of the lists of the longer direction.
fn all_list_bytes(file: &GraphFile) -> u64 {
    let of = |direction| file.section(direction).index.total_bytes();
    of(Direction::Out).max(of(Direction::In))
}

/// What a call takes at least. A session lets less go beyond its limit, and without a turn.
const CALL_BYTES: u64 = 20 << 20;
const BATCH_BYTES: u64 = BATCH_PAGES * PAGE as u64;
/// Threads that look at lists that are handed over, at most: one who takes them, and has a processor too, does not keep pace with more.
const PARTS_THREADS: usize = 4;

/// Bytes of lists that may be read before the first of them is taken: where one is larger than a batch, those that wait are
/// weighed, else it is enough to count them.
pub(super) fn parts_round(file: &GraphFile) -> u64 {
    match largest_list(file) > BATCH_BYTES {
        true => BACKLOG as u64 * BATCH_BYTES,
        false => u64::MAX,
    }
}

/// What lists take that are handed over some at a time, long ones whole or in parts, and the means for it.
pub fn for_parts<'a>(file: &GraphFile, in_parts: bool, means: Means<'a>) -> (u64, Means<'a>) {
    let largest = if in_parts { 0 } else { largest_list(file) };
    let weight = file.shape().weights.map_or(0, |dtype| dtype.size() as u64);
    // A neighbour takes a byte of a list at least; it is decoded with its weight, in what has grown.
    let neighbour = 4 + 8 * u64::from(weight > 0);
    let threads = means.threads.saturating_sub(1).clamp(1, PARTS_THREADS);
    let frames = 4 * BATCH_BYTES + (1 + weight) * largest;
    let waiting = ((threads * BACKLOG + 2) as u64 * BATCH_BYTES).max(2 * largest);
    let means = Means {
        memory: 4 * BATCH_BYTES,
        threads,
        ..means
    };
    (
        frames + neighbour * waiting + portion_bytes(file, means.portion_pages),
        means,
    )
}

/// Whether there are lists that are given in parts to those who take them so.
pub(super) fn has_long_lists(file: &GraphFile) -> bool {
    largest_list(file) > LONG_BYTES
}

fn largest_list(file: &GraphFile) -> u64 {
    let of = |direction| {
        let large = file.section(direction).index.large();
        large.map(|(_, bytes)| bytes).max().unwrap_or(0)
    };
    of(Direction::Out).max(of(Direction::In))
}

/// Lists that have been read: those of a batch, or a part of a long one.
pub struct Lists<'a>(Held<'a>);

enum Held<'a> {
    Batch {
        wanted: &'a Wanted<'a>,
        batch: &'a Batch,
        frame: &'a [u8],
    },
    Part(List<'a>),
}

impl<'a> Lists<'a> {
    fn of(wanted: &'a Wanted<'a>, batch: &'a Batch, frame: &'a [u8]) -> Lists<'a> {
        Lists(Held::Batch { wanted, batch, frame })
    }

    /// Those of the batch, or the one of the list; those of all batches follow on each other.
    pub fn vertices(&self) -> Range<Vertex> {
        match &self.0 {
            Held::Batch { batch, .. } => batch.vertices.clone(),
            Held::Part(list) => list.vertex..list.vertex + 1,
        }
    }

    /// Calls `each` with every list, by ascending vertices. Those without neighbours are left out.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn each(&self, scratch: &mut Scratch, mut each: impl FnMut(&List<'_>)) -> Result<(), EngineError> {
        let (wanted, batch, frame) = match &self.0 {
            Held::Batch { wanted, batch, frame } => (wanted, batch, frame),
            Held::Part(list) => {
                each(list);
                return Ok(());
            }
        };
        let (lists, weights) = frame.split_at(batch.lists.pages as usize * PAGE);
        let (vertices, dtype) = (wanted.file.shape().vertices, wanted.file.shape().weights);
        let mut weight_run = 0;
        each_encoded(wanted, wanted.weights, batch, lists, |vertex, bytes, span| {
            scratch.neighbours.clear();
            decode(vertex, bytes, vertices, &mut scratch.neighbours)?;
            scratch.weights.clear();
            if let (Some(index), Some(dtype)) = (wanted.weights, dtype) {
                if span.bytes != scratch.neighbours.len() as u64 * index.item {
                    return Err(OTHER_DEGREE);
                }
                scratch.take_weights(dtype, &weights[batch.weights.place(span, &mut weight_run)]);
            }
            each(&List {
                vertex,
                neighbours: &scratch.neighbours,
                weights: &scratch.weights,
                part: None,
            });
            Ok(())
        })
    }

    /// Puts the lists into `scratch`, by ascending vertices, one behind the other, and calls `each` with the vertex of each when it is
    /// there. Those without neighbours are left out. Memory is taken for so many neighbours, or all, at once.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn append(
        &self,
        scratch: &mut Scratch,
        neighbours: usize,
        mut each: impl FnMut(&mut Scratch, Vertex),
    ) -> Result<(), EngineError> {
        scratch.neighbours.clear();
        scratch.weights.clear();
        let (wanted, batch, frame) = match &self.0 {
            Held::Batch { wanted, batch, frame } => (wanted, batch, frame),
            Held::Part(list) => {
                scratch.neighbours.extend_from_slice(list.neighbours);
                scratch.weights.extend_from_slice(list.weights);
                each(scratch, list.vertex);
                return Ok(());
            }
        };
        let most = batch.most_neighbours(wanted.weights).min(neighbours as u64) as usize;
        let (lists, weights) = frame.split_at(batch.lists.pages as usize * PAGE);
        let (vertices, dtype) = (wanted.file.shape().vertices, wanted.file.shape().weights);
        let mut weight_run = 0;
        each_encoded(wanted, wanted.weights, batch, lists, |vertex, bytes, span| {
            let before = scratch.neighbours.len();
            scratch.neighbours.reserve(if before == 0 { most } else { 0 });
            decode(vertex, bytes, vertices, &mut scratch.neighbours)?;
            if let (Some(index), Some(dtype)) = (wanted.weights, dtype) {
                if span.bytes != (scratch.neighbours.len() - before) as u64 * index.item {
                    return Err(OTHER_DEGREE);
                }
                scratch.append_weights(dtype, &weights[batch.weights.place(span, &mut weight_run)]);
            }
            each(scratch, vertex);
            Ok(())
        })
    }

    /// Calls `some` with lists, by ascending vertices, one behind the other: where the list of each vertex ends, and the
    /// neighbours, so many together or little more. What is read at each can then be asked for at once.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn together(
        &self,
        scratch: &mut Scratch,
        neighbours: usize,
        mut some: impl FnMut(&[(Vertex, usize)], &[Vertex]),
    ) -> Result<(), EngineError> {
        let (wanted, batch, frame) = match &self.0 {
            Held::Batch { wanted, batch, frame } => (wanted, batch, frame),
            Held::Part(list) => {
                some(&[(list.vertex, list.neighbours.len())], list.neighbours);
                return Ok(());
            }
        };
        let vertices = wanted.file.shape().vertices;
        let Scratch {
            neighbours: all, ends, ..
        } = scratch;
        all.clear();
        ends.clear();
        each_encoded(wanted, None, batch, frame, |vertex, bytes, _| {
            decode(vertex, bytes, vertices, all)?;
            ends.push((vertex, all.len()));
            if all.len() >= neighbours {
                some(ends, all);
                all.clear();
                ends.clear();
            }
            Ok(())
        })?;
        some(ends, all);
        Ok(())
    }

    /// Calls `each` with every vertex, ascending, and whether it has one of some neighbours; of a long list with every part.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn each_with(
        &self,
        is: impl Fn(Vertex) -> bool,
        mut each: impl FnMut(Vertex, Looked<'_>),
    ) -> Result<(), EngineError> {
        let (wanted, batch, frame) = match &self.0 {
            Held::Batch { wanted, batch, frame } => (wanted, batch, frame),
            Held::Part(list) => {
                match list.neighbours.iter().any(|neighbour| is(*neighbour)) {
                    true => each(list.vertex, Looked::Has),
                    false => each(list.vertex, Looked::HasNotInPart),
                }
                return Ok(());
            }
        };
        let vertices = wanted.file.shape().vertices;
        each_encoded(wanted, None, batch, frame, |vertex, bytes, _| {
            match has_any(vertex, bytes, vertices, &is)? {
                true => each(vertex, Looked::Has),
                false => each(vertex, Looked::HasNot(bytes)),
            }
            Ok(())
        })
    }
}

/// What was seen in a list.
pub enum Looked<'a> {
    Has,
    /// Nothing, in the bytes of the whole list.
    HasNot(&'a [u8]),
    HasNotInPart,
}

const OTHER_DEGREE: Malformed = Malformed("a list with more or fewer neighbours than its degree");

/// Calls `each` with the bytes of every list of a batch, by ascending vertices, and where the weights lie.
fn each_encoded(
    wanted: &Wanted<'_>,
    weights: Option<WeightIndex<'_>>,
    batch: &Batch,
    lists: &[u8],
    mut each: impl FnMut(Vertex, &[u8], Extent) -> Result<(), Malformed>,
) -> Result<(), EngineError> {
    let section = wanted.file.section(wanted.direction);
    let (mut run, mut outcome) = (0, Ok(()));
    spans(
        section,
        weights,
        wanted.chosen,
        batch.vertices.clone(),
        |vertex, found| {
            if outcome.is_ok() {
                outcome = each(vertex, &lists[batch.lists.place(found.list, &mut run)], found.weights);
            }
        },
    );
    outcome.map_err(|Malformed(what)| EngineError::Store(wanted.file.malformed(what)))
}

/// A sweep that is cut into batches, portion by portion: what is known of one portion is forgotten with the next.
pub struct Sweep<'a> {
    wanted: Wanted<'a>,
    activity: &'a Activity,
    cutting: Cutting<'a>,
    threads: usize,
    cache: Option<&'a PageCache>,
    /// Whether the next sweep goes the same way.
    is_one_way: bool,
    /// Vertices whose batches are looked up together, ascending.
    portions: Vec<Range<Vertex>>,
    /// Batches of the portion that was looked up last.
    known: RefCell<Option<(usize, Arc<[Batch]>)>>,
    /// The long list that is under way.
    long: RefCell<Option<LongList>>,
    ahead: RefCell<Ahead>,
}

/// What a round has read for the next, by the first vertices of the batches.
type Ahead = HashMap<Vertex, AlignedBuffer>;

/// Batches of a portion that follow on each other.
#[derive(Clone)]
struct Batches {
    of: Arc<[Batch]>,
    range: Range<usize>,
}

impl Batches {
    fn all(of: Arc<[Batch]>) -> Batches {
        let range = 0..of.len();
        Batches { of, range }
    }

    /// Takes so many of them that a sweep comes to first.
    fn split(&mut self, count: usize, heading: Heading) -> Batches {
        let Range { start, end } = self.range;
        let (taken, rest) = match heading {
            Heading::Ascending => (start..start + count, start + count..end),
            Heading::Descending => (end - count..end, start..end - count),
        };
        self.range = rest;
        Batches {
            of: self.of.clone(),
            range: taken,
        }
    }
}

impl Deref for Batches {
    type Target = [Batch];
    fn deref(&self) -> &[Batch] {
        &self.of[self.range.clone()]
    }
}

/// What a sweep knows of the batches of a portion of so many pages, at most.
pub fn portion_bytes(file: &GraphFile, portion_pages: u64) -> u64 {
    let pages = [Direction::Out, Direction::In].map(|direction| file.section(direction).pages());
    plan_bytes(pages[0].max(pages[1]).min(portion_pages), file.shape().vertices)
}

impl<'a> Sweep<'a> {
    /// Lists are given whole.
    pub fn new(wanted: Wanted<'a>, means: &Means<'a>) -> Sweep<'a> {
        Sweep::cut(wanted, means, false)
    }

    /// The same, with long lists given in parts, one after the other: of some hundred thousand neighbours, whatever the memory.
    pub fn in_parts(wanted: Wanted<'a>, means: &Means<'a>) -> Sweep<'a> {
        Sweep::cut(wanted, means, true)
    }

    fn cut(wanted: Wanted<'a>, means: &Means<'a>, in_parts: bool) -> Sweep<'a> {
        let pages = BATCH_PAGES.min(means.memory / PAGE as u64 / 4).max(1);
        let cutting = Cutting {
            section: wanted.file.section(wanted.direction),
            weights: wanted.weights,
            chosen: wanted.chosen,
            pages,
            portion_pages: means.portion_pages,
            in_parts,
        };
        Sweep {
            portions: cutting.portions(),
            cutting,
            threads: means.threads,
            cache: means.cache.map(|file| &**file.cache()),
            is_one_way: false,
            wanted,
            activity: means.activity,
            known: RefCell::default(),
            long: RefCell::default(),
            ahead: RefCell::default(),
        }
    }

    /// One of sweeps that all go the same way, before it is run.
    pub fn one_way(self) -> Sweep<'a> {
        Sweep {
            is_one_way: true,
            ..self
        }
    }

    /// Looks up what has to be read of a portion.
    fn batches(&self, portion: usize) -> Batches {
        let mut known = self.known.borrow_mut();
        if let Some((_, batches)) = known.as_ref().filter(|(number, _)| *number == portion) {
            return Batches::all(batches.clone());
        }
        // Before others are looked up: there is memory for those of one portion.
        *known = None;
        let mut batches = self.cutting.batches(self.portions[portion].clone(), self.threads);
        if let Some(cache) = self.cache {
            let cached = cache.pages() as u64;
            rank(&mut batches, portion, self.portions.len(), cached);
        }
        let batches: Arc<[Batch]> = batches.into();
        *known = Some((portion, batches.clone()));
        Batches::all(batches)
    }

    /// Whether weights are read with the lists.
    pub fn is_weighed(&self) -> bool {
        self.wanted.weights.is_some()
    }

    /// Bytes of lists that are read.
    pub fn list_bytes(&self) -> u64 {
        let index = &self.wanted.file.section(self.wanted.direction).index;
        let bytes = |batch: &Batch| match batch.parts {
            0 => batch.lists.pages * PAGE as u64,
            _ => index.bytes_of(batch.vertices.start),
        };
        let of = |portion| self.batches(portion).iter().map(bytes).sum::<u64>();
        (0..self.portions.len()).map(of).sum()
    }

    /// What is asked for from here on is the sweep's.
    fn ask(&self, heading: Heading) {
        let vertices = self.wanted.file.shape().vertices;
        self.activity.ask(self.wanted.chosen.count(vertices));
        let first = heading.next(&mut (0..self.portions.len()));
        if let Some((cache, portion)) = self.cache.zip(first) {
            // The portions are thought to be alike.
            let pages = self.batches(portion).iter().map(Batch::pages).sum::<u64>() * self.portions.len() as u64;
            let is_larger = pages > cache.pages() as u64 && !self.is_one_way;
            let kind = self.wanted.direction as usize;
            cache.sweep(is_larger.then_some(kind));
        }
    }

    /// The sweep in rounds, in each of which no more bytes of lists are read than these, or one batch, or a part of a long
    /// list. Each is run before the next is asked for.
    pub fn rounds(&self, list_bytes: u64, heading: Heading) -> impl Iterator<Item = Round<'_>> {
        self.ask(heading);
        let mut portions = 0..self.portions.len();
        let (mut rest, mut batches, mut part) = (Batches::all(Arc::new([])), None::<Batches>, 0);
        std::iter::from_fn(move || {
            if part == 0 {
                batches = None;
                while rest.is_empty() {
                    rest = Batches::all(Arc::new([]));
                    rest = self.batches(heading.next(&mut portions)?);
                }
                let mut bytes = 0;
                let fits = |batch: &&Batch| {
                    bytes += batch.lists.pages * PAGE as u64;
                    batch.parts == 0 && bytes <= list_bytes
                };
                let count = match heading {
                    Heading::Ascending => rest.iter().take_while(fits).count(),
                    Heading::Descending => rest.iter().rev().take_while(fits).count(),
                };
                batches = Some(rest.split(count.clamp(1, rest.len()), heading));
            }
            let batches = batches.clone()?;
            let parts = batches.first()?.parts;
            let of_part = (parts > 0).then_some(part);
            part = if part + 1 < parts { part + 1 } else { 0 };
            Some(Round {
                sweep: self,
                batches,
                more: 0..0,
                heading,
                part: of_part,
            })
        })
    }

    /// All of it.
    pub fn whole(&self, heading: Heading) -> Round<'_> {
        self.ask(heading);
        Round {
            sweep: self,
            batches: Batches::all(Arc::new([])),
            more: 0..self.portions.len(),
            heading,
            part: None,
        }
    }
}

/// Some of the batches of a sweep.
pub struct Round<'a> {
    sweep: &'a Sweep<'a>,
    batches: Batches,
    /// Portions that follow on these.
    more: Range<usize>,
    heading: Heading,
    /// Of a long list that is alone, the part; all parts where there is none.
    part: Option<usize>,
}

/// Memory for what is found.
pub struct Room<T> {
    pub bytes: u64,
    /// Bytes of what is found at so many neighbours, at most.
    pub most: fn(u64) -> u64,
    /// Bytes of what was found.
    pub weigh: fn(&T) -> u64,
}

/// Bytes of neighbours that are found, at most: what has grown is half empty.
pub(super) fn most_found(neighbours: u64) -> u64 {
    2 * neighbours * size_of::<Vertex>() as u64
}

/// Bytes of neighbours that were found.
pub(super) fn found_bytes(found: &Vec<Vertex>) -> u64 {
    (found.capacity() * size_of::<Vertex>()) as u64
}

impl<T> Room<T> {
    fn most(&self, batch: &Batch, weights: Option<WeightIndex<'_>>) -> u64 {
        (self.most)(batch.most_neighbours(weights))
    }
}

/// Batches in the order in which they are read.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    batches: &'a [Batch],
    heading: Heading,
}

impl<'a> Stretch<'a> {
    fn get(self, number: usize) -> Option<&'a Batch> {
        let place = match self.heading {
            Heading::Ascending => number,
            Heading::Descending => self.batches.len().checked_sub(number + 1)?,
        };
        self.batches.get(place)
    }

    fn at(self, number: usize) -> &'a Batch {
        self.get(number).expect("it was claimed")
    }
}

impl<'r> Round<'r> {
    /// Reads the lists and works on them in batches: `work` in any thread and order, `take` here and batch by batch as the
    /// sweep goes. So results do not depend on the number of threads.
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
        let mut round = self.again(self.batches.clone(), self.more.clone());
        loop {
            round.run_portion(means, None, &worker, &work, &mut take, watch)?;
            if !round.go_on() {
                return Ok(());
            }
        }
    }

    fn again(&self, batches: Batches, more: Range<usize>) -> Round<'r> {
        Round { batches, more, ..*self }
    }

    /// Goes on to the next portion, if there is one.
    fn go_on(&mut self) -> bool {
        self.batches = Batches::all(Arc::new([]));
        let next = self.heading.next(&mut self.more);
        self.batches = next.map_or_else(|| self.batches.clone(), |portion| self.sweep.batches(portion));
        next.is_some()
    }

    /// The same as far as there is room for what is found, one batch at least. Gives what is left, to be run when there is
    /// room again.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn run_within<W: Send, T: Send>(
        &self,
        means: &Means<'_>,
        room: &Room<T>,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync,
        mut take: impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Round<'r>>, EngineError> {
        let taken = self.run_portion(means, Some(room), &worker, &work, &mut take, watch)?;
        let mut rest = self.again(self.batches.clone(), self.more.clone());
        rest.batches.split(taken, self.heading);
        let is_left = !rest.batches.is_empty() || rest.go_on();
        Ok(is_left.then_some(rest))
    }

    /// Gives the batches that were taken: all, or as many of the first stretch as there was room for.
    fn run_portion<W: Send, T: Send>(
        &self,
        means: &Means<'_>,
        room: Option<&Room<T>>,
        worker: &(impl Fn() -> W + Sync),
        work: &(impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync),
        take: &mut impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<usize, EngineError> {
        if self.batches.is_empty() {
            watch()?;
        }
        let mut stretches: Vec<&[Batch]> = self
            .batches
            .chunk_by(|first, second| first.parts == 0 && second.parts == 0)
            .collect();
        if self.heading == Heading::Descending {
            stretches.reverse();
        }
        let mut taken = 0;
        for batches in stretches {
            if batches[0].parts > 0 {
                let mut worker = worker();
                self.run_long(&batches[0], means, |lists| take(work(&mut worker, lists)?), watch)?;
                taken += 1;
                continue;
            }
            let stretch = Stretch {
                batches,
                heading: self.heading,
            };
            taken += self.run_batches(stretch, means, room, worker, work, take, watch)?;
            if room.is_some() {
                break;
            }
        }
        Ok(taken)
    }

    /// A long list, part by part.
    fn run_long(
        &self,
        batch: &Batch,
        means: &Means<'_>,
        mut work: impl FnMut(&Lists<'_>) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let (vertex, wanted) = (batch.vertices.start, &self.sweep.wanted);
        let mut scratch = Scratch::default();
        for part in self.part.map_or(0..batch.parts, |part| part..part + 1) {
            let mut long = self.sweep.long.borrow_mut();
            if part == 0 {
                *long = Some(LongList::open(wanted, vertex, means)?);
            }
            let under_way = long.as_mut().filter(|list| list.vertex == vertex);
            let list = under_way.ok_or_else(|| EngineError::Internal("a part of a list before its first".into()))?;
            if list.next(wanted, &mut scratch, means)? {
                work(&Lists(Held::Part(List {
                    vertex,
                    neighbours: &scratch.neighbours,
                    weights: &scratch.weights,
                    part: Some(list.part()),
                })))?;
            }
            watch()?;
        }
        Ok(())
    }

    fn run_batches<W: Send, T: Send>(
        &self,
        stretch: Stretch<'_>,
        means: &Means<'_>,
        room: Option<&Room<T>>,
        worker: &(impl Fn() -> W + Sync),
        work: &(impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync),
        take: &mut impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<usize, EngineError> {
        let Sweep {
            wanted,
            ahead,
            is_one_way,
            ..
        } = self.sweep;
        let read = |batch: &Batch| wanted.read(batch, batch.caching(stretch.heading, *is_one_way), means);
        if let [batch] = stretch.batches {
            let ahead = ahead.borrow_mut().remove(&batch.vertices.start);
            let frame = ahead.map_or_else(|| read(batch), Ok)?;
            take(work(&mut worker(), &Lists::of(wanted, batch, &frame))?)?;
            means.frames.give(frame);
            return watch().map(|()| 1);
        }
        // What is found has its own part of the memory.
        let memory = means.memory - room.map_or(0, |room| room.bytes.min(means.memory));
        let room = room.map(|room| (room, wanted.weights));
        let queue = Queue::new(memory, means.threads, room, ahead.take());
        std::thread::scope(|scope| {
            for _ in 0..(means.io_threads * READERS).clamp(1, stretch.batches.len()) {
                scope.spawn(|| queue.run(|| queue.read(stretch, read)));
            }
            for _ in 0..means.threads.max(1) {
                scope.spawn(|| {
                    queue.run(|| {
                        let mut worker = worker();
                        queue.work(stretch, means.frames, |batch, frame| {
                            work(&mut worker, &Lists::of(wanted, batch, frame))
                        })
                    })
                });
            }
            let taken = queue.take(stretch.batches.len(), take, watch);
            queue.stop(taken.err());
        });
        let (taken, rest) = queue.outcome(stretch)?;
        *ahead.borrow_mut() = rest;
        Ok(taken)
    }

    /// Adds what is found at the lists, as the sweep goes. It is as much as `memory` has to be beside.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn collect<T: Send>(
        &self,
        found: &mut Vec<T>,
        means: &Means<'_>,
        work: impl Fn(&List<'_>) -> Option<T> + Sync,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        self.run(
            means,
            Scratch::default,
            |scratch, lists| {
                let mut part = vec![];
                lists.each(scratch, |list| part.extend(work(list)))?;
                Ok(part)
            },
            |part: Vec<T>| {
                found.extend(part);
                Ok(())
            },
            watch,
        )
    }
}

/// What readers, workers and the one who takes tell each other.
///
/// Invariants:
/// 1. Batches are claimed in order, so that the next to be taken is read or being read.
/// 2. `held_bytes` is that of batches that are being read, wait or are worked on; beyond one batch it is at most `memory`.
/// 3. Batches are admitted in order too, read or not, and worked on once they are. `found_bytes` is what was found, and the
///    most that can be found in the `working` ones, which are admitted and not done; beyond one batch there is room for it.
///    `full` is set once no further one has room, and none is working.
struct Queue<'a, T> {
    state: Mutex<State<T>>,
    /// Readers wait for room, workers for what is read, the one who takes for what is next. Readers wait for the same batch:
    /// one is woken, and wakes another if it finds room.
    has_room: Condvar,
    is_read: Condvar,
    is_done: Condvar,
    memory: u64,
    backlog: usize,
    ahead: usize,
    room: Option<(&'a Room<T>, Option<WeightIndex<'a>>)>,
}

struct State<T> {
    next: usize,
    held_bytes: u64,
    admitted: usize,
    working: usize,
    found_bytes: u64,
    full: bool,
    /// Whether a worker waits for room.
    is_short: bool,
    ahead: Ahead,
    read: BTreeMap<usize, AlignedBuffer>,
    done: BTreeMap<usize, T>,
    taken: usize,
    stopped: bool,
    error: Option<EngineError>,
}

/// Stops the others when its thread panics.
struct Leaving<'a, T>(&'a Queue<'a, T>, bool);

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        if !self.1 {
            self.0
                .stop(Some(EngineError::Internal("a thread of a sweep panicked".into())));
        }
    }
}

impl<T> Queue<'_, T> {
    fn new<'a>(
        memory: u64,
        threads: usize,
        room: Option<(&'a Room<T>, Option<WeightIndex<'a>>)>,
        ahead: Ahead,
    ) -> Queue<'a, T> {
        Queue {
            state: Mutex::new(State {
                next: 0,
                held_bytes: 0,
                admitted: 0,
                working: 0,
                found_bytes: 0,
                full: false,
                is_short: false,
                ahead,
                read: BTreeMap::new(),
                done: BTreeMap::new(),
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
            room,
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
    fn read(
        &self,
        stretch: Stretch<'_>,
        read: impl Fn(&Batch) -> Result<AlignedBuffer, EngineError>,
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
    fn most(&self, batch: &Batch) -> u64 {
        self.room.map_or(0, |(room, weights)| room.most(batch, weights))
    }

    /// The first batch that has been read, if there is room for what is found in it and in those before.
    fn admit(&self, state: &mut State<T>, stretch: Stretch<'_>) -> Option<(usize, AlignedBuffer)> {
        let first = *state.read.first_key_value()?.0;
        if first >= state.taken + self.backlog {
            return None;
        }
        while state.admitted <= first {
            let most = self.most(stretch.at(state.admitted));
            let has_room = self.room.is_none_or(|(room, _)| state.found_bytes + most <= room.bytes);
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
            state.found_bytes += most;
        }
        state.read.pop_first()
    }

    /// Works on batches until none is left.
    fn work(
        &self,
        stretch: Stretch<'_>,
        frames: &Frames,
        mut work: impl FnMut(&Batch, &[u8]) -> Result<T, EngineError>,
    ) -> Result<(), EngineError> {
        loop {
            let mut state = self.lock();
            let (number, frame) = loop {
                if state.stopped {
                    return Ok(());
                }
                if let Some(found) = self.admit(&mut state, stretch) {
                    break found;
                }
                state = self.is_read.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            let done = work(stretch.at(number), &frame)?;
            frames.give(frame);
            let batch = stretch.at(number);
            let found = self.room.map_or(0, |(room, _)| (room.weigh)(&done));
            let mut state = self.lock();
            state.done.insert(number, done);
            state.held_bytes -= batch.bytes();
            state.found_bytes = state.found_bytes - self.most(batch) + found;
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

    /// Hands all over, in order, or as many as there was room for.
    fn take(
        &self,
        batches: usize,
        take: &mut impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        for number in 0..batches {
            let done = loop {
                let mut state = self.lock();
                if state.stopped || state.full && number == state.admitted {
                    return Ok(());
                }
                if let Some(done) = state.done.remove(&number) {
                    state.taken += 1;
                    break done;
                }
                let waited = self.is_done.wait_timeout(state, POLL);
                let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                drop(state);
                if timeout.timed_out() {
                    watch()?;
                }
            };
            self.has_room.notify_one();
            self.is_read.notify_one();
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
        for waiting in [&self.has_room, &self.is_read, &self.is_done] {
            waiting.notify_all();
        }
    }

    /// How many were handed over, and what has been read of others.
    fn outcome(self, stretch: Stretch<'_>) -> Result<(usize, Ahead), EngineError> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        let rest = state.read.into_iter();
        let rest = rest.map(|(number, frame)| (stretch.at(number).vertices.start, frame));
        state.ahead.extend(rest);
        Ok((state.taken, state.ahead))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
