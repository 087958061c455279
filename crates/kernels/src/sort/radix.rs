//! Words in order, by their digits.
//!
//! A range that exceeds the cache is first distributed by its leading digit, so that all later work stays in the cache.
//! There the leading bits, about as many as make the words distinct, are sorted digit by digit from the lowest of them,
//! with all histograms from one sweep; the few that still agree are put in order by comparison, or, if they are many,
//! by the same method on the bits that are left. Digits count from the least word, so a range is as narrow as its values.
//!
//! All steps are stable, so a payload (the positions of an index sort) may travel with the words.

use super::key::Word;
use crate::fence::hint::prefetch_element;

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

    /// Whether the columns and their workspace fit the cache.
    fn cached(&self) -> bool {
        self.words.len() * (size_of::<K>() + size_of::<P>()) <= CACHED_BYTES
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
const BUCKETS: usize = 1 << DISTRIBUTED_BITS;
/// Bits of a digit inside the cache, at most.
const DIGIT_BITS_MAX: u32 = 11;
/// Bits beyond `log2(n)` that are sorted by digits: among random words one in eight then still meets an equal.
const SPARE_BITS: u32 = 2;

/// Sorts `columns` stably, with `spare` as workspace.
pub fn sort_all<K: Word, P: Payload>(
    columns: Columns<'_, K, P>,
    spare: Columns<'_, K, P>,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
) {
    sort(columns, spare, false, extent, finish, &mut [[0; PLACES]; PASSES_MAX]);
}

/// Sorts `a`, stably; the result is in `b` if `into_b`, else in `a`, and the other holds nothing of use.
fn sort<K: Word, P: Payload>(
    mut a: Columns<'_, K, P>,
    mut b: Columns<'_, K, P>,
    into_b: bool,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
    places: &mut Places,
) {
    let length = a.words.len();
    if !a.cached() && extent.bits > 0 {
        return distribute(a, b, into_b, extent, finish, places);
    }
    let in_b = if length <= small::<P>() {
        sort_small(&mut a);
        false
    } else {
        extent.bits > 0 && sort_cached(&mut a.range(0, length), &mut b.range(0, length), extent, places)
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

/// Sorts a range beyond the cache by parts: those of its leading digit, or what lies around a frequent word.
fn distribute<K: Word, P: Payload>(
    mut a: Columns<'_, K, P>,
    mut b: Columns<'_, K, P>,
    into_b: bool,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
    places: &mut Places,
) {
    if extent.bits > DISTRIBUTED_BITS {
        if let Some(word) = frequent(a.words) {
            return part(a, b, into_b, word, finish, places);
        }
    }
    let shift = extent.bits.saturating_sub(DISTRIBUTED_BITS);
    let digit = Digit {
        low: extent.low,
        shift,
        mask: BUCKETS - 1,
    };
    let ends = bucket_ends(a.words, digit);
    places[0][1..BUCKETS].copy_from_slice(&ends[..BUCKETS - 1]);
    places[0][0] = 0;
    scatter::<K, P, true>(&a, &mut b, &mut places[0], digit);
    places[0][..BUCKETS].fill(0);
    let mut from = 0;
    for (bucket, to) in ends.into_iter().enumerate() {
        if from < to {
            let (part, spare) = (b.range(from, to), a.range(from, to));
            let extent = if part.cached() {
                Extent {
                    low: extent.low.plus((bucket as u64) << shift),
                    bits: shift,
                }
            } else {
                Extent::of(part.words)
            };
            sort(part, spare, !into_b, extent, finish, places);
        }
        from = to;
    }
}

/// A word that makes up a fourth of a sample, if there is one: taken out at once, not once per digit.
fn frequent<K: Word>(words: &[K]) -> Option<K> {
    const SAMPLES: usize = 32;
    let mut samples: [K; SAMPLES] = std::array::from_fn(|at| words[words.len() / SAMPLES * at]);
    samples.sort_unstable();
    let at = (SAMPLES / 4 - 1..SAMPLES).find(|at| samples[at + 1 - SAMPLES / 4] == samples[*at])?;
    Some(samples[at])
}

/// Less than `word`, equal, greater: three parts, of which the second is done.
fn part<K: Word, P: Payload>(
    mut a: Columns<'_, K, P>,
    mut b: Columns<'_, K, P>,
    into_b: bool,
    word: K,
    finish: Option<Finish<K>>,
    places: &mut Places,
) {
    let kind = |other: K| usize::from(other >= word) + usize::from(other > word);
    let mut counts = [0; 3];
    for other in a.words.iter() {
        counts[0] += usize::from(*other < word);
        counts[2] += usize::from(*other > word);
    }
    let length = a.words.len();
    let ends = [counts[0], length - counts[2], length];
    let mut next = [0, ends[0], ends[1]];
    let (target, target_payload) = (&mut *b.words, &mut *b.payload);
    for (other, carried) in a.words.iter().zip(a.payload.iter()) {
        let at = &mut next[kind(*other)];
        target[*at] = *other;
        if !P::NOTHING {
            target_payload[*at] = *carried;
        }
        *at += 1;
    }
    let mut from = 0;
    for to in ends {
        let (part, spare) = (b.range(from, to), a.range(from, to));
        let extent = Extent::of(part.words);
        sort(part, spare, !into_b, extent, finish, places);
        from = to;
    }
}

/// Where each bucket ends. Four histograms, so that equal neighbours do not wait for each other's count.
fn bucket_ends<K: Word>(words: &[K], digit: Digit<K>) -> [usize; BUCKETS] {
    let mut counts = [[0u64; BUCKETS]; 4];
    let (chunks, rest) = words.as_chunks::<4>();
    for chunk in chunks {
        for lane in 0..4 {
            counts[lane][digit.of(chunk[lane]) % BUCKETS] += 1;
        }
    }
    for word in rest {
        counts[0][digit.of(*word) % BUCKETS] += 1;
    }
    let mut end = 0;
    std::array::from_fn(|bucket| {
        end += counts.iter().map(|counts| counts[bucket] as usize).sum::<usize>();
        end
    })
}

/// A digit of words: their distance from the least one, shifted, and as many bits as `mask` has.
#[derive(Clone, Copy)]
struct Digit<K> {
    low: K,
    shift: u32,
    mask: usize,
}

impl<K: Word> Digit<K> {
    #[inline(always)]
    fn of(self, word: K) -> usize {
        (word.above(self.low) >> self.shift) as usize & self.mask & (PLACES - 1)
    }
}

/// Values of the widest digit.
const PLACES: usize = 1 << DIGIT_BITS_MAX;
/// The most digits by which a range in the cache is sorted.
const PASSES_MAX: usize = 2;
/// Counts of the values of a digit, then the places where the next word of each goes. Zero between uses.
type Places = [[usize; PLACES]; PASSES_MAX];

/// Moves every word to the next place of its digit. Where the targets are `FAR`, beyond the cache, the lines that will
/// be written next are asked for: a store that misses holds up all behind it.
#[inline(never)]
fn scatter<K: Word, P: Payload, const FAR: bool>(
    from: &Columns<'_, K, P>,
    to: &mut Columns<'_, K, P>,
    places: &mut [usize; PLACES],
    digit: Digit<K>,
) {
    /// A line and a little more.
    const AHEAD_BYTES: usize = 80;
    let (target, target_payload) = (&mut *to.words, &mut *to.payload);
    for (word, carried) in from.words.iter().zip(from.payload.iter()) {
        let place = &mut places[digit.of(*word)];
        let at = *place;
        *place += 1;
        target[at] = *word;
        if FAR {
            prefetch_element(target, at + AHEAD_BYTES / size_of::<K>());
        }
        if !P::NOTHING {
            target_payload[at] = *carried;
            if FAR {
                prefetch_element(target_payload, at + AHEAD_BYTES / size_of::<P>());
            }
        }
    }
}

/// Counts two digits of the words in one sweep.
#[inline(never)]
fn count<K: Word>(words: &[K], places: &mut Places, digits: [Digit<K>; PASSES_MAX]) {
    let [first, second] = places;
    if digits[1].mask == 0 {
        for word in words {
            first[digits[0].of(*word)] += 1;
        }
        return;
    }
    for word in words {
        first[digits[0].of(*word)] += 1;
        second[digits[1].of(*word)] += 1;
    }
}

/// Digits from the lowest of the leading bits, then comparisons; whether the result is in `b`.
fn sort_cached<'a, K: Word, P: Payload>(
    a: &mut Columns<'a, K, P>,
    b: &mut Columns<'a, K, P>,
    extent: Extent<K>,
    places: &mut Places,
) -> bool {
    let length = a.words.len();
    let wanted = extent.bits.min(length.ilog2() + 1 + SPARE_BITS);
    let passes = wanted.div_ceil(DIGIT_BITS_MAX).min(PASSES_MAX as u32);
    let width = wanted.div_ceil(passes).min(DIGIT_BITS_MAX);
    let shift = extent.bits.saturating_sub(width * passes);
    let digits: [Digit<K>; PASSES_MAX] = std::array::from_fn(|pass| Digit {
        low: extent.low,
        shift: shift + (pass as u32 * width).min(extent.bits - shift - 1),
        mask: if pass < passes as usize { (1 << width) - 1 } else { 0 },
    });
    count(a.words, places, digits);
    let mut in_b = false;
    for (digit, places) in digits.into_iter().zip(places.iter_mut()).take(passes as usize) {
        if places[digit.of(a.words[0])] != length {
            let mut sum = 0;
            for place in places[..=digit.mask].iter_mut() {
                sum += std::mem::replace(place, sum);
            }
            if in_b {
                scatter::<K, P, false>(b, a, places, digit);
            } else {
                scatter::<K, P, false>(a, b, places, digit);
            }
            in_b = !in_b;
        }
        places[..=digit.mask].fill(0);
    }
    if shift > 0 {
        let (sorted, spare) = if in_b { (b, a) } else { (a, b) };
        settle(sorted, spare, extent.low, shift, places);
    }
    in_b
}

/// Orders the groups whose words agree in the bits above `shift`; the groups themselves are in order.
fn settle<K: Word, P: Payload>(
    columns: &mut Columns<'_, K, P>,
    spare: &mut Columns<'_, K, P>,
    low: K,
    shift: u32,
    places: &mut Places,
) {
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
            sort(range, spare.range(from, to), false, extent, None, places);
        }
        at = to + 1;
    }
}
