//! Conversions between element types, as `astype(casting="unsafe")` makes them.
//!
//! Integers of one width are the same words, and wider ones lose their upper half whatever the sign: so 18 loops serve their
//! 64 pairs.

use super::UnaryKernel;
use crate::fence::shells::UnaryBody;
use crate::half;
use bytemuck::Pod;
use outcore_dtype::{f16, Complex, DType, Kind};
use std::marker::PhantomData;

/// The same bytes, whatever they are.
pub(super) fn copied(input: &[u8], output: &mut [u8]) {
    output.copy_from_slice(input)
}

/// A target type: how it is made from each primitive. Floats saturate into integers and NaN becomes 0, integers wrap
/// (Rust's `as`).
trait CastTarget: Pod {
    fn from_parts<S: CastSource>(source: S) -> Self;
}

/// A source type: its value as each primitive.
trait CastSource: Pod {
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
        impl CastSource for $S {
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
        impl CastTarget for $T {
            #[inline(always)]
            fn from_parts<S: CastSource>(source: S) -> $T {
                source.$name()
            }
        }
    )*};
}

targets!(i8, to_i8; i16, to_i16; i32, to_i32; i64, to_i64; u8, to_u8; u16, to_u16; u32, to_u32; u64, to_u64;
    f16, to_f16; f32, to_f32; f64, to_f64);

impl CastTarget for Complex<f32> {
    #[inline(always)]
    fn from_parts<S: CastSource>(source: S) -> Self {
        Complex::new(source.to_f32(), source.imaginary() as f32)
    }
}

impl CastTarget for Complex<f64> {
    #[inline(always)]
    fn from_parts<S: CastSource>(source: S) -> Self {
        Complex::new(source.to_f64(), source.imaginary())
    }
}

/// One loop.
struct DirectCast<S, T>(PhantomData<(S, T)>);

impl<S: CastSource, T: CastTarget> UnaryBody for DirectCast<S, T> {
    #[inline(always)]
    fn run(input: &[u8], output: &mut [u8]) {
        super::map::<S, T>(input, output, |x| T::from_parts(x))
    }
}

fn direct<S: CastSource, T: CastTarget>() -> UnaryKernel {
    <DirectCast<S, T> as UnaryBody>::kernel()
}

/// Halves as single precision.
pub fn widened() -> UnaryKernel {
    direct::<f16, f32>()
}

/// Single precision as halves.
pub fn narrowed() -> UnaryKernel {
    direct::<f32, f16>()
}

/// Whether an element is not 0.
struct Truth<S>(PhantomData<S>);

impl<S: CastSource> UnaryBody for Truth<S> {
    #[inline(always)]
    fn run(input: &[u8], output: &mut [u8]) {
        super::map::<S, u8>(input, output, |x| u8::from(x.is_nonzero()))
    }
}

/// The conversion of `from` to `to`. Complex to real drops the imaginary part; to `bool` is `!= 0` (NaN is true).
pub fn cast_kernel(from: DType, to: DType) -> UnaryKernel {
    if from == to {
        return copied;
    }
    if to == DType::Bool {
        return truth(from);
    }
    if is_word(from) && is_word(to) {
        return between_words(from, to);
    }
    match from {
        DType::Bool | DType::U8 => of_words::<u8>(to),
        DType::U16 => of_words::<u16>(to),
        DType::U32 => of_words::<u32>(to),
        DType::U64 => of_words::<u64>(to),
        DType::I8 => of_words::<i8>(to),
        DType::I16 => of_words::<i16>(to),
        DType::I32 => of_words::<i32>(to),
        DType::I64 => of_words::<i64>(to),
        DType::F16 => of_reals::<f16>(to),
        DType::F32 => of_reals::<f32>(to),
        DType::F64 => of_reals::<f64>(to),
        DType::C64 => of_reals::<Complex<f32>>(to),
        DType::C128 => of_reals::<Complex<f64>>(to),
    }
}

fn is_word(dtype: DType) -> bool {
    !matches!(dtype.kind(), Kind::Float | Kind::Complex)
}

fn truth(from: DType) -> UnaryKernel {
    match (from, from.size()) {
        (DType::F16, _) => <Truth<f16> as UnaryBody>::kernel(),
        (DType::F32, _) => <Truth<f32> as UnaryBody>::kernel(),
        (DType::F64, _) => <Truth<f64> as UnaryBody>::kernel(),
        (DType::C64, _) => <Truth<Complex<f32>> as UnaryBody>::kernel(),
        (DType::C128, _) => <Truth<Complex<f64>> as UnaryBody>::kernel(),
        (_, 1) => <Truth<u8> as UnaryBody>::kernel(),
        (_, 2) => <Truth<u16> as UnaryBody>::kernel(),
        (_, 4) => <Truth<u32> as UnaryBody>::kernel(),
        _ => <Truth<u64> as UnaryBody>::kernel(),
    }
}

/// Between truth values and integers. The sign of what is widened alone has a say.
fn between_words(from: DType, to: DType) -> UnaryKernel {
    match (from.size(), to.size()) {
        (2, 1) => direct::<u16, u8>(),
        (4, 1) => direct::<u32, u8>(),
        (4, 2) => direct::<u32, u16>(),
        (8, 1) => direct::<u64, u8>(),
        (8, 2) => direct::<u64, u16>(),
        (8, 4) => direct::<u64, u32>(),
        (own, other) if own == other => copied,
        (_, wide) => match from {
            DType::I8 => widened_word::<i8>(wide),
            DType::I16 => widened_word::<i16>(wide),
            DType::I32 => direct::<i32, u64>(),
            DType::U16 => widened_word::<u16>(wide),
            DType::U32 => direct::<u32, u64>(),
            _ => widened_word::<u8>(wide),
        },
    }
}

fn widened_word<S: CastSource>(bytes: usize) -> UnaryKernel {
    match bytes {
        2 => direct::<S, u16>(),
        4 => direct::<S, u32>(),
        _ => direct::<S, u64>(),
    }
}

/// From integers to floats.
fn of_words<S: CastSource>(to: DType) -> UnaryKernel {
    match to {
        DType::F16 => direct::<S, f16>(),
        DType::F32 => direct::<S, f32>(),
        DType::C64 => direct::<S, Complex<f32>>(),
        DType::C128 => direct::<S, Complex<f64>>(),
        _ => direct::<S, f64>(),
    }
}

/// From floats and complex numbers.
fn of_reals<S: CastSource>(to: DType) -> UnaryKernel {
    match to {
        DType::Bool | DType::U8 => direct::<S, u8>(),
        DType::U16 => direct::<S, u16>(),
        DType::U32 => direct::<S, u32>(),
        DType::U64 => direct::<S, u64>(),
        DType::I8 => direct::<S, i8>(),
        DType::I16 => direct::<S, i16>(),
        DType::I32 => direct::<S, i32>(),
        DType::I64 => direct::<S, i64>(),
        DType::F16 => direct::<S, f16>(),
        DType::F32 => direct::<S, f32>(),
        DType::F64 => direct::<S, f64>(),
        DType::C64 => direct::<S, Complex<f32>>(),
        DType::C128 => direct::<S, Complex<f64>>(),
    }
}
