//! A thread that brings dirty pages to their files, neighbours together, before somebody has to wait for it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use super::core::{lock, PageCache};
use super::file::OpenFile;
use crate::alarm::Alarm;

/// What writers tell the flusher.
#[derive(Default)]
pub(super) struct Flusher {
    /// Pages that are dirty, and not being written.
    pub(super) dirty: AtomicUsize,
    alarm: Arc<Alarm>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Flusher {
    /// Starts the thread if there is none. Without one, who needs room writes pages as before.
    pub(super) fn start(&self, cache: &Arc<PageCache>) {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let (alarm, cache) = (self.alarm.clone(), Arc::downgrade(cache));
            let builder = std::thread::Builder::new().name("outcore-flush".into());
            *thread = builder.spawn(move || run(&alarm, &cache)).ok();
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.alarm.end();
        let thread = lock(&self.thread).take();
        // The last who held the cache may be the thread itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// Holds the cache while it works only.
fn run(alarm: &Alarm, cache: &Weak<PageCache>) {
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
