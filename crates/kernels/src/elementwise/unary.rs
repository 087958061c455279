//! The lookup of unary kernels. Functions of the mathematical library are called element by element; everything else
//! is a loop the compiler vectorizes.

use super::cast::copied;
use super::complex::{self, ComplexNumber};
use super::integer::Integer;
use super::lifted;
use super::real::Real;
use super::{map, unary_body, Unary, UnaryKernel};
use crate::half;
use outcore_dtype::{f16, Complex, DType};

/// The kernel of `op` on arrays of type `compute`; `None` unless `op.compute_dtype(compute)` is `compute` itself.
pub fn unary_kernel(op: Unary, compute: DType) -> Option<UnaryKernel> {
    if op.compute_dtype(compute) != Some(compute) {
        return None;
    }
    match compute {
        DType::Bool => boolean(op),
        DType::I8 => words8(op).or_else(|| int8(op)),
        DType::I16 => words16(op).or_else(|| int16(op)),
        DType::I32 => words32(op).or_else(|| int32(op)),
        DType::I64 => words64(op).or_else(|| int64(op)),
        DType::U8 => words8(op).or_else(|| uint8(op)),
        DType::U16 => words16(op).or_else(|| uint16(op)),
        DType::U32 => words32(op).or_else(|| uint32(op)),
        DType::U64 => words64(op).or_else(|| uint64(op)),
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

/// One byte throughout.
fn constant<const BYTE: u8>(_: &[u8], output: &mut [u8]) {
    output.fill(BYTE)
}

fn boolean(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Absolute | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Real => copied,
        Unary::LogicalNot | Unary::BitwiseInvert => unary_body!(u8 => u8, |x: u8| x ^ 1),
        Unary::IsFinite => constant::<1>,
        Unary::IsNan | Unary::IsInf | Unary::SignBit | Unary::Imag => constant::<0>,
        _ => return None,
    })
}

/// What does not depend on the sign.
macro_rules! words {
    ($name:ident, $T:ty) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            Some(match op {
                Unary::Negative => unary_body!($T => $T, |x: $T| x.wrapping_neg()),
                Unary::Positive
                | Unary::Conj
                | Unary::Real
                | Unary::Floor
                | Unary::Ceil
                | Unary::Trunc
                | Unary::Round => copied,
                Unary::Square => unary_body!($T => $T, |x: $T| x.wrapping_mul(x)),
                Unary::Imag | Unary::IsNan | Unary::IsInf => constant::<0>,
                Unary::IsFinite => constant::<1>,
                Unary::LogicalNot => unary_body!($T => u8, |x: $T| u8::from(x == 0)),
                Unary::BitwiseInvert => unary_body!($T => $T, |x: $T| !x),
                _ => return None,
            })
        }
    };
}

words!(words8, u8);
words!(words16, u16);
words!(words32, u32);
words!(words64, u64);

macro_rules! signed {
    ($name:ident, $T:ty) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            Some(match op {
                Unary::Absolute => unary_body!($T => $T, |x: $T| x.absolute()),
                Unary::Sign => unary_body!($T => $T, |x: $T| Integer::sign(x)),
                Unary::Reciprocal => unary_body!($T => $T, |x: $T| x.reciprocal()),
                Unary::SignBit => unary_body!($T => u8, |x: $T| u8::from(Integer::is_negative(x))),
                _ => return None,
            })
        }
    };
}

signed!(int8, i8);
signed!(int16, i16);
signed!(int32, i32);
signed!(int64, i64);

macro_rules! unsigned {
    ($name:ident, $T:ty) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            Some(match op {
                Unary::Absolute => copied,
                Unary::Sign => unary_body!($T => $T, |x: $T| Integer::sign(x)),
                Unary::Reciprocal => unary_body!($T => $T, |x: $T| x.reciprocal()),
                Unary::SignBit => constant::<0>,
                _ => return None,
            })
        }
    };
}

unsigned!(uint8, u8);
unsigned!(uint16, u16);
unsigned!(uint32, u32);
unsigned!(uint64, u64);

macro_rules! real {
    ($name:ident, $T:ident) => {
        fn $name(op: Unary) -> Option<UnaryKernel> {
            macro_rules! vector {
                                                ($f:expr) => {
                                                    unary_body!($T => $T, |x: $T| ($f as fn($T) -> $T)(x))
                                                };
                                            }
            macro_rules! test {
                                                ($f:expr) => {
                                                    unary_body!($T => u8, |x: $T| u8::from(($f as fn($T) -> bool)(x)))
                                                };
                                            }
            macro_rules! call {
                                                ($f:expr) => {
                                                    library!($T => $T, |x: $T| $f(x))
                                                };
                                            }
            Some(match op {
                Unary::Negative => vector!(|x| -x),
                Unary::Positive | Unary::Conj | Unary::Real => copied,
                Unary::Imag => constant::<0>,
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
                Unary::Cbrt => call!($T::cbrt),
                Unary::Exp => call!($T::exp),
                Unary::Exp2 => call!($T::exp2),
                Unary::Expm1 => call!($T::exp_m1),
                Unary::Log => call!($T::ln),
                Unary::Log1p => call!($T::ln_1p),
                Unary::Log2 => call!($T::log2),
                Unary::Log10 => call!($T::log10),
                Unary::Sin => call!($T::sin),
                Unary::Cos => call!($T::cos),
                Unary::Tan => call!($T::tan),
                Unary::Asin => call!($T::asin),
                Unary::Acos => call!($T::acos),
                Unary::Atan => call!($T::atan),
                Unary::Sinh => call!($T::sinh),
                Unary::Cosh => call!($T::cosh),
                Unary::Tanh => call!($T::tanh),
                Unary::Asinh => call!(Real::arsinh),
                Unary::Acosh => call!(Real::arcosh),
                Unary::Atanh => call!(Real::artanh),
                Unary::BitwiseInvert => return None,
            })
        }
    };
}

real!(float32, f32);
real!(float64, f64);

/// A kernel of halves whose arithmetic is that of single precision.
macro_rules! half_body {
    (|$x:ident| $f:expr) => {
        unary_body!(f16 => f16, |x: f16| {
            let $x = half::widen(x);
            half::narrow($f)
        })
    };
}

macro_rules! half_test {
    (|$x:ident| $f:expr) => {
        unary_body!(f16 => u8, |x: f16| {
            let $x = half::widen(x);
            u8::from($f)
        })
    };
}

fn float16(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Negative => half_body!(|x| -x),
        Unary::Positive | Unary::Conj | Unary::Real => copied,
        Unary::Imag => constant::<0>,
        Unary::Absolute => half_body!(|x| x.abs()),
        Unary::Sign => half_body!(|x| Real::sign(x)),
        Unary::Sqrt => half_body!(|x| x.sqrt()),
        Unary::Square => half_body!(|x| x * x),
        Unary::Reciprocal => half_body!(|x| 1.0 / x),
        Unary::Floor => half_body!(|x| x.floor()),
        Unary::Ceil => half_body!(|x| x.ceil()),
        Unary::Trunc => half_body!(|x| x.trunc()),
        Unary::Round => half_body!(|x| x.round_ties_even()),
        Unary::IsNan => half_test!(|x| x.is_nan()),
        Unary::IsInf => half_test!(|x| x.is_infinite()),
        Unary::IsFinite => half_test!(|x| x.is_finite()),
        Unary::SignBit => half_test!(|x| x.is_sign_negative()),
        Unary::LogicalNot => half_test!(|x| x == 0.0),
        _ => return half_call(op),
    })
}

/// Functions of the library take so long that another pass over a strip is nothing.
fn half_call(op: Unary) -> Option<UnaryKernel> {
    macro_rules! through_single {
        ($($op:ident)*) => {
            match op {
                $(Unary::$op => {
                    fn body(input: &[u8], output: &mut [u8]) {
                        let kernel = float32(Unary::$op).expect("single precision has the operation");
                        lifted::unary(kernel, input, output)
                    }
                    Some(body)
                })*
                _ => None,
            }
        };
    }
    through_single!(Cbrt Exp Exp2 Expm1 Log Log1p Log2 Log10 Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh)
}

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
                Unary::Positive => copied,
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
