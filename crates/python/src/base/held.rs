//! The results that NumPy arrays hold, for refusals that name them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// The results that callers hold: bytes reserved for each, and its element type and shape as Python writes them.
pub static RESULTS: Mutex<BTreeMap<u64, (u64, String)>> = Mutex::new(BTreeMap::new());

pub fn results() -> MutexGuard<'static, BTreeMap<u64, (u64, String)>> {
    RESULTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Results that callers hold: their bytes together, and the description of the largest.
pub struct HeldResults {
    pub bytes: u64,
    pub largest: String,
}

/// What callers hold of the results of this process; None where that is nothing.
pub fn held_results() -> Option<HeldResults> {
    let results = results();
    let (_, largest) = results.values().max_by_key(|(bytes, _)| *bytes)?;
    Some(HeldResults {
        bytes: results.values().map(|(bytes, _)| bytes).sum(),
        largest: largest.clone(),
    })
}
