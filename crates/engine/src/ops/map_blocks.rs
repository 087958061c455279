//! A function of the user over tiles.

use std::sync::Arc;

use outcore_dtype::DType;

use super::{broadcast_shapes, broadcast_to, check_size, show};
use crate::expr::{grid, BlockFunction, Expr, FunctionKey, Node, Op};
use crate::EngineError;

/// A function over tiles whose operands are checked, and the tile it will be given, so that it can be asked for its
/// workspace before it becomes a node.
pub struct BlockCall {
    pub tile: Vec<u64>,
    inputs: Vec<Expr>,
    shape: Vec<u64>,
    dtype: DType,
}

/// The inputs of a function over tiles, broadcast to one shape; the result has that shape and `dtype`. Tiles reach
/// along the whole of the axes in `whole`, however long they are.
///
/// # Errors
/// No inputs; shapes that do not broadcast; an axis in `whole` that there is not.
pub fn map_blocks(inputs: &[Expr], dtype: DType, whole: &[usize]) -> Result<BlockCall, EngineError> {
    if inputs.is_empty() {
        return Err(EngineError::Shape("map_blocks: no arrays given".into()));
    }
    let shapes: Vec<&[u64]> = inputs.iter().map(|input| input.shape.as_slice()).collect();
    let shape = broadcast_shapes("map_blocks", &shapes)?;
    check_size("map_blocks", &shape, dtype)?;
    if let Some(axis) = whole.iter().find(|&&axis| axis >= shape.len()) {
        let reason = format!(
            "map_blocks: whole axis {axis} is out of bounds for shape {}",
            show(&shape)
        );
        return Err(EngineError::Shape(reason));
    }
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
    // The widest element decides how long a tile may be, for the inputs are held beside the result.
    let widest = inputs.iter().map(|input| input.dtype).chain([dtype]);
    let widest = widest.max_by_key(|dtype| dtype.size()).unwrap_or(dtype);
    let tile = grid::sensible_tile(&shape, dtype, tile);
    // A call has the whole of a tile, of each input and of the result at once.
    let tile = if whole.is_empty() {
        grid::halved(widest, tile)
    } else {
        grid::uncut(&shape, widest, tile, whole)
    };
    Ok(BlockCall {
        tile,
        inputs,
        shape,
        dtype,
    })
}

impl BlockCall {
    /// Bytes of one tile of the widest type, for each input and the result.
    pub fn bytes(&self) -> u64 {
        let items = self
            .inputs
            .iter()
            .map(|input| input.dtype.size())
            .chain([self.dtype.size()]);
        let widest = items.max().unwrap_or(1) as u64;
        let tile = self
            .tile
            .iter()
            .fold(widest, |bytes, &length| bytes.saturating_mul(length));
        tile.saturating_mul(self.inputs.len() as u64 + 1)
    }

    /// The node that calls `function` on each tile.
    pub fn node(self, function: Arc<dyn BlockFunction>) -> Expr {
        let op = Op::MapBlocks(FunctionKey::new(function));
        Node::intern(op, self.inputs, self.shape, self.dtype, self.tile)
    }
}
