//! Words in order, by their digits.
//!
//! A range that exceeds the cache is first distributed by its leading digit, so that all later work stays in the cache.
//! There the leading bits, about as many as make the words distinct, are sorted digit by digit from the lowest of them,
//! with all histograms from one sweep; the few that still agree are put in order by comparison, or, if they are many,
//! by the same method on the bits that are left. Digits count from the least word, so a range is as narrow as its values.
//!
//! All steps are stable, so a payload (the positions of an index sort) may travel with the words.

use super::key::Word;

/// What travels with a word.
pub trait Payload: Copy + 'static {
    /// Nothing travels: equal words are then the same, and their order is free.
    const NOTHING: bool;
}

impl Payload for () {
    const NOTHING: bool = true;
}

impl Payload for u32 {
    const NOTHING: bool = false;
}

/// Words and what travels with them, of equal length.
pub struct Columns<'a, K, P> {
    pub words: &'a mut [K],
    pub payload: &'a mut [P],
}

impl<'a, K: Word, P: Payload> Columns<'a, K, P> {
    pub fn new(words: &'a mut [K], payload: &'a mut [P]) -> Self {
        assert_eq!(words.len(), payload.len(), "words and what travels with them");
        Columns { words, payload }
    }

    pub fn range(&mut self, from: usize, to: usize) -> Columns<'_, K, P> {
        Columns {
            words: &mut self.words[from..to],
            payload: &mut self.payload[from..to],
        }
    }

    pub fn copy_from(&mut self, other: &Columns<'_, K, P>) {
        self.words.copy_from_slice(other.words);
        self.payload.copy_from_slice(other.payload);
    }
}

/// Applied to every range of words once, when it is in order and still in the cache.
pub type Finish<K> = fn(&mut [K]);

/// The least word of a range, and how many bits the distances of the others from it have.
#[derive(Clone, Copy)]
pub struct Extent<K> {
    low: K,
    bits: u32,
}

impl<K: Word> Extent<K> {
    pub fn new(low: K, high: K) -> Self {
        Extent {
            low,
            bits: u64::BITS - high.above(low).leading_zeros(),
        }
    }

    fn of(words: &[K]) -> Self {
        let (mut low, mut high) = ([K::MAX; 4], [K::ZERO; 4]);
        let (chunks, rest) = words.as_chunks::<4>();
        for chunk in chunks {
            for lane in 0..4 {
                low[lane] = low[lane].min(chunk[lane]);
                high[lane] = high[lane].max(chunk[lane]);
            }
        }
        for word in rest {
            low[0] = low[0].min(*word);
            high[0] = high[0].max(*word);
        }
        Extent::new(
            low.into_iter().min().unwrap_or(K::ZERO),
            high.into_iter().max().unwrap_or(K::ZERO),
        )
    }
}

/// Words, their payload and as much workspace: two of these fit the second-level cache of common processors.
const CACHED_BYTES: usize = 512 << 10;
/// Bits of the digit by which a range beyond the cache is distributed: 256 targets keep within the translation cache.
const DISTRIBUTED_BITS: u32 = 8;
/// Bits of a digit inside the cache, at most.
const DIGIT_BITS_MAX: u32 = 11;
/// Bits beyond `log2(n)` that are sorted by digits: among random words one in eight then still meets an equal.
const SPARE_BITS: u32 = 2;

/// Sorts `a`, stably; the result is in `b` if `into_b`, else in `a`, and the other holds nothing of use.
pub fn sort<K: Word, P: Payload>(
    mut a: Columns<'_, K, P>,
    mut b: Columns<'_, K, P>,
    into_b: bool,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
) {
    let length = a.words.len();
    if length > small::<P>() && length * (size_of::<K>() + size_of::<P>()) > CACHED_BYTES && extent.bits > 0 {
        return distribute(a, b, into_b, extent, finish);
    }
    let in_b = if length <= small::<P>() {
        sort_small(&mut a);
        false
    } else {
        extent.bits > 0 && sort_cached(&mut a.range(0, length), &mut b.range(0, length), extent)
    };
    if in_b != into_b {
        if into_b {
            b.copy_from(&a);
        } else {
            a.copy_from(&b);
        }
    }
    if let Some(finish) = finish {
        finish(if into_b { b.words } else { a.words });
    }
}

/// Elements up to which comparisons win.
const fn small<P: Payload>() -> usize {
    if P::NOTHING {
        48
    } else {
        24
    }
}

fn sort_small<K: Word, P: Payload>(columns: &mut Columns<'_, K, P>) {
    if P::NOTHING {
        return columns.words.sort_unstable();
    }
    let Columns { words, payload } = columns;
    for next in 1..words.len() {
        let (word, carried) = (words[next], payload[next]);
        let mut place = next;
        while place > 0 && word < words[place - 1] {
            words[place] = words[place - 1];
            payload[place] = payload[place - 1];
            place -= 1;
        }
        words[place] = word;
        payload[place] = carried;
    }
}

/// By the leading digit from `a` to `b`, then each bucket by itself.
fn distribute<K: Word, P: Payload>(
    mut a: Columns<'_, K, P>,
    mut b: Columns<'_, K, P>,
    into_b: bool,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
) {
    const BUCKETS: usize = 1 << DISTRIBUTED_BITS;
    let shift = extent.bits.saturating_sub(DISTRIBUTED_BITS);
    let digit = |word: K| (word.above(extent.low) >> shift) as usize % BUCKETS;
    let ends = bucket_ends::<BUCKETS, K>(a.words, digit);
    let mut places = [0; BUCKETS];
    places[1..].copy_from_slice(&ends[..BUCKETS - 1]);
    scatter(&a, &mut b, &mut places, digit);
    let mut from = 0;
    for (bucket, to) in ends.into_iter().enumerate() {
        if from < to {
            let extent = if to - from > small::<P>() && (to - from) * size_of::<K>() > CACHED_BYTES {
                Extent::of(&b.words[from..to])
            } else {
                Extent {
                    low: extent.low.plus((bucket as u64) << shift),
                    bits: shift,
                }
            };
            sort(b.range(from, to), a.range(from, to), !into_b, extent, finish);
        }
        from = to;
    }
}

/// Where each bucket ends. Four histograms, so that equal neighbours do not wait for each other's count.
fn bucket_ends<const BUCKETS: usize, K: Word>(words: &[K], digit: impl Fn(K) -> usize) -> [usize; BUCKETS] {
    let mut counts = [[0u64; BUCKETS]; 4];
    let (chunks, rest) = words.as_chunks::<4>();
    for chunk in chunks {
        for lane in 0..4 {
            counts[lane][digit(chunk[lane])] += 1;
        }
    }
    for word in rest {
        counts[0][digit(*word)] += 1;
    }
    let mut end = 0;
    std::array::from_fn(|bucket| {
        end += counts.iter().map(|counts| counts[bucket] as usize).sum::<usize>();
        end
    })
}

/// Moves every word to the next place of its digit.
#[inline(always)]
fn scatter<K: Word, P: Payload>(
    from: &Columns<'_, K, P>,
    to: &mut Columns<'_, K, P>,
    places: &mut [usize],
    digit: impl Fn(K) -> usize,
) {
    for (word, carried) in from.words.iter().zip(from.payload.iter()) {
        let place = &mut places[digit(*word)];
        to.words[*place] = *word;
        to.payload[*place] = *carried;
        *place += 1;
    }
}

/// Digits from the lowest of the leading bits, then comparisons; whether the result is in `b`.
fn sort_cached<'a, K: Word, P: Payload>(
    a: &mut Columns<'a, K, P>,
    b: &mut Columns<'a, K, P>,
    extent: Extent<K>,
) -> bool {
    const PASSES_MAX: usize = 3;
    let length = a.words.len();
    let wanted = extent.bits.min(length.ilog2() + 1 + SPARE_BITS);
    let passes = wanted.div_ceil(DIGIT_BITS_MAX).min(PASSES_MAX as u32);
    let width = wanted.div_ceil(passes).min(DIGIT_BITS_MAX);
    let shift = extent.bits.saturating_sub(width * passes);
    let buckets = 1usize << width;

    let mut places = [0usize; PASSES_MAX << DIGIT_BITS_MAX];
    let places = &mut places[..passes as usize * buckets];
    for word in a.words.iter() {
        let mut rest = word.above(extent.low) >> shift;
        for pass in 0..passes as usize {
            places[pass * buckets + (rest as usize & (buckets - 1))] += 1;
            rest >>= width;
        }
    }
    let mut in_b = false;
    for (pass, places) in places.chunks_exact_mut(buckets).enumerate() {
        let shift = shift + pass as u32 * width;
        let digit = |word: K| (word.above(extent.low) >> shift) as usize & (buckets - 1);
        if places[digit(a.words[0])] == length {
            continue;
        }
        let mut sum = 0;
        for place in places.iter_mut() {
            sum += std::mem::replace(place, sum);
        }
        if in_b {
            scatter(b, a, places, digit);
        } else {
            scatter(a, b, places, digit);
        }
        in_b = !in_b;
    }
    if shift > 0 {
        let (sorted, spare) = if in_b { (b, a) } else { (a, b) };
        settle(sorted, spare, extent.low, shift);
    }
    in_b
}

/// Orders the groups whose words agree in the bits above `shift`; the groups themselves are in order.
fn settle<K: Word, P: Payload>(columns: &mut Columns<'_, K, P>, spare: &mut Columns<'_, K, P>, low: K, shift: u32) {
    let length = columns.words.len();
    let mut at = 1;
    while at < length {
        let words = &*columns.words;
        if words[at - 1] <= words[at] {
            at += 1;
            continue;
        }
        let group = words[at].above(low) >> shift;
        let same = |word: &&K| word.above(low) >> shift == group;
        let from = at - words[..at].iter().rev().take_while(same).count();
        let to = at + words[at..].iter().take_while(same).count();
        let mut range = columns.range(from, to);
        if to - from <= small::<P>() {
            sort_small(&mut range);
        } else {
            let extent = Extent::of(range.words);
            sort(range, spare.range(from, to), false, extent, None);
        }
        at = to + 1;
    }
}
