//! Pages on their way to their files: neighbours together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::address::Name;
use super::core::PageCache;
use super::open_file::OpenFile;
use super::set::{ways, Set};
use crate::base::locked::locked as lock;
use crate::io::{Done, Queue};
use crate::memory::pages::PagePin;
use crate::StoreError;

/// Pages that are written by one call at most.
const RUN_PAGES: usize = 256;

/// Calls that are under way together.
const RUNS: usize = 32;

/// How far beside a page others are looked for that can be written with it.
const NEIGHBOURS: u64 = 32;

impl PageCache {
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
            self.flusher.dirty.fetch_sub(1, Relaxed);
            set.writing |= 1 << way;
            Some(pin)
        })
    }

    fn end_write(&self, name: Name, written: bool) {
        self.locked(name, |set| {
            let way = self.find(set, name).expect("a page that is being written is pinned");
            set.writing &= !(1 << way);
            if !written {
                set.dirty |= 1 << way;
                self.flusher.dirty.fetch_add(1, Relaxed);
            }
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

    /// Writes the pages of a file that are dirty and that nobody writes.
    pub(super) fn flush_dirty(&self, file: &OpenFile) -> Result<(), StoreError> {
        self.write_back(file, &self.unwritten(file.number).0)
    }

    pub(super) fn flush_file(&self, file: &OpenFile) -> Result<(), StoreError> {
        if !file.writable {
            return Ok(());
        }
        let (dirty, mut writing) = self.unwritten(file.number);
        self.write_back(file, &dirty)?;
        writing.sort_unstable();
        for &page in &writing {
            self.wait_until_written(Name::new(file.number, page));
        }
        // What others could not write is dirty again.
        self.write_back(file, &writing)?;
        self.cut(file)
    }

    /// Waits for who writes a page.
    pub(super) fn wait_until_written(&self, name: Name) {
        let is_writing = |set: &mut Set| self.find(set, name).is_some_and(|way| set.writing & (1 << way) != 0);
        let over = || (!self.locked(name, is_writing)).then_some(());
        self.memory.idle().wait_for(over);
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
            self.complete_next();
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

    fn complete_next(&mut self) {
        if let Some(done) = self.queue.next_write(true) {
            self.complete(done);
        }
    }

    fn complete(&mut self, done: Done<PagePin>) {
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
            self.complete_next();
        }
        self.first_error.take().map_or(Ok(()), Err)
    }
}
