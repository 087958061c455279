//! Reshape in C order.

use super::{check_size, show};
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;
use outcore_store::Layout;

/// `x` with another shape of as many elements, in C order. Its tiles are runs of whole trailing axes, so that each is
/// one run of the flat index.
///
/// # Errors
/// A shape with another number of elements.
pub fn reshape(x: &Expr, shape: &[u64]) -> Result<Expr, EngineError> {
    check_size("reshape", shape, x.dtype)?;
    if shape.iter().product::<u64>() != x.elements() {
        return Err(EngineError::Shape(format!(
            "reshape: shape {} has {} elements, {} has {}",
            show(&x.shape),
            x.elements(),
            show(shape),
            shape.iter().product::<u64>()
        )));
    }
    if shape == x.shape {
        return Ok(x.clone());
    }
    if let Op::Reshape = x.op {
        return reshape(&x.inputs[0], shape);
    }
    let tile = grid::source_tile(shape, x.dtype, &Layout::Chunks(vec![1; shape.len()]));
    Ok(Node::intern(
        Op::Reshape,
        vec![x.clone()],
        shape.to_vec(),
        x.dtype,
        tile,
    ))
}
