//! What stands for addition and multiplication in a product, by GraphBLAS's names: `first` is the matrix's value, `second`
//! the dense one, `pair` is 1.

use bytemuck::{bytes_of, Pod};
use outcore_dtype::{Complex, DType};

/// Additions and multiplications that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semiring {
    PlusTimes,
    PlusPair,
    PlusFirst,
    PlusSecond,
    MinPlus,
    MaxPlus,
    MinTimes,
    MaxTimes,
    MinFirst,
    MinSecond,
    MaxFirst,
    MaxSecond,
    /// 1 where a pair meets, whichever it is.
    AnyPair,
    LorLand,
}

impl Semiring {
    /// All there are, with their names.
    pub const ALL: [(&'static str, Semiring); 14] = [
        ("plus_times", Semiring::PlusTimes),
        ("plus_pair", Semiring::PlusPair),
        ("plus_first", Semiring::PlusFirst),
        ("plus_second", Semiring::PlusSecond),
        ("min_plus", Semiring::MinPlus),
        ("max_plus", Semiring::MaxPlus),
        ("min_times", Semiring::MinTimes),
        ("max_times", Semiring::MaxTimes),
        ("min_first", Semiring::MinFirst),
        ("min_second", Semiring::MinSecond),
        ("max_first", Semiring::MaxFirst),
        ("max_second", Semiring::MaxSecond),
        ("any_pair", Semiring::AnyPair),
        ("lor_land", Semiring::LorLand),
    ];

    pub fn name(self) -> &'static str {
        Semiring::ALL[self as usize].0
    }

    pub fn named(name: &str) -> Option<Semiring> {
        Semiring::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, semiring)| *semiring)
    }

    /// The bytes of the sum of nothing, or nothing where elements of a type do not make this semiring.
    pub fn zero(self, dtype: DType) -> Option<Vec<u8>> {
        let (least, greatest): (&[u8], &[u8]) = match (dtype, self) {
            (DType::F32, _) => (bytes_of(&f32::NEG_INFINITY), bytes_of(&f32::INFINITY)),
            (DType::F64, _) => (bytes_of(&f64::NEG_INFINITY), bytes_of(&f64::INFINITY)),
            (DType::I64, _) => (bytes_of(&i64::MIN), bytes_of(&i64::MAX)),
            (DType::Bool, Semiring::LorLand | Semiring::AnyPair) => return Some(vec![0]),
            (DType::C64 | DType::C128, Semiring::PlusTimes) => return Some(vec![0; dtype.size()]),
            _ => return None,
        };
        match self.name().split('_').next() {
            Some("lor") => None,
            Some("min") => Some(greatest.to_vec()),
            Some("max") => Some(least.to_vec()),
            _ => Some(vec![0; dtype.size()]),
        }
    }
}

/// A semiring over one type. Nothing is said of order: products add in the order of columns.
pub trait Arithmetic {
    type T: Pod;
    /// What stands for the value of an entry of a matrix without values.
    const ONE: Self::T;
    /// Whether sums of many columns are kept in registers side by side.
    const WIDE: bool = false;
    fn add(a: Self::T, b: Self::T) -> Self::T;
    fn multiply(value: Self::T, x: Self::T) -> Self::T;
}

macro_rules! ring {
    ($Name:ident, $T:ty, $one:expr, $add:expr, $multiply:expr $(, $wide:ident)?) => {
        pub struct $Name;
        impl Arithmetic for $Name {
            type T = $T;
            const ONE: $T = $one;
            $(const $wide: bool = true;)?
            #[inline(always)]
            fn add(a: $T, b: $T) -> $T {
                let add: fn($T, $T) -> $T = $add;
                add(a, b)
            }
            #[inline(always)]
            fn multiply(value: $T, x: $T) -> $T {
                let multiply: fn($T, $T) -> $T = $multiply;
                multiply(value, x)
            }
        }
    };
}

/// All rings of an ordered type. `$shift` is the addition that stands for multiplication.
macro_rules! ordered {
    ($module:ident, $T:ty, $one:expr, $plus:expr, $times:expr, $shift:expr $(, $wide:ident)?) => {
        pub(super) mod $module {
            use super::{greatest, least, Arithmetic};
            ring!(PlusTimes, $T, $one, $plus, $times $(, $wide)?);
            ring!(PlusPair, $T, $one, $plus, |_, _| $one);
            ring!(PlusFirst, $T, $one, $plus, |value, _| value);
            ring!(PlusSecond, $T, $one, $plus, |_, x| x $(, $wide)?);
            ring!(MinPlus, $T, $one, least, $shift);
            ring!(MaxPlus, $T, $one, greatest, $shift);
            ring!(MinTimes, $T, $one, least, $times);
            ring!(MaxTimes, $T, $one, greatest, $times);
            ring!(MinFirst, $T, $one, least, |value, _| value);
            ring!(MinSecond, $T, $one, least, |_, x| x);
            ring!(MaxFirst, $T, $one, greatest, |value, _| value);
            ring!(MaxSecond, $T, $one, greatest, |_, x| x);
            ring!(AnyPair, $T, $one, |_, _| $one, |_, _| $one);
        }
    };
}

#[inline(always)]
fn least<T: PartialOrd>(a: T, b: T) -> T {
    if b < a {
        b
    } else {
        a
    }
}

#[inline(always)]
fn greatest<T: PartialOrd>(a: T, b: T) -> T {
    if b > a {
        b
    } else {
        a
    }
}

ordered!(float32, f32, 1.0, |a, b| a + b, |a, b| a * b, |a, b| a + b, WIDE);
ordered!(float64, f64, 1.0, |a, b| a + b, |a, b| a * b, |a, b| a + b, WIDE);
ordered!(int64, i64, 1, i64::wrapping_add, i64::wrapping_mul, i64::saturating_add);

pub(super) mod complex {
    use super::{Arithmetic, Complex};
    ring!(
        Single,
        Complex<f32>,
        Complex { re: 1.0, im: 0.0 },
        |a, b| a + b,
        |a, b| a * b
    );
    ring!(
        Double,
        Complex<f64>,
        Complex { re: 1.0, im: 0.0 },
        |a, b| a + b,
        |a, b| a * b
    );
}

/// Truth as bytes of 0 and 1.
pub(super) mod truth {
    use super::Arithmetic;
    ring!(LorLand, u8, 1, |a, b| a | b, |value, x| value & x);
    ring!(AnyPair, u8, 1, |_, _| 1, |_, _| 1);
}
