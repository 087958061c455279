//! Sums, products, extrema, truth and counts: one associative operation on one value per output.

use super::fold::fold_columns;
use super::kernels::{neutral, CombineFn, Kernels};
use super::Reduce;
use crate::elementwise::ComplexNumber;
use crate::fence::operands::FoldBlock;
use crate::fence::shells::{FoldBody, UnaryBody};
use crate::half::Lifted;
use bytemuck::Pod;
use outcore_dtype::{f16, Complex, DType};

#[inline(always)]
fn accumulate<T: Pod, A: Pod, const L: usize>(
    block: FoldBlock<'_>,
    accumulators: &mut [u8],
    zero: A,
    load: impl Fn(T) -> A,
    add: impl Fn(A, A) -> A,
) {
    let x: &[T] = bytemuck::cast_slice(block.data);
    let accumulators: &mut [A] = bytemuck::cast_slice_mut(accumulators);
    let (length, inner) = (block.length, block.inner);
    if length * inner == 1 {
        for (accumulator, value) in accumulators.iter_mut().zip(x) {
            *accumulator = add(*accumulator, load(*value));
        }
        return;
    }
    for (x, accumulators) in x.chunks_exact(length * inner).zip(accumulators.chunks_exact_mut(inner)) {
        let put = |column: usize, value| accumulators[column] = add(accumulators[column], value);
        fold_columns::<T, A, L>(x, [length, inner, inner], zero, |_, value| load(value), &add, put);
    }
}

#[inline(always)]
fn combine<A: Pod>(right: &[u8], left: &mut [u8], add: impl Fn(A, A) -> A) {
    let right: &[A] = bytemuck::cast_slice(right);
    let left: &mut [A] = bytemuck::cast_slice_mut(left);
    for (left, right) in left.iter_mut().zip(right) {
        *left = add(*left, *right);
    }
}

/// The kernels of one operation: `$T` loaded as `$A`, added from `$zero`. As many lanes as keep the
/// widest registers busy.
macro_rules! fold {
    ($T:ty => $A:ty, $zero:expr, $load:expr, $add:expr) => {{
        struct Folding;
        impl FoldBody for Folding {
            #[inline(always)]
            fn run(block: FoldBlock<'_>, accumulators: &mut [u8]) {
                const LANES: usize = if size_of::<$A>() > 8 { 32 } else { 64 };
                accumulate::<$T, $A, LANES>(block, accumulators, $zero, $load, $add)
            }
        }
        impl UnaryBody for Folding {
            #[inline(always)]
            fn run(right: &[u8], left: &mut [u8]) {
                combine::<$A>(right, left, $add)
            }
        }
        Kernels {
            neutral: neutral::<$A>($zero),
            accumulate: <Folding as FoldBody>::kernel(),
            combine: <Folding as UnaryBody>::kernel() as CombineFn,
        }
    }};
}

// One module per kind of kernel: the compiler works on modules in parallel.

pub fn kernels(op: Reduce, input: DType) -> Option<Kernels> {
    match op {
        Reduce::Any => Some(any::kernels(input)),
        Reduce::All => Some(all::kernels(input)),
        Reduce::CountNonzero => Some(count_nonzero::kernels(input)),
        _ => match input {
            DType::Bool => boolean(op),
            DType::I8 => words8::kernels(op).or_else(|| int8::kernels(op)),
            DType::I16 => words16::kernels(op).or_else(|| int16::kernels(op)),
            DType::I32 => words32::kernels(op).or_else(|| int32::kernels(op)),
            DType::I64 => words64::kernels(op).or_else(|| int64::kernels(op)),
            DType::U8 => words8::kernels(op).or_else(|| uint8::kernels(op)),
            DType::U16 => words16::kernels(op).or_else(|| uint16::kernels(op)),
            DType::U32 => words32::kernels(op).or_else(|| uint32::kernels(op)),
            DType::U64 => words64::kernels(op).or_else(|| uint64::kernels(op)),
            DType::F16 => float16::kernels(op),
            DType::F32 => float32::kernels(op),
            DType::F64 => float64::kernels(op),
            DType::C64 => complex64::kernels(op),
            DType::C128 => complex128::kernels(op),
        },
    }
}

macro_rules! truth {
    ($name:ident, $A:ty, $zero:expr, $load:expr, $add:expr) => {
        mod $name {
            use crate::reduce::simple::*;

            pub fn kernels(input: DType) -> Kernels {
                macro_rules! of {
                                                    ($T:ty) => {
                                                        fold!($T => $A, $zero, |x: $T| $load(x != zero::<$T>()), $add)
                                                    };
                                                }
                match (input, input.size()) {
                    (DType::F16, _) => of!(f16),
                    (DType::F32, _) => of!(f32),
                    (DType::F64, _) => of!(f64),
                    (DType::C64, _) => of!(Complex<f32>),
                    (DType::C128, _) => of!(Complex<f64>),
                    (_, 1) => of!(u8),
                    (_, 2) => of!(u16),
                    (_, 4) => of!(u32),
                    _ => of!(u64),
                }
            }
        }
    };
}

truth!(any, u8, 0, u8::from, |a, b| a | b);
truth!(all, u8, 1, u8::from, |a, b| a & b);
truth!(count_nonzero, i64, 0, i64::from, |a, b| a + b);

#[inline(always)]
fn zero<T: Pod>() -> T {
    T::zeroed()
}

fn boolean(op: Reduce) -> Option<Kernels> {
    Some(match op {
        Reduce::Min => fold!(u8 => u8, 1, |x| x, |a, b| a & b),
        Reduce::Max => fold!(u8 => u8, 0, |x| x, |a, b| a | b),
        _ => return None,
    })
}

/// What does not depend on the sign.
macro_rules! words {
    ($name:ident, $T:ident) => {
        mod $name {
            use crate::reduce::simple::*;

            pub fn kernels(op: Reduce) -> Option<Kernels> {
                Some(match op {
                    Reduce::Sum => fold!($T => $T, 0, |x| x, $T::wrapping_add),
                    Reduce::Prod => fold!($T => $T, 1, |x| x, $T::wrapping_mul),
                    _ => return None,
                })
            }
        }
    };
}

words!(words8, u8);
words!(words16, u16);
words!(words32, u32);
words!(words64, u64);

macro_rules! integer {
    ($name:ident, $T:ident) => {
        mod $name {
            use crate::reduce::simple::*;

            pub fn kernels(op: Reduce) -> Option<Kernels> {
                Some(match op {
                    Reduce::Min => fold!($T => $T, $T::MAX, |x| x, |a, b| a.min(b)),
                    Reduce::Max => fold!($T => $T, $T::MIN, |x| x, |a, b| a.max(b)),
                    _ => return None,
                })
            }
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
    ($name:ident, $T:ident, $W:ident) => {
        mod $name {
            use crate::reduce::simple::*;

            pub fn kernels(op: Reduce) -> Option<Kernels> {
                Some(match op {
                    // Sums start from -0, the neutral element that keeps -0 + -0.
                    Reduce::Sum => fold!($T => $W, -0.0, |x: $T| x.widen(), |a, b| a + b),
                    Reduce::Prod => fold!($T => $W, 1.0, |x: $T| x.widen(), |a, b| a * b),
                    Reduce::Min => fold!($T => $T, $T::INFINITY, |x| x, |a: $T, b: $T| {
                        let (x, y) = (a.widen(), b.widen());
                        if (x <= y) | x.is_nan() { a } else { b }
                    }),
                    Reduce::Max => fold!($T => $T, $T::NEG_INFINITY, |x| x, |a: $T, b: $T| {
                        let (x, y) = (a.widen(), b.widen());
                        if (x >= y) | x.is_nan() { a } else { b }
                    }),
                    _ => return None,
                })
            }
        }
    };
}

real!(float16, f16, f32);
real!(float32, f32, f32);
real!(float64, f64, f64);

macro_rules! complex {
    ($name:ident, $R:ident) => {
        mod $name {
            use crate::reduce::simple::*;

            pub fn kernels(op: Reduce) -> Option<Kernels> {
                type Z = Complex<$R>;
                Some(match op {
                    Reduce::Sum => fold!(Z => Z, Z::new(-0.0, -0.0), |z| z, |a, b| a + b),
                    Reduce::Prod => fold!(Z => Z, Z::new(1.0, 0.0), |z| z, |a, b| a * b),
                    Reduce::Min => {
                        fold!(Z => Z, Z::new($R::INFINITY, $R::INFINITY), |z| z, ComplexNumber::minimum)
                    }
                    Reduce::Max => {
                        fold!(Z => Z, Z::new($R::NEG_INFINITY, $R::NEG_INFINITY), |z| z, ComplexNumber::maximum)
                    }
                    _ => return None,
                })
            }
        }
    };
}

complex!(complex64, f32);
complex!(complex128, f64);
