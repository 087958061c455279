//! What is sorted, and how.

use outcore_kernels::sort::KeyOrder;

use crate::expr::{grid, Expr};
use crate::task::Grid;
use crate::{ops, EngineError};

/// The columns that are sorted, of one length; the first is the key.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub order: KeyOrder,
    pub length: u64,
    /// The key's and the values' grids.
    pub columns: Vec<Grid>,
}

impl Records {
    /// Keys and values as what is sorted.
    pub fn of(keys: &Expr, values: &[Expr], descending: bool) -> Result<Records, EngineError> {
        let order = KeyOrder::new(keys.dtype, descending)
            .ok_or_else(|| EngineError::DType(format!("sort: {} has no order", keys.dtype)))?;
        let all: Vec<&Expr> = std::iter::once(keys).chain(values).collect();
        for column in &all {
            if column.ndim() != 1 || column.shape != keys.shape {
                return Err(EngineError::Shape(format!(
                    "sort: keys of shape {} and a column of shape {} are not two columns of one length",
                    ops::show(&keys.shape),
                    ops::show(&column.shape)
                )));
            }
        }
        let widest = all.iter().map(|column| column.dtype).max_by_key(|dtype| dtype.size());
        let tile = grid::default_tile(&keys.shape, widest.unwrap_or(keys.dtype));
        let columns = all.iter().map(|column| Grid {
            shape: keys.shape.clone(),
            tile: tile.clone(),
            dtype: column.dtype,
        });
        Ok(Records {
            order,
            length: keys.shape[0],
            columns: columns.collect(),
        })
    }

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

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Merge => "merge",
            Method::Distribution => "distribution",
        }
    }

    pub fn named(name: &str) -> Option<Method> {
        [Method::Merge, Method::Distribution]
            .into_iter()
            .find(|method| method.name() == name)
    }
}
