//! Elements between two keys.

use super::key::SortKey;
use super::{with_order, KeyOrder};
use outcore_dtype::{f16, DType};

/// What [`sift`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sifted {
    /// Elements that come before the lower key or equal it.
    pub up_to_low: usize,
    /// Elements strictly between the keys. Those beyond the room for them are counted, but not kept.
    pub inside: usize,
}

/// Copies the elements that come strictly between two keys to the front of `kept`. Without an upper key all that come
/// after the lower one lie inside, NaN too.
pub fn sift(order: KeyOrder, values: &[u8], low: &[u8], high: Option<&[u8]>, kept: &mut [u8]) -> Sifted {
    with_order!(order, T, D => {
        let low: T = bytemuck::pod_read_unaligned(low);
        let high: Option<T> = high.map(bytemuck::pod_read_unaligned);
        between::<T, D>(bytemuck::cast_slice(values), low, high, bytemuck::cast_slice_mut(kept))
    })
}

fn between<T: SortKey, const DESCENDING: bool>(values: &[T], low: T, high: Option<T>, kept: &mut [T]) -> Sifted {
    let mut found = Sifted {
        up_to_low: 0,
        inside: 0,
    };
    for value in values {
        let above = low.before::<DESCENDING>(*value);
        found.up_to_low += usize::from(!above);
        let inside = above && high.is_none_or(|high| value.before::<DESCENDING>(high));
        if inside {
            if let Some(place) = kept.get_mut(found.inside) {
                *place = *value;
            }
        }
        found.inside += usize::from(inside);
    }
    found
}

/// The bytes of a NaN, for types that have one.
pub fn nan_key(dtype: DType) -> Option<Vec<u8>> {
    match dtype {
        DType::F16 => Some(f16::NAN.to_ne_bytes().to_vec()),
        DType::F32 => Some(f32::NAN.to_ne_bytes().to_vec()),
        DType::F64 => Some(f64::NAN.to_ne_bytes().to_vec()),
        _ => None,
    }
}
