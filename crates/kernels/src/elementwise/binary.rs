//! The lookup of binary kernels.

use super::complex::{self, ComplexNumber};
use super::integer::Integer;
use super::real::Real;
use super::{binary_body, zip_map, Binary, BinaryKernel};
use crate::half::Lifted;
use outcore_dtype::{f16, Complex, DType};

/// The kernel of `op` on arrays of type `compute`; `None` unless `op.compute_dtype(compute)` is `compute` itself.
pub fn binary_kernel(op: Binary, compute: DType) -> Option<BinaryKernel> {
    if op.compute_dtype(compute) != Some(compute) {
        return None;
    }
    match compute {
        DType::Bool => boolean(op),
        DType::I8 => int8(op),
        DType::I16 => int16(op),
        DType::I32 => int32(op),
        DType::I64 => int64(op),
        DType::U8 => uint8(op),
        DType::U16 => uint16(op),
        DType::U32 => uint32(op),
        DType::U64 => uint64(op),
        DType::F16 => float16(op),
        DType::F32 => float32(op),
        DType::F64 => float64(op),
        DType::C64 => complex64(op),
        DType::C128 => complex128(op),
    }
}

/// A kernel that calls the mathematical library, compiled once: wider instructions would not help it.
macro_rules! library {
    ($A:ty => $R:ty, $f:expr) => {{
        fn body(left: &[u8], right: &[u8], output: &mut [u8]) {
            zip_map::<$A, $R>(left, right, output, $f)
        }
        body as BinaryKernel
    }};
}

fn boolean(op: Binary) -> Option<BinaryKernel> {
    use Binary::*;
    Some(match op {
        Add | Maximum | LogicalOr | BitwiseOr => binary_body!(u8 => u8, |a: u8, b: u8| a | b),
        Multiply | Minimum | LogicalAnd | BitwiseAnd => binary_body!(u8 => u8, |a: u8, b: u8| a & b),
        NotEqual | LogicalXor | BitwiseXor => binary_body!(u8 => u8, |a: u8, b: u8| a ^ b),
        Equal => binary_body!(u8 => u8, |a: u8, b: u8| u8::from(a == b)),
        Less => binary_body!(u8 => u8, |a: u8, b: u8| u8::from(a < b)),
        LessEqual => binary_body!(u8 => u8, |a: u8, b: u8| u8::from(a <= b)),
        Greater => binary_body!(u8 => u8, |a: u8, b: u8| u8::from(a > b)),
        GreaterEqual => binary_body!(u8 => u8, |a: u8, b: u8| u8::from(a >= b)),
        _ => return None,
    })
}

macro_rules! integer {
    ($name:ident, $T:ty) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            Some(match op {
                Add => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_add(b)),
                Subtract => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_sub(b)),
                Multiply => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_mul(b)),
                FloorDivide => library!($T => $T, |a: $T, b: $T| a.floor_divide(b)),
                Remainder => library!($T => $T, |a: $T, b: $T| a.floor_remainder(b)),
                Pow => library!($T => $T, |a: $T, b: $T| a.power(b)),
                Minimum => binary_body!($T => $T, |a: $T, b: $T| a.min(b)),
                Maximum => binary_body!($T => $T, |a: $T, b: $T| a.max(b)),
                Equal => binary_body!($T => u8, |a: $T, b: $T| u8::from(a == b)),
                NotEqual => binary_body!($T => u8, |a: $T, b: $T| u8::from(a != b)),
                Less => binary_body!($T => u8, |a: $T, b: $T| u8::from(a < b)),
                LessEqual => binary_body!($T => u8, |a: $T, b: $T| u8::from(a <= b)),
                Greater => binary_body!($T => u8, |a: $T, b: $T| u8::from(a > b)),
                GreaterEqual => binary_body!($T => u8, |a: $T, b: $T| u8::from(a >= b)),
                LogicalAnd => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) & (b != 0))),
                LogicalOr => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) | (b != 0))),
                LogicalXor => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) ^ (b != 0))),
                BitwiseAnd => binary_body!($T => $T, |a: $T, b: $T| a & b),
                BitwiseOr => binary_body!($T => $T, |a: $T, b: $T| a | b),
                BitwiseXor => binary_body!($T => $T, |a: $T, b: $T| a ^ b),
                ShiftLeft => binary_body!($T => $T, |a: $T, b: $T| a.shift_left(b)),
                ShiftRight => binary_body!($T => $T, |a: $T, b: $T| a.shift_right(b)),
                _ => return None,
            })
        }
    };
}

integer!(int8, i8);
integer!(int16, i16);
integer!(int32, i32);
integer!(int64, i64);
integer!(uint8, u8);
integer!(uint16, u16);
integer!(uint32, u32);
integer!(uint64, u64);

macro_rules! real {
    ($name:ident, $T:ty, $W:ident) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            macro_rules! vector {
                                        ($f:expr) => {
                                            binary_body!($T => $T, |a: $T, b: $T| {
                                                <$T>::narrow(($f as fn($W, $W) -> $W)(a.widen(), b.widen()))
                                            })
                                        };
                                    }
            macro_rules! test {
                                        ($f:expr) => {
                                            binary_body!($T => u8, |a: $T, b: $T| {
                                                u8::from(($f as fn($W, $W) -> bool)(a.widen(), b.widen()))
                                            })
                                        };
                                    }
            macro_rules! call {
                                        ($f:expr) => {
                                            library!($T => $T, |a: $T, b: $T| <$T>::narrow($f(a.widen(), b.widen())))
                                        };
                                    }
            Some(match op {
                Add => vector!(|a, b| a + b),
                Subtract => vector!(|a, b| a - b),
                Multiply => vector!(|a, b| a * b),
                Divide => vector!(|a, b| a / b),
                FloorDivide => call!(Real::floor_divide),
                Remainder => call!(Real::floor_remainder),
                Pow => call!($W::powf),
                Atan2 => call!($W::atan2),
                Hypot => call!($W::hypot),
                LogAddExp => call!(Real::log_add_exp),
                CopySign => vector!(|a, b| a.copysign(b)),
                NextAfter => next_after::$name(),
                Minimum => vector!(|a, b| Real::minimum(a, b)),
                Maximum => vector!(|a, b| Real::maximum(a, b)),
                Equal => test!(|a, b| a == b),
                NotEqual => test!(|a, b| a != b),
                Less => test!(|a, b| a < b),
                LessEqual => test!(|a, b| a <= b),
                Greater => test!(|a, b| a > b),
                GreaterEqual => test!(|a, b| a >= b),
                LogicalAnd => test!(|a, b| (a != 0.0) & (b != 0.0)),
                LogicalOr => test!(|a, b| (a != 0.0) | (b != 0.0)),
                LogicalXor => test!(|a, b| (a != 0.0) ^ (b != 0.0)),
                _ => return None,
            })
        }
    };
}

real!(float16, f16, f32);
real!(float32, f32, f32);
real!(float64, f64, f64);

/// The neighbouring value depends on the stored type, so halves do not go through single precision here.
mod next_after {
    use super::{f16, zip_map, BinaryKernel, Real};
    use crate::half;

    pub fn float64() -> BinaryKernel {
        library!(f64 => f64, Real::next_after)
    }

    pub fn float32() -> BinaryKernel {
        library!(f32 => f32, Real::next_after)
    }

    pub fn float16() -> BinaryKernel {
        library!(f16 => f16, half::next_after)
    }
}

macro_rules! complex_kernels {
    ($name:ident, $R:ty) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            type Z = Complex<$R>;
            Some(match op {
                Add => binary_body!(Z => Z, |a: Z, b: Z| a + b),
                Subtract => binary_body!(Z => Z, |a: Z, b: Z| a - b),
                Multiply => binary_body!(Z => Z, |a: Z, b: Z| a * b),
                Divide => binary_body!(Z => Z, |a: Z, b: Z| a.quotient(b)),
                Pow => library!(Z => Z, |a: Z, b: Z| {
                    let exponent = Complex::new(f64::from(b.re), f64::from(b.im));
                    a.through_double(|base| complex::pow(base, exponent))
                }),
                Minimum => binary_body!(Z => Z, |a: Z, b: Z| ComplexNumber::minimum(a, b)),
                Maximum => binary_body!(Z => Z, |a: Z, b: Z| ComplexNumber::maximum(a, b)),
                Equal => binary_body!(Z => u8, |a: Z, b: Z| u8::from((a.re == b.re) & (a.im == b.im))),
                NotEqual => binary_body!(Z => u8, |a: Z, b: Z| u8::from((a.re != b.re) | (a.im != b.im))),
                LogicalAnd => binary_body!(Z => u8, |a: Z, b: Z| u8::from(!a.is_zero() & !b.is_zero())),
                LogicalOr => binary_body!(Z => u8, |a: Z, b: Z| u8::from(!a.is_zero() | !b.is_zero())),
                LogicalXor => binary_body!(Z => u8, |a: Z, b: Z| u8::from(!a.is_zero() ^ !b.is_zero())),
                _ => return None,
            })
        }
    };
}

complex_kernels!(complex64, f32);
complex_kernels!(complex128, f64);
