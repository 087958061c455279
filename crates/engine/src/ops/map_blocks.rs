//! A function of the user over tiles.

use std::sync::Arc;

use outcore_dtype::DType;

use super::{broadcast_shapes, broadcast_to, check_size};
use crate::expr::{grid, BlockFunction, Expr, FunctionKey, Node, Op};
use crate::EngineError;

/// `function` applied tile by tile to the inputs, broadcast to one shape; the result has that shape and `dtype`.
///
/// # Errors
/// No inputs; shapes that do not broadcast.
pub fn map_blocks(function: Arc<dyn BlockFunction>, inputs: &[Expr], dtype: DType) -> Result<Expr, EngineError> {
    if inputs.is_empty() {
        return Err(EngineError::Shape("map_blocks: no arrays given".into()));
    }
    let shapes: Vec<&[u64]> = inputs.iter().map(|input| input.shape.as_slice()).collect();
    let shape = broadcast_shapes("map_blocks", &shapes)?;
    check_size("map_blocks", &shape, dtype)?;
    let inputs = inputs
        .iter()
        .map(|input| broadcast_to(input, &shape))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tile = inputs[0].tile.clone();
    for input in &inputs[1..] {
        for (tile, &finer) in tile.iter_mut().zip(&input.tile) {
            *tile = (*tile).min(finer);
        }
    }
    let tile = grid::settle(&shape, dtype, tile);
    Ok(Node::intern(
        Op::MapBlocks(FunctionKey::new(function)),
        inputs,
        shape,
        dtype,
        tile,
    ))
}
