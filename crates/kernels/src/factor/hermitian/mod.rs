//! Tiles of a Hermitian matrix on its way to eigenvalues and back to eigenvectors: dense to band, band to narrow band, narrow band
//! to tridiagonal, divide and conquer, and products with the reflectors of each step.
//!
//! Bischof, Lang and Sun (2000), "A framework for symmetric band reduction", section 3; Gu and Eisenstat (1995), "A
//! divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem". Reflectors of so many columns together are
//! I − V T⁻¹ Vᴴ with a triangle T, which has Vᴴ V above its diagonal; V has its ones and zeros. Tiles lie column by column, in
//! float64 or complex128. All is done in the caller's thread, so the bits depend on the tiles alone.

mod band;
mod blocks;
mod merge;
mod panels;
mod roots;
mod sweeps;
mod turns;

pub use band::BandShape;
pub use blocks::BlockChase;
pub use merge::MergeSizes;
pub use sweeps::{SweepRecord, SweepSpan};

use outcore_dtype::DType;

use super::panel::Panel;

/// Work on tiles of a Hermitian matrix with elements of a type.
#[derive(Clone, Copy, Debug)]
pub struct Hermitian {
    dtype: DType,
}

impl Hermitian {
    pub fn new(panel: Panel) -> Hermitian {
        Hermitian { dtype: panel.dtype }
    }
}
