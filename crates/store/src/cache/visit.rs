//! Many requests at once, each served in place as soon as its pages are there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::address::Name;
use super::core::{Claim, PageCache};
use super::file::{BusyThread, CachedFile};
use super::join::Joint;
use super::open_file::OpenFile;
use super::request::{ByteSpan, Pages};
use crate::base::locked::locked as lock;
use crate::io::{Done, Queue};
use crate::memory::pages::{prefetch, PageMut, PageRef};
use crate::StoreError;

/// Pages that are read by one call at most.
const RUN_PAGES: usize = 256;

/// How many requests before its turn a request's set is asked for.
const AHEAD: usize = 8;

/// How many pages that are there are found, then pinned, and then worked on, before the next: neither a page nor what is known
/// of it is in the processor's cache, as a rule.
const TOGETHER: usize = 8;

/// How many pages that are there are worked on before what must be read is begun with.
const HITS: u64 = 256;

/// Bytes of a page that are asked for before it is its turn: the processor goes on by itself once it has seen that a page is
/// read through, and has too much to do if it is asked for more.
const START: usize = 12 * LINE;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What runs on the pages of a request.
type VisitTask<'t> = dyn FnMut(usize, Pages<'_>) + 't;

impl CachedFile {
    /// Calls `each` with every request's index and bytes, in place: first those whose pages are there, the others as their
    /// pages come. Reads of neighbouring pages become one, also those of several requests.
    ///
    /// A part of the requests is under way at a time, so many as find room. One that finds none, because others use
    /// all pages of a set that it needs, is read to memory of its own, set aside when the cache was made. `each` may not
    /// call a cache.
    ///
    /// # Errors
    /// A request that leaves the file, or is larger than `CacheOptions::request_bytes`: before anything is read. The first
    /// error of a read: requests that are not complete then are not served.
    pub fn visit(&self, requests: &[ByteSpan], each: &mut dyn FnMut(usize, Pages<'_>)) -> Result<(), StoreError> {
        let _busy = BusyThread::enter()?;
        let most = self.cache.options.request_bytes;
        for (index, request) in requests.iter().enumerate() {
            if request.bytes as usize > most {
                let reason = format!(
                    "request {index} is of {} bytes, and the page cache serves at most {most} at once",
                    request.bytes
                );
                return Err(StoreError::Invalid(reason));
            }
            self.file.check(request.offset, u64::from(request.bytes))?;
        }
        let outcome = CacheVisit::new(&self.cache, &self.file, requests).run(each);
        self.cache.shrink_if_wanted();
        outcome
    }

    /// Fills `buffer` with the bytes at `offset`, by way of the cache.
    ///
    /// # Errors
    /// The range leaves the file; a page cannot be read, or is not what it should be.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let most = self.cache.options.request_bytes.min(u32::MAX as usize);
        let spans: Vec<ByteSpan> = (0..buffer.len())
            .step_by(most)
            .map(|at| ByteSpan {
                offset: offset + at as u64,
                bytes: most.min(buffer.len() - at) as u32,
            })
            .collect();
        self.visit(&spans, &mut |index, pages| {
            let start = index * most;
            pages.copy_to(&mut buffer[start..start + pages.len()]);
        })
    }
}

/// A request that waits for pages.
struct PendingVisit<'a> {
    index: usize,
    first: u64,
    pages: SmallVec<[Option<PageRef<'a>>; 1]>,
    missing: usize,
}

/// A page of a pending request.
#[derive(Clone, Copy)]
struct VisitPlace {
    pending: usize,
    at: usize,
}

/// One call of `visit`.
///
/// Invariant: a page that `claim` gave to read is in `gathered`, or in the queue as part of a run in `runs`; whatever
/// happens, it is published or abandoned before this is gone.
struct CacheVisit<'a> {
    cache: &'a PageCache,
    file: &'a OpenFile,
    requests: &'a [ByteSpan],
    queue: Option<Queue<PageMut>>,
    /// Requests whose one page is there, very likely in this frame, while what is known of it comes to the processor.
    ready: Vec<(usize, u32)>,
    /// The same with their pages, while these come.
    pinned: Vec<(usize, PageRef<'a>)>,
    gathered: Vec<(u64, PageMut)>,
    /// First page, and the bytes that the file had of the run when it was asked for, by the queue's tokens.
    runs: Vec<(u64, usize)>,
    idle_runs: Vec<usize>,
    /// Who wants a page that this visit reads: the first, and the others.
    wanted: FxHashMap<u64, VisitPlace>,
    wanted_too: Vec<(u64, VisitPlace)>,
    pending: Vec<Option<PendingVisit<'a>>>,
    idle_pending: Vec<usize>,
    /// Pages that others read.
    joined: VecDeque<(Arc<Joint>, VisitPlace)>,
    /// Pages that found no room.
    stalled: Vec<VisitPlace>,
    /// Pages that are pinned or under way.
    in_use: usize,
    hits: u64,
    misses: u64,
    joins: u64,
}

impl<'a> CacheVisit<'a> {
    fn new(cache: &'a PageCache, file: &'a OpenFile, requests: &'a [ByteSpan]) -> CacheVisit<'a> {
        CacheVisit {
            cache,
            file,
            requests,
            queue: None,
            ready: Vec::with_capacity(TOGETHER),
            pinned: Vec::with_capacity(TOGETHER),
            gathered: Vec::new(),
            runs: Vec::new(),
            idle_runs: Vec::new(),
            wanted: FxHashMap::default(),
            wanted_too: Vec::new(),
            pending: Vec::new(),
            idle_pending: Vec::new(),
            joined: VecDeque::new(),
            stalled: Vec::new(),
            in_use: 0,
            hits: 0,
            misses: 0,
            joins: 0,
        }
    }

    fn name(&self, page: u64) -> Name {
        Name::new(self.file.number, page)
    }

    fn run(mut self, each: &mut VisitTask) -> Result<(), StoreError> {
        let mut next = 0;
        loop {
            // Some room must be free before more is asked for: neighbours in the list should be read together. What is there
            // already is not all worked on before the first read begins.
            let window = self.cache.window();
            let (most, begun) = (window - window.div_ceil(4), self.hits);
            if self.may_start(next, most) {
                while self.may_start(next, window - 1) && (self.gathered.is_empty() || self.hits < begun + HITS) {
                    if let Some(later) = self.requests.get(next + AHEAD) {
                        let page = later.offset / self.cache.options.page_bytes as u64;
                        self.cache.expect(self.name(page));
                    }
                    self.start(next, each)?;
                    next += 1;
                }
            }
            self.serve_ready(each)?;
            self.read_gathered();
            if self.under_way() > 0 {
                let wait = !self.may_start(next, most);
                self.take_completed(wait, each)?;
                self.retry_stalled(each)?;
            } else if let Some((joint, place)) = self.joined.pop_front() {
                // Nothing of this visit's own is under way: it may wait for others (invariant 2 of the cache).
                joint.wait()?;
                self.want(place, each)?;
            } else if !self.stalled.is_empty() {
                self.retry_stalled(each)?;
                let stuck = self.gathered.is_empty() && self.joined.is_empty();
                if let Some(place) = self.stalled.first().copied().filter(|_| stuck) {
                    self.serve_aside(place.pending, each)?;
                }
            } else if next == self.requests.len() {
                return Ok(());
            }
        }
    }

    /// Whether the next request may be started when no more than so many pages are in use.
    fn may_start(&self, next: usize, most: usize) -> bool {
        next < self.requests.len() && self.in_use <= most && self.stalled.is_empty()
    }

    fn under_way(&self) -> usize {
        self.queue.as_ref().map_or(0, Queue::under_way)
    }

    /// Serves a request whose page is there; notes what the others wait for.
    fn start(&mut self, index: usize, each: &mut VisitTask) -> Result<(), StoreError> {
        let ByteSpan { offset, bytes } = self.requests[index];
        let page_bytes = self.cache.options.page_bytes as u64;
        if bytes == 0 {
            each(index, Pages { slices: &[] });
            return Ok(());
        }
        let (first, last) = (offset / page_bytes, (offset + u64::from(bytes) - 1) / page_bytes);
        if first == last && !self.wanted.contains_key(&first) {
            if let Some(frame) = self.cache.glimpse(self.name(first)) {
                self.ready.push((index, frame));
                return match self.ready.len() {
                    TOGETHER => self.serve_ready(each),
                    _ => Ok(()),
                };
            }
        }
        let count = (last - first + 1) as usize;
        let VisitPlace { pending, .. } = self.pend(index, first, count);
        for at in 0..count {
            self.want(VisitPlace { pending, at }, each)?;
        }
        Ok(())
    }

    /// Serves the requests whose one page was there, and asks anew for one that has gone.
    fn serve_ready(&mut self, each: &mut VisitTask) -> Result<(), StoreError> {
        let page_bytes = self.cache.options.page_bytes as u64;
        let (mut ready, mut pinned) = (std::mem::take(&mut self.ready), std::mem::take(&mut self.pinned));
        let mut gone = Ok(());
        for (index, frame) in ready.drain(..) {
            let page = self.requests[index].offset / page_bytes;
            match self.cache.memory.pin_named(frame, self.name(page).0) {
                Some(page) => {
                    prefetch(self.within(index, &page));
                    pinned.push((index, page));
                }
                None => {
                    let place = self.pend(index, page, 1);
                    gone = gone.and(self.want(place, each));
                }
            }
        }
        self.hits += pinned.len() as u64;
        for (at, (index, page)) in pinned.iter().enumerate() {
            if let Some((next, page)) = pinned.get(at + 1) {
                let start = self.within(*next, page);
                start[..start.len().min(START)]
                    .chunks(2 * LINE)
                    .skip(1)
                    .for_each(prefetch);
            }
            let slice = self.within(*index, page);
            each(*index, Pages { slices: &[slice] });
        }
        pinned.clear();
        (self.ready, self.pinned) = (ready, pinned);
        gone
    }

    /// What a request is about of its one page.
    fn within<'p>(&self, index: usize, page: &'p [u8]) -> &'p [u8] {
        let ByteSpan { offset, bytes } = self.requests[index];
        &page[(offset % page.len() as u64) as usize..][..bytes as usize]
    }

    fn pend(&mut self, index: usize, first: u64, count: usize) -> VisitPlace {
        let pending = self.idle_pending.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[pending] = Some(PendingVisit {
            index,
            first,
            pages: (0..count).map(|_| None).collect(),
            missing: count,
        });
        self.in_use += count;
        VisitPlace { pending, at: 0 }
    }

    fn pending(&mut self, pending: usize) -> &mut PendingVisit<'a> {
        self.pending[pending]
            .as_mut()
            .expect("a request is pending until its last page is there")
    }

    fn page_of(&mut self, place: VisitPlace) -> u64 {
        self.pending(place.pending).first + place.at as u64
    }

    fn want(&mut self, place: VisitPlace, each: &mut VisitTask) -> Result<(), StoreError> {
        let page = self.page_of(place);
        if self.wanted.contains_key(&page) {
            self.joins += 1;
            self.wanted_too.push((page, place));
            return Ok(());
        }
        match self.cache.claim_cleaning(self.name(page))? {
            Claim::Hit(pinned) => {
                self.hits += 1;
                self.arrived(place, pinned, each);
            }
            Claim::Load(owned) => {
                self.misses += 1;
                self.gathered.push((page, owned));
                self.wanted.insert(page, place);
            }
            Claim::Joined(joint) => {
                self.joins += 1;
                self.joined.push_back((joint, place));
            }
            Claim::Full | Claim::Dirty => self.stalled.push(place),
        }
        Ok(())
    }

    fn arrived(&mut self, place: VisitPlace, page: PageRef<'a>, each: &mut VisitTask) {
        let pending = self.pending(place.pending);
        pending.pages[place.at] = Some(page);
        pending.missing -= 1;
        if pending.missing == 0 {
            let complete = self.end(place.pending);
            let mut pages: SmallVec<[&[u8]; 1]> = complete.pages.iter().flatten().map(|page| &**page).collect();
            self.serve(&complete, &mut pages, each);
        }
    }

    /// Takes a request out of those that wait.
    fn end(&mut self, pending: usize) -> PendingVisit<'a> {
        let ended = self.pending[pending].take().expect("a request ends once");
        self.idle_pending.push(pending);
        self.in_use -= ended.pages.len();
        ended
    }

    /// Runs the task on a request's pages, cut to the request.
    fn serve(&self, complete: &PendingVisit, pages: &mut [&[u8]], each: &mut VisitTask) {
        let ByteSpan { offset, bytes } = self.requests[complete.index];
        let start = (offset - complete.first * self.cache.options.page_bytes as u64) as usize;
        let too_much: usize = pages.iter().map(|page| page.len()).sum::<usize>() - start - bytes as usize;
        if let Some(last) = pages.last_mut() {
            *last = &last[..last.len() - too_much];
        }
        if let Some(first) = pages.first_mut() {
            *first = &first[start..];
        }
        each(complete.index, Pages { slices: pages });
    }

    /// Reads what was gathered: neighbours together.
    fn read_gathered(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let page_bytes = self.cache.options.page_bytes;
        let queue = self.queue.get_or_insert_with(|| Queue::new(&self.cache.io));
        self.gathered.sort_unstable_by_key(|(page, _)| *page);
        let mut gathered = self.gathered.drain(..).peekable();
        while let Some((first, page)) = gathered.next() {
            let mut run = vec![page];
            let follows = |run: &Vec<PageMut>, page: u64| page == first + run.len() as u64 && run.len() < RUN_PAGES;
            while let Some((_, page)) = gathered.next_if(|(page, _)| follows(&run, *page)) {
                run.push(page);
            }
            let token = self.idle_runs.pop().unwrap_or_else(|| {
                self.runs.push((0, 0));
                self.runs.len() - 1
            });
            let offset = first * page_bytes as u64;
            let expected = self.file.readable(offset, run.len() * page_bytes);
            self.runs[token] = (first, expected);
            queue.read(&self.file.file, run, offset, expected, token as u64);
        }
    }

    /// Takes the reads that are complete, with `wait` one at least.
    fn take_completed(&mut self, mut wait: bool, each: &mut VisitTask) -> Result<(), StoreError> {
        if let Some(queue) = self.queue.as_mut().filter(|_| !wait) {
            queue.submit();
        }
        while let Some(done) = self.queue.as_mut().and_then(|queue| queue.next_read(wait)) {
            wait = false;
            self.publish(done, &mut |visit, place, page| visit.arrived(place, page, each))?;
        }
        Ok(())
    }

    /// Publishes what was read, or not, and has `arrived` know of each page for each who wants it.
    fn publish(
        &mut self,
        done: Done<PageMut>,
        arrived: &mut dyn FnMut(&mut CacheVisit<'a>, VisitPlace, PageRef<'a>),
    ) -> Result<(), StoreError> {
        let (first, expected) = std::mem::take(&mut self.runs[done.token as usize]);
        self.idle_runs.push(done.token as usize);
        let page_bytes = self.cache.options.page_bytes;
        let mut here = Vec::with_capacity(done.buffers.len());
        let mut all = done.outcome.clone();
        for (at, mut owned) in done.buffers.into_iter().enumerate() {
            let page = first + at as u64;
            // Not what the file has now: others may have made it longer meanwhile.
            let filled = expected.saturating_sub(at * page_bytes).min(page_bytes);
            let mut outcome = done.outcome.clone();
            if outcome.is_ok() {
                owned[filled..].fill(0);
                self.cache.totals.bytes_read.fetch_add(filled as u64, Relaxed);
                outcome = self.file.check_page(page, &owned);
            }
            let pinned = self.cache.publish(self.name(page), owned, &outcome);
            all = all.and(outcome);
            here.extend(pinned.map(|pinned| (page, pinned)));
        }
        // All are published before a task may panic.
        for (page, pinned) in here {
            let mut at = 0;
            while at < self.wanted_too.len() {
                if self.wanted_too[at].0 == page {
                    let (_, place) = self.wanted_too.swap_remove(at);
                    arrived(self, place, pinned.again());
                } else {
                    at += 1;
                }
            }
            if let Some(place) = self.wanted.remove(&page) {
                arrived(self, place, pinned);
            }
        }
        all
    }

    fn retry_stalled(&mut self, each: &mut VisitTask) -> Result<(), StoreError> {
        for place in std::mem::take(&mut self.stalled) {
            self.want(place, each)?;
        }
        Ok(())
    }

    /// Serves a request that finds no room, with nothing under way: what is not there is read to the spare memory, which
    /// one thread has at a time.
    fn serve_aside(&mut self, pending: usize, each: &mut VisitTask) -> Result<(), StoreError> {
        self.stalled.retain(|place| place.pending != pending);
        let mut request = self.end(pending);
        let page_bytes = self.cache.options.page_bytes;
        let cache = self.cache;
        let mut spare = lock(&cache.spare);
        let mut aside = Vec::new();
        for at in 0..request.pages.len() {
            if request.pages[at].is_some() {
                continue;
            }
            let page = request.first + at as u64;
            loop {
                match cache.look(self.name(page)) {
                    Some(Claim::Hit(pinned)) => request.pages[at] = Some(pinned),
                    Some(Claim::Joined(joint)) => {
                        joint.wait()?;
                        continue;
                    }
                    _ => {
                        let offset = page * page_bytes as u64;
                        let filled = self.file.readable(offset, page_bytes);
                        let memory = &mut spare[aside.len()];
                        memory[filled..].fill(0);
                        cache.io.read(&self.file.file, memory, offset, filled)?;
                        self.file.check_page(page, memory)?;
                        cache.totals.bytes_read.fetch_add(filled as u64, Relaxed);
                        self.misses += 1;
                        aside.push(at);
                    }
                }
                break;
            }
        }
        let mut pages: Vec<&[u8]> = request
            .pages
            .iter()
            .map(|page| page.as_deref().unwrap_or_default())
            .collect();
        for (at, memory) in aside.iter().zip(spare.iter()) {
            pages[*at] = memory;
        }
        self.serve(&request, &mut pages, each);
        Ok(())
    }
}

impl Drop for CacheVisit<'_> {
    fn drop(&mut self) {
        for (page, owned) in std::mem::take(&mut self.gathered) {
            self.cache.abandon(self.name(page), owned);
        }
        while let Some(done) = self.queue.as_mut().and_then(|queue| queue.next_read(true)) {
            let _ = self.publish(done, &mut |_, _, _| {});
        }
        let totals = &self.cache.totals;
        totals.hits.fetch_add(self.hits, Relaxed);
        totals.misses.fetch_add(self.misses, Relaxed);
        totals.joins.fetch_add(self.joins, Relaxed);
    }
}
