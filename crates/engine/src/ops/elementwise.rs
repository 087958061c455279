//! Element-wise operators: broadcasting, promotion, and the finest tile of the operands.

use outcore_dtype::{DType, Kind, Scalar};
use outcore_kernels::{Binary, Bounds, Generator, Unary};

use super::{broadcast_shapes, check_size};
use crate::expr::{grid, Check, Expr, Node, Op, Refusal};
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
        Op::Check(_) | Op::Broadcast | Op::Expand(_) | Op::Squeeze(_) | Op::Reshape => known_constant(&x.inputs[0]),
        _ => None,
    }
}

/// Steps that are looked through for what an expression says of its values.
const KNOWN_DEPTH_MAX: usize = 16;

/// Whether no element is below zero, where the expression says it.
fn is_known_natural(x: &Expr, depth: usize) -> bool {
    let all = |inputs: &[Expr]| depth > 0 && inputs.iter().all(|input| is_known_natural(input, depth - 1));
    if matches!(x.dtype.kind(), Kind::Bool | Kind::Unsigned) {
        return true;
    }
    match &x.op {
        Op::Generate(Generator::Full(value)) => matches!(value, Scalar::Bool(_) | Scalar::Int(0..) | Scalar::UInt(_)),
        Op::Generate(Generator::Arange { start, step }) => match (*start, *step) {
            (Scalar::Int(start @ 0..), Scalar::Int(step)) => {
                let steps = x.elements().saturating_sub(1);
                i128::from(start) + i128::from(step) * i128::from(steps) >= 0
            }
            _ => false,
        },
        Op::Check(check) => matches!(check.bounds, Bounds::Between(0.., _)),
        Op::Cast => {
            let from = x.inputs[0].dtype;
            let widens = match from.kind() {
                Kind::Bool => true,
                Kind::Unsigned => from.size() < x.dtype.size(),
                Kind::Signed => from.size() <= x.dtype.size(),
                _ => false,
            };
            widens && all(&x.inputs)
        }
        Op::Binary(Binary::Maximum) => depth > 0 && x.inputs.iter().any(|input| is_known_natural(input, depth - 1)),
        Op::Select => all(&x.inputs[1..]),
        Op::Concat(_)
        | Op::Broadcast
        | Op::Permute(_)
        | Op::Slice(_)
        | Op::Expand(_)
        | Op::Squeeze(_)
        | Op::Reshape => all(&x.inputs),
        _ => false,
    }
}

/// `x`, of which an element outside the bounds ends the run that meets it.
///
/// # Errors
/// Elements that cannot be held against the bounds.
pub fn check(x: &Expr, check: Check) -> Result<Expr, EngineError> {
    if !check.bounds.supports(x.dtype) {
        return Err(EngineError::DType(format!(
            "check: elements of {} have no such bounds",
            x.dtype
        )));
    }
    let op = Op::Check(Box::new(check));
    Ok(Node::intern(
        op,
        vec![x.clone()],
        x.shape.clone(),
        x.dtype,
        x.tile.clone(),
    ))
}

/// Powers that integers of type `base` may be raised to; one below zero ends the run that meets it.
fn natural_powers(powers: Expr, base: DType) -> Result<Expr, EngineError> {
    if powers.dtype.kind() != Kind::Signed || is_known_natural(&powers, KNOWN_DEPTH_MAX) {
        return Ok(powers);
    }
    let bounds = Check {
        bounds: Bounds::Between(0, i64::MAX),
        refusal: Refusal::Argument,
        text: negative_power(base, "{}"),
    };
    check(&powers, bounds)
}

fn negative_power(base: DType, power: impl std::fmt::Display) -> String {
    format!(
        "pow: {base} to the power {power}: integers to negative integer powers are not allowed; cast to a floating type"
    )
}

/// `op(x, y)`, promoted and broadcast.
///
/// # Errors
/// Shapes that do not broadcast; types the function does not take; integers to a negative power, where it is known. Where
/// it is not, the run that meets one ends.
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
        return Err(EngineError::Argument(negative_power(x.dtype, power)));
    }
    let shape = broadcast_shapes(op.name(), &[&x.shape, &y.shape])?;
    let dtype = op.output_dtype(compute);
    check_size(op.name(), &shape, dtype)?;
    let mut right = astype(y, compute)?;
    if op == Binary::Pow {
        right = natural_powers(right, x.dtype)?;
    }
    let operands = vec![astype(x, compute)?, right];
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
        Op::Check(of) => check(&side(0)?, (**of).clone())?,
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
    grid::sensible_tile(shape, dtype, tile)
}
