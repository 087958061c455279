//! A thread that brings dirty pages to their files, neighbours together, before somebody has to wait for it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::base::alarm::Alarm;
use crate::base::locked::locked as lock;

/// What writers tell the flusher.
#[derive(Default)]
pub(super) struct Flusher {
    /// Pages that are dirty, and not being written.
    pub(super) dirty: AtomicUsize,
    pub(super) alarm: Arc<Alarm>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Flusher {
    /// Starts the thread if there is none. Without one, who needs room writes pages as before.
    pub(super) fn start(&self, work: impl FnOnce(&Alarm) + Send + 'static) {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let alarm = self.alarm.clone();
            let builder = std::thread::Builder::new().name("outcore-flush".into());
            *thread = builder.spawn(move || work(&alarm)).ok();
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
