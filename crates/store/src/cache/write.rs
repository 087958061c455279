//! Writes to pages, and pages to files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::Arc;

use super::address::Name;
use super::core::{lock, Claim, PageCache, Room};
use super::file::{Busy, CachedFile, OpenFile};
use super::join::Joint;
use super::set::{ways, Set};
use crate::io::{Done, Queue};
use crate::pages::PagePin;
use crate::StoreError;

/// Pages that are written by one call at most.
const RUN_PAGES: usize = 256;

/// Calls that are under way together.
const RUNS: usize = 32;

/// How far beside a page others are looked for that can be written with it.
const NEIGHBOURS: u64 = 32;

/// What became of a write to a page.
enum Step {
    /// So many pages of the set are dirty now.
    Done(u32),
    Joined(Arc<Joint>),
    /// It, or all of its set, is being read in place.
    InUse,
    /// Pages of the set must be written first.
    Dirty,
    /// It must be read first.
    Absent,
}

impl CachedFile {
    /// Writes to the cache; the file has the bytes after `flush`. Grows the file where it ends before.
    ///
    /// Each page is changed at once for all who read it: who reads it in place is waited for.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<(), StoreError> {
        let _busy = Busy::enter()?;
        if !self.file.writable {
            let reason = "it was opened in the page cache for reading only";
            return Err(StoreError::unsupported(self.file.file.path(), reason));
        }
        // Before the bytes are there: a page that is written out must not be cut at the old end.
        self.file.bytes.fetch_max(offset + data.len() as u64, AcqRel);
        let page_bytes = self.cache.options.page_bytes as u64;
        let (mut rest, mut offset) = (data, offset);
        while !rest.is_empty() {
            let at = (offset % page_bytes) as usize;
            let (part, after) = rest.split_at(rest.len().min(page_bytes as usize - at));
            self.write_page(Name::new(self.file.number, offset / page_bytes), at, part)?;
            (rest, offset) = (after, offset + part.len() as u64);
        }
        self.cache.shrink_if_wanted();
        Ok(())
    }

    /// Writes what the file has not yet: neighbouring pages together. Not durable before the file is synced.
    pub fn flush(&self) -> Result<(), StoreError> {
        let _busy = Busy::enter()?;
        self.cache.flush_file(&self.file)
    }

    fn write_page(&self, name: Name, at: usize, data: &[u8]) -> Result<(), StoreError> {
        let cache = &*self.cache;
        let attempt = || cache.locked(name, |set| cache.change(set, name, at, data));
        loop {
            // The memory announces each page that nobody uses any more.
            let wait = || match attempt() {
                Step::InUse => None,
                step => Some(step),
            };
            match cache.memory.idle().wait_for(wait) {
                Step::Done(dirty) if dirty as usize > cache.options.dirty_most => return cache.clean_set(name),
                Step::Done(_) => return Ok(()),
                Step::Joined(joint) => joint.wait()?,
                Step::Dirty => cache.clean_set(name)?,
                Step::Absent => cache.load(&self.file, name)?,
                Step::InUse => {}
            }
        }
    }
}

impl PageCache {
    /// Writes to a page of a set that is locked, if that can be done now.
    fn change(&self, set: &mut Set, name: Name, at: usize, data: &[u8]) -> Step {
        let (way, mut page) = match self.find(set, name) {
            Some(way) if set.loading & (1 << way) != 0 => return Step::Joined(self.joins.join(name)),
            Some(way) => match self.memory.own(set.frames[way]) {
                Some(page) => (way, page),
                None => return Step::InUse,
            },
            None if data.len() < self.options.page_bytes => return Step::Absent,
            None => match self.room(set) {
                Room::Way(way, page) => (way, page),
                Room::Full => return Step::InUse,
                Room::Dirty => return Step::Dirty,
            },
        };
        page[at..at + data.len()].copy_from_slice(data);
        if set.held & (1 << way) == 0 {
            self.enter(set, way, name);
        } else {
            self.options.policy.touch(set, way);
        }
        set.dirty |= 1 << way;
        Step::Done(set.dirty.count_ones())
    }

    /// Reads one page, so that a part of it can be changed.
    fn load(&self, file: &OpenFile, name: Name) -> Result<(), StoreError> {
        let page_bytes = self.options.page_bytes;
        match self.claim(name) {
            Claim::Load(mut page) => {
                let offset = name.page() * page_bytes as u64;
                let filled = file.readable(offset, page_bytes);
                page[filled..].fill(0);
                let outcome = self.io.read(&file.file, &mut page, offset, filled);
                if outcome.is_ok() {
                    self.totals.misses.fetch_add(1, Relaxed);
                    self.totals.bytes_read.fetch_add(filled as u64, Relaxed);
                }
                self.publish(name, page, &outcome);
                outcome
            }
            Claim::Dirty => self.clean_set(name),
            Claim::Full => {
                let room = || match self.claim(name) {
                    Claim::Full => None,
                    Claim::Load(page) => {
                        self.abandon(name, page);
                        Some(())
                    }
                    _ => Some(()),
                };
                self.memory.idle().wait_for(room);
                Ok(())
            }
            // Who looks again finds it.
            Claim::Hit(_) | Claim::Joined(_) => Ok(()),
        }
    }

    /// Writes the dirty pages of a set, and their dirty neighbours with them.
    pub(super) fn clean_set(&self, name: Name) -> Result<(), StoreError> {
        let dirty = self.locked(name, |set| self.dirty_of(set));
        let mut pages = BTreeSet::new();
        for name in dirty {
            let page = name.page();
            let near = |page: &u64| self.is_dirty(Name::new(name.file(), *page));
            pages.extend(
                (page + 1..=page + NEIGHBOURS)
                    .take_while(near)
                    .map(|page| (name.file(), page)),
            );
            let before = (page.saturating_sub(NEIGHBOURS)..page).rev();
            pages.extend(before.take_while(near).map(|page| (name.file(), page)));
            pages.insert((name.file(), page));
        }
        self.write_out(pages)
    }

    /// Writes pages of any files, if they are dirty.
    pub(super) fn write_out(&self, pages: BTreeSet<(u32, u64)>) -> Result<(), StoreError> {
        let mut files: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (file, page) in pages {
            files.entry(file).or_default().push(page);
        }
        for (number, pages) in files {
            if let Some(file) = self.file(number) {
                self.write_back(&file, &pages)?;
            }
        }
        Ok(())
    }

    pub(super) fn dirty_of(&self, set: &Set) -> Vec<Name> {
        ways(set.dirty & !set.writing)
            .map(|way| Name(self.memory.name(set.frames[way])))
            .collect()
    }

    fn is_dirty(&self, name: Name) -> bool {
        let dirty = |set: &mut Set| {
            self.find(set, name)
                .is_some_and(|way| set.dirty & !set.writing & (1 << way) != 0)
        };
        self.locked(name, dirty)
    }

    /// Writes those of a file's pages, in order, that are dirty. All are tried; returns the first error.
    fn write_back(&self, file: &OpenFile, pages: &[u64]) -> Result<(), StoreError> {
        let _extent = file.extent.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut writes = WriteBack {
            cache: self,
            file,
            queue: Queue::for_writes(&self.io),
            runs: BTreeMap::new(),
            first_error: None,
        };
        let mut run: Vec<PagePin> = Vec::new();
        let mut first = 0;
        for &page in pages {
            let follows = page == first + run.len() as u64 && run.len() < RUN_PAGES;
            if !follows {
                writes.start(first, std::mem::take(&mut run));
                first = page;
            }
            match self.begin_write(Name::new(file.number, page)) {
                Some(pin) => run.push(pin),
                None => {
                    writes.start(first, std::mem::take(&mut run));
                    first = page + 1;
                }
            }
        }
        writes.start(first, run);
        writes.end()
    }

    /// Pins a page that is dirty, and takes it for clean until it is known whether it was written.
    fn begin_write(&self, name: Name) -> Option<PagePin> {
        self.locked(name, |set| {
            let way = self.find(set, name)?;
            if set.dirty & !set.writing & (1 << way) == 0 {
                return None;
            }
            let pin = self.memory.hold(set.frames[way])?;
            set.dirty &= !(1 << way);
            set.writing |= 1 << way;
            Some(pin)
        })
    }

    fn end_write(&self, name: Name, written: bool) {
        self.locked(name, |set| {
            let way = self.find(set, name).expect("a page that is being written is pinned");
            set.writing &= !(1 << way);
            set.dirty |= u16::from(!written) << way;
        });
    }

    /// Pages of a file that are dirty, in order, and those that somebody is writing.
    fn unwritten(&self, file: u32) -> (Vec<u64>, Vec<u64>) {
        // Pages would pass from sets not looked at yet to those that were.
        let _size = lock(&self.size);
        let (mut dirty, mut writing) = (Vec::new(), Vec::new());
        for at in 0..self.sets.load(Relaxed) {
            let set = lock(&self.line(at).0);
            for way in ways(set.dirty | set.writing) {
                let name = Name(self.memory.name(set.frames[way]));
                if name.file() == file {
                    let list = if set.writing & (1 << way) != 0 {
                        &mut writing
                    } else {
                        &mut dirty
                    };
                    list.push(name.page());
                }
            }
        }
        dirty.sort_unstable();
        (dirty, writing)
    }

    pub(super) fn flush_file(&self, file: &OpenFile) -> Result<(), StoreError> {
        if !file.writable {
            return Ok(());
        }
        let (dirty, mut writing) = self.unwritten(file.number);
        self.write_back(file, &dirty)?;
        writing.sort_unstable();
        for &page in &writing {
            let name = Name::new(file.number, page);
            let is_writing = |set: &mut Set| self.find(set, name).is_some_and(|way| set.writing & (1 << way) != 0);
            let over = || (!self.locked(name, is_writing)).then_some(());
            self.memory.idle().wait_for(over);
        }
        // What others could not write is dirty again.
        self.write_back(file, &writing)?;
        self.cut(file)
    }

    /// Cuts off what whole pages wrote beyond the end of the file.
    fn cut(&self, file: &OpenFile) -> Result<(), StoreError> {
        let _extent = file.extent.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let bytes = file.len();
        if file.on_disk.load(Relaxed) > bytes {
            file.file.set_len(bytes)?;
            file.on_disk.store(bytes, Relaxed);
        }
        Ok(())
    }
}

/// Runs of pages on their way to a file.
struct WriteBack<'a> {
    cache: &'a PageCache,
    file: &'a OpenFile,
    queue: Queue<PagePin>,
    /// Bytes of each run, by its first page.
    runs: BTreeMap<u64, usize>,
    first_error: Option<StoreError>,
}

impl WriteBack<'_> {
    fn start(&mut self, first: u64, run: Vec<PagePin>) {
        if run.is_empty() {
            return;
        }
        while self.queue.under_way() >= RUNS {
            self.settle_next();
        }
        let page_bytes = self.cache.options.page_bytes;
        let offset = first * page_bytes as u64;
        let left = self.file.len().saturating_sub(offset);
        let aligned = left.next_multiple_of(self.file.file.alignment() as u64);
        let bytes = (run.len() * page_bytes).min(usize::try_from(aligned).unwrap_or(usize::MAX));
        self.runs.insert(first, bytes);
        self.queue.write(&self.file.file, run, offset, bytes, first);
        self.queue.submit();
    }

    fn settle_next(&mut self) {
        if let Some(done) = self.queue.next_write(true) {
            self.settle(done);
        }
    }

    fn settle(&mut self, done: Done<PagePin>) {
        let bytes = self.runs.remove(&done.token).unwrap_or_default() as u64;
        if done.outcome.is_ok() {
            let end = done.token * self.cache.options.page_bytes as u64 + bytes;
            self.file.on_disk.fetch_max(end, AcqRel);
            self.cache.totals.bytes_written.fetch_add(bytes, Relaxed);
        }
        for (at, pin) in done.buffers.into_iter().enumerate() {
            let name = Name::new(self.file.number, done.token + at as u64);
            self.cache.end_write(name, done.outcome.is_ok());
            drop(pin);
        }
        // To who waits for them to be written: others may have them pinned still.
        self.cache.memory.idle().announce();
        if let Err(error) = done.outcome {
            self.first_error.get_or_insert(error);
        }
    }

    fn end(mut self) -> Result<(), StoreError> {
        while self.queue.under_way() > 0 {
            self.settle_next();
        }
        self.first_error.take().map_or(Ok(()), Err)
    }
}
