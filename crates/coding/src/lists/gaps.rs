//! GapSums of gaps of one to four bytes.

use std::sync::OnceLock;

use super::fence::{here, GapSums};

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
fn all_gap_sums() -> Vec<GapSums> {
    std::iter::once(few_gap_sums as GapSums).chain(here()).collect()
}

/// The best that this processor has instructions for.
pub fn gap_sums() -> GapSums {
    static BEST: OnceLock<GapSums> = OnceLock::new();
    *BEST.get_or_init(|| *all_gap_sums().last().expect("one needs no instructions"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Codes and bytes of gaps.
    fn packed(each: &[u32]) -> (Vec<u8>, Vec<u8>) {
        let (mut codes, mut gaps) = (vec![0; each.len().div_ceil(4)], vec![]);
        for (place, gap) in each.iter().enumerate() {
            let bytes = (4 - gap.leading_zeros() as usize / 8).max(1);
            codes[place / 4] |= (bytes as u8 - 1) << (2 * (place % 4));
            gaps.extend_from_slice(&gap.to_le_bytes()[..bytes]);
        }
        (codes, gaps)
    }

    fn summed(each: &[u32], mut last: u64, is_first: bool) -> (Vec<u32>, u64) {
        let sums = each.iter().enumerate().map(|(place, gap)| {
            last += if is_first && place == 0 { 0 } else { u64::from(*gap) };
            last as u32
        });
        (sums.collect(), last)
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_loop(
            each in prop::collection::vec((any::<u32>(), 0u32..32).prop_map(|(gap, shift)| gap >> shift), 0..70),
            last in 0u64..1 << 33,
            is_first: bool,
            behind in prop::collection::vec(any::<u8>(), 0..80),
            more in 0usize..3,
            asked in 0usize..70,
        ) {
            let (mut codes, mut gaps) = packed(&each);
            let whole = gaps.len();
            gaps.extend(&behind);
            codes.extend(vec![0xff; more]);
            for sums in all_gap_sums() {
                let mut out = vec![7; each.len()];
                let expected = summed(&each, last, is_first);
                prop_assert_eq!(sums(&codes, &gaps, last, is_first, &mut out), Some((whole, expected.1)));
                prop_assert_eq!(&out, &expected.0);
                // Fewer than there are codes of, and nothing is written behind them.
                let few = &each[..asked.min(each.len())];
                let (mut out, expected) = (vec![7; each.len()], summed(few, last, is_first));
                let used = packed(few).1.len();
                prop_assert_eq!(sums(&codes, &gaps, last, is_first, &mut out[..few.len()]), Some((used, expected.1)));
                prop_assert_eq!(&out[..few.len()], &expected.0[..]);
                prop_assert!(out[few.len()..].iter().all(|sum| *sum == 7));
            }
        }

        #[test]
        fn gaps_that_end_too_soon_have_no_sums(
            each in prop::collection::vec((any::<u32>(), 0u32..32).prop_map(|(gap, shift)| gap >> shift), 1..70),
            is_first: bool,
        ) {
            let (codes, gaps) = packed(&each);
            for (sums, missing) in all_gap_sums().into_iter().flat_map(|sums| [1, 2, gaps.len()].map(|missing| (sums, missing))) {
                let cut = &gaps[..gaps.len().saturating_sub(missing)];
                prop_assert_eq!(sums(&codes, cut, 0, is_first, &mut vec![0; each.len()]), None);
            }
        }
    }
}
