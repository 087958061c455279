//! The lookup of unary kernels. Functions of the mathematical library are called element by element; everything else
//! is a loop the compiler vectorizes.

use super::complex::{self, ComplexNumber};
use super::integer::Integer;
use super::real::Real;
use super::{map, unary_body, Unary, UnaryKernel};
use crate::half::Lifted;
use outcore_dtype::{f16, Complex, DType};

/// The kernel of `op` on arrays of type `compute`; `None` unless `op.compute_dtype(compute)` is `compute` itself.
pub fn unary_kernel(op: Unary, compute: DType) -> Option<UnaryKernel> {
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
        fn body(input: &[u8], output: &mut [u8]) {
            map::<$A, $R>(input, output, $f)
        }
        body as UnaryKernel
    }};
}

fn boolean(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Absolute | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Real => unary_body!(u8 => u8, |x: u8| x),
        Unary::LogicalNot | Unary::BitwiseInvert => unary_body!(u8 => u8, |x: u8| x ^ 1),
        Unary::IsFinite => unary_body!(u8 => u8, |_: u8| 1),
        Unary::IsNan | Unary::IsInf | Unary::SignBit | Unary::Imag => unary_body!(u8 => u8, |_: u8| 0),
        _ => return None,
    })
}

macro_rules! integer {
    ($name:ident, $T:ty) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            Some(match op {
                Unary::Negative => unary_body!($T => $T, |x: $T| (0 as $T).wrapping_sub(x)),
                Unary::Positive
                | Unary::Conj
                | Unary::Real
                | Unary::Floor
                | Unary::Ceil
                | Unary::Trunc
                | Unary::Round => unary_body!($T => $T, |x: $T| x),
                Unary::Absolute => unary_body!($T => $T, |x: $T| x.absolute()),
                Unary::Sign => unary_body!($T => $T, |x: $T| Integer::sign(x)),
                Unary::Square => unary_body!($T => $T, |x: $T| x.wrapping_mul(x)),
                Unary::Reciprocal => unary_body!($T => $T, |x: $T| x.reciprocal()),
                Unary::Imag => unary_body!($T => $T, |_: $T| 0),
                Unary::IsFinite => unary_body!($T => u8, |_: $T| 1),
                Unary::IsNan | Unary::IsInf => unary_body!($T => u8, |_: $T| 0),
                Unary::SignBit => unary_body!($T => u8, |x: $T| u8::from(Integer::is_negative(x))),
                Unary::LogicalNot => unary_body!($T => u8, |x: $T| u8::from(x == 0)),
                Unary::BitwiseInvert => unary_body!($T => $T, |x: $T| !x),
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
        fn $name(op: Unary) -> Option<UnaryKernel> {
            macro_rules! vector {
                ($f:expr) => {
                    unary_body!($T => $T, |x: $T| <$T>::narrow(($f as fn($W) -> $W)(x.widen())))
                };
            }
            macro_rules! test {
                ($f:expr) => {
                    unary_body!($T => u8, |x: $T| u8::from(($f as fn($W) -> bool)(x.widen())))
                };
            }
            macro_rules! call {
                ($f:expr) => {
                    library!($T => $T, |x: $T| <$T>::narrow($f(x.widen())))
                };
            }
            Some(match op {
                Unary::Negative => vector!(|x| -x),
                Unary::Positive | Unary::Conj | Unary::Real => unary_body!($T => $T, |x: $T| x),
                Unary::Imag => vector!(|_| 0.0),
                Unary::Absolute => vector!(|x| x.abs()),
                Unary::Sign => vector!(|x| Real::sign(x)),
                Unary::Sqrt => vector!(|x| x.sqrt()),
                Unary::Square => vector!(|x| x * x),
                Unary::Reciprocal => vector!(|x| 1.0 / x),
                Unary::Floor => vector!(|x| x.floor()),
                Unary::Ceil => vector!(|x| x.ceil()),
                Unary::Trunc => vector!(|x| x.trunc()),
                Unary::Round => vector!(|x| x.round_ties_even()),
                Unary::IsNan => test!(|x| x.is_nan()),
                Unary::IsInf => test!(|x| x.is_infinite()),
                Unary::IsFinite => test!(|x| x.is_finite()),
                Unary::SignBit => test!(|x| x.is_sign_negative()),
                Unary::LogicalNot => test!(|x| x == 0.0),
                Unary::Cbrt => call!($W::cbrt),
                Unary::Exp => call!($W::exp),
                Unary::Exp2 => call!($W::exp2),
                Unary::Expm1 => call!($W::exp_m1),
                Unary::Log => call!($W::ln),
                Unary::Log1p => call!($W::ln_1p),
                Unary::Log2 => call!($W::log2),
                Unary::Log10 => call!($W::log10),
                Unary::Sin => call!($W::sin),
                Unary::Cos => call!($W::cos),
                Unary::Tan => call!($W::tan),
                Unary::Asin => call!($W::asin),
                Unary::Acos => call!($W::acos),
                Unary::Atan => call!($W::atan),
                Unary::Sinh => call!($W::sinh),
                Unary::Cosh => call!($W::cosh),
                Unary::Tanh => call!($W::tanh),
                Unary::Asinh => call!(Real::arsinh),
                Unary::Acosh => call!(Real::arcosh),
                Unary::Atanh => call!(Real::artanh),
                Unary::BitwiseInvert => return None,
            })
        }
    };
}

real!(float16, f16, f32);
real!(float32, f32, f32);
real!(float64, f64, f64);

macro_rules! complex_kernels {
    ($name:ident, $R:ty) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            type Z = Complex<$R>;
            macro_rules! call {
                ($f:expr) => {
                    library!(Z => Z, |z: Z| z.through_double($f))
                };
            }
            Some(match op {
                Unary::Negative => unary_body!(Z => Z, |z: Z| -z),
                Unary::Positive => unary_body!(Z => Z, |z: Z| z),
                Unary::Conj => unary_body!(Z => Z, |z: Z| z.conj()),
                Unary::Real => unary_body!(Z => $R, |z: Z| z.re),
                Unary::Imag => unary_body!(Z => $R, |z: Z| z.im),
                Unary::Absolute => library!(Z => $R, |z: Z| z.re.hypot(z.im)),
                Unary::Sign => library!(Z => Z, |z: Z| ComplexNumber::sign(z)),
                Unary::Square => unary_body!(Z => Z, |z: Z| z * z),
                Unary::Reciprocal => unary_body!(Z => Z, |z: Z| z.reciprocal()),
                Unary::Round => {
                    unary_body!(Z => Z, |z: Z| Z::new(z.re.round_ties_even(), z.im.round_ties_even()))
                }
                Unary::IsNan => unary_body!(Z => u8, |z: Z| u8::from(z.re.is_nan() | z.im.is_nan())),
                Unary::IsInf => unary_body!(Z => u8, |z: Z| u8::from(z.re.is_infinite() | z.im.is_infinite())),
                Unary::IsFinite => unary_body!(Z => u8, |z: Z| u8::from(z.re.is_finite() & z.im.is_finite())),
                Unary::LogicalNot => unary_body!(Z => u8, |z: Z| u8::from(ComplexNumber::is_zero(z))),
                Unary::Sqrt => call!(complex::sqrt),
                Unary::Exp => call!(complex::exp),
                Unary::Exp2 => call!(complex::exp2),
                Unary::Expm1 => call!(complex::expm1),
                Unary::Log => call!(complex::log),
                Unary::Log1p => call!(complex::log1p),
                Unary::Log2 => call!(complex::log2),
                Unary::Log10 => call!(complex::log10),
                Unary::Sin => call!(complex::sin),
                Unary::Cos => call!(complex::cos),
                Unary::Tan => call!(complex::tan),
                Unary::Asin => call!(complex::asin),
                Unary::Acos => call!(complex::acos),
                Unary::Atan => call!(complex::atan),
                Unary::Sinh => call!(complex::sinh),
                Unary::Cosh => call!(complex::cosh),
                Unary::Tanh => call!(complex::tanh),
                Unary::Asinh => call!(complex::asinh),
                Unary::Acosh => call!(complex::acosh),
                Unary::Atanh => call!(complex::atanh),
                _ => return None,
            })
        }
    };
}

complex_kernels!(complex64, f32);
complex_kernels!(complex128, f64);
