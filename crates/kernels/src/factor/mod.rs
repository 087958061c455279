//! Factorizations of one matrix in memory, by `faer`: what a task does to a matrix that fits it.
//!
//! Matrices lie row by row, in float64 or complex128. All is done in the caller's thread, so the bits depend on the matrix
//! alone.

mod failure;
mod panel;
mod run;
mod scalar;
mod sizes;

pub use failure::Failure;
pub use panel::Panel;
pub use sizes::{Factor, Factorization};
