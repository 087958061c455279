//! Sparse matrices on disk: products of which only what is needed of the dense matrix is in memory (FlashX, Zheng 2017,
//! chapter 4).
//!
//! A stored sparse matrix is a node like any stored array: tiles of bytes, of different sizes, each some tile rows. Its
//! products are tile algorithms over them, so forecast, placement, limit and faults are those of every program.

mod assemble;
mod bands;
mod entries;
mod gustavson;
mod multiply;
mod pieces;
mod product;
mod times;
mod transposed;

use std::path::Path;
use std::sync::Arc;

use outcore_sparse::{check_tile_row, Malformed};
use outcore_store::{open_sparse, Io, SparseFile, SparseShape, TileRowRecord};

use crate::expr::Expr;
use crate::{ops, EngineError};

pub use assemble::{Assembler, Duplicates, Places};
pub use entries::Entries;
pub use gustavson::{multiply_sparse, Means, SparseProduct};
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
    let file = open_sparse(path, check, io)?;
    let tiles = ops::source(file.clone())?;
    Ok(Matrix { file, tiles })
}

/// What is wrong with a tile row, if anything: what is read has passed this, so that products need not look again.
fn check(bytes: &[u8], record: &TileRowRecord, shape: &SparseShape) -> Result<(), &'static str> {
    let (side, item) = (u64::from(shape.side), shape.dtype.map_or(0, |dtype| dtype.size()));
    let rows = side.min(shape.rows.saturating_sub(record.number.saturating_mul(side)));
    match check_tile_row(bytes, item, side, rows, shape.columns) {
        Ok(entries) if entries == record.entries => Ok(()),
        Ok(_) => Err("a tile row has other entries than the directory says"),
        Err(Malformed(what)) => Err(what),
    }
}
