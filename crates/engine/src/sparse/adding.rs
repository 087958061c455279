//! Entries at one place, added up in a type that is wide enough for all of them, whatever the type they are stored in.

use outcore_dtype::{f16, DType};

/// The sum of entries at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sum {
    /// 2⁶³ numbers of 64 bits have room.
    Whole(i128),
    /// Real and imaginary part of a type that is narrower than float64.
    Narrow([f64; 2]),
}

/// Whether values of a type are added up in a wider one; the others are as wide as there are.
pub(super) fn is_widened(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::F64 | DType::C128)
}

fn word<const N: usize>(value: &[u8]) -> [u8; N] {
    *value.first_chunk().expect("a value of its type")
}

fn whole(dtype: DType, value: &[u8]) -> Option<i128> {
    Some(match dtype {
        DType::I8 => i8::from_ne_bytes(word(value)).into(),
        DType::I16 => i16::from_ne_bytes(word(value)).into(),
        DType::I32 => i32::from_ne_bytes(word(value)).into(),
        DType::I64 => i64::from_ne_bytes(word(value)).into(),
        DType::U8 => value[0].into(),
        DType::U16 => u16::from_ne_bytes(word(value)).into(),
        DType::U32 => u32::from_ne_bytes(word(value)).into(),
        DType::U64 => u64::from_ne_bytes(word(value)).into(),
        _ => return None,
    })
}

fn narrow(dtype: DType, value: &[u8]) -> [f64; 2] {
    let single = |bytes: &[u8]| f64::from(f32::from_ne_bytes(word(bytes)));
    match dtype {
        DType::F16 => [f16::from_ne_bytes(word(value)).to_f64(), 0.0],
        DType::C64 => [single(value), single(&value[4..])],
        _ => [single(value), 0.0],
    }
}

impl Sum {
    /// A first value of a type that [`is_widened`].
    pub fn of(dtype: DType, value: &[u8]) -> Sum {
        match whole(dtype, value) {
            Some(number) => Sum::Whole(number),
            None => Sum::Narrow(narrow(dtype, value)),
        }
    }

    /// With another value.
    pub fn and(self, dtype: DType, value: &[u8]) -> Sum {
        match (self, Sum::of(dtype, value)) {
            (Sum::Narrow([a, b]), Sum::Narrow([c, d])) => Sum::Narrow([a + c, b + d]),
            (Sum::Whole(a), Sum::Whole(b)) => Sum::Whole(a + b),
            (_, other) => other,
        }
    }

    /// Puts the sum into a value of the type, and says whether that has room for it.
    pub fn put(self, dtype: DType, value: &mut [u8]) -> bool {
        match self {
            Sum::Whole(number) => {
                let bytes = number.to_le_bytes();
                // Little-endian, as the file is.
                value.copy_from_slice(&bytes[..value.len()]);
                whole(dtype, value) == Some(number)
            }
            Sum::Narrow([real, imaginary]) => {
                match dtype {
                    DType::F16 => value.copy_from_slice(&f16::from_f64(real).to_ne_bytes()),
                    DType::C64 => {
                        value[..4].copy_from_slice(&(real as f32).to_ne_bytes());
                        value[4..].copy_from_slice(&(imaginary as f32).to_ne_bytes());
                    }
                    _ => value.copy_from_slice(&(real as f32).to_ne_bytes()),
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_may_leave_their_type_on_the_way_but_not_at_the_end() {
        let mut value = [0];
        let sum = Sum::of(DType::I8, &[100]).and(DType::I8, &[100]);
        assert!(!sum.put(DType::I8, &mut value));
        let sum = sum.and(DType::I8, &(-90i8).to_ne_bytes());
        assert!(sum.put(DType::I8, &mut value));
        assert_eq!(i8::from_ne_bytes(value), 110);
        let most = u64::MAX.to_ne_bytes();
        let mut value = most;
        assert!(Sum::of(DType::U64, &most).put(DType::U64, &mut value));
        assert!(!Sum::of(DType::U64, &most)
            .and(DType::U64, &1u64.to_ne_bytes())
            .put(DType::U64, &mut value));
    }

    #[test]
    fn many_ones_of_a_narrow_type_are_as_many() {
        let one = 1f32.to_ne_bytes();
        let mut sum = Sum::of(DType::F32, &one);
        for _ in 1..20_000_000 {
            sum = sum.and(DType::F32, &one);
        }
        let mut value = [0; 4];
        assert!(sum.put(DType::F32, &mut value));
        assert_eq!(f32::from_ne_bytes(value), 2e7);
        let both = [1f32.to_ne_bytes(), (-2f32).to_ne_bytes()].concat();
        let mut value = [0; 8];
        assert!(Sum::of(DType::C64, &both)
            .and(DType::C64, &both)
            .put(DType::C64, &mut value));
        assert_eq!(value[4..], (-4f32).to_ne_bytes());
        let mut value = [0; 2];
        let half = f16::from_f64(0.1).to_ne_bytes();
        assert!(Sum::of(DType::F16, &half)
            .and(DType::F16, &half)
            .put(DType::F16, &mut value));
        assert_eq!(f16::from_ne_bytes(value), f16::from_f64(0.2));
    }
}
