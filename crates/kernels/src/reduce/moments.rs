//! Count, sum and sum of squared deviations, in double precision for every floating type.
//!
//! Within a block two passes: `m = sum x / n`, then `D = sum (x - m)` and `M2 = sum |x - m|^2 - |D|^2 / n`, where `D`
//! would be 0 but for the rounding of `m`. Between blocks the parallel update
//! `M2 = M2a + M2b + |mb - ma|^2 na nb / (na + nb)` (both Chan, Golub, LeVeque 1983).
//!
//! The sum is kept instead of the mean, so that the mean is the rounded sum over `n` and an infinity stays one. Beside
//! it stands its rest, what the rounded sum leaves out, so that `mb - ma` has all its digits however large the means.

use super::fold::fold_columns;
use super::kernels::{neutral, CombineFn, Finish, Kernels};
use crate::fence::operands::FoldBlock;
use crate::fence::shells::{FoldBody, UnaryBody};
use crate::half;
use bytemuck::Pod;
use outcore_dtype::{f16, Complex, DType};
use std::marker::PhantomData;

/// 64-bit words of an accumulator: count, sum and rest (two parts each of complex ones), M2.
pub fn words(input: DType) -> usize {
    words_of(if input.is_complex() { 2 } else { 1 })
}

const fn words_of(parts: usize) -> usize {
    2 + 2 * parts
}

/// A float as the doubles it holds: one, or real and imaginary part.
trait MomentsParts: Pod {
    const PARTS: usize;
    const WORDS: usize = words_of(Self::PARTS);
    type Real: Pod;
    fn double(part: Self::Real) -> f64;
}

macro_rules! parts {
    ($($T:ty, $R:ty, $parts:expr, $double:expr);*) => {$(
        impl MomentsParts for $T {
            const PARTS: usize = $parts;
            type Real = $R;
            #[inline(always)]
            fn double(part: $R) -> f64 {
                ($double)(part)
            }
        }
    )*};
}

parts!(f16, f16, 1, |x| f64::from(half::widen(x)); f32, f32, 1, f64::from; f64, f64, 1, |x| x;
    Complex<f32>, f32, 2, f64::from; Complex<f64>, f64, 2, |x| x);

/// Lanes of one pass: eight of the widest registers of doubles. Even, so that a chunk holds whole complex numbers.
const LANES: usize = 64;

struct MomentsBody<T>(PhantomData<T>);

impl<T: MomentsParts> FoldBody for MomentsBody<T> {
    #[inline(always)]
    fn run(block: FoldBlock<'_>, accumulators: &mut [u8]) {
        let x: &[T::Real] = bytemuck::cast_slice(block.data);
        let accumulators: &mut [f64] = bytemuck::cast_slice_mut(accumulators);
        // Complex columns are two real ones: their sums and their squared deviations add independently.
        let columns = block.inner * T::PARTS;
        let words = T::WORDS;
        let rows = x.chunks_exact(block.length * columns);
        for (x, accumulators) in rows.zip(accumulators.chunks_exact_mut(block.inner * words)) {
            for first in (0..columns).step_by(LANES) {
                let width = LANES.min(columns - first);
                let targets = &mut accumulators[first / T::PARTS * words..][..width / T::PARTS * words];
                accumulate_chunk::<T>(x, block.length, columns, first, width, targets);
            }
        }
    }
}

#[inline(always)]
fn accumulate_chunk<T: MomentsParts>(
    x: &[T::Real],
    length: usize,
    columns: usize,
    first: usize,
    width: usize,
    targets: &mut [f64],
) {
    let count = length as f64;
    let x = &x[first..];
    let mut sums = [0f64; LANES];
    fold_columns::<_, _, LANES>(
        x,
        [length, columns, width],
        -0.0,
        |_, value| T::double(value),
        |a, b| a + b,
        |lane, sum| sums[lane] = sum,
    );
    let mut means = [0f64; LANES];
    for lane in 0..width {
        means[lane] = sums[lane] / count;
    }
    let (mut rests, mut squares) = ([0f64; LANES], [0f64; LANES]);
    fold_columns::<_, _, LANES>(
        x,
        [length, columns, width],
        [0.0; 2],
        |lane, value| {
            let deviation = T::double(value) - means[lane];
            [deviation, deviation * deviation]
        },
        |a, b| [a[0] + b[0], a[1] + b[1]],
        |lane, [sum, square]| (rests[lane], squares[lane]) = (sum, square),
    );
    for lane in 0..width {
        let square = squares[lane] - rests[lane] * (rests[lane] * (1.0 / count));
        // Rounding alone can leave less than nothing; NaN stays.
        squares[lane] = if square < 0.0 { 0.0 } else { square };
        rests[lane] += count.mul_add(means[lane], -sums[lane]);
    }
    for (index, target) in targets.chunks_exact_mut(T::WORDS).enumerate() {
        let mut other = [0f64; 6];
        other[0] = count;
        for part in 0..T::PARTS {
            let lane = index * T::PARTS + part;
            other[1 + part] = sums[lane];
            other[1 + T::PARTS + part] = rests[lane];
            other[1 + 2 * T::PARTS] += squares[lane];
        }
        merge::<T>(target, &other[..T::WORDS]);
    }
}

/// The mean of `count` values with the given sum and rest, as a double and what it leaves out. `sum - count mean` is
/// exact, since the count is an integer and the mean within a unit or two of its last place.
#[inline(always)]
fn mean(count: f64, inverse: f64, sum: f64, rest: f64) -> [f64; 2] {
    let mean = sum * inverse;
    [mean, ((-count).mul_add(mean, sum) + rest) * inverse]
}

/// `a + b`, and what its rounding leaves out (D. Knuth, TAOCP 2, 4.2.2).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let sum = a + b;
    let of_b = sum - a;
    [sum, (a - (sum - of_b)) + (b - of_b)]
}

/// `target` and `other` as one sample; either may be empty.
#[inline(always)]
fn merge<T: MomentsParts>(target: &mut [f64], other: &[f64]) {
    let (na, nb) = (target[0], other[0]);
    if nb == 0.0 {
        return;
    }
    if na == 0.0 {
        return target.copy_from_slice(other);
    }
    let last = T::WORDS - 1;
    let (ia, ib) = (1.0 / na, 1.0 / nb);
    let mut distance = 0.0;
    for sum in 1..=T::PARTS {
        let rest = sum + T::PARTS;
        let ma = mean(na, ia, target[sum], target[rest]);
        let mb = mean(nb, ib, other[sum], other[rest]);
        let delta = (mb[0] - ma[0]) + (mb[1] - ma[1]);
        distance += delta * delta;
        let [total, lost] = two_sum(target[sum], other[sum]);
        target[sum] = total;
        target[rest] += other[rest] + lost;
    }
    target[last] += other[last] + distance * (na / (na + nb) * nb);
    target[0] = na + nb;
}

impl<T: MomentsParts> UnaryBody for MomentsBody<T> {
    #[inline(always)]
    fn run(right: &[u8], left: &mut [u8]) {
        let right: &[f64] = bytemuck::cast_slice(right);
        let left: &mut [f64] = bytemuck::cast_slice_mut(left);
        for (left, right) in left.chunks_exact_mut(T::WORDS).zip(right.chunks_exact(T::WORDS)) {
            merge::<T>(left, right);
        }
    }
}

fn kernels_of<T: MomentsParts>() -> Kernels {
    Kernels {
        neutral: neutral([0f64; 6]),
        accumulate: <MomentsBody<T> as FoldBody>::kernel(),
        combine: <MomentsBody<T> as UnaryBody>::kernel() as CombineFn,
    }
}

pub fn kernels(input: DType) -> Option<Kernels> {
    match input {
        DType::F16 => Some(kernels_of::<f16>()),
        DType::F32 => Some(kernels_of::<f32>()),
        DType::F64 => Some(kernels_of::<f64>()),
        DType::C64 => Some(kernels_of::<Complex<f32>>()),
        DType::C128 => Some(kernels_of::<Complex<f64>>()),
        _ => None,
    }
}

/// The mean in the input type, or the variance or deviation in its real type. An empty sample gives NaN; a correction
/// that leaves no degree of freedom divides by 0, as in NumPy.
pub fn finish(input: DType, accumulators: &[u8], finish: Finish, output: &mut [u8]) {
    let accumulators: &[f64] = bytemuck::cast_slice(accumulators);
    let complex = input.is_complex();
    let result = |accumulator: &[f64]| -> Complex<f64> {
        let count = accumulator[0];
        let spread = accumulator[accumulator.len() - 1];
        match finish {
            Finish::Value | Finish::Mean if complex => Complex::new(accumulator[1] / count, accumulator[2] / count),
            Finish::Value | Finish::Mean => Complex::new(accumulator[1] / count, 0.0),
            Finish::Variance { correction } => Complex::new(spread / (count - correction).max(0.0), 0.0),
            Finish::StandardDeviation { correction } => {
                Complex::new((spread / (count - correction).max(0.0)).sqrt(), 0.0)
            }
        }
    };
    let to = match finish {
        Finish::Value | Finish::Mean => input,
        _ => input.real(),
    };
    let narrow = crate::cast_kernel(DType::C128, to);
    let rows = accumulators.chunks_exact(words(input));
    for (accumulator, output) in rows.zip(output.chunks_exact_mut(to.size())) {
        narrow(bytemuck::bytes_of(&result(accumulator)), output);
    }
}
