//! Transforms of real numbers by complex ones of half the length (H. Sorensen et al., "Real-valued fast Fourier transform
//! algorithms", 1987): neighbours are the two parts of a number, and the coefficients are told apart by their symmetry.
//! A transform of odd length is done as a complex one.
//!
//! Operations and their order are those of the crate `realfft`, whose planner would compile the algorithms of processors
//! that these kernels are not for.

use std::sync::Arc;

use bytemuck::Pod;
use outcore_dtype::Complex;
use rustfft::{Fft, FftDirection, FftNum};

/// Single or double precision.
pub trait Planned: FftNum + Pod {
    fn of(value: f64) -> Self;
}

impl Planned for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Planned for f64 {
    fn of(value: f64) -> f64 {
        value
    }
}

/// Plans by the fastest algorithms that every processor has which these kernels are compiled for.
pub fn plan<T: Planned>(direction: FftDirection, length: usize) -> Arc<dyn Fft<T>> {
    #[cfg(all(any(level_v3, level_v4), not(feature = "baseline")))]
    let mut planner = rustfft::FftPlannerAvx::new().expect("a processor with AVX2, as the kernels need");
    #[cfg(not(all(any(level_v3, level_v4), not(feature = "baseline"))))]
    let mut planner = rustfft::FftPlanner::new();
    planner.plan_fft(length, direction)
}

/// A transform between `length` real numbers and their first `length / 2 + 1` coefficients.
pub struct RealTransform<T> {
    length: usize,
    complex: Arc<dyn Fft<T>>,
    /// exp(∓2πi k / length) for the k above 0 and below a quarter of the length; forward ones halved. None for odd lengths.
    twiddles: Vec<Complex<T>>,
}

impl<T: Planned> RealTransform<T>
where
    Complex<T>: Pod,
{
    /// A transform that is not scaled; forward gives the coefficients, and inverse takes them.
    pub fn new(direction: FftDirection, length: usize) -> RealTransform<T> {
        let is_even = length.is_multiple_of(2);
        let angle = -2.0 * std::f64::consts::PI / length as f64;
        let twiddle = |k: usize| {
            let angle = angle * k as f64;
            let twiddle = Complex::new(T::of(angle.cos()), T::of(angle.sin()));
            match direction {
                FftDirection::Forward => twiddle * T::of(0.5),
                FftDirection::Inverse => twiddle.conj(),
            }
        };
        let quarter = if is_even { length.div_ceil(4) } else { 0 };
        RealTransform {
            length,
            complex: plan(direction, if is_even { length / 2 } else { length }),
            twiddles: (1..quarter).map(twiddle).collect(),
        }
    }

    fn is_even(&self) -> bool {
        self.length.is_multiple_of(2)
    }

    /// Complex numbers of workspace.
    pub fn scratch(&self) -> usize {
        match self.is_even() {
            true => self.complex.get_outofplace_scratch_len(),
            false => self.complex.get_inplace_scratch_len() + self.length,
        }
    }

    /// From real numbers, which are overwritten, to coefficients.
    pub fn forward(&self, real: &mut [T], coefficients: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        if !self.is_even() {
            let (buffer, scratch) = scratch.split_at_mut(self.length);
            for (place, value) in buffer.iter_mut().zip(real) {
                *place = Complex::new(*value, T::zero());
            }
            self.complex.process_with_scratch(buffer, scratch);
            coefficients.copy_from_slice(&buffer[..self.length / 2 + 1]);
            coefficients[0].im = T::zero();
            return;
        }
        let half = self.length / 2;
        let pairs: &mut [Complex<T>] = bytemuck::cast_slice_mut(real);
        self.complex
            .process_outofplace_with_scratch(pairs, &mut coefficients[..half], scratch);
        let first = coefficients[0];
        coefficients[0] = Complex::new(first.re + first.im, T::zero());
        coefficients[half] = Complex::new(first.re - first.im, T::zero());
        let one_half = T::of(0.5);
        for (low, twiddle) in (1..).zip(&self.twiddles) {
            let high = half - low;
            let sum = coefficients[low] + coefficients[high];
            let difference = coefficients[low] - coefficients[high];
            let turned = turned(sum, difference, *twiddle);
            let (re, im) = (one_half * sum.re, one_half * difference.im);
            coefficients[low] = Complex::new(re + turned.re, im + turned.im);
            coefficients[high] = Complex::new(re - turned.re, turned.im - im);
        }
        if half.is_multiple_of(2) {
            coefficients[half / 2].im = -coefficients[half / 2].im;
        }
    }

    /// From coefficients, which are overwritten, to real numbers. Imaginary parts of the first coefficient and, for even
    /// lengths, of the last one are 0.
    pub fn inverse(&self, coefficients: &mut [Complex<T>], real: &mut [T], scratch: &mut [Complex<T>]) {
        if !self.is_even() {
            let (buffer, scratch) = scratch.split_at_mut(self.length);
            buffer[..coefficients.len()].copy_from_slice(coefficients);
            for (place, value) in buffer.iter_mut().rev().zip(&coefficients[1..]) {
                *place = value.conj();
            }
            self.complex.process_with_scratch(buffer, scratch);
            for (place, value) in real.iter_mut().zip(buffer) {
                *place = value.re;
            }
            return;
        }
        let half = self.length / 2;
        let (sum, difference) = (
            coefficients[0] + coefficients[half],
            coefficients[0] - coefficients[half],
        );
        coefficients[0] = Complex::new(sum.re - sum.im, difference.re - difference.im);
        for (low, twiddle) in (1..).zip(&self.twiddles) {
            let high = half - low;
            let sum = coefficients[low] + coefficients[high];
            let difference = coefficients[low] - coefficients[high];
            let turned = turned(sum, difference, *twiddle);
            coefficients[low] = Complex::new(sum.re - turned.re, difference.im - turned.im);
            coefficients[high] = Complex::new(sum.re + turned.re, -turned.im - difference.im);
        }
        if half.is_multiple_of(2) {
            let center = coefficients[half / 2];
            coefficients[half / 2] = (center + center).conj();
        }
        let pairs: &mut [Complex<T>] = bytemuck::cast_slice_mut(real);
        self.complex
            .process_outofplace_with_scratch(&mut coefficients[..half], pairs, scratch);
    }
}

/// What sum and difference of two coefficients that mirror each other have in common, turned by the twiddle: of both the
/// same factor, so that four multiplications do.
fn turned<T: Planned>(sum: Complex<T>, difference: Complex<T>, twiddle: Complex<T>) -> Complex<T> {
    Complex::new(
        sum.im * twiddle.re + difference.re * twiddle.im,
        sum.im * twiddle.im - difference.re * twiddle.re,
    )
}
