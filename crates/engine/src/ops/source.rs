//! Stored arrays.

use std::sync::Arc;

use outcore_store::Source;

use super::check_size;
use crate::expr::{grid, Expr, Node, Op, SourceKey};
use crate::EngineError;

/// The node of a stored array. Nothing is read.
///
/// # Errors
/// A shape too large to address.
pub fn source(source: Arc<dyn Source>) -> Result<Expr, EngineError> {
    let (shape, dtype) = (source.shape().to_vec(), source.dtype());
    check_size(&source.name(), &shape, dtype)?;
    let tile = match source.listed() {
        Some(_) => vec![1, shape[1].max(1)],
        None => grid::source_tile(&shape, dtype, &source.layout()),
    };
    Ok(Node::intern(Op::Source(SourceKey(source)), vec![], shape, dtype, tile))
}
