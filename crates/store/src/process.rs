//! What the sessions of one process share: its memory, and the turn to run.

use std::collections::hash_map::RandomState;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use crate::ledger::{Ledger, Shared};

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
    ledgers: Mutex<Vec<Weak<Shared>>>,
    queue: Mutex<Queue>,
    moved: Condvar,
    uncounted: AtomicUsize,
}

/// Who runs (the first) and who waits.
#[derive(Default)]
struct Queue {
    places: VecDeque<u64>,
    next: u64,
    /// The first has been given up and cannot end while others wait behind it.
    closed: bool,
}

/// The lock, also after a panic under it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    pub fn new() -> Process {
        Process {
            id: std::process::id(),
            child: OnceLock::new(),
            ledgers: Mutex::default(),
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

    pub fn register(&self, ledger: Weak<Shared>) {
        let mut ledgers = locked(&self.ledgers);
        ledgers.retain(|ledger| ledger.strong_count() > 0);
        ledgers.push(ledger);
    }

    pub fn ledgers(&self) -> Vec<Ledger> {
        locked(&self.ledgers).iter().filter_map(Ledger::upgrade).collect()
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

/// What tells this process from all others, also from those that had its number before and those forked off it.
pub fn process_nonce() -> [u64; 2] {
    static RANDOM: OnceLock<u64> = OnceLock::new();
    let random = RANDOM.get_or_init(|| RandomState::new().build_hasher().finish());
    [u64::from(std::process::id()), *random]
}

/// An identity that nothing else has, in this process or another: for what is equal to itself only.
pub fn identity_of_its_own(kind: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let [process, random] = process_nonce();
    format!(
        "{kind}:{process}-{random:016x}:{}",
        COUNTER.fetch_add(1, Ordering::Relaxed)
    )
}

/// A place in the queue of those who want to run; left when dropped.
pub struct Turn {
    ledger: Ledger,
    process: &'static Process,
    number: u64,
}

impl Turn {
    pub(crate) fn queue(ledger: &Ledger) -> Turn {
        let process = ledger.process();
        let mut queue = locked(&process.queue);
        let number = queue.next;
        queue.next += 1;
        queue.places.push_back(number);
        Turn {
            ledger: ledger.clone(),
            process,
            number,
        }
    }

    /// Whether the turn has come, after waiting for it no longer than `patience`.
    pub fn has_come(&self, patience: Duration) -> bool {
        let waiting = |queue: &mut Queue| queue.places.front() != Some(&self.number);
        let queue = locked(&self.process.queue);
        let waited = self.process.moved.wait_timeout_while(queue, patience, waiting);
        let came = !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        if came {
            self.ledger.begin_turn(self.number);
        }
        came
    }

    /// Turns away all who wait behind this turn, also those still to come, until it ends.
    pub fn turn_others_away(&self) {
        let mut queue = locked(&self.process.queue);
        if queue.places.front() == Some(&self.number) {
            queue.closed = true;
            self.process.moved.notify_all();
        }
    }

    /// Whether the one whose turn it is turned this one away.
    pub fn is_turned_away(&self) -> bool {
        let queue = locked(&self.process.queue);
        queue.closed && queue.places.front() != Some(&self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.ledger.end_turn(self.number);
        let mut queue = locked(&self.process.queue);
        queue.closed &= queue.places.front() != Some(&self.number);
        queue.places.retain(|&place| place != self.number);
        drop(queue);
        self.process.moved.notify_all();
    }
}
