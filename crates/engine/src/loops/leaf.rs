//! Nodes that stand for elements and numbers in the values of a loop program.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Io, Layout, ReadCost, Region, Source, StoreError};

use crate::expr::Expr;
use crate::{ops, EngineError};

/// A node of one element, for the leaf of a value; equal numbers and types are one node.
///
/// # Errors
/// None that a caller can cause.
pub fn loop_leaf(number: u32, dtype: DType) -> Result<Expr, EngineError> {
    let identity = format!("loops: leaf {number} of {dtype}");
    ops::source(Arc::new(LeafSource { dtype, identity }))
}

/// An array that nobody reads: values are computed over elements of arrays, and leaves are theirs.
#[derive(Debug)]
struct LeafSource {
    dtype: DType,
    identity: String,
}

impl Source for LeafSource {
    fn name(&self) -> String {
        self.identity.clone()
    }
    fn shape(&self) -> &[u64] {
        &[1]
    }
    fn dtype(&self) -> DType {
        self.dtype
    }
    fn layout(&self) -> Layout {
        Layout::RowMajor
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn cost(&self, _region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        Err(self.refusal())
    }
    fn read(&self, _region: &Region, _frame: &mut [u8], _io: &Io) -> Result<usize, StoreError> {
        Err(self.refusal())
    }
}

impl LeafSource {
    fn refusal(&self) -> StoreError {
        StoreError::Invalid(format!("{}: stands for elements of an array", self.identity))
    }
}
