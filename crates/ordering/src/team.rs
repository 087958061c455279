//! Threads shared by all parts of one dissection: a part takes a helper when one is free, whichever part that is.

use crate::watch::OrderingWatch;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

pub(crate) struct Team<'a> {
    /// Threads that may still be started. Below 0 for a moment, when a thread that lent its place returns from a wait.
    free: AtomicIsize,
    stop: &'a (dyn Fn() -> bool + Sync),
    has_stopped: AtomicBool,
}

impl<'a> Team<'a> {
    pub(crate) fn new(watch: &OrderingWatch<'a>) -> Team<'a> {
        let free = AtomicIsize::new(watch.threads.clamp(1, 1 << 16) as isize - 1);
        Team {
            free,
            stop: watch.stop,
            has_stopped: AtomicBool::new(false),
        }
    }

    /// Asks the caller, until the answer was yes once.
    pub(crate) fn should_stop(&self) -> bool {
        if !self.has_stopped.load(Ordering::Relaxed) && (self.stop)() {
            self.has_stopped.store(true, Ordering::Relaxed);
        }
        self.has_stopped.load(Ordering::Relaxed)
    }

    /// Whether a helper may be started. Its work ends with `give`.
    pub(crate) fn take(&self) -> bool {
        let one_less = |free: isize| (free > 0).then(|| free - 1);
        self.free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }

    pub(crate) fn give(&self) {
        self.free.fetch_add(1, Ordering::Relaxed);
    }

    /// Does both, `other` on a helper that was taken.
    pub(crate) fn fork<T: Send>(&self, here: impl FnOnce() -> T, other: impl FnOnce() -> T + Send) -> [T; 2] {
        std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                let done = other();
                self.give();
                done
            });
            let done = here();
            // While this thread waits, another works in its place.
            self.give();
            let helped = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.free.fetch_sub(1, Ordering::Relaxed);
            [done, helped]
        })
    }
}
