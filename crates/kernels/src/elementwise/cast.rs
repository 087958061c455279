//! Conversions between element types, as `astype(casting="unsafe")` makes them.

use super::{unary_body, UnaryKernel};
use crate::half;
use bytemuck::Pod;
use outcore_dtype::{f16, with_dtype, Complex, DType};

/// A target type: how it is made from each primitive. Floats saturate into integers and NaN becomes 0, integers wrap
/// (Rust's `as`).
trait Target: Pod {
    fn from_parts<S: Source>(source: S) -> Self;
}

/// A source type: its value as each primitive.
trait Source: Pod {
    fn to_i8(self) -> i8;
    fn to_i16(self) -> i16;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u8(self) -> u8;
    fn to_u16(self) -> u16;
    fn to_u32(self) -> u32;
    fn to_u64(self) -> u64;
    fn to_f16(self) -> f16;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn imaginary(self) -> f64;
    fn is_nonzero(self) -> bool;
}

macro_rules! source {
    ($S:ty, |$x:ident| $primitive:expr, $half:expr, $imaginary:expr, $nonzero:expr) => {
        source!(@methods $S, $x, $primitive, $half, $imaginary, $nonzero,
            to_i8 i8, to_i16 i16, to_i32 i32, to_i64 i64, to_u8 u8, to_u16 u16, to_u32 u32, to_u64 u64,
            to_f32 f32, to_f64 f64);
    };
    (@methods $S:ty, $x:ident, $primitive:expr, $half:expr, $imaginary:expr, $nonzero:expr, $($name:ident $T:ty),*) => {
        impl Source for $S {
            $(
                #[inline(always)]
                fn $name(self) -> $T {
                    let $x = self;
                    $primitive as $T
                }
            )*
            #[inline(always)]
            fn to_f16(self) -> f16 {
                let $x = self;
                $half
            }
            #[inline(always)]
            fn imaginary(self) -> f64 {
                let $x = self;
                let _ = $x;
                $imaginary
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                let $x = self;
                $nonzero
            }
        }
    };
}

// An integer that single precision would round is beyond the range of halves, so nothing is rounded twice.
source!(u8, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(u16, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(u32, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(u64, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(i8, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(i16, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(i32, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(i64, |x| x, half::narrow(x as f32), 0.0, x != 0);
source!(f16, |x| half::widen(x), x, 0.0, half::widen(x) != 0.0);
source!(f32, |x| x, half::narrow(x), 0.0, x != 0.0);
source!(f64, |x| x, half::narrow_double(x), 0.0, x != 0.0);
source!(
    Complex<f32>,
    |z| z.re,
    half::narrow(z.re),
    f64::from(z.im),
    (z.re != 0.0) | (z.im != 0.0)
);
source!(
    Complex<f64>,
    |z| z.re,
    half::narrow_double(z.re),
    z.im,
    (z.re != 0.0) | (z.im != 0.0)
);

macro_rules! targets {
    ($($T:ty, $name:ident);*) => {$(
        impl Target for $T {
            #[inline(always)]
            fn from_parts<S: Source>(source: S) -> $T {
                source.$name()
            }
        }
    )*};
}

targets!(i8, to_i8; i16, to_i16; i32, to_i32; i64, to_i64; u8, to_u8; u16, to_u16; u32, to_u32; u64, to_u64;
    f16, to_f16; f32, to_f32; f64, to_f64);

impl Target for Complex<f32> {
    #[inline(always)]
    fn from_parts<S: Source>(source: S) -> Self {
        Complex::new(source.to_f32(), source.imaginary() as f32)
    }
}

impl Target for Complex<f64> {
    #[inline(always)]
    fn from_parts<S: Source>(source: S) -> Self {
        Complex::new(source.to_f64(), source.imaginary())
    }
}

/// The conversion of `from` to `to`. Complex to real drops the imaginary part; to `bool` is `!= 0` (NaN is true).
pub fn cast_kernel(from: DType, to: DType) -> UnaryKernel {
    if from == to {
        return |input, output| output.copy_from_slice(input);
    }
    if to == DType::Bool {
        return with_dtype!(from, S => unary_body!(S => u8, |x: S| u8::from(x.is_nonzero())));
    }
    with_dtype!(from, S => with_dtype!(to, T => unary_body!(S => T, |x: S| T::from_parts(x))))
}
