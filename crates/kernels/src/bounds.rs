//! Elements that are not what they have to be.

use bytemuck::Pod;
use outcore_dtype::{f16, DType, Scalar};

use crate::half;

/// Where every element has to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// Integers from the first to the second, both of them included.
    Between(i64, i64),
    /// Neither infinite nor NaN.
    Finite,
}

impl Bounds {
    /// Whether elements of `dtype` can be held against the bounds.
    pub fn supports(self, dtype: DType) -> bool {
        match self {
            Bounds::Between(..) => !dtype.is_inexact() && dtype != DType::Bool,
            Bounds::Finite => dtype.is_inexact() && !dtype.is_complex(),
        }
    }
}

/// The first element for which `is_beyond` holds. Whole slices are looked through first, without a branch for each
/// element: nearly always there is none.
#[inline(always)]
fn first<T: Pod>(data: &[u8], is_beyond: impl Fn(T) -> bool) -> Option<T> {
    let elements: &[T] = bytemuck::cast_slice(data);
    match elements.iter().fold(false, |any, &element| any | is_beyond(element)) {
        true => elements.iter().copied().find(|&element| is_beyond(element)),
        false => None,
    }
}

macro_rules! integers {
    ($T:ty, $Number:ident, $data:expr, $least:expr, $most:expr) => {{
        let (low, high) = (i128::from($least), i128::from($most));
        let (low, high) = (low.max(<$T>::MIN.into()), high.min(<$T>::MAX.into()));
        match (<$T>::try_from(low), <$T>::try_from(high)) {
            (Ok(low), Ok(high)) => first::<$T>($data, |element| (element < low) | (element > high)),
            // No number of the type is within.
            _ => first::<$T>($data, |_| true),
        }
        .map(|element| Scalar::$Number(element.into()))
    }};
}

/// The first element outside the bounds, if there is one.
///
/// # Panics
/// When the bounds do not support the type.
pub fn find_beyond(bounds: Bounds, dtype: DType, data: &[u8]) -> Option<Scalar> {
    match (bounds, dtype) {
        (Bounds::Between(least, most), DType::I8) => integers!(i8, Int, data, least, most),
        (Bounds::Between(least, most), DType::I16) => integers!(i16, Int, data, least, most),
        (Bounds::Between(least, most), DType::I32) => integers!(i32, Int, data, least, most),
        (Bounds::Between(least, most), DType::I64) => integers!(i64, Int, data, least, most),
        (Bounds::Between(least, most), DType::U8) => integers!(u8, UInt, data, least, most),
        (Bounds::Between(least, most), DType::U16) => integers!(u16, UInt, data, least, most),
        (Bounds::Between(least, most), DType::U32) => integers!(u32, UInt, data, least, most),
        (Bounds::Between(least, most), DType::U64) => integers!(u64, UInt, data, least, most),
        (Bounds::Finite, DType::F16) => first(data, |element: f16| !half::widen(element).is_finite())
            .map(|element| Scalar::Float(half::widen(element).into())),
        (Bounds::Finite, DType::F32) => {
            first(data, |element: f32| !element.is_finite()).map(|element| Scalar::Float(element.into()))
        }
        (Bounds::Finite, DType::F64) => first(data, |element: f64| !element.is_finite()).map(Scalar::Float),
        _ => panic!("find_beyond: {bounds:?} of {dtype}"),
    }
}
