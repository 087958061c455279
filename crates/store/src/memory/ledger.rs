//! The one memory ledger: what is not reserved here is not allocated.

use std::sync::{Arc, MutexGuard, Weak};

pub use super::account::Reclaim;
use super::account::{Account, Books};
use super::process::Process;
use crate::StoreError;

/// A session's part of the process's memory: counts reserved bytes against a limit, and knows what the others hold.
///
/// Invariants:
/// 1. `used <= limit` after every successful `reserve` (`set_limit` may lower the limit below what is in use; then
///    nothing more is granted until enough is released).
/// 2. After every `reserve` the memory that a `FramePool` keeps for reuse fits in what is left of the limit.
#[derive(Clone)]
pub struct Ledger {
    account: Arc<Account>,
    process: &'static Process,
}

fn bytes_of(holder: &Option<Weak<dyn Reclaim>>) -> usize {
    let holder = holder.as_ref().and_then(Weak::upgrade);
    holder.map_or(0, |holder| holder.bytes())
}

/// Asks a holder to give up `excess` bytes.
fn shrink_by(holder: &Option<Weak<dyn Reclaim>>, excess: usize) {
    if let Some(holder) = holder.as_ref().and_then(Weak::upgrade) {
        holder.shrink_to(holder.bytes().saturating_sub(excess));
    }
}

/// Asks holders one after the other, until they have given up `excess` bytes together.
fn shrink_in_order(holders: impl Iterator<Item = Arc<dyn Reclaim>>, excess: usize) {
    let mut left = excess;
    for holder in holders {
        if left == 0 {
            return;
        }
        let had = holder.bytes();
        holder.shrink_to(had.saturating_sub(left));
        left = left.saturating_sub(had.saturating_sub(holder.bytes()));
    }
}

impl Ledger {
    pub fn new(limit_bytes: usize) -> Ledger {
        Ledger::within(Process::current(), limit_bytes)
    }

    pub(crate) fn within(process: &'static Process, limit_bytes: usize) -> Ledger {
        let account = Arc::new(Account::with_limit(limit_bytes));
        process.register(Arc::downgrade(&account));
        Ledger { account, process }
    }

    pub(super) fn process(&self) -> &'static Process {
        self.process
    }

    fn of(process: &'static Process) -> impl Iterator<Item = Ledger> {
        let accounts = process.accounts().into_iter();
        accounts.map(move |account| Ledger { account, process })
    }

    fn state(&self) -> MutexGuard<'_, Books> {
        self.account.state()
    }

    pub fn limit(&self) -> usize {
        self.state().limit
    }

    pub fn set_limit(&self, limit_bytes: usize) {
        self.state().limit = limit_bytes;
        self.reclaim();
    }

    pub fn used(&self) -> usize {
        self.state().used
    }

    /// The highest `used` since the ledger was made or `reset_peak` was called.
    pub fn peak(&self) -> usize {
        self.state().peak
    }

    pub fn reset_peak(&self) {
        let mut state = self.state();
        state.peak = state.used;
    }

    /// Reservations granted or refused so far.
    pub fn reservations(&self) -> u64 {
        self.state().reservations
    }

    /// Makes the `nth` reservation from now (counted from 1) fail: a hook for tests.
    pub fn fail_at(&self, nth: Option<u64>) {
        self.state().fail_in = nth;
    }

    pub(crate) fn set_cache(&self, cache: Weak<dyn Reclaim>) {
        self.state().cache = Some(cache);
    }

    /// Names what keeps tiles between programs, so that other sessions can have their room.
    pub fn set_kept(&self, kept: Weak<dyn Reclaim>) {
        self.state().kept = Some(kept);
    }

    /// Names a page cache, so that others can have its room; one that is named again is the one used last.
    pub fn add_pages(&self, pages: Weak<dyn Reclaim>) {
        let mut state = self.state();
        state.forget(|other| std::ptr::addr_eq(other.as_ptr(), pages.as_ptr()));
        state.pages.push(pages);
    }

    /// Names who holds a page cache instead of the cache: the whole of it may go then.
    pub fn hold_pages(&self, cache: &dyn Reclaim, holder: Weak<dyn Reclaim>) {
        self.state()
            .forget(|other| std::ptr::addr_eq(other.as_ptr(), std::ptr::from_ref(cache)));
        self.add_pages(holder);
    }

    /// Says that a program has left tiles.
    pub fn kept_used(&self) {
        let mut state = self.state();
        state.pages_before_kept = state.pages.len();
    }

    pub(crate) fn begin_turn(&self, number: u64) {
        let held = self.held();
        let mut state = self.state();
        (state.turn, state.held) = (number, Some(held));
    }

    pub(crate) fn end_turn(&self, number: u64) {
        let mut state = self.state();
        if state.turn == number {
            state.held = None;
        }
    }

    /// Whether somebody has the turn with this ledger.
    pub fn is_in_turn(&self) -> bool {
        self.state().held.is_some()
    }

    fn page_caches(&self) -> Vec<Arc<dyn Reclaim>> {
        self.state().pages.iter().filter_map(Weak::upgrade).collect()
    }

    /// Bytes that page caches have reserved.
    pub fn page_bytes(&self) -> usize {
        self.page_caches().iter().map(|cache| cache.reserved()).sum()
    }

    /// Has the page caches of this session do with `allowed` bytes together. Returns what they have then.
    pub fn shrink_pages(&self, allowed: usize) -> usize {
        let excess = self.yielding_page_bytes().saturating_sub(allowed);
        shrink_in_order(self.page_caches().into_iter(), excess);
        self.yielding_page_bytes()
    }

    /// Bytes that page caches could do without.
    pub(super) fn yielding_page_bytes(&self) -> usize {
        self.page_caches().iter().map(|cache| cache.bytes()).sum()
    }

    /// Has page caches, but for one, and tiles that stay between programs give up `excess` bytes or what they can: what was
    /// used longest ago is the first.
    pub fn give_up(&self, excess: usize, but: Option<&dyn Reclaim>) {
        let (before, caches, kept) = {
            let state = self.state();
            (state.pages_before_kept, state.pages.clone(), state.kept.clone())
        };
        let (older, newer) = caches.split_at(before.min(caches.len()));
        let is_other = |holder: &Weak<dyn Reclaim>| but.is_none_or(|but| !std::ptr::addr_eq(holder.as_ptr(), but));
        let holders = older.iter().chain(&kept).chain(newer).filter(|holder| is_other(holder));
        shrink_in_order(holders.filter_map(Weak::upgrade), excess);
    }

    /// Bytes granted to what outlives a program and cannot be taken back: results that the caller still holds.
    pub fn held(&self) -> usize {
        // While a program runs, its own frames are no results: what was held when it started is.
        let held = self.state().held;
        held.unwrap_or_else(|| self.held_now())
    }

    /// Bytes granted to what cannot be taken back, with what a program that runs has itself.
    pub fn held_now(&self) -> usize {
        let (used, kept) = {
            let state = self.state();
            (state.used, state.kept.clone())
        };
        used.saturating_sub(bytes_of(&kept) + self.yielding_page_bytes())
    }

    /// Bytes granted, and those that wait to be used again.
    fn resident(&self) -> usize {
        let (used, cache) = {
            let state = self.state();
            (state.used, state.cache.clone())
        };
        used + bytes_of(&cache)
    }

    fn others(&self) -> Vec<Ledger> {
        Ledger::of(self.process)
            .filter(|ledger| !Arc::ptr_eq(&ledger.account, &self.account))
            .collect()
    }

    /// What the other ledgers of the process hold and cannot give up.
    pub fn held_by_others(&self) -> usize {
        self.others().iter().map(Ledger::held).sum()
    }

    /// Takes from the other ledgers what they can do without until they hold no more than `allowed` bytes: frames that
    /// wait first, then tiles, from the one that ran longest ago on. Returns what they hold then. In its turn only.
    pub fn shrink_others(&self, allowed: usize) -> usize {
        let mut others = self.others();
        others.sort_by_key(|ledger| ledger.state().turn);
        let total = || others.iter().map(Ledger::resident).sum::<usize>();
        let excess = || total().saturating_sub(allowed);
        for ledger in &others {
            let cache = ledger.state().cache.clone();
            shrink_by(&cache, excess());
        }
        for ledger in &others {
            let (cache, kept) = {
                let state = ledger.state();
                (state.cache.clone(), state.kept.clone())
            };
            // Pages can be read again; a tile may have to be computed.
            ledger.shrink_pages(ledger.yielding_page_bytes().saturating_sub(excess()));
            shrink_by(&kept, excess());
            shrink_by(&cache, excess());
        }
        total()
    }

    /// Of the process's `resident` bytes, those that no ledger counts.
    pub fn uncounted(resident: usize) -> usize {
        let process = Process::current();
        let untouched = |ledger: &Ledger| ledger.page_caches().iter().map(|cache| cache.untouched()).sum();
        let counted = |ledger: &Ledger| ledger.resident().saturating_sub(untouched(ledger));
        let counted: usize = Ledger::of(process).map(|ledger| counted(&ledger)).sum();
        process.uncounted(resident.saturating_sub(counted))
    }

    /// Grants `bytes` to `what`, or says what is missing.
    ///
    /// # Errors
    /// `memory`, with need, use and limit.
    pub fn reserve(&self, bytes: usize, what: &str) -> Result<Reservation, StoreError> {
        {
            let mut state = self.state();
            state.reservations += 1;
            let told_to_fail = state.fail_in == Some(1);
            state.fail_in = state
                .fail_in
                .and_then(|left| left.checked_sub(1))
                .filter(|left| *left > 0);
            let fits = state.used.checked_add(bytes).is_some_and(|total| total <= state.limit);
            if told_to_fail || !fits {
                return Err(StoreError::Memory {
                    what: what.to_string(),
                    need: bytes,
                    used: state.used,
                    limit: state.limit,
                });
            }
            state.used += bytes;
            state.peak = state.peak.max(state.used);
        }
        self.reclaim();
        Ok(Reservation {
            ledger: self.clone(),
            bytes,
        })
    }

    /// Has memory that waits to be used again fit in what is left of the limit.
    pub(crate) fn reclaim(&self) {
        let (cache, allowed) = {
            let state = self.state();
            (state.cache.clone(), state.limit.saturating_sub(state.used))
        };
        if let Some(cache) = cache.and_then(|weak| weak.upgrade()) {
            cache.shrink_to(allowed);
        }
    }
}

/// Bytes granted; given back on drop.
pub struct Reservation {
    ledger: Ledger,
    bytes: usize,
}

impl Reservation {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes another reservation of the same ledger part of this one.
    pub(crate) fn join(&mut self, mut other: Reservation) {
        debug_assert!(Arc::ptr_eq(&self.ledger.account, &other.ledger.account));
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives a part back.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.ledger.state().used -= bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.state().used -= self.bytes;
    }
}
