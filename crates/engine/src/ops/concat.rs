//! Joining arrays along an axis.

use outcore_dtype::DType;

use super::{astype, check_size, show};
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;

/// The arrays one after another along `axis`.
///
/// # Errors
/// No arrays; arrays whose other axes differ.
pub fn concat(arrays: &[Expr], axis: usize) -> Result<Expr, EngineError> {
    let Some(first) = arrays.first() else {
        return Err(EngineError::Shape("concat: no arrays given".into()));
    };
    if axis >= first.ndim() {
        return Err(EngineError::Index(format!(
            "concat: axis {axis} is outside an array of {} axes",
            first.ndim()
        )));
    }
    let mut dtype = first.dtype;
    let mut shape = first.shape.clone();
    let mut tile = first.tile.clone();
    for other in &arrays[1..] {
        let agrees =
            other.ndim() == first.ndim() && (0..first.ndim()).all(|a| a == axis || other.shape[a] == first.shape[a]);
        if !agrees {
            return Err(EngineError::Shape(format!(
                "concat: shapes {} and {} differ outside axis {axis}",
                show(&first.shape),
                show(&other.shape)
            )));
        }
        dtype = DType::promote(dtype, other.dtype);
        shape[axis] = shape[axis].saturating_add(other.shape[axis]);
        for (tile, &finer) in tile.iter_mut().zip(&other.tile) {
            *tile = (*tile).min(finer);
        }
    }
    check_size("concat", &shape, dtype)?;
    if arrays.len() == 1 {
        return Ok(first.clone());
    }
    // Many short arrays still make sensible tiles along the joined axis.
    tile[axis] = tile[axis].max(grid::default_tile(&shape, dtype)[axis]);
    let tile = grid::sensible_tile(&shape, dtype, tile);
    let inputs = arrays
        .iter()
        .map(|array| astype(array, dtype))
        .collect::<Result<_, _>>()?;
    Ok(Node::intern(Op::Concat(axis), inputs, shape, dtype, tile))
}
