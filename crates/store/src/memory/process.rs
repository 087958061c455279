//! What the sessions of one process share: its memory, and the turn to run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};

use super::account::Account;
use crate::base::locked::locked;

/// The ledgers of this process, and those who wait to fill them.
///
/// Programs take turns, so while one runs the other sessions' memory can only shrink: what its ledger may grant beside
/// them is settled once, when its turn begins.
///
/// A forked child may inherit locks that nobody will open, so it has books of its own: those of the process it came
/// from lead to it.
pub(crate) struct Process {
    id: u32,
    child: OnceLock<Box<Process>>,
    accounts: Mutex<Vec<Weak<Account>>>,
    pub(super) queue: Mutex<TurnQueue>,
    pub(super) moved: Condvar,
    uncounted: AtomicUsize,
}

/// Who runs (the first) and who waits.
#[derive(Default)]
pub(super) struct TurnQueue {
    pub(super) places: VecDeque<u64>,
    pub(super) next: u64,
    /// The first has been given up and cannot end while others wait behind it.
    pub(super) closed: bool,
}

impl Process {
    pub fn new() -> Process {
        Process {
            id: std::process::id(),
            child: OnceLock::new(),
            accounts: Mutex::default(),
            queue: Mutex::default(),
            moved: Condvar::new(),
            uncounted: AtomicUsize::new(0),
        }
    }

    pub fn current() -> &'static Process {
        static FIRST: OnceLock<Process> = OnceLock::new();
        let mut process = FIRST.get_or_init(Process::new);
        while process.id != std::process::id() {
            process = process.child.get_or_init(|| Box::new(Process::new()));
        }
        process
    }

    pub fn register(&self, account: Weak<Account>) {
        let mut accounts = locked(&self.accounts);
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(account);
    }

    pub fn accounts(&self) -> Vec<Arc<Account>> {
        locked(&self.accounts).iter().filter_map(Weak::upgrade).collect()
    }

    /// The process's bytes beside the ledgers', from a measurement. While a program runs much of what it was granted is
    /// not touched yet and hides others' bytes, so no less than when last measured in peace.
    pub fn uncounted(&self, measured: usize) -> usize {
        let peace = locked(&self.queue).places.is_empty();
        if peace {
            self.uncounted.store(measured, Ordering::Relaxed);
        }
        measured.max(self.uncounted.load(Ordering::Relaxed))
    }
}
