//! The one memory ledger: what is not reserved here is not allocated.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::cache::PageCache;
use crate::process::{Process, Turn};
use crate::StoreError;

/// A session's part of the process's memory: counts reserved bytes against a limit, and knows what the others hold.
///
/// Invariants:
/// 1. `used <= limit` after every successful `reserve` (`set_limit` may lower the limit below what is in use; then
///    nothing more is granted until enough is released).
/// 2. After every `reserve` the memory that a `FramePool` keeps for reuse fits in what is left of the limit.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

pub(crate) struct Shared {
    state: Mutex<State>,
    process: &'static Process,
}

#[derive(Default)]
struct State {
    limit: usize,
    used: usize,
    peak: usize,
    reservations: u64,
    /// Reservations left until one is made to fail.
    fail_in: Option<u64>,
    /// Frames that wait to be used again, outside of `used`.
    cache: Option<Weak<dyn Reclaim>>,
    /// Tiles that stay between programs, part of `used`.
    kept: Option<Weak<dyn Reclaim>>,
    /// Page caches, part of `used`; the one used last is the last.
    pages: Vec<Weak<dyn Reclaim>>,
    /// How many of them were used before the last program left tiles.
    pages_before_kept: usize,
    /// The number of the last turn to run, and what was held when it began while it lasts.
    turn: u64,
    held: Option<usize>,
}

impl State {
    /// Forgets page caches that are gone, and one.
    fn forget(&mut self, is: impl Fn(&Weak<dyn Reclaim>) -> bool) {
        let stays = |pages: &Weak<dyn Reclaim>| pages.strong_count() > 0 && !is(pages);
        let before = self.pages.iter().take(self.pages_before_kept);
        self.pages_before_kept = before.filter(|pages| stays(pages)).count();
        self.pages.retain(stays);
    }
}

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
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                limit: limit_bytes,
                ..State::default()
            }),
            process,
        });
        process.register(Arc::downgrade(&shared));
        Ledger(shared)
    }

    pub(crate) fn upgrade(shared: &Weak<Shared>) -> Option<Ledger> {
        shared.upgrade().map(Ledger)
    }

    pub(crate) fn process(&self) -> &'static Process {
        self.0.process
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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

    /// Names who holds a page cache instead of it: the whole of it may go then.
    pub fn hold_pages(&self, cache: &PageCache, holder: Weak<dyn Reclaim>) {
        self.state()
            .forget(|other| std::ptr::addr_eq(other.as_ptr(), std::ptr::from_ref(cache)));
        self.add_pages(holder);
    }

    /// Says that a program has left tiles.
    pub fn kept_used(&self) {
        let mut state = self.state();
        state.pages_before_kept = state.pages.len();
    }

    /// Queues for the turn to run: one at a time in the whole process, first come, first served.
    pub fn queue(&self) -> Turn {
        Turn::queue(self)
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
    fn yielding_page_bytes(&self) -> usize {
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
        let mut ledgers = self.0.process.ledgers();
        ledgers.retain(|ledger| !Arc::ptr_eq(&ledger.0, &self.0));
        ledgers
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
        let counted: usize = process.ledgers().iter().map(counted).sum();
        process.uncounted(resident.saturating_sub(counted))
    }

    /// Grants `bytes` to `what`, or says what is missing.
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

    fn reclaim(&self) {
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
        debug_assert!(Arc::ptr_eq(&self.ledger.0, &other.ledger.0));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_names_what_need_used_and_limit() {
        let ledger = Ledger::new(100);
        let held = ledger.reserve(60, "a tile").unwrap();
        let error = ledger.reserve(50, "matmul workspace").err().unwrap();
        assert_eq!(
            error.to_string(),
            "matmul workspace needs 50 bytes, but 60 of 100 bytes are in use"
        );
        assert_eq!(error.code(), "memory");
        drop(held);
        assert_eq!((ledger.used(), ledger.peak()), (0, 60));
        ledger.reset_peak();
        assert_eq!(ledger.peak(), 0);
        assert!(ledger.reserve(usize::MAX, "everything").is_err());
    }

    /// Tiles between programs, or frames that wait: bytes, and nothing in them.
    struct Idle(Mutex<usize>);

    impl Reclaim for Idle {
        fn bytes(&self) -> usize {
            *self.0.lock().unwrap()
        }

        fn shrink_to(&self, allowed: usize) {
            let mut bytes = self.0.lock().unwrap();
            *bytes = allowed.min(*bytes);
        }
    }

    /// Three ledgers of a process without others, each with 60 bytes that wait.
    fn family() -> Vec<(Ledger, Arc<dyn Reclaim>)> {
        let process: &'static Process = Box::leak(Box::new(Process::new()));
        let member = |_| {
            let ledger = Ledger::within(process, 1000);
            let cache: Arc<dyn Reclaim> = Arc::new(Idle(Mutex::new(60)));
            ledger.set_cache(Arc::downgrade(&cache));
            (ledger, cache)
        };
        (0..3).map(member).collect()
    }

    #[test]
    fn others_give_up_what_they_can_the_one_that_ran_longest_ago_first() {
        let family = family();
        for (ledger, _) in &family {
            assert!(ledger.queue().has_come(Duration::ZERO));
        }
        let result = family[0].0.reserve(100, "a result").unwrap();
        let (last, _) = &family[2];
        assert_eq!((last.held_by_others(), last.shrink_others(1000)), (100, 220));
        assert_eq!(last.shrink_others(190), 190);
        let left: Vec<usize> = family.iter().map(|(_, cache)| cache.bytes()).collect();
        assert_eq!(left, [30, 60, 60]);
        assert_eq!(last.shrink_others(0), 100, "a result cannot be taken back");
        drop(result);
        assert_eq!(last.held_by_others(), 0);
    }

    #[test]
    fn what_was_used_longest_ago_gives_up_first() {
        let ledger = Ledger::new(1000);
        let idle = || -> Arc<dyn Reclaim> { Arc::new(Idle(Mutex::new(60))) };
        let (kept, caches) = (idle(), [idle(), idle(), idle()]);
        let name = |cache: &Arc<dyn Reclaim>| ledger.add_pages(Arc::downgrade(cache));
        let left = || [&caches[0], &caches[1], &caches[2], &kept].map(|each| each.bytes());
        ledger.set_kept(Arc::downgrade(&kept));
        caches.iter().for_each(name);
        ledger.kept_used();
        // The first is used once more, behind the tiles.
        name(&caches[0]);
        ledger.give_up(70, None);
        assert_eq!(left(), [60, 0, 50, 60]);
        ledger.give_up(70, None);
        assert_eq!(left(), [60, 0, 0, 40]);
        ledger.give_up(90, Some(&*caches[0]));
        assert_eq!(left(), [60, 0, 0, 0]);
        ledger.give_up(20, None);
        assert_eq!(left(), [40, 0, 0, 0]);
        let [first, ..] = caches;
        drop(first);
        assert_eq!(ledger.yielding_page_bytes(), 0);
    }

    #[test]
    fn turns_come_in_order_and_what_runs_is_no_result() {
        let family = family();
        let result = family[0].0.reserve(100, "a result").unwrap();
        let first = family[0].0.queue();
        let gone = family[1].0.queue();
        let second = family[1].0.queue();
        assert!(first.has_come(Duration::ZERO));
        let tile = family[0].0.reserve(500, "a tile").unwrap();
        assert!(!second.has_come(Duration::ZERO));
        assert_eq!(family[1].0.held_by_others(), 100);
        drop(gone);
        drop(first);
        assert!(second.has_come(Duration::ZERO));
        assert_eq!(family[1].0.held_by_others(), 600);
        drop((result, tile));
    }

    #[test]
    fn the_one_whose_turn_it_is_may_turn_others_away_until_it_ends() {
        let family = family();
        let (first, second) = (family[0].0.queue(), family[1].0.queue());
        second.turn_others_away();
        assert!(!first.is_turned_away(), "it is not the second's turn");
        first.turn_others_away();
        let third = family[2].0.queue();
        assert!(!first.is_turned_away() && second.is_turned_away() && third.is_turned_away());
        drop(first);
        assert!(second.has_come(Duration::ZERO));
        assert!(!third.is_turned_away());
    }

    #[test]
    fn the_nth_reservation_fails_once() {
        let ledger = Ledger::new(100);
        ledger.fail_at(Some(2));
        let outcomes: Vec<bool> = (0..4).map(|_| ledger.reserve(1, "x").is_ok()).collect();
        assert_eq!(outcomes, [true, false, true, true]);
        assert_eq!(ledger.reservations(), 4);
    }
}
