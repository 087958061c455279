//! Eigenvalues and eigenvectors of Hermitian matrices larger than memory, by tiles: dense to band, band to narrow band, narrow band to
//! tridiagonal, divide and conquer, and the vectors back through all of these.
//!
//! The bytes that move are those of the first step, n³ ÷ (6 b) elements each way for a band of b = 512: each tile of the rest is read
//! and written once for each column of tiles, with the update that the last made and the product that the next needs (Bischof, Lang
//! and Sun (2000), "A framework for symmetric band reduction"). A step is a work; all is known before it begins, as nothing depends
//! on which eigenvalues coincide. Start with `cut.rs`.

mod band;
mod chases;
mod cut;
mod divide;
mod products;
#[cfg(test)]
mod tests;
mod vectors;

use std::ops::Range;
use std::sync::Arc;

use outcore_kernels::Hermitian;

use self::band::ToBand;
use self::chases::{Chases, NarrowSweeps};
use self::cut::HermitianCut;
use self::divide::Divide;
use self::products::HalfVectors;
use self::vectors::EigenVectors;
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::solve::dense::DenseRows;
use crate::solve::factorize::panel_of;
use crate::task::{Algorithm, Grid, Recipe, Work};
use crate::EngineError;

/// Eigenvalues of a Hermitian matrix in ascending order and, of a range of them, orthonormal eigenvectors as columns. The lower
/// triangle is looked at.
///
/// # Errors
/// A matrix that is not square, or so small that it is one tile; another type than float64 and complex128; no such eigenvectors.
pub fn hermitian(x: &Expr, columns: Option<Range<u64>>) -> Result<Vec<Expr>, EngineError> {
    eigen(x, SIZES, columns)
}

/// Half widths of both bands.
const SIZES: [usize; 2] = [512, 64];

fn eigen(x: &Expr, sizes: [usize; 2], columns: Option<Range<u64>>) -> Result<Vec<Expr>, EngineError> {
    if x.ndim() != 2 || x.shape[0] != x.shape[1] {
        return Err(EngineError::Shape(format!(
            "eigh: a matrix of shape {}",
            show(&x.shape)
        )));
    }
    let panel = panel_of("eigh", x.dtype)?;
    let cut = HermitianCut::new(x.shape[0], x.dtype, sizes, columns).map_err(EngineError::Argument)?;
    let eigen = Eigen {
        grids: cut.grids(),
        cut: Arc::new(cut),
        kernels: Hermitian::new(panel),
        matrix: DenseRows::new(x.grid()),
    };
    let count = eigen.cut.results();
    let mut results = ops::algorithm(Arc::new(eigen), std::slice::from_ref(x))?;
    results.truncate(count);
    Ok(results)
}

#[derive(Debug)]
struct Eigen {
    cut: Arc<HermitianCut>,
    kernels: Hermitian,
    matrix: DenseRows,
    grids: Vec<Grid>,
}

impl Algorithm for Eigen {
    fn name(&self) -> String {
        "hermitian eigenvalues".into()
    }
    fn key(&self) -> Vec<u8> {
        let (columns, [band, narrow]) = (self.cut.columns(), self.cut.sizes().map(|size| size as u64));
        let words = [columns.start, columns.end, band, narrow];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        self.cut.listed(result)
    }
    fn recipe(&self) -> Option<Recipe> {
        let columns = self.cut.columns();
        let recipe = Recipe::new("hermitian eigenvalues");
        (self.cut.sizes() == SIZES).then(|| recipe.flag(!columns.is_empty()).word(columns.start).word(columns.end))
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let (cut, kernels) = (&self.cut, self.kernels);
        let mut works: Vec<Arc<dyn Work>> = vec![
            Arc::new(ToBand::new(cut.clone(), kernels, self.matrix.clone())),
            Arc::new(Chases::new(cut.clone(), kernels)),
            Arc::new(NarrowSweeps::new(cut.clone(), kernels)),
            Arc::new(Divide::new(cut.clone())),
        ];
        if !cut.columns().is_empty() {
            works.push(Arc::new(HalfVectors::new(cut.clone())));
            works.push(Arc::new(EigenVectors::new(cut.clone(), kernels)));
        }
        works
    }
}
