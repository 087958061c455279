//! The matrices to match, and what all of this folder knows.

use super::logarithm::log2;

/// No row, or no column.
pub(super) const NONE: u32 = u32::MAX;
/// Steps of work for an entry whose row may lie anywhere in memory.
pub(super) const STEPS_PER_VISIT: usize = 8;

/// Sparse matrix by columns: the entries of column j are `indices[starts[j]..starts[j+1]]`, rows in any order and none
/// twice, with their sizes.
///
/// The signs of sizes do not count. Zeros and NaN are no entries, and infinite sizes stand for the largest number.
#[derive(Clone, Copy)]
pub struct SparseColumns<'a> {
    pub rows: u32,
    pub starts: &'a [u64],
    pub indices: &'a [u32],
    pub sizes: &'a [f64],
}

impl<'a> SparseColumns<'a> {
    pub(super) fn columns(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(super) fn range(&self, column: usize) -> std::ops::Range<usize> {
        self.starts[column] as usize..self.starts[column + 1] as usize
    }

    pub(super) fn rows_of(&self, column: usize) -> &'a [u32] {
        &self.indices[self.range(column)]
    }

    /// Logarithm of the size of a column's entry, None of zeros.
    pub(super) fn logarithm(&self, column: usize, entry: usize) -> Option<f64> {
        log2(self.sizes[self.range(column)][entry])
    }

    /// Rows of a column, and the logarithms of the sizes of its entries.
    pub(super) fn logarithms_of(&self, column: usize) -> impl Iterator<Item = (usize, f64)> + 'a {
        let sizes = &self.sizes[self.range(column)];
        let entries = self.rows_of(column).iter().zip(sizes);
        entries.filter_map(|(&row, &size)| Some((row as usize, log2(size)?)))
    }
}
