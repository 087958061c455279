//! What is sorted: how values of a type compare, and the unsigned words that compare in their stead.

use crate::fence::vectors::{self, Vectors};
use bytemuck::Pod;
use outcore_dtype::f16;

/// An unsigned integer that stands for a value while it is sorted.
pub trait Word: Pod + Ord {
    const ZERO: Self;
    const MAX: Self;
    /// Whether there are functions on vectors of such words.
    const HAS_VECTORS: bool;
    fn not(self) -> Self;
    /// Functions on vectors of such words, where this processor has them.
    fn vectors() -> Option<Vectors<Self>>;
    /// The distance from `low`, which is not greater.
    fn above(self, low: Self) -> u64;
    /// The word `distance` above `self`.
    fn plus(self, distance: u64) -> Self;
}

macro_rules! words {
    ($($K:ty: $has:literal $vectors:expr),*) => {$(
        impl Word for $K {
            const ZERO: $K = 0;
            const MAX: $K = <$K>::MAX;
            const HAS_VECTORS: bool = $has;
            fn vectors() -> Option<Vectors<$K>> {
                $vectors
            }
            #[inline(always)]
            fn not(self) -> $K {
                !self
            }
            #[inline(always)]
            fn above(self, low: $K) -> u64 {
                u64::from(self.wrapping_sub(low))
            }
            #[inline(always)]
            fn plus(self, distance: u64) -> $K {
                self.wrapping_add(distance as $K)
            }
        }
    )*};
}

words!(u8: false None, u16: false None, u32: true vectors::words32(), u64: true vectors::words64());

/// A type whose values have an order.
///
/// **Invariant.** `word` is one to one and ascends with the values that are neither NaN nor zero; the words of the two
/// zeros are neighbours, and the words of NaN lie outside `LOWEST..=HIGHEST`.
pub trait SortKey: Pod {
    type Word: Word;
    /// The words of the smallest and the greatest value that is not NaN.
    const LOWEST: Self::Word;
    const HIGHEST: Self::Word;
    /// The words of the negative and of the positive zero, where these are two.
    const ZEROS: Option<(Self::Word, Self::Word)>;
    fn word(self) -> Self::Word;
    fn from_word(word: Self::Word) -> Self;
    /// Whether it is not NaN.
    #[inline(always)]
    fn is_number(self) -> bool {
        let word = self.word();
        (word >= Self::LOWEST) & (word <= Self::HIGHEST)
    }
    /// Whether `self` comes strictly before `other`; NaN comes last in both directions.
    fn before<const DESCENDING: bool>(self, other: Self) -> bool;
}

/// The word of a value in the direction of the sort.
#[inline(always)]
pub fn directed<K: Word, const DESCENDING: bool>(word: K) -> K {
    if DESCENDING {
        word.not()
    } else {
        word
    }
}

macro_rules! integers {
    ($($T:ty, $K:ty, $flip:expr);*) => {$(
        impl SortKey for $T {
            type Word = $K;
            const LOWEST: $K = 0;
            const HIGHEST: $K = <$K>::MAX;
            const ZEROS: Option<($K, $K)> = None;
            #[inline(always)]
            fn word(self) -> $K {
                self as $K ^ $flip
            }
            #[inline(always)]
            fn from_word(word: $K) -> $T {
                (word ^ $flip) as $T
            }
            #[inline(always)]
            fn before<const DESCENDING: bool>(self, other: $T) -> bool {
                if DESCENDING { self > other } else { self < other }
            }
        }
    )*};
}

integers!(
    u8, u8, 0; u16, u16, 0; u32, u32, 0; u64, u64, 0;
    i8, u8, 1 << 7; i16, u16, 1 << 15; i32, u32, 1 << 31; i64, u64, 1 << 63
);

/// Floats as integers: negative values have all bits flipped, others the sign.
macro_rules! floats {
    ($($T:ty, $K:ident, $I:ident, $infinity:expr, |$x:ident| $compared:expr);*) => {$(
        impl SortKey for $T {
            type Word = $K;
            const LOWEST: $K = !($infinity | 1 << ($K::BITS - 1));
            const HIGHEST: $K = $infinity | 1 << ($K::BITS - 1);
            const ZEROS: Option<($K, $K)> = Some(((1 << ($K::BITS - 1)) - 1, 1 << ($K::BITS - 1)));
            #[inline(always)]
            fn word(self) -> $K {
                let bits = self.to_bits();
                bits ^ ((bits as $I >> ($K::BITS - 1)) as $K | 1 << ($K::BITS - 1))
            }
            #[inline(always)]
            fn from_word(word: $K) -> $T {
                <$T>::from_bits(word ^ ((!word as $I >> ($K::BITS - 1)) as $K | 1 << ($K::BITS - 1)))
            }
            #[inline(always)]
            fn before<const DESCENDING: bool>(self, other: $T) -> bool {
                let compared = |$x: $T| $compared;
                let (a, b) = (compared(self), compared(other));
                let first = if DESCENDING { a > b } else { a < b };
                first | (b.is_nan() & !a.is_nan())
            }
        }
    )*};
}

floats!(
    f16, u16, i16, 0x7c00, |x| crate::half::widen(x);
    f32, u32, i32, 0x7f80_0000, |x| x;
    f64, u64, i64, 0x7ff0_0000_0000_0000, |x| x
);
