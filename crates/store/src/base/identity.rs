//! What nothing else is called.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

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
