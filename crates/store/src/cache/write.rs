//! Writes to pages.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::Arc;

use super::address::{Name, PAGES_MAX};
use super::core::{CacheRoom, Claim, PageCache};
use super::file::{BusyThread, CachedFile};
use super::join::Joint;
use super::open_file::OpenFile;
use super::request::ByteSpan;
use super::set::Set;
use crate::base::locked::locked as lock;
use crate::StoreError;

/// What became of a write to a page.
enum WriteStep {
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
    ///
    /// # Errors
    /// An end beyond the pages that a file can have. Why pages could not be written before this one could come. Once also
    /// why the flusher could not write pages of the file: then nothing of `data` is written.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<(), StoreError> {
        let _busy = BusyThread::enter()?;
        self.told()?;
        if !self.file.writable {
            let reason = "it was opened in the page cache for reading only";
            return Err(StoreError::unsupported(self.file.file.path(), reason));
        }
        let page_bytes = self.cache.options.page_bytes as u64;
        let end = offset.checked_add(data.len() as u64);
        let Some(end) = end.filter(|end| end.div_ceil(page_bytes) <= PAGES_MAX) else {
            let reason = format!("byte {offset} lies behind all pages of {page_bytes} bytes that can be told apart");
            return Err(StoreError::unsupported(self.file.file.path(), reason));
        };
        // Before the bytes are there: a page that is written out must not be cut at the old end.
        self.file.bytes.fetch_max(end, AcqRel);
        let (mut rest, mut offset) = (data, offset);
        while !rest.is_empty() {
            let at = (offset % page_bytes) as usize;
            let (part, after) = rest.split_at(rest.len().min(page_bytes as usize - at));
            self.write_page(Name::new(self.file.number, offset / page_bytes), at, part)?;
            (rest, offset) = (after, offset + part.len() as u64);
        }
        self.cache.shrink_if_wanted();
        self.cache.flush_if_due();
        Ok(())
    }

    /// Writes `bytes` bytes at each of the offsets, one after the other, out of `data`, which has them one behind the other.
    /// Pages of which only a part is written are read together before.
    ///
    /// # Errors
    /// Those of `write_at`, and of reading; what comes before in the list is written then.
    pub fn write_many(&self, data: &[u8], bytes: usize, offsets: &[u64]) -> Result<(), StoreError> {
        if offsets.len().checked_mul(bytes) != Some(data.len()) {
            let reason = format!("{} bytes for {} places of {bytes}", data.len(), offsets.len());
            return Err(StoreError::Invalid(reason));
        }
        let together = self.cache.window();
        let page_bytes = self.cache.options.page_bytes as u64;
        // Nothing has no places.
        let mut rows = data.chunks_exact(bytes.max(1));
        for offsets in offsets.chunks(together) {
            let ends = offsets.iter().flat_map(|offset| {
                let end = offset.saturating_add(bytes as u64);
                let (first, last) = (offset % page_bytes != 0, end % page_bytes != 0);
                let [first, last] = [first.then_some(*offset), last.then_some(end - 1)];
                first.into_iter().chain(last)
            });
            let length = self.len();
            let there = ends.filter(|offset| bytes > 0 && *offset < length);
            let spans: Vec<ByteSpan> = there.map(|offset| ByteSpan { offset, bytes: 1 }).collect();
            self.visit(&spans, &mut |_, _| {})?;
            for (offset, row) in offsets.iter().zip(&mut rows) {
                self.write_at(row, *offset)?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// Why pages could not be written meanwhile; they are dirty still.
    fn told(&self) -> Result<(), StoreError> {
        lock(&self.file.untold).take().map_or(Ok(()), Err)
    }

    /// Writes what the file has not yet: neighbouring pages together. Not durable before the file is synced.
    ///
    /// # Errors
    /// Why a page could not be written now, or by the flusher since the last call. Those that were not are dirty still.
    pub fn flush(&self) -> Result<(), StoreError> {
        let _busy = BusyThread::enter()?;
        let outcome = self.cache.flush_file(&self.file);
        self.told().and(outcome)
    }

    /// As `flush`, and makes the file durable.
    ///
    /// # Errors
    /// Those of `flush`; the file cannot be synced.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.flush()?;
        self.cache.io.sync(&self.file.file)
    }

    fn write_page(&self, name: Name, at: usize, data: &[u8]) -> Result<(), StoreError> {
        let cache = &*self.cache;
        let attempt = || cache.locked(name, |set| cache.change(set, name, at, data));
        loop {
            // The memory announces each page that nobody uses any more.
            let wait = || match attempt() {
                WriteStep::InUse => None,
                step => Some(step),
            };
            match cache.memory.idle().wait_for(wait) {
                WriteStep::Done(dirty) if dirty as usize > cache.options.dirty_most => return cache.clean_set(name),
                WriteStep::Done(_) => return Ok(()),
                WriteStep::Joined(joint) => joint.wait()?,
                WriteStep::Dirty => cache.clean_set(name)?,
                WriteStep::Absent => cache.load(&self.file, name)?,
                WriteStep::InUse => {}
            }
        }
    }
}

impl PageCache {
    /// Writes to a page of a set that is locked, if that can be done now.
    fn change(&self, set: &mut Set, name: Name, at: usize, data: &[u8]) -> WriteStep {
        let (way, mut page) = match self.find(set, name) {
            Some(way) if set.loading & (1 << way) != 0 => return WriteStep::Joined(self.joins.join(name)),
            Some(way) => match self.memory.own(set.frames[way]) {
                Some(page) => (way, page),
                None => return WriteStep::InUse,
            },
            None if data.len() < self.options.page_bytes => return WriteStep::Absent,
            None => match self.room(set) {
                CacheRoom::Way(way, page) => (way, page),
                CacheRoom::Full => return WriteStep::InUse,
                CacheRoom::Dirty => return WriteStep::Dirty,
            },
        };
        page[at..at + data.len()].copy_from_slice(data);
        if set.held & (1 << way) == 0 {
            self.enter(set, way, name);
        } else {
            self.touch(set, way);
        }
        if set.dirty & (1 << way) == 0 {
            set.dirty |= 1 << way;
            self.flusher.dirty.fetch_add(1, Relaxed);
        }
        WriteStep::Done(set.dirty.count_ones())
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
}
