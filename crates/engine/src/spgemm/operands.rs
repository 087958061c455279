//! The product of two sparse matrices: what is multiplied, with what, and how the memory is shared out.

use std::ops::Range;

use outcore_dtype::DType;
use outcore_sparse::{Semiring, TABLE_BYTES};
use outcore_store::SparseShape;

use crate::sparse::SparseMatrix;
use crate::EngineError;

/// Two sparse matrices, and what is wanted of them.
#[derive(Debug)]
pub struct SparseProduct<'a> {
    pub first: &'a SparseMatrix,
    pub second: &'a SparseMatrix,
    /// Places of the result, and whether it is the others that may have entries.
    pub mask: Option<(&'a SparseMatrix, bool)>,
    pub semiring: Semiring,
    /// Of the sums.
    pub dtype: DType,
    /// Of the values that are stored; nothing for the places alone.
    pub stored: Option<DType>,
    /// The tiles of the first matrix that are multiplied: of the result there are only their tile rows.
    pub tiles: Range<usize>,
}

/// One of the matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProductOperand {
    First,
    Second,
    Mask,
}

/// Sums are there three times while they are made: in parts, put together, and in tiles.
pub(super) const COPIES: u64 = 3;

/// Tiles that are read before they are needed, where a sixteenth of the memory holds as many.
const TILES_AHEAD: u64 = 4;

/// How the memory is shared out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub first: u64,
    pub second: u64,
    pub sums: u64,
    /// The lists of tiles of the second matrix.
    pub heads: u64,
    /// Tiles that are read before they are needed.
    pub ahead: u64,
}

impl Shares {
    pub(super) fn of(what: &SparseProduct<'_>, memory: u64, workers: u64) -> Shares {
        let rest = memory.saturating_sub(Shares::beside(what, workers));
        let ahead = (TILES_AHEAD * Shares::largest_tile(what)).min(rest / 16);
        Shares {
            first: rest / 8 - ahead,
            second: rest / 2,
            sums: rest / 8 * 3 - rest / 64,
            heads: rest / 64,
            ahead,
        }
    }

    /// The threads that multiply: as many as have tables in a quarter of the memory, and one at least.
    pub(super) fn workers(memory: u64, threads: usize) -> usize {
        let most = memory / 4 / TABLE_BYTES;
        threads.min(most as usize).max(1)
    }

    /// What is not shared out: tiles that pass by, and the tables of workers.
    fn beside(what: &SparseProduct<'_>, workers: u64) -> u64 {
        2 * Shares::largest_tile(what) + workers * TABLE_BYTES
    }

    fn largest_tile(what: &SparseProduct<'_>) -> u64 {
        let largest = |matrix: &SparseMatrix| (0..matrix.file.tiles()).map(|tile| matrix.file.tile_bytes(tile)).max();
        let files = [Some(what.first), Some(what.second), what.mask.map(|(mask, _)| mask)];
        files.into_iter().flatten().filter_map(largest).max().unwrap_or(0)
    }

    /// The memory of which the share of sums is so much.
    pub(super) fn memory_for(what: &SparseProduct<'_>, sums: u64, workers: u64) -> u64 {
        // 3/8 less 1/64, each of which rounds down.
        let rest = (sums.saturating_add(4)).saturating_mul(64).div_ceil(23);
        rest.saturating_add(Shares::beside(what, workers))
    }
}

impl SparseProduct<'_> {
    /// # Panics
    /// There is no mask.
    pub(super) fn matrix(&self, operand: ProductOperand) -> &SparseMatrix {
        match operand {
            ProductOperand::First => self.first,
            ProductOperand::Second => self.second,
            ProductOperand::Mask => self.mask.expect("tiles of a mask are asked for where there is one").0,
        }
    }

    pub(super) fn no_semiring(&self) -> EngineError {
        let (dtype, name) = (self.dtype, self.semiring.name());
        EngineError::DType(format!("spgemm: {dtype} does not make the semiring {name}"))
    }

    pub(super) fn check(&self) -> Result<SparseShape, EngineError> {
        let (a, b) = (self.first.file.matrix(), self.second.file.matrix());
        if a.columns != b.rows {
            return Err(EngineError::Shape(format!(
                "spgemm: ({}, {}) @ ({}, {}): inner dimensions {} and {} differ",
                a.rows, a.columns, b.rows, b.columns, a.columns, b.rows
            )));
        }
        if let Some((mask, _)) = self.mask {
            let mask = mask.file.matrix();
            if (mask.rows, mask.columns) != (a.rows, b.columns) {
                return Err(EngineError::Shape(format!(
                    "spgemm: a mask of ({}, {}) for a result of ({}, {})",
                    mask.rows, mask.columns, a.rows, b.columns
                )));
            }
            if mask.side != a.side {
                return Err(EngineError::Argument(format!(
                    "spgemm: a mask in tiles of {} rows, a first matrix in tiles of {}",
                    mask.side, a.side
                )));
            }
        }
        Ok(SparseShape {
            rows: a.rows,
            columns: b.columns,
            side: a.side,
            entries: 0,
            dtype: self.stored,
        })
    }
}
