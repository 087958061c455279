//! The outline of a sparse matrix that is to be written: which tile rows it has, and how large they are at most.

use std::sync::Arc;

use outcore_dtype::DType;

use super::header::{SparseShape, RECORD_BYTES};
use super::pending::{pending_bytes, stored_bytes};
use crate::base::page::PAGE;

/// A tile row of an output, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBound {
    pub number: u64,
    pub bytes: u64,
    pub entries: u64,
}

/// A sparse matrix that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseOutput {
    /// Its entries are counted as they come.
    pub shape: SparseShape,
    /// The tile rows of each tile.
    pub rows: Arc<[Vec<RowBound>]>,
    /// Bytes that each tile is handed over in: see `pending.rs`.
    pub lengths: Arc<[u64]>,
    /// Whether the bounds are what is written.
    pub is_exact: bool,
}

impl SparseOutput {
    /// The output of such tile rows; its values are of a type, if it has any.
    pub fn new(of: &SparseShape, dtype: Option<DType>, rows: Vec<Vec<RowBound>>, is_exact: bool) -> SparseOutput {
        let length = |rows: &Vec<RowBound>| pending_bytes(rows.iter().map(|row| row.bytes));
        SparseOutput {
            shape: SparseShape {
                entries: 0,
                dtype,
                ..of.clone()
            },
            lengths: rows.iter().map(length).collect(),
            rows: rows.into(),
            is_exact,
        }
    }

    /// Bytes that opening the file reads, at most.
    pub fn opening_bytes(&self) -> u64 {
        let rows: u64 = self.rows.iter().map(|rows| rows.len() as u64).sum();
        // The directory begins and ends anywhere.
        3 * PAGE as u64 + rows * RECORD_BYTES as u64
    }

    /// Bytes that a tile takes in the file, at most.
    pub(super) fn stored(&self, tile: usize) -> u64 {
        let rows = self.rows.get(tile).map_or(&[][..], |rows| rows);
        stored_bytes(rows.iter().map(|row| row.bytes))
    }
}
