//! Discrete Fourier transforms along one axis of a block, by `rustfft` and `realfft`.
//!
//! Forward is Σ x[j] exp(−2πi jk/n), backward has the other sign; what is divided by is the caller's `scale`.

use std::sync::Arc;

use bytemuck::Pod;
use outcore_dtype::{Complex, DType};
use realfft::{ComplexToReal, FftNum, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use crate::spare::{taken, Spare, SKIPPED};

/// Which transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fourier {
    Forward,
    Backward,
    /// Forward, of real numbers: the first n/2 + 1 coefficients, of which the others are the conjugates.
    FromReal,
    /// Backward, of those coefficients, to real numbers. Imaginary parts that such coefficients cannot have are left out.
    ToReal,
}

/// Lanes that are transformed between two sweeps over a block whose lanes lie side by side.
const GROUP: usize = 8;

/// A transform of lanes of one length, with its tables.
pub struct FourierPlan {
    plan: Plan,
    lane: usize,
}

enum Plan {
    Single(Typed<f32>),
    Double(Typed<f64>),
}

enum Typed<T> {
    Complex(Arc<dyn Fft<T>>),
    FromReal(Arc<dyn RealToComplex<T>>),
    ToReal(Arc<dyn ComplexToReal<T>>),
}

impl<T: FftNum + Pod> Typed<T> {
    fn new(kind: Fourier, lane: usize) -> Typed<T> {
        match kind {
            Fourier::Forward => Typed::Complex(FftPlanner::new().plan_fft_forward(lane)),
            Fourier::Backward => Typed::Complex(FftPlanner::new().plan_fft_inverse(lane)),
            Fourier::FromReal => Typed::FromReal(RealFftPlanner::new().plan_fft_forward(lane)),
            Fourier::ToReal => Typed::ToReal(RealFftPlanner::new().plan_fft_inverse(lane)),
        }
    }

    fn scratch(&self) -> usize {
        match self {
            Typed::Complex(plan) => plan.get_inplace_scratch_len(),
            Typed::FromReal(plan) => plan.get_scratch_len(),
            Typed::ToReal(plan) => plan.get_scratch_len(),
        }
    }
}

/// A block cut along the axis that is transformed: `[outer, lane, inner]`.
#[derive(Clone, Copy)]
struct Lanes {
    outer: usize,
    inner: usize,
}

impl Lanes {
    /// Groups of lanes that lie side by side: the index before the axis, the first behind it, and how many.
    fn groups(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.outer).flat_map(move |before| {
            let starts = (0..self.inner).step_by(GROUP);
            starts.map(move |start| (before, start, GROUP.min(self.inner - start)))
        })
    }

    /// Copies a group of lanes out of a block, one behind the other.
    fn gather<T: Copy>(self, block: &[T], (before, start, width): (usize, usize, usize), lanes: &mut [T]) {
        let length = lanes.len() / width;
        for place in 0..length {
            let at = (before * length + place) * self.inner + start;
            for (lane, value) in block[at..at + width].iter().enumerate() {
                lanes[lane * length + place] = *value;
            }
        }
    }

    /// Copies them back, each element through `finish`.
    fn scatter<T: Copy>(
        self,
        lanes: &[T],
        (before, start, width): (usize, usize, usize),
        block: &mut [T],
        finish: impl Fn(T) -> T,
    ) {
        let length = lanes.len() / width;
        for place in 0..length {
            let at = (before * length + place) * self.inner + start;
            for (lane, value) in block[at..at + width].iter_mut().enumerate() {
                *value = finish(lanes[lane * length + place]);
            }
        }
    }
}

impl FourierPlan {
    /// A transform of lanes of `lane` numbers (real ones, where one side is real), in the precision of `dtype`.
    ///
    /// # Panics
    /// For lanes of no length.
    pub fn new(kind: Fourier, dtype: DType, lane: usize) -> FourierPlan {
        assert!(lane > 0, "fft: lanes of no length");
        let plan = match dtype {
            DType::F32 | DType::C64 => Plan::Single(Typed::new(kind, lane)),
            _ => Plan::Double(Typed::new(kind, lane)),
        };
        FourierPlan { plan, lane }
    }

    /// Memory besides a block and its result, for lanes that lie `inner` side by side; with the tables of the plan.
    pub fn workspace_bytes(&self, inner: usize) -> usize {
        match &self.plan {
            Plan::Single(plan) => self.spare_bytes(plan, inner),
            Plan::Double(plan) => self.spare_bytes(plan, inner),
        }
    }

    fn spare_bytes<T: FftNum + Pod>(&self, plan: &Typed<T>, inner: usize) -> usize {
        let lanes = self.lane * GROUP.min(inner);
        let tables = 3 * self.lane * size_of::<Complex<T>>();
        taken::<Complex<T>>(&[lanes, plan.scratch()]) + taken::<T>(&[2 * lanes]) + tables + SKIPPED
    }

    /// Transforms the C-contiguous block `[outer, length, inner]` along its middle axis and multiplies by `scale`.
    ///
    /// # Panics
    /// When a slice has not the length that this gives.
    pub fn run(&self, data: &[u8], (outer, inner): (usize, usize), scale: f64, out: &mut [u8], workspace: &mut [u8]) {
        let block = Lanes { outer, inner };
        match &self.plan {
            Plan::Single(plan) => self.run_as(plan, data, block, scale as f32, out, Spare::new(workspace)),
            Plan::Double(plan) => self.run_as(plan, data, block, scale, out, Spare::new(workspace)),
        }
    }

    fn run_as<T: FftNum + Pod>(
        &self,
        plan: &Typed<T>,
        data: &[u8],
        block: Lanes,
        scale: T,
        out: &mut [u8],
        mut spare: Spare<'_>,
    ) where
        Complex<T>: Pod,
    {
        let (n, half) = (self.lane, self.lane / 2 + 1);
        let most = GROUP.min(block.inner);
        let scratch = spare.take::<Complex<T>>(plan.scratch());
        let complex = spare.take::<Complex<T>>(n.max(half) * most);
        let real = spare.take::<T>(n * most);
        const FITS: &str = "lanes of the plan's lengths";
        for group in block.groups() {
            let width = group.2;
            match plan {
                Typed::Complex(plan) => {
                    let lanes = &mut complex[..n * width];
                    block.gather(bytemuck::cast_slice(data), group, lanes);
                    plan.process_with_scratch(lanes, scratch);
                    block.scatter(lanes, group, bytemuck::cast_slice_mut(out), |value| value.scale(scale));
                }
                Typed::FromReal(plan) => {
                    let (given, made) = (&mut real[..n * width], &mut complex[..half * width]);
                    block.gather(bytemuck::cast_slice(data), group, given);
                    for (given, made) in given.chunks_exact_mut(n).zip(made.chunks_exact_mut(half)) {
                        plan.process_with_scratch(given, made, scratch).expect(FITS);
                    }
                    block.scatter(made, group, bytemuck::cast_slice_mut(out), |value| value.scale(scale));
                }
                Typed::ToReal(plan) => {
                    let (given, made) = (&mut complex[..half * width], &mut real[..n * width]);
                    block.gather(bytemuck::cast_slice(data), group, given);
                    for (given, made) in given.chunks_exact_mut(half).zip(made.chunks_exact_mut(n)) {
                        given[0].im = T::zero();
                        if n.is_multiple_of(2) {
                            given[half - 1].im = T::zero();
                        }
                        plan.process_with_scratch(given, made, scratch).expect(FITS);
                    }
                    block.scatter(made, group, bytemuck::cast_slice_mut(out), |value| value * scale);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    fn naive(data: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = data.len();
        let sum = |k: usize| {
            let terms = data.iter().enumerate();
            terms
                .map(|(j, value)| value * Complex::from_polar(1.0, sign * TAU * ((j * k) % n) as f64 / n as f64))
                .sum()
        };
        (0..n).map(sum).collect()
    }

    fn numbers(count: usize) -> Vec<Complex<f64>> {
        let wave = |i: usize, f: f64| (i as f64 * f).sin() + (i % 7) as f64;
        (0..count).map(|i| Complex::new(wave(i, 0.7), wave(i, 1.9))).collect()
    }

    fn typed<T: Pod>(bytes: &[u8]) -> Vec<T> {
        bytes
            .chunks_exact(size_of::<T>())
            .map(bytemuck::pod_read_unaligned)
            .collect()
    }

    fn run(plan: &FourierPlan, data: &[u8], outer: usize, inner: usize, scale: f64, bytes: usize) -> Vec<u8> {
        let mut out = vec![0u128; bytes.div_ceil(16)];
        let out: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut out)[..bytes];
        let mut workspace = vec![[0u64; 8]; plan.workspace_bytes(inner).div_ceil(64) + 1];
        let workspace: &mut [u8] = bytemuck::cast_slice_mut(&mut workspace);
        plan.run(
            data,
            (outer, inner),
            scale,
            out,
            &mut workspace[..plan.workspace_bytes(inner)],
        );
        out.to_vec()
    }

    #[test]
    fn lanes_of_all_lengths_and_places_are_transformed() {
        for n in [1, 2, 3, 7, 8, 30, 97, 128] {
            for (outer, inner) in [(1, 1), (3, 1), (1, 5), (2, 19)] {
                let data = numbers(outer * n * inner);
                for (kind, sign) in [(Fourier::Forward, -1.0), (Fourier::Backward, 1.0)] {
                    let plan = FourierPlan::new(kind, DType::C128, n);
                    let out = run(&plan, bytemuck::cast_slice(&data), outer, inner, 0.5, data.len() * 16);
                    let out: Vec<Complex<f64>> = typed(&out);
                    for o in 0..outer {
                        for i in 0..inner {
                            let lane = |from: &[Complex<f64>]| -> Vec<Complex<f64>> {
                                (0..n).map(|k| from[(o * n + k) * inner + i]).collect()
                            };
                            let expected = naive(&lane(&data), sign);
                            for (found, expected) in lane(&out).iter().zip(&expected) {
                                assert!((found - expected * 0.5).norm() < 1e-10 * n as f64, "n = {n}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn real_lanes_have_half_the_coefficients_and_come_back() {
        for n in [1, 2, 3, 8, 15, 100] {
            for inner in [1, 11] {
                let data: Vec<f64> = numbers(2 * n * inner).iter().map(|value| value.re).collect();
                let half = n / 2 + 1;
                let forth = FourierPlan::new(Fourier::FromReal, DType::F64, n);
                let out = run(
                    &forth,
                    bytemuck::cast_slice(&data),
                    2,
                    inner,
                    1.0,
                    2 * half * inner * 16,
                );
                let coefficients: Vec<Complex<f64>> = typed(&out);
                let lane: Vec<Complex<f64>> = (0..n).map(|k| Complex::new(data[k * inner], 0.0)).collect();
                for (k, expected) in naive(&lane, -1.0)[..half].iter().enumerate() {
                    assert!((coefficients[k * inner] - expected).norm() < 1e-10 * n as f64);
                }
                let back = FourierPlan::new(Fourier::ToReal, DType::F64, n);
                let again = run(&back, &out, 2, inner, 1.0 / n as f64, data.len() * 8);
                let again: Vec<f64> = typed(&again);
                assert!(again.iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-10));
            }
        }
    }

    #[test]
    fn single_precision_stays_single() {
        let data: Vec<Complex<f32>> = numbers(24)
            .iter()
            .map(|v| Complex::new(v.re as f32, v.im as f32))
            .collect();
        let plan = FourierPlan::new(Fourier::Forward, DType::C64, 24);
        let out: Vec<Complex<f32>> = typed(&run(&plan, bytemuck::cast_slice(&data), 1, 1, 1.0, 24 * 8));
        for (found, expected) in out.iter().zip(naive(&numbers(24), -1.0)) {
            assert!(
                (f64::from(found.re) - expected.re).abs() < 1e-4 && (f64::from(found.im) - expected.im).abs() < 1e-4
            );
        }
    }
}
