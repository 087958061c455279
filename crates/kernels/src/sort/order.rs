//! The order of keys, and from it to the code of their type.

use outcore_dtype::DType;

/// The order of the values of a real type, or of `bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyOrder {
    pub(super) dtype: DType,
    pub(super) descending: bool,
}

impl KeyOrder {
    /// `None` for complex types, which have no order here.
    pub fn new(dtype: DType, descending: bool) -> Option<KeyOrder> {
        (!dtype.is_complex()).then_some(KeyOrder { dtype, descending })
    }

    pub fn dtype(self) -> DType {
        self.dtype
    }

    pub fn descending(self) -> bool {
        self.descending
    }

    /// Elements of a slice of keys.
    pub(super) fn count(self, what: &str, bytes: usize) -> usize {
        assert!(
            bytes.is_multiple_of(self.dtype.size()),
            "{what}: {bytes} bytes are no whole number of {} elements",
            self.dtype
        );
        bytes / self.dtype.size()
    }
}

/// Runs `$body` with `$T` bound to the key type of `$order` and `$D` to its direction.
macro_rules! with_order {
    ($order:expr, $T:ident, $D:ident => $body:expr) => {{
        let order: $crate::sort::KeyOrder = $order;
        macro_rules! typed {
            ($Type:ty) => {{
                type $T = $Type;
                if order.descending {
                    const $D: bool = true;
                    $body
                } else {
                    const $D: bool = false;
                    $body
                }
            }};
        }
        match order.dtype {
            DType::Bool | DType::U8 => typed!(u8),
            DType::I8 => typed!(i8),
            DType::I16 => typed!(i16),
            DType::I32 => typed!(i32),
            DType::I64 => typed!(i64),
            DType::U16 => typed!(u16),
            DType::U32 => typed!(u32),
            DType::U64 => typed!(u64),
            DType::F16 => typed!(f16),
            DType::F32 => typed!(f32),
            DType::F64 => typed!(f64),
            DType::C64 | DType::C128 => unreachable!("complex keys have no order"),
        }
    }};
}
pub(super) use with_order;
