//! Reductions: blocks are folded into accumulators, accumulators combine, and a finish turns them into results.
//!
//! An accumulator is what a plan may keep, spill and combine in its fixed tree:
//!
//! | operation | accumulator |
//! | --- | --- |
//! | `Sum`, `Prod` | the input type (`f32` for `float16`) |
//! | `Min`, `Max` | the input type, starting from the neutral element |
//! | `Any`, `All` | one byte |
//! | `CountNonzero` | `i64` |
//! | `ArgMin`, `ArgMax` | position `i64` and an order-preserving key `u64` (two for complex) |
//! | `Moments` | count, sum and its rest (one or two each), sum of squared deviations, all `f64` |
//!
//! **Invariant.** The order of additions is a function of `(outer, length, inner)`, never of the processor.

mod argument;
mod fold;
mod moments;
mod simple;
#[cfg(test)]
mod tests;

use outcore_dtype::{DType, Kind};

/// What is reduced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    Sum,
    Prod,
    Min,
    Max,
    Any,
    All,
    CountNonzero,
    ArgMin,
    ArgMax,
    /// Count, mean and sum of squared deviations: what mean, variance and standard deviation are finished from.
    Moments,
}

impl Reduce {
    /// Every reduction, in the order of the enum.
    pub const ALL: &'static [Reduce] = &[
        Reduce::Sum,
        Reduce::Prod,
        Reduce::Min,
        Reduce::Max,
        Reduce::Any,
        Reduce::All,
        Reduce::CountNonzero,
        Reduce::ArgMin,
        Reduce::ArgMax,
        Reduce::Moments,
    ];

    /// The name NumPy gives the function (`moments` is our own).
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Prod => "prod",
            Reduce::Min => "min",
            Reduce::Max => "max",
            Reduce::Any => "any",
            Reduce::All => "all",
            Reduce::CountNonzero => "count_nonzero",
            Reduce::ArgMin => "argmin",
            Reduce::ArgMax => "argmax",
            Reduce::Moments => "moments",
        }
    }

    /// Bytes of accumulator per output element.
    pub fn accumulator_size(self, input: DType) -> usize {
        match self {
            Reduce::Sum | Reduce::Prod if input == DType::F16 => 4,
            Reduce::Sum | Reduce::Prod | Reduce::Min | Reduce::Max => input.size(),
            Reduce::Any | Reduce::All => 1,
            Reduce::CountNonzero => 8,
            Reduce::ArgMin | Reduce::ArgMax => 8 * argument::words(input),
            Reduce::Moments => 8 * moments::words(input),
        }
    }

    /// Whether `input` can be reduced without a cast; sums of booleans and moments of integers cannot.
    pub fn supports(self, input: DType) -> bool {
        match self {
            Reduce::Sum | Reduce::Prod => input.kind() != Kind::Bool,
            Reduce::Moments => input.is_inexact(),
            _ => true,
        }
    }
}

/// How accumulators become results. All but `Value` belong to `Moments`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finish {
    Value,
    /// `sum / n`.
    Mean,
    /// `M2 / (n - correction)`, as NumPy's `ddof`.
    Variance {
        correction: f64,
    },
    /// The square root of the variance.
    StandardDeviation {
        correction: f64,
    },
}

/// A C-contiguous `[outer, length, inner]` block, `outer` by its size; the middle axis is reduced.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub data: &'a [u8],
    pub length: usize,
    pub inner: usize,
    /// Positions along the reduced axis, for the `Arg*` reductions: `index_base + i * index_step`.
    pub index_base: i64,
    pub index_step: i64,
}

type Accumulate = fn(Block<'_>, &mut [u8]);
/// The neutral element's bytes, as long as the largest accumulator.
type Neutral = [u8; 48];
type Combine = fn(&[u8], &mut [u8]);

/// One reduction of one type, its kernels already looked up.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    pub op: Reduce,
    pub input: DType,
    neutral: Neutral,
    accumulate: Accumulate,
    combine: Combine,
}

/// What a family of reductions hands the reducer.
struct Kernels {
    neutral: Neutral,
    accumulate: Accumulate,
    combine: Combine,
}

fn neutral<T: bytemuck::Pod>(value: T) -> Neutral {
    let mut bytes = [0; size_of::<Neutral>()];
    let source = bytemuck::bytes_of(&value);
    bytes[..source.len()].copy_from_slice(source);
    bytes
}

impl Reducer {
    /// `None` where [`Reduce::supports`] says so.
    pub fn new(op: Reduce, input: DType) -> Option<Reducer> {
        if !op.supports(input) {
            return None;
        }
        let kernels = match op {
            Reduce::ArgMin => argument::smallest(input),
            Reduce::ArgMax => argument::largest(input),
            Reduce::Moments => moments::kernels(input)?,
            _ => simple::kernels(op, input)?,
        };
        let Kernels {
            neutral,
            accumulate,
            combine,
        } = kernels;
        Some(Reducer {
            op,
            input,
            neutral,
            accumulate,
            combine,
        })
    }

    /// The type of [`Finish::Value`]; for `Moments` that of the mean.
    pub fn output_dtype(&self) -> DType {
        match self.op {
            Reduce::Any | Reduce::All => DType::Bool,
            Reduce::CountNonzero | Reduce::ArgMin | Reduce::ArgMax => DType::I64,
            _ => self.input,
        }
    }

    /// The type that `finish` writes.
    pub fn finish_dtype(&self, finish: Finish) -> DType {
        match finish {
            Finish::Value | Finish::Mean => self.output_dtype(),
            Finish::Variance { .. } | Finish::StandardDeviation { .. } => self.input.real(),
        }
    }

    fn size(&self) -> usize {
        self.op.accumulator_size(self.input)
    }

    /// Sets every accumulator to the neutral element.
    pub fn init(&self, accumulators: &mut [u8]) {
        for accumulator in accumulators.chunks_exact_mut(self.size()) {
            accumulator.copy_from_slice(&self.neutral[..self.size()]);
        }
    }

    /// Adds the middle axis of the C-contiguous `[outer, length, inner]` block `x` to `accumulators[outer, inner]`.
    ///
    /// Position `i` of the block is position `index_base + i * index_step` of the reduced axis; only `Arg*` look at it.
    #[allow(clippy::too_many_arguments)] // the shape and the positions are the contract with the engine
    pub fn accumulate(
        &self,
        x: &[u8],
        outer: usize,
        length: usize,
        inner: usize,
        index_base: i64,
        index_step: i64,
        accumulators: &mut [u8],
    ) {
        let elements = outer * length * inner;
        assert_eq!(
            x.len(),
            elements * self.input.size(),
            "{}: {outer}x{length}x{inner} block",
            self.op.name()
        );
        assert_eq!(
            accumulators.len(),
            outer * inner * self.size(),
            "{}: accumulators",
            self.op.name()
        );
        if elements > 0 {
            (self.accumulate)(
                Block {
                    data: x,
                    length,
                    inner,
                    index_base,
                    index_step,
                },
                accumulators,
            );
        }
    }

    /// Folds `right` into `left`, which precedes it along the reduced axis. Ties of `Arg*` take the smaller position.
    pub fn combine(&self, left: &mut [u8], right: &[u8]) {
        assert_eq!(
            left.len(),
            right.len(),
            "{}: accumulators differ in length",
            self.op.name()
        );
        (self.combine)(right, left);
    }

    /// Writes the results in [`Reducer::finish_dtype`].
    pub fn finish(&self, accumulators: &[u8], finish: Finish, output: &mut [u8]) {
        match (self.op, finish) {
            (Reduce::Moments, _) => moments::finish(self.input, accumulators, finish, output),
            (_, Finish::Value) => match self.op {
                Reduce::ArgMin | Reduce::ArgMax => argument::finish(self.input, accumulators, output),
                Reduce::Sum | Reduce::Prod if self.input == DType::F16 => {
                    crate::cast_kernel(DType::F32, DType::F16)(accumulators, output)
                }
                _ => output.copy_from_slice(accumulators),
            },
            _ => panic!("{} finishes as a value, not as {finish:?}", self.op.name()),
        }
    }
}
