//! Sums of gaps of one to four bytes.

use std::sync::OnceLock;

use crate::fence::gaps::{here, Sums};

/// The same without instructions of its own: the fastest for four gaps or fewer.
#[inline]
pub fn few_gap_sums(codes: &[u8], gaps: &[u8], mut last: u64, is_first: bool, out: &mut [u32]) -> Option<(usize, u64)> {
    assert!(codes.len() >= out.len().div_ceil(4), "fewer codes than gaps");
    let mut at = 0;
    for (place, sum) in out.iter_mut().enumerate() {
        let bytes = usize::from(codes[place / 4] >> (2 * (place % 4)) & 3) + 1;
        let gap = gaps.get(at..at + bytes)?;
        at += bytes;
        if place > 0 || !is_first {
            last += gap.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        *sum = last as u32;
    }
    Some((at, last))
}

/// All that this processor has instructions for, the best one last.
pub fn all_gap_sums() -> Vec<Sums> {
    std::iter::once(few_gap_sums as Sums).chain(here()).collect()
}

/// The best that this processor has instructions for.
pub fn gap_sums() -> Sums {
    static BEST: OnceLock<Sums> = OnceLock::new();
    *BEST.get_or_init(|| *all_gap_sums().last().expect("one needs no instructions"))
}
