//! The books of one ledger.

use std::sync::{Mutex, MutexGuard, Weak};

use crate::base::locked::locked;

/// Something that holds memory it could do without.
pub trait Reclaim: Send + Sync {
    fn bytes(&self) -> usize;
    /// Keeps at most `allowed` bytes.
    fn shrink_to(&self, allowed: usize);
    /// Bytes that are reserved for it, with those that it cannot do without.
    fn reserved(&self) -> usize {
        self.bytes()
    }
    /// Bytes of its reservation that nothing was put into yet, so that they are not resident.
    fn untouched(&self) -> usize {
        0
    }
}

/// What a ledger counts, under a lock.
#[derive(Default)]
pub(crate) struct Account(Mutex<Books>);

impl Account {
    pub(super) fn with_limit(limit: usize) -> Account {
        Account(Mutex::new(Books {
            limit,
            ..Books::default()
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Books> {
        locked(&self.0)
    }
}

#[derive(Default)]
pub(crate) struct Books {
    pub(super) limit: usize,
    pub(super) used: usize,
    pub(super) peak: usize,
    pub(super) reservations: u64,
    /// Reservations left until one is made to fail.
    pub(super) fail_in: Option<u64>,
    /// Frames that wait to be used again, outside of `used`.
    pub(super) cache: Option<Weak<dyn Reclaim>>,
    /// Tiles that stay between programs, part of `used`.
    pub(super) kept: Option<Weak<dyn Reclaim>>,
    /// Page caches, part of `used`; the one used last is the last.
    pub(super) pages: Vec<Weak<dyn Reclaim>>,
    /// How many of them were used before the last program left tiles.
    pub(super) pages_before_kept: usize,
    /// The number of the last turn to run, and what was held when it began while it lasts.
    pub(super) turn: u64,
    pub(super) held: Option<usize>,
}

impl Books {
    /// Forgets page caches that are gone, and one.
    pub(super) fn forget(&mut self, is: impl Fn(&Weak<dyn Reclaim>) -> bool) {
        let stays = |pages: &Weak<dyn Reclaim>| pages.strong_count() > 0 && !is(pages);
        let before = self.pages.iter().take(self.pages_before_kept);
        self.pages_before_kept = before.filter(|pages| stays(pages)).count();
        self.pages.retain(stays);
    }
}
