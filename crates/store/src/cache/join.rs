//! Queues of those that want a page which somebody else is reading.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::address::Name;
use crate::StoreError;

const STRIPES: usize = 16;

/// Pages under way that somebody waits for.
///
/// Invariant: both `join` and `finish` are called with the lock of the page's set held, the first only while the page is
/// loading, the second when it no longer is. So a queue is of one reading, and all of it is told how that ended.
#[derive(Default)]
pub(super) struct Joins {
    stripes: [Stripe; STRIPES],
}

#[derive(Default)]
struct Stripe {
    waited_for: AtomicUsize,
    queues: Mutex<HashMap<Name, Arc<Joint>>>,
}

/// One page's queue.
#[derive(Default)]
pub(super) struct Joint {
    outcome: Mutex<Option<Result<(), StoreError>>>,
    known: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Joint {
    /// How the reading ended. A page that was read may be gone again by then.
    pub(super) fn wait(&self) -> Result<(), StoreError> {
        let mut outcome = lock(&self.outcome);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => {
                    outcome = self
                        .known
                        .wait(outcome)
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                }
            }
        }
    }
}

impl Joins {
    fn stripe(&self, name: Name) -> &Stripe {
        &self.stripes[name.tag() as usize % STRIPES]
    }

    pub(super) fn join(&self, name: Name) -> Arc<Joint> {
        let stripe = self.stripe(name);
        let mut queues = lock(&stripe.queues);
        let joint = queues.entry(name).or_insert_with(|| {
            stripe.waited_for.fetch_add(1, Relaxed);
            Arc::default()
        });
        joint.clone()
    }

    /// How many wait for the page.
    #[cfg(test)]
    pub(super) fn waiting(&self, name: Name) -> usize {
        let queues = lock(&self.stripe(name).queues);
        queues.get(&name).map_or(0, |joint| Arc::strong_count(joint) - 1)
    }

    pub(super) fn finish(&self, name: Name, outcome: &Result<(), StoreError>) {
        let stripe = self.stripe(name);
        // Whoever joined did so under the same lock: no more than its count is needed to know.
        if stripe.waited_for.load(Relaxed) == 0 {
            return;
        }
        if let Some(joint) = lock(&stripe.queues).remove(&name) {
            stripe.waited_for.fetch_sub(1, Relaxed);
            *lock(&joint.outcome) = Some(outcome.clone());
            joint.known.notify_all();
        }
    }
}
