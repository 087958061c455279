//! Keys cut by value into buckets in one sweep, for sorts of more than memory holds.
//!
//! A bucket is what lies between two splitters, or what equals one: however many elements are equal, they are told apart
//! from the others, and need no sorting any more (Sanders and Winkel, "Super Scalar Sample Sort", section 3; the buckets
//! of equal elements as in Axtmann et al., "In-place Parallel Super Scalar Samplesort"). The search has no branches: the
//! leading bits of a word say which splitters are left, mostly one, and these are halved, several elements at a time.
//!
//! Within a bucket elements keep their order, so that a stable sort of buckets is the stable sort of all.

use super::key::{directed, SortKey, Word};
use super::radix::Payload;
use super::slices::{nothing, take, view, view_mut};
use super::{sort_keys, sort_workspace_bytes, with_order, KeyOrder};
use crate::fence::hint::prefetch_element;
use outcore_dtype::{f16, DType};

/// Splitters at most: as many streams of writes as do without a miss of the translation cache each.
pub const SPLITTERS_MAX: usize = 255;

/// Where keys are cut: elements of `order`, in order and different from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splitters {
    order: KeyOrder,
    keys: Vec<u8>,
}

impl Splitters {
    /// At most `wanted` splitters that cut a sample of keys evenly.
    ///
    /// # Panics
    /// When the sample is no whole number of keys.
    pub fn of_sample(order: KeyOrder, sample: &[u8], wanted: usize) -> Splitters {
        let item = order.dtype.size();
        let count = order.count("splitters", sample.len());
        // Words, so that keys of any type are aligned.
        let mut sorted = vec![0u64; sample.len().div_ceil(8)];
        let mut workspace = vec![0u64; sort_workspace_bytes(order, count).div_ceil(8)];
        let sorted: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut sorted)[..sample.len()];
        sorted.copy_from_slice(sample);
        sort_keys(order, sorted, bytemuck::cast_slice_mut(&mut workspace));
        let wanted = wanted.min(SPLITTERS_MAX);
        let mut keys: Vec<u8> = Vec::with_capacity(wanted * item);
        for cut in (1..=wanted).filter(|_| count > 0) {
            let key = &sorted[(count * cut / (wanted + 1)).min(count - 1) * item..][..item];
            let last = keys.len().checked_sub(item).map(|last| &keys[last..]);
            if last.is_none_or(|last| super::compare(order, last, key).is_lt()) {
                keys.extend_from_slice(key);
            }
        }
        Splitters { order, keys }
    }

    /// Their keys, one behind the other.
    pub fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// Buckets that so many splitters make: below, between and above them, one of each, and one of the greatest word
    /// there is. Those of odd number hold equal elements.
    pub const fn buckets(count: usize) -> usize {
        2 * count + 2
    }
}

/// Bytes of workspace that [`spread_keys`] and [`spread_index`] take for `count` elements.
pub fn spread_workspace_bytes(count: usize) -> usize {
    count * size_of::<u16>()
}

/// Copies the concatenation of `parts` to `out`, bucket after bucket; `counts` (`int64`) says how many elements each has.
///
/// # Panics
/// When `parts` do not fill `out`, `workspace` is shorter than [`spread_workspace_bytes`] says, or `counts` are too few.
pub fn spread_keys(splitters: &Splitters, parts: &[&[u8]], out: &mut [u8], counts: &mut [u8], workspace: &mut [u8]) {
    let count = splitters.order.count("spread_keys", out.len());
    spread(splitters, parts, out, nothing(count), counts, workspace, |_| ());
}

/// As [`spread_keys`], and writes to `index` (`u32`) where in the concatenation each element was.
///
/// # Panics
/// As [`spread_keys`]; when `index` has another number of elements, or there are more than 2³².
pub fn spread_index(
    splitters: &Splitters,
    parts: &[&[u8]],
    out: &mut [u8],
    index: &mut [u8],
    counts: &mut [u8],
    workspace: &mut [u8],
) {
    let count = splitters.order.count("spread_index", out.len());
    assert!(count as u64 <= 1 << 32, "spread_index: {count} positions in 32 bits");
    let index: &mut [u32] = view_mut(index);
    assert_eq!(index.len(), count, "spread_index: positions");
    spread(splitters, parts, out, index, counts, workspace, |at| at as u32);
}

fn spread<P: Payload>(
    splitters: &Splitters,
    parts: &[&[u8]],
    out: &mut [u8],
    payload: &mut [P],
    counts: &mut [u8],
    workspace: &mut [u8],
    position: impl Fn(usize) -> P,
) {
    let order = splitters.order;
    let count = order.count("spread", out.len());
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(total, out.len(), "spread: bytes of the parts and of the result");
    let ids: &mut [u16] = view_mut(take("spread", workspace, spread_workspace_bytes(count)));
    let counts: &mut [i64] = view_mut(counts);
    with_order!(order, T, D => {
        let keys = splitters.keys.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned);
        let words: Vec<_> = keys.map(class::<T, D>).collect();
        let finder = Finder::new(&words);
        let mut places = finder.classify::<T, D>(parts, ids);
        let mut end = 0;
        for (place, count) in places.iter_mut().zip(&mut *counts) {
            *count = *place as i64;
            end += std::mem::replace(place, end);
        }
        assert_eq!(end, out.len() / size_of::<T>(), "spread: counts of fewer buckets than there are");
        scatter::<<T as SortKey>::Word, P>(parts, ids, &mut places, view_mut(out), payload, position);
    })
}

/// The word of a value, one for all that are equal.
#[inline(always)]
fn class<T: SortKey, const DESCENDING: bool>(value: T) -> T::Word {
    let word = value.word();
    if let Some((negative, positive)) = T::ZEROS {
        if word == negative {
            return directed::<_, DESCENDING>(positive);
        }
    }
    if word < T::LOWEST || word > T::HIGHEST {
        return T::Word::MAX;
    }
    directed::<_, DESCENDING>(word)
}

/// Values of a bucket's number.
const BUCKETS: usize = 2 * LEAVES;
const LEAVES: usize = SPLITTERS_MAX + 1;
/// Elements that are looked for together.
const TOGETHER: usize = 8;

/// Values of the leading bits of a word.
const CELLS: usize = 1 << 12;

/// Splitters, found by the leading bits of a word.
struct Finder<K> {
    low: K,
    shift: u32,
    /// How many splitters lie in earlier cells.
    before: [u8; CELLS],
    /// How often the splitters of the fullest cell can be halved.
    halves: u32,
    /// The splitters in order, and the greatest word behind them.
    sorted: [K; 2 * LEAVES],
}

impl<K: Word> Finder<K> {
    fn new(splitters: &[K]) -> Finder<K> {
        let mut sorted = [K::MAX; 2 * LEAVES];
        sorted[..splitters.len()].copy_from_slice(splitters);
        let low = splitters.first().copied().unwrap_or(K::ZERO);
        // NaN lie far from all numbers.
        let last = splitters.iter().rfind(|splitter| **splitter < K::MAX);
        let bits = u64::BITS - last.map_or(0, |last| last.above(low)).leading_zeros();
        let shift = bits.saturating_sub(CELLS.ilog2());
        let mut finder = Finder {
            low,
            shift,
            before: [0; CELLS],
            halves: 0,
            sorted,
        };
        let mut inside = [0u32; CELLS];
        splitters
            .iter()
            .for_each(|splitter| inside[finder.cell(*splitter)] += 1);
        let mut before = 0;
        for (place, inside) in finder.before.iter_mut().zip(inside) {
            *place = before as u8;
            before += inside;
            finder.halves = finder.halves.max(u32::BITS - inside.leading_zeros());
        }
        finder
    }

    #[inline(always)]
    fn cell(&self, word: K) -> usize {
        let cell = word.max(self.low).above(self.low) >> self.shift;
        cell.min(CELLS as u64 - 1) as usize
    }

    /// The bucket of each of some words.
    #[inline(always)]
    fn buckets<const N: usize>(&self, words: [K; N]) -> [u16; N] {
        let mut at = words.map(|word| usize::from(self.before[self.cell(word)]));
        for half in (0..self.halves).rev() {
            let last = (1 << half) - 1;
            for lane in 0..N {
                // A shift, since a choice would become a branch.
                let less = self.sorted[(at[lane] + last) % (2 * LEAVES)] < words[lane];
                at[lane] += usize::from(less) << half;
            }
        }
        std::array::from_fn(|lane| {
            let equal = words[lane] == self.sorted[at[lane] % (2 * LEAVES)];
            (2 * at[lane] + usize::from(equal)) as u16
        })
    }

    /// Writes the bucket of each element to `ids`, and counts them.
    fn classify<T: SortKey<Word = K>, const DESCENDING: bool>(
        &self,
        parts: &[&[u8]],
        ids: &mut [u16],
    ) -> [usize; BUCKETS] {
        let mut counts = [0; BUCKETS];
        let mut rest = ids;
        for part in parts {
            let values: &[T] = view(part);
            let ids;
            (ids, rest) = rest.split_at_mut(values.len());
            let (groups, odd) = values.as_chunks::<TOGETHER>();
            let (places, odd_places) = ids.as_chunks_mut::<TOGETHER>();
            for (group, places) in groups.iter().zip(places) {
                *places = self.buckets(group.map(class::<T, DESCENDING>));
                for id in places {
                    counts[usize::from(*id) % BUCKETS] += 1;
                }
            }
            for (value, place) in odd.iter().zip(odd_places) {
                [*place] = self.buckets([class::<T, DESCENDING>(*value)]);
                counts[usize::from(*place) % BUCKETS] += 1;
            }
        }
        counts
    }
}

/// Moves every element to the next place of its bucket; the lines that will be written next are asked for.
fn scatter<K: Word, P: Payload>(
    parts: &[&[u8]],
    ids: &[u16],
    places: &mut [usize; BUCKETS],
    out: &mut [K],
    payload: &mut [P],
    position: impl Fn(usize) -> P,
) {
    /// A line and a little more.
    const AHEAD_BYTES: usize = 80;
    let mut read = 0;
    for part in parts {
        let values: &[K] = view(part);
        for (value, id) in values.iter().zip(&ids[read..]) {
            let place = &mut places[usize::from(*id) % BUCKETS];
            let at = *place;
            *place += 1;
            out[at] = *value;
            prefetch_element(out, at + AHEAD_BYTES / size_of::<K>());
            if !P::NOTHING {
                payload[at] = position(read);
                prefetch_element(payload, at + AHEAD_BYTES / size_of::<P>());
            }
            read += usize::from(!P::NOTHING);
        }
        if P::NOTHING {
            read += values.len();
        }
    }
}
