//! Words in order by cutting ranges in two, where the processor does that with whole vectors.
//!
//! A cut reads and writes in sequence, so the eight that take a range beyond the cache into it cost less than one move to
//! 256 places, whose every store is to another line (figures: [`super::radix`]). Few words are left to a network. Pivots are
//! medians of samples, and a range that is cut unevenly too often is sorted by radix: no input takes more than
//! `O(n log n)`.

use super::distribute::sort_by_radix;
use super::key::Word;
use super::radix::{Columns, Extent, Finish};
use super::slices::nothing;
use crate::fence::vectors::{Vectors, FEW};

/// Bytes of a range that is finished as a whole, while it is in the cache.
const CACHED_BYTES: usize = 64 << 10;
/// Words from which a pivot is the median of [`FEW`].
const SAMPLED_MIN: usize = 16 * FEW;

/// Sorts `words`, with `spare` as workspace.
pub fn sort<K: Word>(words: &mut [K], spare: &mut [K], vectors: Vectors<K>, finish: Option<Finish<K>>) {
    let cuts = 2 * words.len().max(1).ilog2();
    Quick { vectors, finish }.sort(words, spare, cuts);
}

struct Quick<K> {
    vectors: Vectors<K>,
    finish: Option<Finish<K>>,
}

impl<K: Word> Quick<K> {
    /// Sorts and finishes `words`, which are cut at most `cuts` times.
    fn sort(&self, words: &mut [K], spare: &mut [K], cuts: u32) {
        if size_of_val(words) <= CACHED_BYTES {
            self.sort_cached(words, spare, cuts);
            self.finish(words);
        } else if cuts == 0 {
            radix(words, spare, self.finish);
        } else {
            let (below, above) = self.cut(words);
            self.sort(&mut words[..below], &mut spare[..below], cuts - 1);
            self.finish(&mut words[below..above]);
            self.sort(&mut words[above..], &mut spare[above..], cuts - 1);
        }
    }

    fn sort_cached(&self, words: &mut [K], spare: &mut [K], cuts: u32) {
        if words.len() <= FEW {
            (self.vectors.sort_few)(words);
        } else if cuts == 0 {
            radix(words, spare, None);
        } else {
            let (below, above) = self.cut(words);
            self.sort_cached(&mut words[..below], &mut spare[..below], cuts - 1);
            self.sort_cached(&mut words[above..], &mut spare[above..], cuts - 1);
        }
    }

    fn finish(&self, words: &mut [K]) {
        if let Some(finish) = self.finish {
            finish(words);
        }
    }

    /// Cuts by a word of about the middle: where the words below it end, and where those above it, or equal to it, start.
    /// What lies between is all equal.
    fn cut(&self, words: &mut [K]) -> (usize, usize) {
        let pivot = self.pivot(words);
        match (self.vectors.cut)(words, pivot) {
            // The least word: cut behind it, else equal words would be cut again and again.
            0 if pivot == K::MAX => (0, words.len()),
            0 => (0, (self.vectors.cut)(words, pivot.plus(1))),
            below => (below, below),
        }
    }

    fn pivot(&self, words: &[K]) -> K {
        if words.len() < SAMPLED_MIN {
            let step = words.len() / 9;
            let third = |at: usize| median([0, 1, 2].map(|next| words[(3 * at + next) * step + step / 2]));
            return median([third(0), third(1), third(2)]);
        }
        let step = words.len() / FEW;
        let mut samples: [K; FEW] = std::array::from_fn(|at| words[at * step + step / 2]);
        (self.vectors.sort_few)(&mut samples);
        samples[FEW / 2]
    }
}

fn median<K: Word>([a, b, c]: [K; 3]) -> K {
    a.min(b).max(a.max(b).min(c))
}

/// Not inlined: what it holds shall not lie on the stack of every cut.
#[inline(never)]
fn radix<K: Word>(words: &mut [K], spare: &mut [K], finish: Option<Finish<K>>) {
    let (count, extent) = (words.len(), Extent::of(words));
    let (words, spare) = (Columns::new(words, nothing(count)), Columns::new(spare, nothing(count)));
    sort_by_radix(words, spare, extent, finish);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 14] = [0, 1, 7, 8, 127, 128, 129, 191, 192, 200, 1000, 8192, 8193, 70_001];

    /// Words of many shapes: random, few different, in order, equal, of the greatest, and in a form of waves.
    fn shapes<K: Word>(length: usize) -> Vec<Vec<K>> {
        let random =
            |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ (at as u64) << 40;
        let shape = |of: &dyn Fn(usize) -> u64| (0..length).map(|at| K::ZERO.plus(of(at))).collect();
        vec![
            shape(&random),
            shape(&|at| random(at) % 3),
            shape(&|at| at as u64),
            shape(&|at| (length - at) as u64),
            shape(&|_| 5),
            shape(&|_| u64::MAX),
            shape(&|at| {
                if at % 7 == 0 {
                    random(at)
                } else {
                    u64::MAX - at as u64 % 2
                }
            }),
            shape(&|at| (at % 9 * length + at) as u64),
        ]
    }

    /// `sort` puts words in order, and finishes each of them once.
    fn check<K: Word + std::fmt::Debug>(sort: impl Fn(&mut [K], &mut [K], Finish<K>)) {
        for length in LENGTHS {
            for words in shapes::<K>(length) {
                let mut expected = words.clone();
                expected.sort_unstable();
                invert(&mut expected);
                let (mut sorted, mut spare) = (words, vec![K::ZERO; length]);
                sort(&mut sorted, &mut spare, invert);
                assert!(sorted == expected, "{length} words");
            }
        }
    }

    fn invert<K: Word>(words: &mut [K]) {
        words.iter_mut().for_each(|word| *word = word.not());
    }

    fn check_all<K: Word + std::fmt::Debug>() {
        check::<K>(|words, spare, finish| {
            let (count, extent) = (words.len(), Extent::of(words));
            let (words, spare) = (Columns::new(words, nothing(count)), Columns::new(spare, nothing(count)));
            sort_by_radix(words, spare, extent, Some(finish));
        });
        let Some(vectors) = K::vectors() else { return };
        check(|words, spare, finish| sort(words, spare, vectors, Some(finish)));
        for cuts in [0, 1, 3] {
            let finish = Some(invert as Finish<K>);
            check(|words, spare, _| Quick { vectors, finish }.sort(words, spare, cuts));
        }
    }

    #[test]
    fn words_are_sorted_with_and_without_vectors_and_however_many_cuts_are_left() {
        check_all::<u64>();
        check_all::<u32>();
        check_all::<u16>();
    }

    #[test]
    fn a_cut_leaves_every_word_in_its_part() {
        let Some(vectors) = u64::vectors() else { return };
        for length in [128, 129, 135, 136, 191, 192, 193, 1000, 4099] {
            for words in shapes::<u64>(length) {
                for pivot in [0, 1, 2, words[length / 2], u64::MAX] {
                    let mut parts = words.clone();
                    let below = (vectors.cut)(&mut parts, pivot);
                    assert!(parts[..below].iter().all(|word| *word < pivot));
                    assert!(parts[below..].iter().all(|word| *word >= pivot));
                    let mut before = words.clone();
                    before.sort_unstable();
                    parts.sort_unstable();
                    assert!(parts == before, "{length} words, cut by {pivot}");
                }
            }
        }
    }
}
