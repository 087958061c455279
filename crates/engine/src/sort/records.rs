//! What is sorted, and how.

use outcore_kernels::sort::KeyOrder;

use crate::task::Grid;

/// What is sorted: columns of one length, the first of which is the key.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub order: KeyOrder,
    pub length: u64,
    /// The key's and the values' grids.
    pub columns: Vec<Grid>,
}

impl Records {
    pub fn items(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().map(|column| column.dtype.size())
    }

    /// Bytes of one element of all columns.
    pub fn record_bytes(&self) -> u64 {
        self.items().sum::<usize>() as u64
    }
}

/// How to sort what memory does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Sorted runs are merged.
    Merge,
    /// Buckets by a sample are sorted.
    Distribution,
}
