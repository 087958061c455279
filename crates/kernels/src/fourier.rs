//! Discrete Fourier transforms along one axis of a block, by `rustfft`.
//!
//! Forward is Σ x[j] exp(−2πi jk/n), backward has the other sign; what is divided by is the caller's `scale`.

use std::sync::Arc;

use bytemuck::Pod;
use outcore_dtype::{Complex, DType};
use rustfft::{Fft, FftDirection};

use crate::names::names;
use crate::real_fourier::{plan, Planned, RealTransform};
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

names!(Fourier {
    Forward => "forward",
    Backward => "backward",
    FromReal => "from_real",
    ToReal => "to_real",
});

/// Lanes that are transformed between two sweeps over a block whose lanes lie side by side.
const GROUP: usize = 8;

/// A transform of lanes of one length, with its tables.
pub struct FourierPlan {
    plan: TransformPlan,
    lane: usize,
}

enum TransformPlan {
    Single(TypedTransform<f32>),
    Double(TypedTransform<f64>),
}

enum TypedTransform<T> {
    Complex(Arc<dyn Fft<T>>),
    FromReal(RealTransform<T>),
    ToReal(RealTransform<T>),
}

impl<T: Planned> TypedTransform<T>
where
    Complex<T>: Pod,
{
    fn new(kind: Fourier, lane: usize) -> TypedTransform<T> {
        match kind {
            Fourier::Forward => TypedTransform::Complex(plan(FftDirection::Forward, lane)),
            Fourier::Backward => TypedTransform::Complex(plan(FftDirection::Inverse, lane)),
            Fourier::FromReal => TypedTransform::FromReal(RealTransform::new(FftDirection::Forward, lane)),
            Fourier::ToReal => TypedTransform::ToReal(RealTransform::new(FftDirection::Inverse, lane)),
        }
    }

    fn scratch(&self) -> usize {
        match self {
            TypedTransform::Complex(plan) => plan.get_inplace_scratch_len(),
            TypedTransform::FromReal(plan) | TypedTransform::ToReal(plan) => plan.scratch(),
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
            DType::F32 | DType::C64 => TransformPlan::Single(TypedTransform::new(kind, lane)),
            _ => TransformPlan::Double(TypedTransform::new(kind, lane)),
        };
        FourierPlan { plan, lane }
    }

    /// Memory besides a block and its result, for lanes that lie `inner` side by side; with the tables of the plan.
    pub fn workspace_bytes(&self, inner: usize) -> usize {
        match &self.plan {
            TransformPlan::Single(plan) => self.spare_bytes(plan, inner),
            TransformPlan::Double(plan) => self.spare_bytes(plan, inner),
        }
    }

    fn spare_bytes<T: Planned>(&self, plan: &TypedTransform<T>, inner: usize) -> usize
    where
        Complex<T>: Pod,
    {
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
            TransformPlan::Single(plan) => self.run_as(plan, data, block, scale as f32, out, Spare::new(workspace)),
            TransformPlan::Double(plan) => self.run_as(plan, data, block, scale, out, Spare::new(workspace)),
        }
    }

    fn run_as<T: Planned>(
        &self,
        plan: &TypedTransform<T>,
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
        for group in block.groups() {
            let width = group.2;
            match plan {
                TypedTransform::Complex(plan) => {
                    let lanes = &mut complex[..n * width];
                    block.gather(bytemuck::cast_slice(data), group, lanes);
                    plan.process_with_scratch(lanes, scratch);
                    block.scatter(lanes, group, bytemuck::cast_slice_mut(out), |value| value.scale(scale));
                }
                TypedTransform::FromReal(plan) => {
                    let (given, made) = (&mut real[..n * width], &mut complex[..half * width]);
                    block.gather(bytemuck::cast_slice(data), group, given);
                    for (given, made) in given.chunks_exact_mut(n).zip(made.chunks_exact_mut(half)) {
                        plan.forward(given, made, scratch);
                    }
                    block.scatter(made, group, bytemuck::cast_slice_mut(out), |value| value.scale(scale));
                }
                TypedTransform::ToReal(plan) => {
                    let (given, made) = (&mut complex[..half * width], &mut real[..n * width]);
                    block.gather(bytemuck::cast_slice(data), group, given);
                    for (given, made) in given.chunks_exact_mut(half).zip(made.chunks_exact_mut(n)) {
                        given[0].im = T::zero();
                        if n.is_multiple_of(2) {
                            given[half - 1].im = T::zero();
                        }
                        plan.inverse(given, made, scratch);
                    }
                    block.scatter(made, group, bytemuck::cast_slice_mut(out), |value| value * scale);
                }
            }
        }
    }
}
