//! The flusher at work: writes what is dirty before somebody has to wait for it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::core::PageCache;
use super::open_file::OpenFile;
use crate::base::alarm::Alarm;
use crate::base::locked::locked as lock;

/// Holds the cache while it works only.
pub(super) fn run(alarm: &Alarm, cache: &Weak<PageCache>) {
    while alarm.wait() {
        let Some(cache) = cache.upgrade() else { return };
        cache.flush_ahead();
    }
}

impl PageCache {
    /// Dirty pages from which on the flusher works.
    fn dirty_mark(&self) -> usize {
        self.pages() * self.options.flush_percent.min(100) / 100
    }

    /// Has the flusher work if so many pages are dirty.
    #[inline]
    pub(super) fn flush_if_due(&self) {
        if self.flusher.dirty.load(Relaxed) > self.dirty_mark() {
            self.flusher.alarm.ring();
        }
    }

    /// Writes what is dirty of all files. What goes wrong is told to who writes to the file next, flushes or closes it;
    /// until then it is not tried again.
    fn flush_ahead(&self) {
        let files: Vec<Arc<OpenFile>> = lock(&self.files).open.values().cloned().collect();
        for file in files.iter().filter(|file| file.writable) {
            if lock(&file.untold).is_some() {
                continue;
            }
            if let Err(error) = self.flush_dirty(file) {
                lock(&file.untold).get_or_insert(error);
            }
        }
    }
}
