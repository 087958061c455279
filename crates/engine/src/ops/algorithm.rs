//! Operators that make tiles of tiles: the results of an algorithm as nodes.

use std::sync::Arc;

use super::{check_size, copy_tiled};
use crate::expr::{AlgorithmKey, Expr, Node, Op};
use crate::task::Algorithm;
use crate::EngineError;
use outcore_store::Layout;

/// The results of `algorithm` over `inputs`, one node each, the sets it keeps for itself among them.
///
/// # Errors
/// A result too large to address.
pub fn algorithm(algorithm: Arc<dyn Algorithm>, inputs: &[Expr]) -> Result<Vec<Expr>, EngineError> {
    let inputs: Vec<Expr> = inputs.iter().map(in_tiles).collect();
    let key = AlgorithmKey(algorithm);
    let results = key.0.results().iter().enumerate();
    results
        .map(|(index, grid)| {
            check_size(&key.0.name(), &grid.shape, grid.dtype)?;
            let op = Op::Algorithm(key.clone(), index);
            let (shape, tile) = (grid.shape.clone(), grid.tile.clone());
            Ok(Node::intern(op, inputs.clone(), shape, grid.dtype, tile))
        })
        .collect()
}

fn in_tiles_of_memory(reshaped: &Expr) -> Expr {
    match &reshaped.inputs[0].op {
        Op::Source(key) if key.0.layout() == Layout::Memory => copy_tiled(reshaped, reshaped.tile.clone()),
        _ => reshaped.clone(),
    }
}

/// What has no tiles, in memory or made up, is copied into tiles.
fn in_tiles(input: &Expr) -> Expr {
    match &input.op {
        Op::Source(key) if key.0.layout() != Layout::Memory => input.clone(),
        Op::Source(_) | Op::Generate(_) => copy_tiled(input, input.tile.clone()),
        // Planning makes it what is in memory, in that shape.
        Op::Reshape if matches!(input.inputs[0].op, Op::Source(_)) => in_tiles_of_memory(input),
        _ => input.clone(),
    }
}
