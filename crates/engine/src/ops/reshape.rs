//! Reshape in C order.

use super::elementwise::with_operands;
use super::{broadcast_to, check_size, show, DEPTH_MAX};
use crate::expr::annotations::as_result_of;
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;
use outcore_store::Layout;

/// `x` with another shape of as many elements, in C order. Its tiles are runs of whole trailing axes, so that each is
/// one run of the flat index; those of a stored array in C order are what that array would have in the shape.
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
        return Ok(as_result_of(&Op::Reshape, x, reshape(&x.inputs[0], shape)?));
    }
    if leads_to_rows(x, DEPTH_MAX) {
        if let Some(sunk) = sink(x, shape)? {
            return Ok(as_result_of(&Op::Reshape, x, sunk));
        }
    }
    let layout = match is_row_major(x) {
        true => Layout::RowMajor,
        false => Layout::Chunks(vec![1; shape.len()]),
    };
    let tile = grid::source_tile(shape, x.dtype, &layout);
    Ok(Node::intern(
        Op::Reshape,
        vec![x.clone()],
        shape.to_vec(),
        x.dtype,
        tile,
    ))
}

/// A stored array in C order, or a run of its rows: another shape of it is another way to look at the file.
pub(crate) fn is_row_major(x: &Expr) -> bool {
    match &x.op {
        Op::Source(key) => key.0.layout() == Layout::RowMajor,
        Op::Slice(slices) => {
            let input = &x.inputs[0];
            let whole = |axis: usize| slices[axis].start == 0 && x.shape[axis] == input.shape[axis];
            matches!(input.op, Op::Source(_))
                && is_row_major(input)
                && slices.iter().all(|slice| slice.step == 1)
                && (1..x.ndim()).all(whole)
        }
        _ => false,
    }
}

/// Whether `x` is computed element by element from such an array of its own shape.
fn leads_to_rows(x: &Expr, depth: usize) -> bool {
    if is_row_major(x) {
        return true;
    }
    // A copy into other tiles is asked for by name.
    let is_copy = matches!(x.op, Op::Cast) && x.inputs[0].dtype == x.dtype;
    let elementwise = matches!(
        x.op,
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_)
    ) && !is_copy;
    let mut same = x.inputs.iter().filter(|input| input.shape == x.shape);
    elementwise && depth > 0 && same.any(|input| leads_to_rows(input, depth - 1))
}

/// The reshape of an element-wise value as that of its operands, which are then read in the shape.
fn sink(x: &Expr, shape: &[u64]) -> Result<Option<Expr>, EngineError> {
    let side = |index: usize| {
        let input = &x.inputs[index];
        match input.elements() {
            1 if x.elements() != 1 => reshape(input, &[]),
            _ => reshape(&broadcast_to(input, &x.shape)?, shape),
        }
    };
    with_operands(x, side)
}
