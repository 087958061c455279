//! The one memory ledger: what is not reserved here is not allocated.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::StoreError;

/// Counts reserved bytes against a limit.
///
/// Invariants:
/// 1. `used <= limit` after every successful `reserve` (`set_limit` may lower the limit below what is in use; then
///    nothing more is granted until enough is released).
/// 2. After every `reserve` the memory that a `FramePool` keeps for reuse fits in what is left of the limit.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    limit: usize,
    used: usize,
    peak: usize,
    reservations: u64,
    /// Reservations left until one is made to fail.
    fail_in: Option<u64>,
    reclaimer: Option<Weak<dyn Reclaim>>,
}

/// Something that holds memory outside the ledger's count and gives it back when asked.
pub(crate) trait Reclaim: Send + Sync {
    /// Keeps at most `allowed` bytes.
    fn shrink_to(&self, allowed: usize);
}

impl Ledger {
    pub fn new(limit_bytes: usize) -> Ledger {
        Ledger(Arc::new(Shared {
            state: Mutex::new(State {
                limit: limit_bytes,
                ..State::default()
            }),
        }))
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

    pub(crate) fn set_reclaimer(&self, reclaimer: Weak<dyn Reclaim>) {
        self.state().reclaimer = Some(reclaimer);
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
        let (reclaimer, allowed) = {
            let state = self.state();
            (state.reclaimer.clone(), state.limit.saturating_sub(state.used))
        };
        if let Some(reclaimer) = reclaimer.and_then(|weak| weak.upgrade()) {
            reclaimer.shrink_to(allowed);
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
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.state().used -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_nth_reservation_fails_once() {
        let ledger = Ledger::new(100);
        ledger.fail_at(Some(2));
        let outcomes: Vec<bool> = (0..4).map(|_| ledger.reserve(1, "x").is_ok()).collect();
        assert_eq!(outcomes, [true, false, true, true]);
        assert_eq!(ledger.reservations(), 4);
    }
}
