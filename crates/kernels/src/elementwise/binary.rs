//! The lookup of binary kernels.

use super::complex::{self, ComplexNumber};
use super::integer::Integer;
use super::lifted;
use super::real::Real;
use super::{binary_body, zip_map, Binary, BinaryKernel};
use crate::half;
use outcore_dtype::{f16, Complex, DType};

/// The kernel of `op` on arrays of type `compute`; `None` unless `op.compute_dtype(compute)` is `compute` itself.
pub fn binary_kernel(op: Binary, compute: DType) -> Option<BinaryKernel> {
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
        fn body(left: &[u8], right: &[u8], output: &mut [u8]) {
            zip_map::<$A, $R>(left, right, output, $f)
        }
        body as BinaryKernel
    }};
}

/// A comparison with its operands in turn.
macro_rules! swapped {
    ($less:ident) => {{
        fn body(left: &[u8], right: &[u8], output: &mut [u8]) {
            $less()(right, left, output)
        }
        body as BinaryKernel
    }};
}

/// Truth values are the words 0 and 1.
fn boolean(op: Binary) -> Option<BinaryKernel> {
    use Binary::*;
    match op {
        Add | Maximum | LogicalOr | BitwiseOr => words8(BitwiseOr),
        Multiply | Minimum | LogicalAnd | BitwiseAnd => words8(BitwiseAnd),
        NotEqual | LogicalXor | BitwiseXor => words8(BitwiseXor),
        Equal => words8(Equal),
        Less | LessEqual | Greater | GreaterEqual => uint8(op),
        _ => None,
    }
}

/// What does not depend on the sign, of which two's complement is the reason.
macro_rules! words {
    ($name:ident, $T:ty) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            Some(match op {
                Add => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_add(b)),
                Subtract => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_sub(b)),
                Multiply => binary_body!($T => $T, |a: $T, b: $T| a.wrapping_mul(b)),
                Equal => binary_body!($T => u8, |a: $T, b: $T| u8::from(a == b)),
                NotEqual => binary_body!($T => u8, |a: $T, b: $T| u8::from(a != b)),
                LogicalAnd => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) & (b != 0))),
                LogicalOr => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) | (b != 0))),
                LogicalXor => binary_body!($T => u8, |a: $T, b: $T| u8::from((a != 0) ^ (b != 0))),
                BitwiseAnd => binary_body!($T => $T, |a: $T, b: $T| a & b),
                BitwiseOr => binary_body!($T => $T, |a: $T, b: $T| a | b),
                BitwiseXor => binary_body!($T => $T, |a: $T, b: $T| a ^ b),
                ShiftLeft => binary_body!($T => $T, |a: $T, b: $T| a.shift_left(b)),
                _ => return None,
            })
        }
    };
}

words!(words8, u8);
words!(words16, u16);
words!(words32, u32);
words!(words64, u64);

macro_rules! integer {
    ($name:ident, $T:ty) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            fn less() -> BinaryKernel {
                binary_body!($T => u8, |a: $T, b: $T| u8::from(a < b))
            }
            fn less_equal() -> BinaryKernel {
                binary_body!($T => u8, |a: $T, b: $T| u8::from(a <= b))
            }
            Some(match op {
                FloorDivide => library!($T => $T, |a: $T, b: $T| a.floor_divide(b)),
                Remainder => library!($T => $T, |a: $T, b: $T| a.floor_remainder(b)),
                Pow => library!($T => $T, |a: $T, b: $T| a.power(b)),
                Minimum => binary_body!($T => $T, |a: $T, b: $T| a.min(b)),
                Maximum => binary_body!($T => $T, |a: $T, b: $T| a.max(b)),
                Less => less(),
                LessEqual => less_equal(),
                Greater => swapped!(less),
                GreaterEqual => swapped!(less_equal),
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
    ($name:ident, $T:ident) => {
        fn $name(op: Binary) -> Option<BinaryKernel> {
            use Binary::*;
            macro_rules! vector {
                                ($f:expr) => {
                                    binary_body!($T => $T, |a: $T, b: $T| ($f as fn($T, $T) -> $T)(a, b))
                                };
                            }
            macro_rules! test {
                                ($f:expr) => {
                                    binary_body!($T => u8, |a: $T, b: $T| u8::from(($f as fn($T, $T) -> bool)(a, b)))
                                };
                            }
            macro_rules! call {
                                ($f:expr) => {
                                    library!($T => $T, |a: $T, b: $T| $f(a, b))
                                };
                            }
            fn less() -> BinaryKernel {
                test!(|a, b| a < b)
            }
            fn less_equal() -> BinaryKernel {
                test!(|a, b| a <= b)
            }
            Some(match op {
                Add => vector!(|a, b| a + b),
                Subtract => vector!(|a, b| a - b),
                Multiply => vector!(|a, b| a * b),
                Divide => vector!(|a, b| a / b),
                FloorDivide => call!(Real::floor_divide),
                Remainder => call!(Real::floor_remainder),
                Pow => call!($T::powf),
                Atan2 => call!($T::atan2),
                Hypot => call!($T::hypot),
                LogAddExp => call!(Real::log_add_exp),
                CopySign => vector!(|a, b| a.copysign(b)),
                NextAfter => call!(Real::next_after),
                Minimum => vector!(|a, b| Real::minimum(a, b)),
                Maximum => vector!(|a, b| Real::maximum(a, b)),
                Equal => test!(|a, b| a == b),
                NotEqual => test!(|a, b| a != b),
                Less => less(),
                LessEqual => less_equal(),
                Greater => swapped!(less),
                GreaterEqual => swapped!(less_equal),
                LogicalAnd => test!(|a, b| (a != 0.0) & (b != 0.0)),
                LogicalOr => test!(|a, b| (a != 0.0) | (b != 0.0)),
                LogicalXor => test!(|a, b| (a != 0.0) ^ (b != 0.0)),
                _ => return None,
            })
        }
    };
}

real!(float32, f32);
real!(float64, f64);

/// A kernel of halves whose arithmetic is that of single precision.
macro_rules! half_body {
    (|$a:ident, $b:ident| $f:expr) => {
        binary_body!(f16 => f16, |a: f16, b: f16| {
            let ($a, $b) = (half::widen(a), half::widen(b));
            half::narrow($f)
        })
    };
}

macro_rules! half_test {
    (|$a:ident, $b:ident| $f:expr) => {
        binary_body!(f16 => u8, |a: f16, b: f16| {
            let ($a, $b) = (half::widen(a), half::widen(b));
            u8::from($f)
        })
    };
}

fn float16(op: Binary) -> Option<BinaryKernel> {
    use Binary::*;
    fn less() -> BinaryKernel {
        half_test!(|a, b| a < b)
    }
    fn less_equal() -> BinaryKernel {
        half_test!(|a, b| a <= b)
    }
    Some(match op {
        Add => half_body!(|a, b| a + b),
        Subtract => half_body!(|a, b| a - b),
        Multiply => half_body!(|a, b| a * b),
        Divide => half_body!(|a, b| a / b),
        CopySign => half_body!(|a, b| a.copysign(b)),
        Minimum => half_body!(|a, b| Real::minimum(a, b)),
        Maximum => half_body!(|a, b| Real::maximum(a, b)),
        Equal => half_test!(|a, b| a == b),
        NotEqual => half_test!(|a, b| a != b),
        Less => less(),
        LessEqual => less_equal(),
        Greater => swapped!(less),
        GreaterEqual => swapped!(less_equal),
        LogicalAnd => half_test!(|a, b| (a != 0.0) & (b != 0.0)),
        LogicalOr => half_test!(|a, b| (a != 0.0) | (b != 0.0)),
        LogicalXor => half_test!(|a, b| (a != 0.0) ^ (b != 0.0)),
        NextAfter => library!(f16 => f16, half::next_after),
        _ => return half_call(op),
    })
}

/// Functions of the library take so long that another pass over a strip is nothing.
fn half_call(op: Binary) -> Option<BinaryKernel> {
    macro_rules! through_single {
        ($($op:ident)*) => {
            match op {
                $(Binary::$op => {
                    fn body(left: &[u8], right: &[u8], output: &mut [u8]) {
                        let kernel = float32(Binary::$op).expect("single precision has the operation");
                        lifted::binary(kernel, left, right, output)
                    }
                    Some(body)
                })*
                _ => None,
            }
        };
    }
    through_single!(FloorDivide Remainder Pow Atan2 Hypot LogAddExp)
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
