//! Sparse matrices on disk: products of which only what is needed of the dense matrix is in memory (FlashX, Zheng 2017,
//! chapter 4).
//!
//! A stored sparse matrix is a node like any stored array: tiles of bytes, of different sizes, each some tile rows. Its
//! products are tile algorithms over them, so forecast, placement, limit and faults are those of every program.

mod assemble;
mod bands;
mod entries;
mod multiply;
mod pieces;
mod product;
mod times;
mod transposed;

use std::path::Path;
use std::sync::Arc;

use outcore_store::{open_sparse, Io, SparseFile};

use crate::expr::Expr;
use crate::{ops, EngineError};

pub use assemble::{Assembler, Duplicates, Places};
pub use entries::Entries;
pub use outcore_sparse::Semiring;
pub use product::product;

/// A stored sparse matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub file: Arc<SparseFile>,
    /// Its tiles.
    pub tiles: Expr,
}

/// Opens a sparse matrix. Its directory is read, no entry.
///
/// # Errors
/// As [`open_sparse`].
pub fn open(path: &Path, io: &Io) -> Result<Matrix, EngineError> {
    let file = open_sparse(path, io)?;
    let tiles = ops::source(file.clone())?;
    Ok(Matrix { file, tiles })
}
