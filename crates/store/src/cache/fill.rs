//! Many pages at once, to a buffer: what is there is copied, what is not is read to where it is wanted, and kept.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use super::address::Name;
use super::core::{Claim, PageCache};
use super::file::{BusyThread, CachedFile};
use super::join::Joint;
use super::open_file::OpenFile;
use crate::base::page::PAGE;
use crate::io::PlacedPart;
use crate::memory::pages::{prefetch, PageMut};
use crate::{AlignedBuffer, StoreError};

/// Pages that are looked for together: what is known of them, and they themselves, come to the processor meanwhile.
const TOGETHER: usize = 8;

/// The part of a cache that a call has under way at most.
const USED: usize = 16;

/// Pages in a row that are read although they are there, where they lie between others that are not: one request for two.
const BRIDGE: u64 = 2;

/// Pages that follow on each other in the file, and in a buffer from a byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The number of the first in the file.
    pub first: u64,
    pub pages: u64,
    pub place: usize,
}

impl CachedFile {
    /// Fills the buffer with runs of pages, which ascend in it and do not overlap. Those that the cache has are copied, the others
    /// are read, as many of a run together as follow on each other or nearly do, and with `keeps` kept by the cache where there is
    /// room in their sets.
    ///
    /// # Errors
    /// A file that is written; pages that are smaller than those of the system; a run that leaves the file: before anything is
    /// read. The first error of a read.
    pub fn fill(&self, runs: &[PageRun], buffer: AlignedBuffer, keeps: bool) -> Result<AlignedBuffer, StoreError> {
        let _busy = BusyThread::enter()?;
        if self.file.writable {
            let reason = "what is there of a file that is written may be newer than the file: it is not filled from";
            return Err(StoreError::unsupported(self.file.file.path(), reason));
        }
        let page_bytes = self.cache.options.page_bytes as u64;
        if !page_bytes.is_multiple_of(PAGE as u64) {
            let reason =
                format!("buffers are filled with pages of {PAGE} bytes or more, and the cache's have {page_bytes}");
            return Err(StoreError::unsupported(self.file.file.path(), reason));
        }
        let mut wanted = Vec::with_capacity(runs.iter().map(|run| run.pages).sum::<u64>() as usize);
        for (number, run) in runs.iter().enumerate() {
            self.file.check(run.first * page_bytes, run.pages * page_bytes)?;
            wanted.extend((0..run.pages).map(|at| WantedPages {
                page: run.first + at,
                place: run.place + (at * page_bytes) as usize,
                run: number,
            }));
        }
        let fill = PageFill {
            cache: &self.cache,
            file: &self.file,
            keeps,
            missing: vec![],
            joined: vec![],
            hits: 0,
            misses: 0,
            joins: 0,
        };
        let outcome = fill.run(wanted, buffer);
        self.cache.shrink_if_wanted();
        outcome
    }
}

/// A page and its place in the buffer.
#[derive(Clone, Copy)]
struct WantedPages {
    page: u64,
    place: usize,
    /// The run that it is of.
    run: usize,
}

/// A page that is not there, and the memory in which the cache will have it, if there is room for it.
struct Missing {
    wanted: WantedPages,
    room: Option<PageMut>,
}

/// One call of `fill`.
///
/// Invariant: a page that `claim` gave to read is in `missing` with its room; whatever happens, it is published or abandoned before
/// this is gone.
struct PageFill<'a> {
    cache: &'a PageCache,
    file: &'a OpenFile,
    keeps: bool,
    missing: Vec<Missing>,
    /// Pages that others read.
    joined: Vec<(Arc<Joint>, WantedPages)>,
    hits: u64,
    misses: u64,
    joins: u64,
}

impl PageFill<'_> {
    fn name(&self, page: u64) -> Name {
        Name::new(self.file.number, page)
    }

    fn run(mut self, mut wanted: Vec<WantedPages>, mut buffer: AlignedBuffer) -> Result<AlignedBuffer, StoreError> {
        // What is under way is in use: of many pages of a set at once, some could not be kept.
        let window = (self.cache.pages() / USED).max(TOGETHER);
        while !wanted.is_empty() {
            let mut rest = &wanted[..];
            while !rest.is_empty() {
                while !rest.is_empty() && self.missing.len() < window {
                    let together = TOGETHER.min(window - self.missing.len());
                    let (these, behind) = rest.split_at(together.min(rest.len()));
                    self.look(these, behind, &mut buffer)?;
                    rest = behind;
                }
                buffer = self.read(buffer)?;
            }
            // Nothing of this call's own is under way: it may wait for others (invariant 2 of the cache).
            wanted.clear();
            for (joint, place) in std::mem::take(&mut self.joined) {
                joint.wait()?;
                wanted.push(place);
            }
        }
        Ok(buffer)
    }

    /// Copies the pages that are there; notes the others.
    fn look(&mut self, these: &[WantedPages], behind: &[WantedPages], buffer: &mut [u8]) -> Result<(), StoreError> {
        let mut frames = [None; TOGETHER];
        for (wanted, frame) in these.iter().zip(&mut frames) {
            *frame = self.cache.glimpse(self.name(wanted.page));
        }
        behind
            .iter()
            .take(TOGETHER)
            .for_each(|later| self.cache.expect(self.name(later.page)));
        let mut pinned = [const { None }; TOGETHER];
        for ((wanted, frame), pinned) in these.iter().zip(frames).zip(&mut pinned) {
            let name = self.name(wanted.page).0;
            *pinned = frame.and_then(|frame| self.cache.memory.pin_named(frame, name));
            pinned.iter().for_each(|page| prefetch(&**page));
        }
        for (wanted, pinned) in these.iter().zip(&mut pinned) {
            match pinned.take() {
                Some(page) => self.copy(*wanted, &page, buffer),
                None => self.claim(*wanted, buffer)?,
            }
        }
        Ok(())
    }

    fn copy(&mut self, wanted: WantedPages, page: &[u8], buffer: &mut [u8]) {
        self.hits += 1;
        buffer[wanted.place..][..page.len()].copy_from_slice(page);
    }

    fn claim(&mut self, wanted: WantedPages, buffer: &mut [u8]) -> Result<(), StoreError> {
        let name = self.name(wanted.page);
        let claim = match self.keeps {
            true => self.cache.claim_cleaning(name)?,
            false => self.cache.look(name).unwrap_or(Claim::Full),
        };
        let room = match claim {
            Claim::Hit(page) => {
                self.copy(wanted, &page, buffer);
                return Ok(());
            }
            Claim::Joined(joint) => {
                self.joins += 1;
                self.joined.push((joint, wanted));
                return Ok(());
            }
            Claim::Load(page) => Some(page),
            Claim::Full | Claim::Dirty => None,
        };
        self.misses += 1;
        self.missing.push(Missing { wanted, room });
        Ok(())
    }

    /// Reads what is missing.
    fn read(&mut self, buffer: AlignedBuffer) -> Result<AlignedBuffer, StoreError> {
        if self.missing.is_empty() {
            return Ok(buffer);
        }
        let page_bytes = self.cache.options.page_bytes;
        let follows = |one: &Missing, next: &Missing| {
            one.wanted.run == next.wanted.run && next.wanted.page - one.wanted.page <= 1 + BRIDGE
        };
        let mut parts = vec![];
        let mut begins = vec![];
        let mut number = 0;
        for together in self.missing.chunk_by(follows) {
            let (first, last) = (together[0].wanted, together[together.len() - 1].wanted);
            parts.push(PlacedPart {
                place: first.place,
                bytes: (last.page - first.page + 1) as usize * page_bytes,
                offset: first.page * page_bytes as u64,
            });
            begins.push(number);
            number += together.len();
        }
        begins.push(number);
        let (cache, file, missing) = (self.cache, self.file, &mut self.missing);
        let buffer = cache.io.read_parts(&file.file, buffer, &parts, |number, outcome| {
            let part = &mut missing[begins[number]..begins[number + 1]];
            keep(cache, file, part, outcome)
        });
        self.missing.clear();
        buffer
    }
}

/// Has the cache have the pages of a part, if it has come and they are what they should be.
fn keep(
    cache: &PageCache,
    file: &OpenFile,
    missing: &mut [Missing],
    outcome: Result<&[u8], StoreError>,
) -> Result<(), StoreError> {
    let page_bytes = cache.options.page_bytes;
    if let Ok(bytes) = outcome {
        cache.totals.bytes_read.fetch_add(bytes.len() as u64, Relaxed);
    }
    let first = missing.first().map_or(0, |missing| missing.wanted.page);
    let mut all = Ok(());
    for Missing { wanted, room } in missing {
        let outcome = outcome.clone().and_then(|bytes| {
            let page = &bytes[(wanted.page - first) as usize * page_bytes..][..page_bytes];
            file.check_page(wanted.page, page)?;
            room.iter_mut().for_each(|room| room.copy_from_slice(page));
            Ok(())
        });
        if let Some(room) = room.take() {
            cache.publish(Name::new(file.number, wanted.page), room, &outcome);
        }
        all = all.and(outcome);
    }
    all
}

impl Drop for PageFill<'_> {
    fn drop(&mut self) {
        for Missing { wanted, room } in std::mem::take(&mut self.missing) {
            if let Some(room) = room {
                self.cache.abandon(self.name(wanted.page), room);
            }
        }
        let totals = &self.cache.totals;
        totals.hits.fetch_add(self.hits, Relaxed);
        totals.misses.fetch_add(self.misses, Relaxed);
        totals.joins.fetch_add(self.joins, Relaxed);
    }
}
