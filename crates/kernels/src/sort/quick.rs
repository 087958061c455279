//! Words in order by cutting ranges in two, where the processor does that with whole vectors.
//!
//! A cut reads and writes in sequence, so the eight that take a range beyond the cache into it cost less than one move to
//! 256 places, whose every store is to another line: 15.7 ns per element against 22.5 by [`super::radix`], for 2²¹ random
//! `int64` on each of two cores at once. Few words are left to a network. Pivots are medians of samples, and a range that
//! is cut unevenly too often is left to the library's sort in place: no input takes more than `O(n log n)`. Equal words are
//! alike here, so nothing that travels with them is sorted in this way.

use super::encode::{encode, put_special, Special};
use super::key::{directed, SortKey, Word};
use super::slices::view;
use crate::fence::vectors::{Vectors, FEW};

/// Bytes of a range that is finished as a whole, while it is in the cache.
const CACHED_BYTES: usize = 64 << 10;
/// Words from which a pivot is the median of [`FEW`].
const SAMPLED_MIN: usize = 16 * FEW;
/// Words that are turned from values at a time.
const STRIP: usize = 2048;

/// Sorts `words`; `finish` is given all of them, one range behind the other, each in order.
pub fn sort<K: Word>(words: &mut [K], vectors: Vectors<K>, finish: impl FnMut(&mut [K])) {
    let cuts = 2 * words.len().max(1).ilog2();
    Quick { vectors, finish }.sort(words, cuts);
}

/// Sorts the concatenation of `parts` as [`sort`] does, into `words`, which it fills; the first cut is made on the way.
/// `decode` turns words in order into values, and `put` is given all values, one range behind the other, each in order.
pub fn sort_parts<T: SortKey, const DESCENDING: bool>(
    parts: &[&[u8]],
    words: &mut [T::Word],
    vectors: Vectors<T::Word>,
    decode: fn(&mut [T::Word]),
    mut put: impl FnMut(&[T::Word]),
) {
    let special = Special::of::<T>(parts);
    let count = words.len() - special.nans;
    let pivot = sample::<T, DESCENDING>(vectors, parts, words.len());
    let (mut left, mut right) = (0, count);
    let mut strip = [T::Word::ZERO; STRIP];
    for part in parts.iter().flat_map(|part| part.chunks(STRIP * size_of::<T>())) {
        let strip = &mut strip[..part.len() / size_of::<T>()];
        bytemuck::cast_slice_mut::<T::Word, u8>(strip).copy_from_slice(part);
        let numbers = match special.nans {
            0 => strip.len(),
            _ => without_nan::<T>(strip),
        };
        let strip = &mut strip[..numbers];
        encode::<T, DESCENDING>(bytemuck::cast_slice_mut(strip));
        let below = (vectors.cut_into)(strip, &mut words[left..right], pivot);
        (left, right) = (left + below, right - (strip.len() - below));
    }
    let cuts = 2 * count.max(1).ilog2();
    if special.is_any() {
        let mut quick = Quick {
            vectors,
            finish: decode,
        };
        quick.sort(&mut words[..left], cuts);
        quick.sort(&mut words[left..count], cuts);
        put_special::<T, DESCENDING>(parts, bytemuck::cast_slice_mut(words), special);
        return put(words);
    }
    let finish = |words: &mut [T::Word]| {
        decode(words);
        put(words);
    };
    let mut quick = Quick { vectors, finish };
    quick.sort(&mut words[..left], cuts);
    quick.sort(&mut words[left..], cuts);
}

/// Moves the values that are numbers to the front, and returns how many they are.
fn without_nan<T: SortKey>(strip: &mut [T::Word]) -> usize {
    let mut count = 0;
    for at in 0..strip.len() {
        let value: T = bytemuck::cast(strip[at]);
        strip[count] = strip[at];
        count += usize::from(value.is_number());
    }
    count
}

/// The median of the words of some values.
fn sample<T: SortKey, const DESCENDING: bool>(vectors: Vectors<T::Word>, parts: &[&[u8]], count: usize) -> T::Word {
    let samples = FEW.min(count);
    let step = count / samples.max(1);
    let (mut part, mut before) = (0, 0);
    let mut found = [T::Word::MAX; FEW];
    for (at, found) in found[..samples].iter_mut().enumerate() {
        let place = at * step + step / 2;
        while place - before >= parts[part].len() / size_of::<T>() {
            before += parts[part].len() / size_of::<T>();
            part += 1;
        }
        let values: &[T] = view(parts[part]);
        *found = directed::<_, DESCENDING>(values[place - before].word());
    }
    (vectors.sort_few)(&mut found[..samples]);
    found[samples / 2]
}

/// A sort under way.
pub struct Quick<K, F> {
    pub vectors: Vectors<K>,
    pub finish: F,
}

impl<K: Word, F: FnMut(&mut [K])> Quick<K, F> {
    /// Sorts and finishes `words`, which are cut at most `cuts` times.
    pub fn sort(&mut self, words: &mut [K], cuts: u32) {
        if size_of_val(words) <= CACHED_BYTES {
            sort_cached(self.vectors, words, cuts);
            (self.finish)(words);
        } else if cuts == 0 {
            words.sort_unstable();
            (self.finish)(words);
        } else {
            let (below, above) = cut(self.vectors, words);
            self.sort(&mut words[..below], cuts - 1);
            (self.finish)(&mut words[below..above]);
            self.sort(&mut words[above..], cuts - 1);
        }
    }
}

fn sort_cached<K: Word>(vectors: Vectors<K>, words: &mut [K], cuts: u32) {
    if words.len() <= FEW {
        (vectors.sort_few)(words);
    } else if cuts == 0 {
        words.sort_unstable();
    } else {
        let (below, above) = cut(vectors, words);
        sort_cached(vectors, &mut words[..below], cuts - 1);
        sort_cached(vectors, &mut words[above..], cuts - 1);
    }
}

/// Cuts by a word of about the middle: where the words below it end, and where those above it, or equal to it, start.
/// What lies between is all equal.
fn cut<K: Word>(vectors: Vectors<K>, words: &mut [K]) -> (usize, usize) {
    let pivot = pivot(vectors, words);
    match (vectors.cut)(words, pivot) {
        // The least word: cut behind it, else equal words would be cut again and again.
        0 if pivot == K::MAX => (0, words.len()),
        0 => (0, (vectors.cut)(words, pivot.plus(1))),
        below => (below, below),
    }
}

fn pivot<K: Word>(vectors: Vectors<K>, words: &[K]) -> K {
    if words.len() < SAMPLED_MIN {
        let step = words.len() / 9;
        let third = |at: usize| median([0, 1, 2].map(|next| words[(3 * at + next) * step + step / 2]));
        return median([third(0), third(1), third(2)]);
    }
    let step = words.len() / FEW;
    let mut samples: [K; FEW] = std::array::from_fn(|at| words[at * step + step / 2]);
    (vectors.sort_few)(&mut samples);
    samples[FEW / 2]
}

fn median<K: Word>([a, b, c]: [K; 3]) -> K {
    a.min(b).max(a.max(b).min(c))
}
