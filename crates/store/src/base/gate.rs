//! Waiting for what another thread does, at no cost to it while nobody waits.
//!
//! The test of every interleaving (`tests/gate_model.rs`) compiles this file with `loom`'s primitives in place of `sync`.

use super::sync::{fence, AtomicUsize, Condvar, Mutex, Ordering};

/// An event count: whoever changes something announces it, whoever waits for a change asks again after each.
///
/// Invariant: a change made before `announce` is seen by the question that a waiter asks last before it sleeps, or the
/// announcement wakes it. Both sides put a fence between what they write (the change; the number that wait) and what they
/// read (the number that wait; the change), so at least one of them sees the other.
#[derive(Default)]
pub(crate) struct Gate {
    waiting: AtomicUsize,
    /// Announcements that somebody may have waited for.
    turn: Mutex<u64>,
    changed: Condvar,
}

impl Gate {
    /// The first answer to `ask`, which is asked now and after every announcement.
    pub(crate) fn wait_for<T>(&self, mut ask: impl FnMut() -> Option<T>) -> T {
        if let Some(answer) = ask() {
            return answer;
        }
        let _counted = CountedWaiter::new(&self.waiting);
        loop {
            let turn = *self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some(answer) = ask() {
                return answer;
            }
            let mut now = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            while *now == turn {
                now = self.changed.wait(now).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
    }

    /// Has those that wait ask again.
    #[inline]
    pub(crate) fn announce(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            *self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
            self.changed.notify_all();
        }
    }
}

/// One that waits, also if its question panics.
struct CountedWaiter<'a>(&'a AtomicUsize);

impl<'a> CountedWaiter<'a> {
    fn new(waiting: &'a AtomicUsize) -> CountedWaiter<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        CountedWaiter(waiting)
    }
}

impl Drop for CountedWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
