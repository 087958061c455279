//! Memory of the process that no ledger counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use outcore_store::{keep_little_freed, return_freed_memory, Ledger, PAGE};

/// Thread stacks, packing buffers of products, small plans, the allocator's slack: allowances beside what is measured.
const FIXED: u64 = 24 << 20;
const PER_WORKER: u64 = 6 << 20;
/// The process is taken to be so much larger at a time.
pub(in crate::run) const STEP: u64 = 8 << 20;
/// Bytes that the process may grow by, within the allowances, or shrink by before its share of the limit is settled anew: a
/// forecast and the run after it must be of the same memory.
const TOLERANCE: u64 = 12 << 20;
/// Bytes of growth at least that a share settled anew leaves free below the tolerance: plans make the process larger.
const SLACK: u64 = 8 << 20;
/// Growth within the tolerance that a forecast leaves to the run after it, which is to be of the same memory.
const FORECAST_SLACK: u64 = 4 << 20;
/// Growth of mapped files from which the kernel is asked which of them are libraries: it looks at every page for that.
const LOADED: u64 = 2 << 20;

/// What is resident beside the ledgers' bytes: measured when a session is made, and again before each plan, for the
/// caller's own data and expressions grow in between.
pub(in crate::run) struct Overhead {
    allowance: u64,
    /// Resident bytes of mapped files, and of libraries among them, when last looked at. Libraries are the process's own
    /// like its heap; pages of mapped data the kernel takes back when it needs to.
    mapped: AtomicU64,
    libraries: AtomicU64,
    own_at_least: u64,
    own: AtomicU64,
}

/// Resident bytes of this process.
struct Resident {
    all: u64,
    /// Those of mapped files and shared memory among them.
    mapped: u64,
}

fn resident_bytes() -> Resident {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    match pages[..] {
        [_, resident, mapped, ..] => Resident {
            all: resident * PAGE as u64,
            mapped: mapped * PAGE as u64,
        },
        _ => Resident {
            all: 64 << 20,
            mapped: 0,
        },
    }
}

/// Resident bytes of this process, of whatever kind.
pub(in crate::run) fn resident_now() -> u64 {
    resident_bytes().all
}

impl Overhead {
    pub fn measure(workers: u64) -> Overhead {
        keep_little_freed();
        let Resident { all: resident, mapped } = resident_bytes();
        let own = Ledger::uncounted(resident as usize) as u64;
        Overhead {
            allowance: FIXED + workers * PER_WORKER,
            // What is mapped before any array is opened counts, of whatever kind it is.
            mapped: AtomicU64::new(mapped),
            libraries: AtomicU64::new(mapped),
            own_at_least: own,
            own: AtomicU64::new(own.next_multiple_of(STEP)),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.own.load(Ordering::Relaxed) + self.allowance
    }

    /// Measures again. While a program runs, what it has not touched yet hides others' bytes, so the process is taken to
    /// be no smaller than when last measured in peace. What the allocator keeps free is given back before it counts as
    /// the process's own: earlier plans must not make later ones too large.
    pub fn measure_again(&self) {
        self.settle(TOLERANCE);
    }

    /// The same before a forecast, which tolerates less.
    pub fn measure_ahead(&self) {
        self.settle(TOLERANCE - FORECAST_SLACK);
    }

    fn settle(&self, tolerance: u64) {
        let before = self.own.load(Ordering::Relaxed);
        let mut now = self.uncounted();
        if now > before + tolerance {
            return_freed_memory();
            now = self.uncounted();
        }
        if let Some(own) = settled(before, now, tolerance) {
            self.own.store(own, Ordering::Relaxed);
        }
    }

    fn uncounted(&self) -> u64 {
        let Resident { all: resident, mapped } = resident_bytes();
        let anonymous = resident.saturating_sub(mapped);
        if mapped.abs_diff(self.mapped.load(Ordering::Relaxed)) > LOADED {
            self.mapped.store(mapped, Ordering::Relaxed);
            self.libraries.fetch_max(library_bytes(), Ordering::Relaxed);
        }
        let libraries = self.libraries.load(Ordering::Relaxed);
        let now = Ledger::uncounted((anonymous + libraries) as usize) as u64;
        now.max(self.own_at_least)
    }
}

/// The size that the process is taken for where that was `before` and its own is `now`, in whole steps; nothing where the
/// size stays, for it has not grown by more than `tolerance`, nor shrunk by more than the usual one.
///
/// Only growth beyond what the allowances bear counts: stacks and packing buffers of a first run are theirs, and would be
/// counted twice. A settled size lies so far below the tolerance that a little growth more settles nothing anew.
fn settled(before: u64, now: u64, tolerance: u64) -> Option<u64> {
    if now > before + tolerance {
        return Some((now - (TOLERANCE - SLACK)).next_multiple_of(STEP));
    }
    (now + TOLERANCE < before).then(|| now.next_multiple_of(STEP))
}

/// Resident bytes of mapped files that hold code: of all their parts, without pages that were written to.
fn library_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut files: HashMap<&str, (bool, u64)> = HashMap::new();
    let mut path = "";
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let first = fields.next().unwrap_or_default();
        match first.strip_suffix(':') {
            None => {
                let permissions = fields.next().unwrap_or_default();
                path = line.find('/').map_or("", |start| &line[start..]);
                files.entry(path).or_default().0 |= permissions.contains('x');
            }
            Some(name @ ("Rss" | "Anonymous")) => {
                let bytes = fields.next().and_then(|size| size.parse().ok()).unwrap_or(0) * 1024;
                let file = &mut files.entry(path).or_default().1;
                *file = if name == "Rss" {
                    *file + bytes
                } else {
                    file.saturating_sub(bytes)
                };
            }
            _ => {}
        }
    }
    files.remove("");
    files
        .values()
        .filter(|(is_code, _)| *is_code)
        .map(|(_, bytes)| bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{library_bytes, resident_bytes, settled, FORECAST_SLACK, SLACK, STEP, TOLERANCE};

    #[test]
    fn growth_counts_beyond_what_the_allowances_bear() {
        let before = 104 << 20;
        assert_eq!(settled(before, before + TOLERANCE, TOLERANCE), None);
        assert_eq!(
            settled(before, before + TOLERANCE + 1, TOLERANCE),
            Some(before + 2 * STEP)
        );
        assert_eq!(settled(before, before - TOLERANCE, TOLERANCE), None);
        assert_eq!(settled(before, before - TOLERANCE - 1, TOLERANCE), Some(before - STEP));
    }

    #[test]
    fn a_little_growth_settles_nothing_anew() {
        let before = 104 << 20;
        for mebibytes in 13..80 {
            let now = before + (mebibytes << 20);
            let size = settled(before, now, TOLERANCE).expect("more than the tolerance");
            assert!(size.is_multiple_of(STEP) && size + TOLERANCE - SLACK >= now && size < now + STEP);
            for more in (0..=SLACK).step_by(1 << 16) {
                assert_eq!(settled(size, now + more, TOLERANCE), None);
            }
        }
    }

    #[test]
    fn a_forecast_leaves_some_growth_to_its_run() {
        let before = 104 << 20;
        for kibibytes in (0..80 << 10).step_by(100) {
            let now = before + (kibibytes << 10);
            let size = settled(before, now, TOLERANCE - FORECAST_SLACK).unwrap_or(before);
            for more in (0..=FORECAST_SLACK).step_by(1 << 16) {
                assert_eq!(settled(size, now + more, TOLERANCE), None);
            }
        }
    }

    #[test]
    fn libraries_are_part_of_what_is_mapped() {
        let libraries = library_bytes();
        assert!(libraries > 0);
        assert!(libraries <= resident_bytes().mapped + (1 << 20));
    }
}
