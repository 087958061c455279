//! Reading lists and working on them: read ahead by some threads, worked on by others, handed over in order by the caller.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outcore_coding::lists::Vertex;
use outcore_store::cache::PageCache;
use outcore_store::PAGE;

use super::batch::{rank, BatchCutting, ListBatch};
use super::heading::Heading;
use super::lists::{ListSource, Lists};
use super::long::LongList;
use super::queue::{Ahead, QueueBudget, ResultBudget, Stretch, SweepQueue};
use super::selection::{List, ListScratch, ListSelection};
use crate::live::Activity;
use crate::live::{Resources, Watch, BATCH_PAGES};
use crate::EngineError;

/// Threads that read, for each that the session has for it: while one checks and copies what has come, the disk has the
/// requests of another.
const READERS: usize = 2;

/// A sweep that is cut into batches, portion by portion: what is known of one portion is forgotten with the next.
pub struct Sweep<'a> {
    selection: ListSelection<'a>,
    activity: &'a Activity,
    cutting: BatchCutting<'a>,
    threads: usize,
    cache: Option<&'a PageCache>,
    /// Whether the next sweep goes the same way.
    is_one_way: bool,
    /// Vertices whose batches are looked up together, ascending.
    portions: Vec<Range<Vertex>>,
    /// Batches of the portion that was looked up last.
    known: RefCell<Option<(usize, Arc<[ListBatch]>)>>,
    /// The long list that is under way.
    long: RefCell<Option<LongList>>,
    ahead: RefCell<Ahead>,
}

/// Batches of a portion that follow on each other.
#[derive(Clone)]
struct Batches {
    of: Arc<[ListBatch]>,
    range: Range<usize>,
}

impl Batches {
    fn all(of: Arc<[ListBatch]>) -> Batches {
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
    type Target = [ListBatch];
    fn deref(&self) -> &[ListBatch] {
        &self.of[self.range.clone()]
    }
}

impl<'a> Sweep<'a> {
    /// Lists are given whole.
    pub fn new(selection: ListSelection<'a>, resources: &Resources<'a>) -> Sweep<'a> {
        Sweep::cut(selection, resources, false)
    }

    /// The same, with long lists given in parts, one after the other: of some hundred thousand neighbours, whatever the memory.
    pub fn in_parts(selection: ListSelection<'a>, resources: &Resources<'a>) -> Sweep<'a> {
        Sweep::cut(selection, resources, true)
    }

    fn cut(selection: ListSelection<'a>, resources: &Resources<'a>, in_parts: bool) -> Sweep<'a> {
        let pages = BATCH_PAGES.min(resources.memory / PAGE as u64 / 4).max(1);
        let cutting = BatchCutting {
            section: selection.file.section(selection.direction),
            weights: selection.weights,
            chosen: selection.chosen,
            pages,
            portion_pages: resources.portion_pages,
            in_parts,
        };
        Sweep {
            portions: cutting.portions(),
            cutting,
            threads: resources.threads,
            cache: resources.cache.map(|file| &**file.cache()),
            is_one_way: false,
            selection,
            activity: resources.activity,
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
        let batches: Arc<[ListBatch]> = batches.into();
        *known = Some((portion, batches.clone()));
        Batches::all(batches)
    }

    /// Whether weights are read with the lists.
    pub fn is_weighed(&self) -> bool {
        self.selection.weights.is_some()
    }

    /// Bytes of lists that are read.
    pub fn list_bytes(&self) -> u64 {
        let index = &self.selection.file.section(self.selection.direction).index;
        let bytes = |batch: &ListBatch| match batch.parts {
            0 => batch.lists.pages * PAGE as u64,
            _ => index.bytes_of(batch.vertices.start),
        };
        let of = |portion| self.batches(portion).iter().map(bytes).sum::<u64>();
        (0..self.portions.len()).map(of).sum()
    }

    /// What is asked for from here on is the sweep's.
    fn ask(&self, heading: Heading) {
        let vertices = self.selection.file.shape().vertices;
        self.activity.ask(self.selection.chosen.count(vertices));
        let first = heading.next(&mut (0..self.portions.len()));
        if let Some((cache, portion)) = self.cache.zip(first) {
            // The portions are thought to be alike.
            let pages = self.batches(portion).iter().map(ListBatch::pages).sum::<u64>() * self.portions.len() as u64;
            let is_larger = pages > cache.pages() as u64 && !self.is_one_way;
            let kind = self.selection.direction as usize;
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
                let fits = |batch: &&ListBatch| {
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

/// Work of one thread: on the lists of a batch, whose result is kept under a number and whose bytes are given.
type ListWorker<'a> = Box<dyn FnMut(usize, &Lists<'_>) -> Result<u64, EngineError> + 'a>;

/// How lists are worked on: by a worker for each thread, and as far as there is room for the results. It does not know their
/// type, so a sweep is compiled once and not for each of the algorithms.
struct Handling<'a> {
    resources: &'a Resources<'a>,
    budget: Option<QueueBudget<'a>>,
    worker: &'a (dyn Fn() -> ListWorker<'a> + Sync),
    /// Hands over the result with a number.
    take: &'a mut dyn FnMut(usize) -> Result<(), EngineError>,
}

/// Results of batches that were not handed over yet, with their numbers: a few for each thread.
struct Results<T>(Mutex<Vec<(usize, T)>>);

impl<T> Results<T> {
    fn new() -> Results<T> {
        Results(Mutex::new(vec![]))
    }

    fn keep(&self, number: usize, result: T) {
        self.lock().push((number, result));
    }

    fn remove(&self, number: usize) -> T {
        let mut results = self.lock();
        let place = results.iter().position(|(kept, _)| *kept == number);
        results
            .swap_remove(place.expect("a result is kept before its number is told"))
            .1
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

impl<'r> Round<'r> {
    /// Reads the lists and works on them in batches: `work` in any thread and order, `take` here and batch by batch as the
    /// sweep goes. So results do not depend on the number of threads.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `work`, `take` and `watch` say.
    pub fn run<W, T: Send>(
        &self,
        resources: &Resources<'_>,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync,
        mut take: impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let results = Results::new();
        let worker = || -> ListWorker<'_> {
            let mut own = worker();
            let (work, results) = (&work, &results);
            Box::new(move |number, lists| {
                results.keep(number, work(&mut own, lists)?);
                Ok(0)
            })
        };
        let mut handling = Handling {
            resources,
            budget: None,
            worker: &worker,
            take: &mut |number| take(results.remove(number)),
        };
        self.again(self.batches.clone(), self.more.clone())
            .run_to_end(&mut handling, watch)
    }

    fn run_to_end(&mut self, handling: &mut Handling<'_>, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        loop {
            self.run_portion(handling, watch)?;
            if !self.go_on() {
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
    pub fn run_within<W, T: Send>(
        &self,
        resources: &Resources<'_>,
        budget: &ResultBudget<T>,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &Lists<'_>) -> Result<T, EngineError> + Sync,
        mut take: impl FnMut(T) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Round<'r>>, EngineError> {
        let results = Results::new();
        let worker = || -> ListWorker<'_> {
            let mut own = worker();
            let (work, results) = (&work, &results);
            Box::new(move |number, lists| {
                let result = work(&mut own, lists)?;
                let bytes = (budget.weigh)(&result);
                results.keep(number, result);
                Ok(bytes)
            })
        };
        let mut handling = Handling {
            resources,
            budget: Some(QueueBudget {
                bytes: budget.bytes,
                most: budget.most,
                weights: self.sweep.selection.weights,
            }),
            worker: &worker,
            take: &mut |number| take(results.remove(number)),
        };
        self.run_while_room(&mut handling, watch)
    }

    fn run_while_room(
        &self,
        handling: &mut Handling<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Round<'r>>, EngineError> {
        let taken = self.run_portion(handling, watch)?;
        let mut rest = self.again(self.batches.clone(), self.more.clone());
        rest.batches.split(taken, self.heading);
        let is_left = !rest.batches.is_empty() || rest.go_on();
        Ok(is_left.then_some(rest))
    }

    /// Gives the batches that were taken: all, or as many of the first stretch as there was room for.
    fn run_portion(&self, handling: &mut Handling<'_>, watch: &mut Watch<'_>) -> Result<usize, EngineError> {
        if self.batches.is_empty() {
            watch()?;
        }
        let mut stretches: Vec<&[ListBatch]> = self
            .batches
            .chunk_by(|first, second| first.parts == 0 && second.parts == 0)
            .collect();
        if self.heading == Heading::Descending {
            stretches.reverse();
        }
        let mut taken = 0;
        for batches in stretches {
            if batches[0].parts > 0 {
                let mut worker = (handling.worker)();
                let mut work = |lists: &Lists<'_>| {
                    worker(0, lists)?;
                    (handling.take)(0)
                };
                self.run_long(&batches[0], handling.resources, &mut work, watch)?;
                taken += 1;
                continue;
            }
            let stretch = Stretch {
                batches,
                heading: self.heading,
            };
            taken += self.run_batches(stretch, handling, watch)?;
            if handling.budget.is_some() {
                break;
            }
        }
        Ok(taken)
    }

    /// A long list, part by part.
    fn run_long(
        &self,
        batch: &ListBatch,
        resources: &Resources<'_>,
        work: &mut dyn FnMut(&Lists<'_>) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let (vertex, selection) = (batch.vertices.start, &self.sweep.selection);
        let mut scratch = ListScratch::default();
        for part in self.part.map_or(0..batch.parts, |part| part..part + 1) {
            let mut long = self.sweep.long.borrow_mut();
            if part == 0 {
                *long = Some(LongList::open(selection, vertex, resources)?);
            }
            let under_way = long.as_mut().filter(|list| list.vertex == vertex);
            let list = under_way.ok_or_else(|| EngineError::Internal("a part of a list before its first".into()))?;
            if list.next(selection, &mut scratch, resources)? {
                work(&Lists(ListSource::Part(List {
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

    fn run_batches(
        &self,
        stretch: Stretch<'_>,
        handling: &mut Handling<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<usize, EngineError> {
        let Sweep {
            selection,
            ahead,
            is_one_way,
            ..
        } = self.sweep;
        let Handling {
            resources,
            budget,
            worker,
            ref mut take,
        } = *handling;
        let read = |batch: &ListBatch| selection.read(batch, batch.caching(stretch.heading, *is_one_way), resources);
        if let [batch] = stretch.batches {
            let ahead = ahead.borrow_mut().remove(&batch.vertices.start);
            let frame = ahead.map_or_else(|| read(batch), Ok)?;
            worker()(0, &Lists::of(selection, batch, &frame))?;
            take(0)?;
            resources.frames.give(frame);
            return watch().map(|()| 1);
        }
        // What is found has its own part of the memory.
        let memory = resources.memory - budget.map_or(0, |budget| budget.bytes.min(resources.memory));
        let queue = SweepQueue::new(memory, resources.threads, budget, ahead.take());
        std::thread::scope(|scope| {
            for _ in 0..(resources.io_threads * READERS).clamp(1, stretch.batches.len()) {
                scope.spawn(|| queue.run(&mut || queue.read(stretch, &read)));
            }
            for _ in 0..resources.threads.max(1) {
                scope.spawn(|| {
                    queue.run(&mut || {
                        let mut worker = worker();
                        queue.work(stretch, resources.frames, &mut |number, batch, frame| {
                            worker(number, &Lists::of(selection, batch, frame))
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
        results: &mut Vec<T>,
        resources: &Resources<'_>,
        work: impl Fn(&List<'_>) -> Option<T> + Sync,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        self.run(
            resources,
            ListScratch::default,
            |scratch, lists| {
                let mut part = vec![];
                lists.each(scratch, |list| part.extend(work(list)))?;
                Ok(part)
            },
            |part: Vec<T>| {
                results.extend(part);
                Ok(())
            },
            watch,
        )
    }
}
