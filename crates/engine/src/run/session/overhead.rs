//! Memory of the process that no ledger counts.

use std::sync::atomic::{AtomicU64, Ordering};

use outcore_store::{have_few_arenas, return_freed_memory, Ledger, PAGE};

/// Thread stacks, packing buffers of products, small plans, the allocator's slack: allowances beside what is measured.
const FIXED: u64 = 24 << 20;
const PER_WORKER: u64 = 6 << 20;
/// The process is taken to be so much larger at a time.
pub(in crate::run) const STEP: u64 = 8 << 20;
/// What the process may grow or shrink by, within the allowances, before its share of the limit is settled anew: two
/// forecasts in a row should be of the same memory.
const TOLERANCE: u64 = 12 << 20;

/// What is resident beside the ledgers' bytes: measured when a session is made, and again before each plan, for the
/// caller's own data and expressions grow in between.
pub(in crate::run) struct Overhead {
    allowance: u64,
    /// Resident bytes of mapped files when the session was made. The kernel takes later ones back when it needs to.
    mapped: u64,
    own_at_least: u64,
    own: AtomicU64,
}

/// Resident bytes of this process: all, and those of mapped files and shared memory among them.
fn resident_bytes() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    match pages[..] {
        [_, resident, mapped, ..] => (resident * PAGE as u64, mapped * PAGE as u64),
        _ => (64 << 20, 0),
    }
}

impl Overhead {
    pub fn measure(workers: u64) -> Overhead {
        have_few_arenas();
        let (resident, mapped) = resident_bytes();
        let own = Ledger::uncounted(resident as usize) as u64;
        Overhead {
            allowance: FIXED + workers * PER_WORKER,
            mapped,
            own_at_least: own,
            own: AtomicU64::new(own),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.own.load(Ordering::Relaxed).next_multiple_of(STEP) + self.allowance
    }

    /// Measures again. While a program runs, what it has not touched yet hides others' bytes, so the process is taken to
    /// be no smaller than when last measured in peace. What the allocator keeps free is given back before it counts as
    /// the process's own: earlier plans must not make later ones too large.
    pub fn settle(&self) {
        let before = self.own.load(Ordering::Relaxed);
        let mut now = self.uncounted();
        if now > before + TOLERANCE {
            return_freed_memory();
            now = self.uncounted();
        }
        if now.abs_diff(before) > TOLERANCE {
            self.own.store(now, Ordering::Relaxed);
        }
    }

    fn uncounted(&self) -> u64 {
        let (resident, mapped) = resident_bytes();
        let anonymous = resident.saturating_sub(mapped);
        let now = Ledger::uncounted((anonymous + self.mapped) as usize) as u64;
        now.max(self.own_at_least)
    }
}
