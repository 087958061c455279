//! Element-wise operators: broadcasting, promotion, and the finest tile of the operands.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{Binary, Generator, Unary};

use super::{broadcast_shapes, check_size};
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;

/// `op(x)`. Integers are cast first where the function is a floating one.
///
/// # Errors
/// A type the function does not take.
pub fn unary(op: Unary, x: &Expr) -> Result<Expr, EngineError> {
    let Some(compute) = op.compute_dtype(x.dtype) else {
        return Err(EngineError::DType(format!(
            "{}: not defined for {}",
            op.name(),
            x.dtype
        )));
    };
    let x = astype(x, compute)?;
    let dtype = op.output_dtype(compute);
    Ok(Node::intern(
        Op::Unary(op),
        vec![x.clone()],
        x.shape.clone(),
        dtype,
        x.tile.clone(),
    ))
}

/// The one value of all elements, where the expression says it.
fn known_constant(x: &Expr) -> Option<Scalar> {
    match &x.op {
        Op::Generate(Generator::Full(value)) => Some(*value),
        // One that the type cannot hold becomes another.
        Op::Cast if x.dtype == DType::Bool => None,
        Op::Cast => known_constant(&x.inputs[0]).filter(|value| value.to_bytes(x.dtype).is_ok()),
        Op::Broadcast | Op::Expand(_) | Op::Squeeze(_) | Op::Reshape => known_constant(&x.inputs[0]),
        _ => None,
    }
}

/// `op(x, y)`, promoted and broadcast.
///
/// # Errors
/// Shapes that do not broadcast; types the function does not take; integers to a negative power, where it is known.
pub fn binary(op: Binary, x: &Expr, y: &Expr) -> Result<Expr, EngineError> {
    let Some(compute) = op.compute_dtype_of(x.dtype, y.dtype) else {
        return Err(EngineError::DType(format!(
            "{}: not defined for {} and {}",
            op.name(),
            x.dtype,
            y.dtype
        )));
    };
    if let (Binary::Pow, false, Some(Scalar::Int(power @ ..0))) = (op, compute.is_inexact(), known_constant(y)) {
        return Err(EngineError::Argument(format!(
            "pow: {} to the power {power}: integers to negative integer powers are not allowed; cast to a floating type",
            x.dtype
        )));
    }
    let shape = broadcast_shapes(op.name(), &[&x.shape, &y.shape])?;
    let dtype = op.output_dtype(compute);
    check_size(op.name(), &shape, dtype)?;
    let operands = vec![astype(x, compute)?, astype(y, compute)?];
    let tile = finest_tile(&shape, dtype, &operands);
    Ok(Node::intern(Op::Binary(op), operands, shape, dtype, tile))
}

/// `where(condition, x, y)`.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn select(condition: &Expr, x: &Expr, y: &Expr) -> Result<Expr, EngineError> {
    let dtype = DType::promote(x.dtype, y.dtype);
    let shape = broadcast_shapes("where", &[&condition.shape, &x.shape, &y.shape])?;
    check_size("where", &shape, dtype)?;
    let operands = vec![astype(condition, DType::Bool)?, astype(x, dtype)?, astype(y, dtype)?];
    let tile = finest_tile(&shape, dtype, &operands);
    Ok(Node::intern(Op::Select, operands, shape, dtype, tile))
}

/// `x` in another element type; `x` itself when it has that type.
///
/// # Errors
/// None today; the signature leaves room for refusing casts.
pub fn astype(x: &Expr, dtype: DType) -> Result<Expr, EngineError> {
    if x.dtype == dtype {
        return Ok(x.clone());
    }
    if let (Op::Generate(Generator::Full(value)), true) = (&x.op, x.shape.is_empty()) {
        if value.to_bytes(dtype).is_ok() && value.kind() <= dtype.kind() {
            return super::constant(*value, dtype);
        }
    }
    Ok(Node::intern(
        Op::Cast,
        vec![x.clone()],
        x.shape.clone(),
        dtype,
        x.tile.clone(),
    ))
}

/// The element-wise value `x` of other operands, which `side` gives by their number; nothing for other operators.
pub(super) fn with_operands(
    x: &Expr,
    side: impl Fn(usize) -> Result<Expr, EngineError>,
) -> Result<Option<Expr>, EngineError> {
    Ok(Some(match &x.op {
        Op::Unary(op) => unary(*op, &side(0)?)?,
        Op::Binary(op) => binary(*op, &side(0)?, &side(1)?)?,
        Op::Select => select(&side(0)?, &side(1)?, &side(2)?)?,
        Op::Cast => astype(&side(0)?, x.dtype)?,
        _ => return Ok(None),
    }))
}

/// A copy of `x` cut into other tiles: what an output is written from when it is itself a stored array, or when the
/// caller names the chunks.
pub fn copy_tiled(x: &Expr, tile: Vec<u64>) -> Expr {
    Node::intern(Op::Cast, vec![x.clone()], x.shape.clone(), x.dtype, tile)
}

/// `x` in tiles of this shape: itself where it has them.
pub fn in_tiles(x: &Expr, tile: Vec<u64>) -> Expr {
    if tile == x.tile {
        x.clone()
    } else {
        copy_tiled(x, tile)
    }
}

/// Per axis the shortest tile of the operands that run along it.
fn finest_tile(shape: &[u64], dtype: DType, operands: &[Expr]) -> Vec<u64> {
    let mut tile: Vec<u64> = shape.iter().map(|&length| length.max(1)).collect();
    for operand in operands {
        let skipped = shape.len() - operand.ndim();
        for (axis, &length) in operand.shape.iter().enumerate() {
            let target = skipped + axis;
            if length == shape[target] && length != 1 {
                tile[target] = tile[target].min(operand.tile[axis]);
            }
        }
    }
    grid::settle(shape, dtype, tile)
}
