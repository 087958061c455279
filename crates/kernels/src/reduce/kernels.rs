//! What the families of reductions hand the reducer.

use crate::fence::operands::FoldBlock;

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

pub type AccumulateFn = fn(FoldBlock<'_>, &mut [u8]);
/// The neutral element's bytes, as long as the largest accumulator.
pub type Neutral = [u8; 48];
pub type CombineFn = fn(&[u8], &mut [u8]);

/// What a family of reductions hands the reducer.
pub struct Kernels {
    pub neutral: Neutral,
    pub accumulate: AccumulateFn,
    pub combine: CombineFn,
}

pub fn neutral<T: bytemuck::Pod>(value: T) -> Neutral {
    let mut bytes = [0; size_of::<Neutral>()];
    let source = bytemuck::bytes_of(&value);
    bytes[..source.len()].copy_from_slice(source);
    bytes
}
