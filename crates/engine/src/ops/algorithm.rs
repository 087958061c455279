//! Operators that make tiles of tiles: the results of an algorithm as nodes.

use std::sync::Arc;

use super::check_size;
use crate::expr::{AlgorithmKey, Expr, Node};
use crate::task::Algorithm;
use crate::EngineError;

/// The results of `algorithm` over `inputs`, one node each, the sets it keeps for itself among them.
///
/// # Errors
/// A result too large to address.
pub fn algorithm(algorithm: Arc<dyn Algorithm>, inputs: &[Expr]) -> Result<Vec<Expr>, EngineError> {
    let key = AlgorithmKey(algorithm);
    let results = key.0.results().iter().enumerate();
    results
        .map(|(index, grid)| {
            check_size(&key.0.name(), &grid.shape, grid.dtype)?;
            Ok(Node::result_of(&key, index, inputs))
        })
        .collect()
}
