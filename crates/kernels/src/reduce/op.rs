//! Which reductions there are.

use super::{argument, moments};
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
