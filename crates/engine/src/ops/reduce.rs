//! Reductions over any axes.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{Finish, Generator, Reduce, Reducer};

use super::{generate, permute, reshape, show};
use crate::expr::{grid, Expr, FinishKey, Node, Op};
use crate::EngineError;

/// Elements of a partial result at most: several are alive at a time, and one may take 24 bytes an element.
const PARTIAL_ELEMENTS: u64 = 1 << 18;

/// Reduces `x` over `axes` (none: every element on its own), dropping them. Input of the right type is the caller's
/// business: `sum` adds in the type it is given.
///
/// # Errors
/// A type the reduction does not take, axes outside the array, or an empty reduction without a neutral element.
pub fn reduce(op: Reduce, finish: Finish, x: &Expr, axes: &[usize]) -> Result<Expr, EngineError> {
    let Some(reducer) = Reducer::new(op, x.dtype) else {
        return Err(EngineError::DType(format!(
            "{}: not defined for {}",
            op.name(),
            x.dtype
        )));
    };
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.dedup();
    if let Some(&axis) = axes.iter().find(|&&axis| axis >= x.ndim()) {
        return Err(EngineError::Index(format!(
            "{}: axis {axis} is outside an array of {} axes",
            op.name(),
            x.ndim()
        )));
    }
    let empty = axes.iter().any(|&axis| x.shape[axis] == 0);
    if empty && matches!(op, Reduce::Min | Reduce::Max | Reduce::ArgMin | Reduce::ArgMax) {
        return Err(EngineError::Shape(format!(
            "{}: no elements to reduce over axes {axes:?} of shape {}",
            op.name(),
            show(&x.shape)
        )));
    }
    let positional = matches!(op, Reduce::ArgMin | Reduce::ArgMax);
    if positional && axes.len() > 1 {
        return reduce_positions(op, x, &axes);
    }
    let kept: Vec<usize> = (0..x.ndim()).filter(|axis| axes.binary_search(axis).is_err()).collect();
    let shape: Vec<u64> = kept.iter().map(|&axis| x.shape[axis]).collect();
    let mut tile: Vec<u64> = kept.iter().map(|&axis| x.tile[axis]).collect();
    if grid::is_swept(x, &axes) {
        grid::halve(&mut tile, PARTIAL_ELEMENTS);
    }
    let dtype = reducer.finish_dtype(finish);
    if empty {
        return generate(Generator::Full(neutral(op, dtype)), shape, dtype);
    }
    Ok(Node::intern(
        Op::Reduce {
            op,
            finish: FinishKey(finish),
            axes,
        },
        vec![x.clone()],
        shape,
        dtype,
        tile,
    ))
}

/// The position of an extreme over several axes is its index in their C order: they become one last axis first.
fn reduce_positions(op: Reduce, x: &Expr, axes: &[usize]) -> Result<Expr, EngineError> {
    let kept: Vec<usize> = (0..x.ndim()).filter(|axis| axes.binary_search(axis).is_err()).collect();
    let mut shape: Vec<u64> = kept.iter().map(|&axis| x.shape[axis]).collect();
    shape.push(axes.iter().map(|&axis| x.shape[axis]).product());
    let last = kept.len();
    let joined = reshape(&permute(x, &[kept.as_slice(), axes].concat())?, &shape)?;
    reduce(op, Finish::Value, &joined, &[last])
}

/// What a reduction of no elements gives (`mean` and `var` have no value: NaN).
fn neutral(op: Reduce, dtype: DType) -> Scalar {
    match op {
        Reduce::Prod => Scalar::Int(1),
        Reduce::All => Scalar::Bool(true),
        Reduce::Moments => Scalar::Float(f64::NAN),
        _ if dtype == DType::Bool => Scalar::Bool(false),
        _ => Scalar::Int(0),
    }
}
