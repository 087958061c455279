//! Positions of extrema. Every value maps to an unsigned key whose order is the wanted one, with NaN first, so that the
//! first smallest `(key, position)` is the answer for both directions and for every type.

use super::kernels::{CombineFn, Kernels, Neutral};
use crate::fence::operands::FoldBlock;
use crate::fence::shells::{FoldBody, UnaryBody};
use bytemuck::Pod;
use outcore_dtype::{f16, with_dtype, Complex, DType};
use std::marker::PhantomData;

/// 64-bit words of an accumulator: the position and the key.
pub fn words(input: DType) -> usize {
    if input.is_complex() {
        3
    } else {
        2
    }
}

/// A key of one or two words.
trait ArgumentKey: Pod + Ord {
    const EMPTY: Self;
}

impl ArgumentKey for u64 {
    const EMPTY: u64 = u64::MAX;
}

impl ArgumentKey for [u64; 2] {
    const EMPTY: [u64; 2] = [u64::MAX; 2];
}

/// A value with keys that ascend for `argmin` and for `argmax`; NaN is 0 in both, equal values are equal.
trait Ordered: Pod {
    type Key: ArgumentKey;
    fn ascending(self) -> Self::Key;
    fn descending(self) -> Self::Key;
}

macro_rules! ordered_integers {
    ($($T:ty, $Wide:ty, $flip:expr);*) => {$(
        impl Ordered for $T {
            type Key = u64;
            #[inline(always)]
            fn ascending(self) -> u64 {
                <$Wide>::from(self) as u64 ^ $flip
            }
            #[inline(always)]
            fn descending(self) -> u64 {
                !self.ascending()
            }
        }
    )*};
}

const SIGN: u64 = 1 << 63;

ordered_integers!(u8, u64, 0; u16, u64, 0; u32, u64, 0; u64, u64, 0; i8, i64, SIGN; i16, i64, SIGN; i32, i64, SIGN; i64, i64, SIGN);

/// The usual order of floats as integers: negative values have all bits flipped, others the sign.
#[inline(always)]
fn real_key(value: f64) -> u64 {
    // Adding +0 makes the zeros equal.
    let bits = (value + 0.0).to_bits();
    let key = bits ^ (((bits as i64) >> 63) as u64 | SIGN);
    if value.is_nan() {
        0
    } else {
        key
    }
}

#[inline(always)]
fn real_key_descending(value: f64) -> u64 {
    real_key(-value)
}

macro_rules! ordered_reals {
    ($($T:ty, |$x:ident| $wide:expr);*) => {$(
        impl Ordered for $T {
            type Key = u64;
            #[inline(always)]
            fn ascending(self) -> u64 {
                let $x = self;
                real_key($wide)
            }
            #[inline(always)]
            fn descending(self) -> u64 {
                let $x = self;
                real_key_descending($wide)
            }
        }
    )*};
}

ordered_reals!(f16, |x| f64::from(crate::half::widen(x)); f32, |x| f64::from(x); f64, |x| x);

macro_rules! ordered_complex {
    ($($R:ty),*) => {$(
        impl Ordered for Complex<$R> {
            type Key = [u64; 2];
            #[inline(always)]
            fn ascending(self) -> [u64; 2] {
                if self.re.is_nan() | self.im.is_nan() {
                    return [0; 2];
                }
                [real_key(f64::from(self.re)), real_key(f64::from(self.im))]
            }
            #[inline(always)]
            fn descending(self) -> [u64; 2] {
                (-self).ascending()
            }
        }
    )*};
}

ordered_complex!(f32, f64);

/// Columns whose candidates are kept side by side.
const LANES: usize = 32;

#[inline(always)]
fn accumulate<T: Pod, K: ArgumentKey>(block: FoldBlock<'_>, accumulators: &mut [u8], key: impl Fn(T) -> K) {
    let x: &[T] = bytemuck::cast_slice(block.data);
    let accumulators: &mut [u64] = bytemuck::cast_slice_mut(accumulators);
    let (length, inner) = (block.length, block.inner);
    let words = 1 + size_of::<K>() / 8;
    for (x, accumulators) in x
        .chunks_exact(length * inner)
        .zip(accumulators.chunks_exact_mut(inner * words))
    {
        for first in (0..inner).step_by(LANES) {
            let width = LANES.min(inner - first);
            let mut keys = [K::EMPTY; LANES];
            let mut rows = [0u64; LANES];
            if inner == 1 {
                (keys[0], rows[0]) = best_of_run(x, block.index_step < 0, &key);
            } else {
                // A descending walk keeps the later of equal rows, an ascending one the earlier.
                for step in 0..length {
                    let row = if block.index_step < 0 { length - 1 - step } else { step };
                    let values = &x[row * inner + first..row * inner + first + width];
                    for ((best, best_row), value) in keys.iter_mut().zip(&mut rows).zip(values) {
                        let candidate = key(*value);
                        let better = candidate < *best || step == 0;
                        *best = if better { candidate } else { *best };
                        *best_row = if better { row as u64 } else { *best_row };
                    }
                }
            }
            for lane in 0..width {
                let position = block.index_base + rows[lane] as i64 * block.index_step;
                let at = (first + lane) * words;
                merge(&mut accumulators[at..at + words], position, keys[lane]);
            }
        }
    }
}

/// The smallest key of a run and its first (or last) row: one pass for the key, one for the place.
#[inline(always)]
fn best_of_run<T: Pod, K: ArgumentKey>(x: &[T], last: bool, key: impl Fn(T) -> K) -> (K, u64) {
    let mut lanes = [K::EMPTY; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for lane in 0..LANES {
            let candidate = key(chunk[lane]);
            lanes[lane] = if candidate < lanes[lane] {
                candidate
            } else {
                lanes[lane]
            };
        }
    }
    let mut best = K::EMPTY;
    for lane in lanes {
        best = best.min(lane);
    }
    for value in rest {
        best = best.min(key(*value));
    }
    let found = |chunk: &[T]| {
        let mut any = false;
        for value in chunk {
            any |= key(*value) == best;
        }
        any
    };
    let place = if last {
        x.iter().rposition(|value| key(*value) == best)
    } else {
        let chunk = x.chunks(4 * LANES).position(found).unwrap_or(0) * 4 * LANES;
        x[chunk..]
            .iter()
            .position(|value| key(*value) == best)
            .map(|row| chunk + row)
    };
    (best, place.unwrap_or(0) as u64)
}

/// Takes the candidate when its `(key, position)` is smaller.
#[inline(always)]
fn merge<K: ArgumentKey>(accumulator: &mut [u64], position: i64, key: K) {
    let current: &K = bytemuck::from_bytes(bytemuck::cast_slice(&accumulator[1..]));
    if (key, position) < (*current, accumulator[0] as i64) {
        accumulator[0] = position as u64;
        accumulator[1..].copy_from_slice(bytemuck::cast_slice(bytemuck::bytes_of(&key)));
    }
}

fn combine<K: ArgumentKey>(right: &[u8], left: &mut [u8]) {
    let right: &[u64] = bytemuck::cast_slice(right);
    let left: &mut [u64] = bytemuck::cast_slice_mut(left);
    let words = 1 + size_of::<K>() / 8;
    for (left, right) in left.chunks_exact_mut(words).zip(right.chunks_exact(words)) {
        let key: &K = bytemuck::from_bytes(bytemuck::cast_slice(&right[1..]));
        merge(left, right[0] as i64, *key);
    }
}

struct Smallest<T>(PhantomData<T>);
struct Largest<T>(PhantomData<T>);

macro_rules! body {
    ($Body:ident, $key:ident) => {
        impl<T: Ordered> FoldBody for $Body<T> {
            #[inline(always)]
            fn run(block: FoldBlock<'_>, accumulators: &mut [u8]) {
                accumulate::<T, T::Key>(block, accumulators, T::$key)
            }
        }
        impl<T: Ordered> UnaryBody for $Body<T> {
            #[inline(always)]
            fn run(right: &[u8], left: &mut [u8]) {
                combine::<T::Key>(right, left)
            }
        }
    };
}

body!(Smallest, ascending);
body!(Largest, descending);

fn kernels<B: FoldBody + UnaryBody>() -> Kernels {
    // An empty accumulator loses to every candidate, since no position is as large.
    let mut neutral = [0xff; size_of::<Neutral>()];
    neutral[..8].copy_from_slice(&i64::MAX.to_ne_bytes());
    Kernels {
        neutral,
        accumulate: <B as FoldBody>::kernel(),
        combine: <B as UnaryBody>::kernel() as CombineFn,
    }
}

pub fn smallest(input: DType) -> Kernels {
    with_dtype!(input, T => kernels::<Smallest<T>>())
}

pub fn largest(input: DType) -> Kernels {
    with_dtype!(input, T => kernels::<Largest<T>>())
}

/// Copies the positions out.
pub fn finish(input: DType, accumulators: &[u8], output: &mut [u8]) {
    let accumulators: &[i64] = bytemuck::cast_slice(accumulators);
    let output: &mut [i64] = bytemuck::cast_slice_mut(output);
    for (position, accumulator) in output.iter_mut().zip(accumulators.chunks_exact(words(input))) {
        *position = accumulator[0];
    }
}
