//! From values to words and back.
//!
//! Words of zeros and of NaN carry bits that must not count in the order. Where both zeros or any NaN occur, these are
//! taken out first, in their order; the rest is sorted, and they are put where they belong.

use super::key::{directed, SortKey, Word};
use super::radix::{Payload, RadixColumns, RadixExtent, RadixFinish};
use super::slices::view;
use crate::fence::shells::SweepBody;
use std::marker::PhantomData;

/// What the words of a range turned out to be.
pub struct Found<K> {
    pub low: K,
    pub high: K,
    /// A negative zero, where the type has one.
    pub negative_zero: bool,
}

impl<K: Word> Found<K> {
    pub const NOTHING: Found<K> = Found {
        low: K::MAX,
        high: K::ZERO,
        negative_zero: false,
    };

    pub fn join(self, other: Found<K>) -> Found<K> {
        Found {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            negative_zero: self.negative_zero | other.negative_zero,
        }
    }

    pub fn extent(&self) -> RadixExtent<K> {
        if self.low > self.high {
            return RadixExtent::new(K::ZERO, K::ZERO);
        }
        RadixExtent::new(self.low, self.high)
    }

    /// Whether some words carry bits that do not count.
    pub fn special<T: SortKey<Word = K>, const DESCENDING: bool>(&self) -> bool {
        let bounds = KeyBounds::of::<T, DESCENDING>();
        self.low <= self.high && (self.negative_zero || self.low < bounds.lowest || self.high > bounds.highest)
    }
}

/// Where the words of numbers lie, in the direction of the sort.
#[derive(Clone, Copy)]
struct KeyBounds<K> {
    lowest: K,
    highest: K,
    /// The smaller and the greater word of a zero.
    zeros: Option<(K, K)>,
}

impl<K: Word> KeyBounds<K> {
    fn of<T: SortKey<Word = K>, const DESCENDING: bool>() -> Self {
        let (low, high) = (
            directed::<K, DESCENDING>(T::LOWEST),
            directed::<K, DESCENDING>(T::HIGHEST),
        );
        let zeros = T::ZEROS.map(|(negative, positive)| {
            let (a, b) = (directed::<K, DESCENDING>(negative), directed::<K, DESCENDING>(positive));
            (a.min(b), a.max(b))
        });
        KeyBounds {
            lowest: low.min(high),
            highest: low.max(high),
            zeros,
        }
    }
}

struct Encode<T, const DESCENDING: bool>(PhantomData<T>);

impl<T: SortKey, const DESCENDING: bool> SweepBody for Encode<T, DESCENDING> {
    #[inline(always)]
    fn run(data: &mut [u8], findings: &mut [u64; 3]) {
        let words: &mut [T::Word] = bytemuck::cast_slice_mut(data);
        let zero = T::ZEROS.map(|(negative, _)| directed::<T::Word, DESCENDING>(negative));
        let (mut low, mut high, mut negative_zero) = (T::Word::MAX, T::Word::ZERO, false);
        for place in words {
            let word = directed::<T::Word, DESCENDING>(bytemuck::cast::<T::Word, T>(*place).word());
            *place = word;
            low = low.min(word);
            high = high.max(word);
            if let Some(zero) = zero {
                negative_zero |= word == zero;
            }
        }
        *findings = [
            low.above(T::Word::ZERO),
            high.above(T::Word::ZERO),
            u64::from(negative_zero),
        ];
    }
}

struct Decode<T, const DESCENDING: bool>(PhantomData<T>);

impl<T: SortKey, const DESCENDING: bool> SweepBody for Decode<T, DESCENDING> {
    #[inline(always)]
    fn run(data: &mut [u8], _: &mut [u64; 3]) {
        let words: &mut [T::Word] = bytemuck::cast_slice_mut(data);
        for place in words {
            *place = bytemuck::cast(T::from_word(directed::<T::Word, DESCENDING>(*place)));
        }
    }
}

/// Turns values into words where they lie.
pub fn encode<T: SortKey, const DESCENDING: bool>(values: &mut [T]) -> Found<T::Word> {
    let mut findings = [0; 3];
    Encode::<T, DESCENDING>::kernel()(bytemuck::cast_slice_mut(values), &mut findings);
    let word = |bits| T::Word::ZERO.plus(bits);
    Found {
        low: word(findings[0]),
        high: word(findings[1]),
        negative_zero: findings[2] != 0,
    }
}

/// Turns words into the values they stand for, where they lie.
pub fn decode<T: SortKey, const DESCENDING: bool>(words: &mut [T::Word]) {
    Decode::<T, DESCENDING>::kernel()(bytemuck::cast_slice_mut(words), &mut [0; 3]);
}

/// [`decode`] for each finished range; none where words are the values.
pub fn finish<T: SortKey, const DESCENDING: bool>() -> Option<RadixFinish<T::Word>> {
    let one = T::Word::ZERO.plus(1);
    let same = |word: T::Word| bytemuck::cast::<T, T::Word>(T::from_word(directed::<_, DESCENDING>(word))) == word;
    let identity = T::ZEROS.is_none() && same(T::Word::ZERO) && same(one);
    (!identity).then_some(decode::<T, DESCENDING> as RadixFinish<T::Word>)
}

/// How many elements of each kind [`set_apart`] found.
pub struct Apart<K> {
    pub numbers: Found<K>,
    pub number_count: usize,
    pub zero_count: usize,
}

/// Numbers first, then zeros, then NaN, each in their order. Takes `spare` as workspace.
pub fn set_apart<T: SortKey, P: Payload, const DESCENDING: bool>(
    columns: &mut RadixColumns<'_, T::Word, P>,
    spare: &mut RadixColumns<'_, T::Word, P>,
) -> Apart<T::Word> {
    let bounds = KeyBounds::of::<T, DESCENDING>();
    let length = columns.words.len();
    let (mut numbers, mut zeros, mut nans) = (0, 0, 0);
    let mut found = Found::<T::Word>::NOTHING;
    for at in 0..length {
        let (word, carried) = (columns.words[at], columns.payload[at]);
        let nan = (word < bounds.lowest) | (word > bounds.highest);
        let zero = bounds.zeros.is_some_and(|(a, b)| (word == a) | (word == b));
        // Each possible place is free: numbers never overtake the reading, the others meet in the middle of `spare`.
        columns.words[numbers] = word;
        columns.payload[numbers] = carried;
        let apart = if nan { length - 1 - nans } else { zeros };
        spare.words[apart] = word;
        spare.payload[apart] = carried;
        let number = !(nan | zero);
        numbers += usize::from(number);
        zeros += usize::from(zero);
        nans += usize::from(nan);
        found.low = found.low.min(if number { word } else { T::Word::MAX });
        found.high = found.high.max(if number { word } else { T::Word::ZERO });
    }
    columns
        .range(numbers, numbers + zeros)
        .copy_from(&spare.range(0, zeros));
    let mut end = columns.range(numbers + zeros, length);
    end.copy_from(&spare.range(numbers + zeros, length));
    end.words.reverse();
    end.payload.reverse();
    Apart {
        numbers: found,
        number_count: numbers,
        zero_count: zeros,
    }
}

/// Moves the zeros behind the numbers that come before them; `values` are numbers in order, then zeros.
pub fn put_zeros<T: SortKey, P: Payload, const DESCENDING: bool>(
    values: &mut [T],
    payload: &mut [P],
    number_count: usize,
) {
    let zeros = values.len() - number_count;
    if zeros == 0 {
        return;
    }
    let zero = values[number_count];
    let before = values[..number_count].partition_point(|value| value.before::<DESCENDING>(zero));
    values[before..].rotate_right(zeros);
    payload[before..].rotate_right(zeros);
}

/// What a sequence has of values whose words carry bits that do not count.
#[derive(Clone, Copy, Default)]
pub struct Special {
    pub nans: usize,
    negative_zeros: usize,
    positive_zeros: usize,
}

impl Special {
    pub fn of<T: SortKey>(parts: &[&[u8]]) -> Special {
        let mut special = Special::default();
        let Some((negative, positive)) = T::ZEROS else {
            return special;
        };
        for part in parts {
            for value in view::<u8, T>(part) {
                let word = value.word();
                special.nans += usize::from(!value.is_number());
                special.negative_zeros += usize::from(word == negative);
                special.positive_zeros += usize::from(word == positive);
            }
        }
        special
    }

    /// Whether the order of zeros among themselves is not that of their words.
    fn mixes_zeros(&self) -> bool {
        self.negative_zeros > 0 && self.positive_zeros > 0
    }

    pub fn is_any(&self) -> bool {
        self.nans > 0 || self.mixes_zeros()
    }
}

/// Puts NaN behind the numbers, and zeros where both kinds occur, in the order in which `parts` have them. `values` are the
/// numbers in order, and room for NaN.
pub fn put_special<T: SortKey, const DESCENDING: bool>(parts: &[&[u8]], values: &mut [T], special: Special) {
    let mut nan = values.len() - special.nans;
    let zeros = T::ZEROS.filter(|_| special.mixes_zeros());
    let mut zero = zeros.map_or(0, |(word, _)| {
        values[..nan].partition_point(|value| value.before::<DESCENDING>(T::from_word(word)))
    });
    for value in parts.iter().flat_map(|part| view::<u8, T>(part)) {
        let word = value.word();
        if !value.is_number() {
            values[nan] = *value;
            nan += 1;
        } else if zeros.is_some_and(|(a, b)| (word == a) | (word == b)) {
            values[zero] = *value;
            zero += 1;
        }
    }
}

/// Copies `parts` one behind the other to `out` and encodes them there, a strip at a time while it is in the cache.
pub fn encode_parts<T: SortKey, const DESCENDING: bool>(parts: &[&[u8]], out: &mut [T]) -> Found<T::Word> {
    const STRIP: usize = 2048;
    let mut found = Found::NOTHING;
    let mut rest = out;
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.len() / size_of::<T>());
        rest = behind;
        for (source, target) in part.chunks(STRIP * size_of::<T>()).zip(place.chunks_mut(STRIP)) {
            bytemuck::cast_slice_mut::<T, u8>(target).copy_from_slice(source);
            found = found.join(encode::<T, DESCENDING>(target));
        }
    }
    found
}
