//! Factorizations of one matrix in memory, by `faer`: what a task does to a matrix that fits it.
//!
//! Matrices lie row by row, in float64 or complex128; those of Cholesky factors in single precision too. All is done in the caller's thread, so the bits depend on the matrix
//! alone.

/// Calls a function in the element type of a panel of double precision.
macro_rules! in_type {
    ($panel:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $panel.dtype {
            outcore_dtype::DType::F64 => $function::<f64>($($argument),*),
            outcore_dtype::DType::C128 => $function::<outcore_dtype::Complex<f64>>($($argument),*),
            other => unreachable!("{other} is single precision"),
        }
    };
}

/// As `in_type`, also in single precision.
macro_rules! in_any_type {
    ($panel:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $panel.dtype {
            outcore_dtype::DType::F32 => $function::<f32>($($argument),*),
            outcore_dtype::DType::C64 => $function::<outcore_dtype::Complex<f32>>($($argument),*),
            _ => in_type!($panel, $function($($argument),*)),
        }
    };
}

mod candidates;
mod elimination;
mod failure;
mod front;
mod hermitian;
mod inverse;
mod low_rank;
mod panel;
mod pivot_block;
mod pivot_search;
mod pivoted_front;
mod pivoted_vectors;
mod pivoting;
mod reflectors;
mod run;
mod scalar;
mod sizes;
mod triangle;
mod vectors;

pub use candidates::{CandidateSides, PivotForm, PivotRecord, PivotRule, PivotedKind};
pub use failure::{BadPivot, Failure};
pub use hermitian::{BandShape, BlockChase, Hermitian, MergeSizes, SweepRecord, SweepSpan};
pub use inverse::SelectedInverse;
pub use low_rank::TileElements;
pub use panel::Panel;
pub use pivot_block::{NoPivot, PivotBlock, TileLayout};
pub use pivoted_vectors::{PivotColumns, PivotTriangle};
pub use pivoting::{Pivoting, Transposition};
pub use reflectors::Reflectors;
pub use sizes::{Factor, Factorization};
pub use triangle::Triangle;
pub use vectors::RightHandSides;
