//! Numbers of one type for numbers of another, and numbers scaled within their type: `cast_value` and `scale_offset` of Zarr.
//!
//! Elements have their lowest byte first on both sides.

use std::cmp::Ordering;

use outcore_dtype::{f16, DType};

/// The way of a number that lies between two of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    NearestAway,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
}

/// The end of a number beyond the range of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfRange {
    Refused,
    /// To the least or the greatest integer, to an infinity of floats.
    Clamped,
    /// Integers modulo their count; floats are refused.
    Wrapped,
}

/// A number of any type, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AnyNumber {
    Whole(i128),
    Real(f64),
}

/// `cast_value` in one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueCast {
    pub from: DType,
    pub to: DType,
    pub rounding: Rounding,
    pub out_of_range: OutOfRange,
    /// Numbers that become elements of their own; the first of equal ones counts.
    pub map: Vec<(AnyNumber, Vec<u8>)>,
}

/// `scale_offset`: stored numbers are `(x - offset) * scale`, in the type of the array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueScale {
    pub dtype: DType,
    pub offset: AnyNumber,
    pub scale: AnyNumber,
}

/// Whether elements of a type are cast and scaled.
pub(crate) fn is_number(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::C64 | DType::C128)
}

impl AnyNumber {
    /// The number of an element.
    pub(crate) fn from_bytes(dtype: DType, bytes: &[u8]) -> AnyNumber {
        macro_rules! number {
            ($($dtype:ident: $Type:ty => $Kind:ident($Wide:ty)),*) => {
                match dtype {
                    $(DType::$dtype => {
                        let bytes = bytes.first_chunk().copied().unwrap_or_default();
                        AnyNumber::$Kind(<$Wide>::from(<$Type>::from_le_bytes(bytes)))
                    })*
                    _ => AnyNumber::Whole(0),
                }
            };
        }
        number!(
            I8: i8 => Whole(i128), I16: i16 => Whole(i128), I32: i32 => Whole(i128), I64: i64 => Whole(i128),
            U8: u8 => Whole(i128), U16: u16 => Whole(i128), U32: u32 => Whole(i128), U64: u64 => Whole(i128),
            F16: f16 => Real(f64), F32: f32 => Real(f64), F64: f64 => Real(f64)
        )
    }

    pub(crate) fn is_zero(self) -> bool {
        self == AnyNumber::Whole(0) || self == AnyNumber::Real(0.0)
    }

    /// Whether both are one number: a NaN is any other NaN.
    fn is_same(self, other: AnyNumber) -> bool {
        match (self, other) {
            (AnyNumber::Real(left), AnyNumber::Real(right)) => left == right || left.is_nan() && right.is_nan(),
            _ => self == other,
        }
    }

    fn is_negative(self) -> bool {
        match self {
            AnyNumber::Whole(number) => number < 0,
            AnyNumber::Real(number) => number.is_sign_negative(),
        }
    }

    /// Whether the magnitude is below, at or above that of a float, which is whole beside whole numbers.
    fn magnitude_cmp(self, float: f64) -> Ordering {
        match self {
            AnyNumber::Whole(number) => number.abs().cmp(&(float.abs() as i128)),
            AnyNumber::Real(number) => number.abs().total_cmp(&float.abs()),
        }
    }

    /// Whether the number lies in the middle of two neighbours among floats.
    fn is_middle(self, low: f64, high: f64) -> bool {
        match self {
            AnyNumber::Whole(number) => number.abs() * 2 == low.abs() as i128 + high.abs() as i128,
            AnyNumber::Real(number) => number.abs() * 2.0 == low.abs() + high.abs(),
        }
    }
}

impl std::fmt::Display for AnyNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AnyNumber::Whole(number) => number.fmt(f),
            AnyNumber::Real(number) => number.fmt(f),
        }
    }
}

impl ValueCast {
    /// Casts elements into the front of `out`; gives the number of bytes there.
    ///
    /// # Errors
    /// One line: a number that the type does not have, or bytes that are no elements.
    pub(crate) fn apply(&self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let (from, to) = (self.from.size(), self.to.size());
        let length = bytes.len() / from * to;
        let out = out.get_mut(..length).filter(|_| bytes.len().is_multiple_of(from));
        let out = out.ok_or("cast_value: a chunk has another length than expected")?;
        if self.from == self.to {
            out.copy_from_slice(bytes);
        } else if !self.widen(bytes, out) {
            for (element, place) in bytes.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
                let number = AnyNumber::from_bytes(self.from, element);
                if self.mapped(number).is_none() {
                    self.cast(number, place)?;
                }
            }
        }
        if !self.map.is_empty() {
            for (element, place) in bytes.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
                if let Some(other) = self.mapped(AnyNumber::from_bytes(self.from, element)) {
                    place.copy_from_slice(other);
                }
            }
        }
        Ok(length)
    }

    fn mapped(&self, number: AnyNumber) -> Option<&[u8]> {
        let found = self.map.iter().find(|(key, _)| key.is_same(number));
        found.map(|(_, element)| element.as_slice())
    }

    /// Casts into floats that have all numbers of the other type; false for other types.
    fn widen(&self, bytes: &[u8], out: &mut [u8]) -> bool {
        macro_rules! pairs {
            ($($from:ident: $From:ty => $to:ident: $To:ty),*) => {
                match (self.from, self.to) {
                    $((DType::$from, DType::$to) => {
                        let elements = bytes.as_chunks::<{ size_of::<$From>() }>().0;
                        let places = out.as_chunks_mut::<{ size_of::<$To>() }>().0;
                        for (element, place) in elements.iter().zip(places) {
                            *place = <$To>::from(<$From>::from_le_bytes(*element)).to_le_bytes();
                        }
                    })*
                    _ => return false,
                }
            };
        }
        pairs!(
            I8: i8 => F32: f32, I16: i16 => F32: f32, U8: u8 => F32: f32, U16: u16 => F32: f32, F16: f16 => F32: f32,
            I8: i8 => F64: f64, I16: i16 => F64: f64, I32: i32 => F64: f64,
            U8: u8 => F64: f64, U16: u16 => F64: f64, U32: u32 => F64: f64,
            F16: f16 => F64: f64, F32: f32 => F64: f64
        );
        true
    }

    fn cast(&self, number: AnyNumber, place: &mut [u8]) -> Result<(), String> {
        let element = match self.to {
            DType::F16 | DType::F32 | DType::F64 => self.float(number).map(u64::to_le_bytes),
            _ => self.integer(number).map(i64::to_le_bytes),
        };
        let element = element.ok_or_else(|| format!("cast_value: {number} is out of the range of {}", self.to))?;
        place.copy_from_slice(&element[..place.len()]);
        Ok(())
    }

    /// The integer of a number, of which the lower bytes count.
    fn integer(&self, number: AnyNumber) -> Option<i64> {
        const MODULUS: f64 = 18_446_744_073_709_551_616.0;
        let whole = match number {
            AnyNumber::Whole(whole) => whole,
            AnyNumber::Real(real) if !real.is_finite() => return None,
            AnyNumber::Real(real) => {
                let rounded = match self.rounding {
                    Rounding::NearestEven => real.round_ties_even(),
                    Rounding::NearestAway => real.round(),
                    Rounding::TowardsZero => real.trunc(),
                    Rounding::TowardsPositive => real.ceil(),
                    Rounding::TowardsNegative => real.floor(),
                };
                match self.out_of_range {
                    OutOfRange::Wrapped => (rounded % MODULUS) as i128,
                    OutOfRange::Refused | OutOfRange::Clamped => rounded as i128,
                }
            }
        };
        let bits = 8 * self.to.size();
        let is_signed = matches!(self.to, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        let (least, greatest) = match is_signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        match self.out_of_range {
            _ if (least..=greatest).contains(&whole) => Some(whole as i64),
            OutOfRange::Refused => None,
            OutOfRange::Clamped => Some(whole.clamp(least, greatest) as i64),
            OutOfRange::Wrapped => Some(whole as i64),
        }
    }

    /// The bits of the float of a number: rounded as if there were no largest exponent, and compared with the range then.
    fn float(&self, number: AnyNumber) -> Option<u64> {
        let (nearest, infinity, beyond) = match (self.to, number) {
            (DType::F16, AnyNumber::Whole(whole)) => (f16::from_f64(whole as f64).to_bits().into(), 0x7c00, 65536.0),
            (DType::F16, AnyNumber::Real(real)) => (f16::from_f64(real).to_bits().into(), 0x7c00, 65536.0),
            (DType::F32, AnyNumber::Whole(whole)) => (u64::from((whole as f32).to_bits()), 0x7f80_0000, 2f64.powi(128)),
            (DType::F32, AnyNumber::Real(real)) => (u64::from((real as f32).to_bits()), 0x7f80_0000, 2f64.powi(128)),
            (_, AnyNumber::Whole(whole)) => ((whole as f64).to_bits(), f64::INFINITY.to_bits(), f64::INFINITY),
            (_, AnyNumber::Real(real)) => return Some(real.to_bits()),
        };
        if let AnyNumber::Real(real) = number {
            if !real.is_finite() {
                return Some(nearest);
            }
        }
        let sign = nearest & (infinity + 1).next_power_of_two();
        let rounded = self.rounded(number, nearest);
        let is_within = number.magnitude_cmp(beyond) == Ordering::Less && rounded & infinity != infinity;
        match self.out_of_range {
            _ if is_within => Some(rounded),
            OutOfRange::Clamped => Some(sign | infinity),
            OutOfRange::Refused | OutOfRange::Wrapped => None,
        }
    }

    /// The nearest float, or the neighbour of it that the rounding asks for.
    fn rounded(&self, number: AnyNumber, nearest: u64) -> u64 {
        let value = |bits: u64| match self.to {
            DType::F16 => f64::from(f16::from_bits(bits as u16)),
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        let is_negative = number.is_negative();
        // Bits of larger magnitudes are larger.
        match (number.magnitude_cmp(value(nearest)), self.rounding) {
            (Ordering::Less, Rounding::TowardsZero) => nearest - 1,
            (Ordering::Less, Rounding::TowardsPositive) if is_negative => nearest - 1,
            (Ordering::Less, Rounding::TowardsNegative) if !is_negative => nearest - 1,
            (Ordering::Greater, Rounding::TowardsPositive) if !is_negative => nearest + 1,
            (Ordering::Greater, Rounding::TowardsNegative) if is_negative => nearest + 1,
            (Ordering::Greater, Rounding::NearestAway) if number.is_middle(value(nearest), value(nearest + 1)) => {
                nearest + 1
            }
            _ => nearest,
        }
    }
}

impl ValueScale {
    /// Whether both numbers suit the type: integers are not divided by zero.
    pub(crate) fn is_supported(self) -> bool {
        is_number(self.dtype) && !self.scale.is_zero()
    }

    /// `stored / scale + offset` into the front of `out`; gives the number of bytes there.
    ///
    /// # Errors
    /// One line: integers that do not divide or leave their type.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        self.apply(bytes, out, true)
    }

    /// `(x - offset) * scale`, as `decode`.
    ///
    /// # Errors
    /// The errors of `decode`.
    pub(crate) fn encode(self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        self.apply(bytes, out, false)
    }

    fn apply(self, bytes: &[u8], out: &mut [u8], is_decoding: bool) -> Result<usize, String> {
        let out = out.get_mut(..bytes.len());
        let out = out.filter(|_| bytes.len().is_multiple_of(self.dtype.size()));
        let out = out.ok_or("scale_offset: a chunk has another length than expected")?;
        macro_rules! floats {
            ($Type:ty) => {
                if let (AnyNumber::Real(scale), AnyNumber::Real(offset)) = (self.scale, self.offset) {
                    let (scale, offset) = (<$Type>::from_f64(scale), <$Type>::from_f64(offset));
                    elements(bytes, out, |bytes| {
                        let number = <$Type>::from_le_bytes(*bytes);
                        let scaled = match is_decoding {
                            true => number.over(scale).plus(offset),
                            false => number.minus(offset).times(scale),
                        };
                        Some(scaled.to_le_bytes())
                    })
                } else {
                    None
                }
            };
        }
        macro_rules! integers {
            ($Type:ty, $Wide:ty) => {
                if let (AnyNumber::Whole(scale), AnyNumber::Whole(offset)) = (self.scale, self.offset) {
                    let (scale, offset) = (scale as $Wide, offset as $Wide);
                    elements(bytes, out, |bytes| {
                        let number = <$Wide>::from(<$Type>::from_le_bytes(*bytes));
                        let scaled = match is_decoding {
                            true if number % scale != 0 => return None,
                            true => number / scale + offset,
                            false => (number - offset).checked_mul(scale)?,
                        };
                        <$Type>::try_from(scaled).ok().map(<$Type>::to_le_bytes)
                    })
                } else {
                    None
                }
            };
        }
        let done = match self.dtype {
            DType::I8 => integers!(i8, i64),
            DType::I16 => integers!(i16, i64),
            DType::I32 => integers!(i32, i64),
            DType::I64 => integers!(i64, i128),
            DType::U8 => integers!(u8, i64),
            DType::U16 => integers!(u16, i64),
            DType::U32 => integers!(u32, i64),
            DType::U64 => integers!(u64, i128),
            DType::F16 => floats!(f16),
            DType::F32 => floats!(f32),
            DType::F64 => floats!(f64),
            _ => None,
        };
        let refused = || format!("scale_offset: an element is no {} after scaling", self.dtype);
        done.map(|()| bytes.len()).ok_or_else(refused)
    }
}

/// Makes elements of elements; nothing when one has none.
fn elements<const SIZE: usize>(
    bytes: &[u8],
    out: &mut [u8],
    made: impl Fn(&[u8; SIZE]) -> Option<[u8; SIZE]>,
) -> Option<()> {
    let places = out.as_chunks_mut::<SIZE>().0;
    for (element, place) in bytes.as_chunks::<SIZE>().0.iter().zip(places) {
        *place = made(element)?;
    }
    Some(())
}

/// Arithmetic in a type of floats, rounded after each step.
trait FloatSteps: Copy {
    fn from_f64(number: f64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
}

macro_rules! float_steps {
    ($($Type:ty, $of:expr, $wide:expr, $narrow:expr);*) => {
        $(impl FloatSteps for $Type {
            fn from_f64(number: f64) -> Self {
                $of(number)
            }
            fn plus(self, other: Self) -> Self {
                $narrow($wide(self) + $wide(other))
            }
            fn minus(self, other: Self) -> Self {
                $narrow($wide(self) - $wide(other))
            }
            fn times(self, other: Self) -> Self {
                $narrow($wide(self) * $wide(other))
            }
            fn over(self, other: Self) -> Self {
                $narrow($wide(self) / $wide(other))
            }
        })*
    };
}

float_steps!(
    f64, std::convert::identity, std::convert::identity, std::convert::identity;
    f32, |number: f64| number as f32, std::convert::identity, std::convert::identity;
    f16, f16::from_f64, f16::to_f32, f16::from_f32
);

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(from: DType, to: DType, rounding: Rounding, out_of_range: OutOfRange) -> ValueCast {
        let map = vec![];
        ValueCast {
            from,
            to,
            rounding,
            out_of_range,
            map,
        }
    }

    fn narrowed(number: f64, rounding: Rounding, out_of_range: OutOfRange) -> Option<f32> {
        let mut out = [0; 4];
        let cast = cast(DType::F64, DType::F32, rounding, out_of_range);
        cast.apply(&number.to_le_bytes(), &mut out).ok()?;
        Some(f32::from_le_bytes(out))
    }

    #[test]
    fn floats_are_rounded_as_named() {
        use Rounding::{NearestAway, NearestEven, TowardsNegative, TowardsPositive, TowardsZero};
        let (tie, up) = (1.0 + 2f64.powi(-24), 1.0 + f32::EPSILON);
        for (rounding, plus, minus) in [
            (NearestEven, 1.0, -1.0),
            (NearestAway, up, -up),
            (TowardsZero, 1.0, -1.0),
            (TowardsPositive, up, -1.0),
            (TowardsNegative, 1.0, -up),
        ] {
            assert_eq!(narrowed(tie, rounding, OutOfRange::Refused), Some(plus));
            assert_eq!(narrowed(-tie, rounding, OutOfRange::Refused), Some(minus));
        }
        let least = f32::from_bits(1);
        assert_eq!(narrowed(1e-60, TowardsPositive, OutOfRange::Refused), Some(least));
        assert_eq!(narrowed(-1e-60, TowardsNegative, OutOfRange::Refused), Some(-least));
        let above = f64::from(f32::MAX) + 1e30;
        assert_eq!(narrowed(above, TowardsZero, OutOfRange::Refused), Some(f32::MAX));
        assert_eq!(narrowed(above, TowardsPositive, OutOfRange::Refused), None);
        assert_eq!(narrowed(3.5e38, TowardsZero, OutOfRange::Refused), None);
        assert_eq!(
            narrowed(-3.5e38, TowardsZero, OutOfRange::Clamped),
            Some(f32::NEG_INFINITY)
        );
        assert_eq!(
            narrowed(f64::INFINITY, TowardsZero, OutOfRange::Refused),
            Some(f32::INFINITY)
        );
    }

    #[test]
    fn integers_wrap_clamp_or_are_refused() {
        let to_u8 = |number: f64, out_of_range| {
            let mut out = [0];
            let cast = cast(DType::F64, DType::U8, Rounding::NearestEven, out_of_range);
            cast.apply(&number.to_le_bytes(), &mut out).ok().map(|_| out[0])
        };
        for (number, clamped, wrapped) in [(300.6, 255, 45), (-5.2, 0, 251), (1e30, 255, 0)] {
            assert_eq!(to_u8(number, OutOfRange::Refused), None);
            assert_eq!(to_u8(number, OutOfRange::Clamped), Some(clamped));
            assert_eq!(to_u8(number, OutOfRange::Wrapped), Some(wrapped));
        }
        assert_eq!(to_u8(f64::NAN, OutOfRange::Clamped), None);
        assert_eq!(to_u8(2.5, OutOfRange::Refused), Some(2));
    }

    #[test]
    fn mapped_numbers_are_not_cast() {
        let mut cast = cast(DType::F64, DType::U8, Rounding::NearestEven, OutOfRange::Refused);
        cast.map = vec![(AnyNumber::Real(f64::NAN), vec![7]), (AnyNumber::Real(0.0), vec![9])];
        let numbers = [f64::NAN, -0.0, 5.0].map(f64::to_le_bytes).concat();
        let mut out = [0; 3];
        assert_eq!(cast.apply(&numbers, &mut out), Ok(3));
        assert_eq!(out, [7, 9, 5]);
        assert!(cast.apply(&numbers[..23], &mut out).is_err());
        assert!(cast.apply(&numbers, &mut out[..2]).is_err());
    }

    #[test]
    fn integers_divide_exactly() {
        let scale = ValueScale {
            dtype: DType::I8,
            offset: AnyNumber::Whole(100),
            scale: AnyNumber::Whole(-1),
        };
        let mut out = [0; 2];
        assert_eq!(
            scale.decode(&[0x80, 1], &mut out),
            Err("scale_offset: an element is no int8 after scaling".into())
        );
        assert_eq!(scale.decode(&[1, 100], &mut out), Ok(2));
        assert_eq!(out, [99, 0]);
        let mut back = [0; 2];
        assert_eq!(scale.encode(&out, &mut back), Ok(2));
        assert_eq!(back, [1, 100]);
        let halves = ValueScale {
            scale: AnyNumber::Whole(2),
            ..scale
        };
        assert!(halves.decode(&[3, 4], &mut out).is_err());
    }
}
