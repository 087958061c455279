//! One value of any element type, as constants in expressions carry it.

use crate::{f16, Complex, DType, Kind};

/// A constant. Floats compare and hash by their bits, so that equal expressions are one node.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Complex(f64, f64),
}

/// A constant that its array's type cannot hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalarError {
    pub value: Scalar,
    pub dtype: DType,
}

impl std::fmt::Display for ScalarError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the constant {} does not fit in {}", self.value, self.dtype)
    }
}

impl std::error::Error for ScalarError {}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::UInt(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{value:?}"),
            Scalar::Complex(re, im) => write!(f, "{re:?}{im:+?}j"),
        }
    }
}

impl Scalar {
    fn key(self) -> (u8, u64, u64) {
        match self {
            Scalar::Bool(value) => (0, u64::from(value), 0),
            Scalar::Int(value) => (1, value as u64, 0),
            Scalar::UInt(value) => (2, value, 0),
            Scalar::Float(value) => (3, value.to_bits(), 0),
            Scalar::Complex(re, im) => (4, re.to_bits(), im.to_bits()),
        }
    }

    /// The kind of type the constant asks for (a Python `float` with an integer array gives a float array).
    pub fn kind(self) -> Kind {
        match self {
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Int(_) => Kind::Signed,
            Scalar::UInt(_) => Kind::Unsigned,
            Scalar::Float(_) => Kind::Float,
            Scalar::Complex(..) => Kind::Complex,
        }
    }

    fn to_i128(self) -> Option<i128> {
        match self {
            Scalar::Bool(value) => Some(i128::from(value)),
            Scalar::Int(value) => Some(i128::from(value)),
            Scalar::UInt(value) => Some(i128::from(value)),
            Scalar::Float(value) if value.fract() == 0.0 && value.abs() < 1e19 => Some(value as i128),
            _ => None,
        }
    }

    fn to_complex(self) -> (f64, f64) {
        match self {
            Scalar::Bool(value) => (f64::from(u8::from(value)), 0.0),
            Scalar::Int(value) => (value as f64, 0.0),
            Scalar::UInt(value) => (value as f64, 0.0),
            Scalar::Float(value) => (value, 0.0),
            Scalar::Complex(re, im) => (re, im),
        }
    }

    /// The value that an element of `dtype` keeps of this one.
    pub fn rounded(self, dtype: DType) -> Scalar {
        let (re, im) = self.to_complex();
        let (kept_re, kept_im) = match dtype {
            DType::F16 => (f16::from_f64(re).to_f64(), im),
            DType::F32 => (f64::from(re as f32), im),
            DType::C64 => (f64::from(re as f32), f64::from(im as f32)),
            DType::F64 | DType::C128 => (re, im),
            _ => return self,
        };
        let is_exact = match self.to_i128() {
            Some(whole) => kept_re.abs() < 1e19 && kept_re as i128 == whole,
            None => (kept_re, kept_im) == (re, im),
        };
        match self {
            _ if is_exact => self,
            Scalar::Complex(..) => Scalar::Complex(kept_re, kept_im),
            _ => Scalar::Float(kept_re),
        }
    }

    /// The value's bytes in `dtype`, native order.
    ///
    /// # Errors
    /// When the value is out of the type's range, fractional for an integer type, or complex for a real one.
    pub fn to_bytes(self, dtype: DType) -> Result<Vec<u8>, ScalarError> {
        let error = ScalarError { value: self, dtype };
        macro_rules! integer {
            ($T:ty) => {
                self.to_i128()
                    .and_then(|value| <$T>::try_from(value).ok())
                    .ok_or(error)?
                    .to_ne_bytes()
                    .to_vec()
            };
        }
        let (re, im) = self.to_complex();
        if im != 0.0 && !dtype.is_complex() {
            return Err(error);
        }
        Ok(match dtype {
            DType::Bool => vec![u8::from(re != 0.0 || im != 0.0)],
            DType::I8 => integer!(i8),
            DType::I16 => integer!(i16),
            DType::I32 => integer!(i32),
            DType::I64 => integer!(i64),
            DType::U8 => integer!(u8),
            DType::U16 => integer!(u16),
            DType::U32 => integer!(u32),
            DType::U64 => integer!(u64),
            DType::F16 => f16::from_f64(re).to_ne_bytes().to_vec(),
            DType::F32 => (re as f32).to_ne_bytes().to_vec(),
            DType::F64 => re.to_ne_bytes().to_vec(),
            DType::C64 => bytemuck::bytes_of(&Complex::new(re as f32, im as f32)).to_vec(),
            DType::C128 => bytemuck::bytes_of(&Complex::new(re, im)).to_vec(),
        })
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_what_its_type_keeps() {
        let cases = [
            (Scalar::Float(0.1), DType::F32, Scalar::Float(f64::from(0.1f32))),
            (Scalar::Float(0.1), DType::F64, Scalar::Float(0.1)),
            (Scalar::Float(-0.0), DType::F32, Scalar::Float(-0.0)),
            (Scalar::Float(1e300), DType::F16, Scalar::Float(f64::INFINITY)),
            (Scalar::Int(16_777_217), DType::F32, Scalar::Float(16_777_216.0)),
            (Scalar::Int(i64::MAX), DType::F64, Scalar::Float(i64::MAX as f64)),
            (Scalar::Int(3), DType::F16, Scalar::Int(3)),
            (
                Scalar::Complex(0.1, 0.5),
                DType::C64,
                Scalar::Complex(f64::from(0.1f32), 0.5),
            ),
        ];
        for (value, dtype, kept) in cases {
            assert_eq!(value.rounded(dtype), kept, "{value} in {dtype}");
        }
        let Scalar::Float(nan) = Scalar::Float(f64::NAN).rounded(DType::F32) else {
            panic!("still a float");
        };
        assert!(nan.is_nan());
    }
}
