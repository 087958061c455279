//! Matrices that have no factors.

use std::fmt;

/// Why a matrix has no such factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    NotPositiveDefinite,
    Singular,
    NoConvergence,
    /// NaN or an infinity where eigenvalues or singular values were asked for.
    NotFinite,
}

/// The number of a pivot that is not positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPivot(pub usize);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::NotPositiveDefinite => "the matrix is not positive definite",
            Failure::Singular => "the matrix is singular",
            Failure::NoConvergence => "the iteration for its eigenvalues or singular values does not converge",
            Failure::NotFinite => "the matrix has elements that are not finite",
        })
    }
}
