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
mod kernels;
mod moments;
mod op;
mod simple;

pub use kernels::Finish;
pub use op::Reduce;

use crate::fence::operands::FoldBlock;
use kernels::{AccumulateFn, CombineFn, Kernels, Neutral};
use outcore_dtype::DType;

/// One reduction of one type, its kernels already looked up.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    pub op: Reduce,
    pub input: DType,
    neutral: Neutral,
    accumulate: AccumulateFn,
    combine: CombineFn,
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
                FoldBlock {
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
