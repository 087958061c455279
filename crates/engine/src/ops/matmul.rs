//! Matrix products, and how each is computed.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::Generator;

use super::{astype, broadcast_shapes, broadcast_to, check_size, generate, show};
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;

/// A result of at most this many bytes is summed in a tree of partial results.
const TREE_BYTES: u64 = 1 << 20;
/// The shortest side of a result's tile that is cut along both.
const RESULT_MIN: u64 = 512;
/// The shortest tile of the inner dimension of a product of two large matrices.
const INNER_MIN: u64 = 256;
/// Tiles of the inner dimension from this length on are gone through in quarters: what is read ahead of the products is then less.
const INNER_LONG: u64 = 1024;
/// The most steps that such a product is cut into.
const STEPS_MAX: u64 = 1 << 17;
/// A stored operand is read in tiles for products where the result is at least so many square tiles long across it: it is read again
/// and again then, whatever else reads it.
const REUSES: u64 = 4;

/// How a product runs over its tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Product {
    /// The inner dimension is whole: each tile of the result needs one block of each operand, so it joins a pass.
    Aligned,
    /// A small result over a long inner dimension, cut into tiles of this length: one partial result per tile.
    Contraction { inner_tile: u64 },
    /// Blocks of result tiles stay in memory while the inner dimension streams past in tiles of this length.
    Blocked { inner_tile: u64 },
}

/// `x @ y` over the last two axes; leading axes broadcast.
///
/// # Errors
/// Operands of fewer than two axes, inner dimensions that differ, batch axes that do not broadcast.
pub fn matmul(x: &Expr, y: &Expr) -> Result<Expr, EngineError> {
    let sides = || format!("matmul: {} @ {}", show(&x.shape), show(&y.shape));
    if x.ndim() < 2 || y.ndim() < 2 {
        return Err(EngineError::Shape(format!(
            "{}: both sides need at least two axes here",
            sides()
        )));
    }
    let (m, k) = (x.shape[x.ndim() - 2], x.shape[x.ndim() - 1]);
    let (inner, n) = (y.shape[y.ndim() - 2], y.shape[y.ndim() - 1]);
    if k != inner {
        return Err(EngineError::Shape(format!(
            "{}: inner dimensions {k} and {inner} differ",
            sides()
        )));
    }
    let batch = broadcast_shapes("matmul", &[&x.shape[..x.ndim() - 2], &y.shape[..y.ndim() - 2]])?;
    let dtype = DType::promote(x.dtype, y.dtype);
    let whole = |last: [u64; 2]| [batch.as_slice(), &last].concat();
    let shape = whole([m, n]);
    check_size("matmul", &shape, dtype)?;
    if k == 0 || shape.contains(&0) {
        return generate(Generator::Full(Scalar::Int(0)), shape, dtype);
    }
    let x = broadcast_to(&astype(x, dtype)?, &whole([m, k]))?;
    let y = broadcast_to(&astype(y, dtype)?, &whole([k, n]))?;
    let tile = result_tile(&x, &y, &shape, dtype);
    let product = Node::intern(Op::Matmul, vec![x.clone(), y.clone()], shape.clone(), dtype, tile);
    if !matches!(product_kind(&product), Product::Blocked { .. }) {
        return Ok(product);
    }
    let (x, y) = (squared(&x, is_reused(n, dtype))?, squared(&y, is_reused(m, dtype))?);
    let tile = result_tile(&x, &y, &shape, dtype);
    Ok(Node::intern(Op::Matmul, vec![x, y], shape, dtype, tile))
}

/// The side of a square tile.
fn square_side(dtype: DType) -> u64 {
    grid::default_tile(&[1 << 20, 1 << 20], dtype)[0]
}

/// Whether an operand is read again and again, where the other one has such a side.
fn is_reused(side: u64, dtype: DType) -> bool {
    side / square_side(dtype) >= REUSES
}

/// A computed operand of a large product is held in square tiles, not in the panels its sources are stored in: a block
/// of it then touches one tile. A row-major file that is read again and again is read in tiles for products.
fn squared(operand: &Expr, is_reused: bool) -> Result<Expr, EngineError> {
    let ndim = operand.ndim();
    if operand.tile[ndim - 2].min(operand.tile[ndim - 1]) >= INNER_MIN {
        return Ok(operand.clone());
    }
    match &operand.op {
        Op::Permute(axes) => super::permute(&squared(&operand.inputs[0], is_reused)?, axes),
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_) => Ok(Node::intern(
            operand.op.clone(),
            operand.inputs.clone(),
            operand.shape.clone(),
            operand.dtype,
            grid::default_tile(&operand.shape, operand.dtype),
        )),
        Op::Source(_) if is_reused && super::is_row_major(operand) => {
            let tile = grid::wide_tile(&operand.shape, operand.dtype).unwrap_or_else(|| operand.tile.clone());
            Ok(Node::intern(
                operand.op.clone(),
                vec![],
                operand.shape.clone(),
                operand.dtype,
                tile,
            ))
        }
        _ => Ok(operand.clone()),
    }
}

/// Rows as `x` is cut, columns as `y` is; a square default where that is too large or too small to compute on.
fn result_tile(x: &Expr, y: &Expr, shape: &[u64], dtype: DType) -> Vec<u64> {
    let ndim = shape.len();
    let mut tile: Vec<u64> = (0..ndim - 2).map(|axis| x.tile[axis].min(y.tile[axis])).collect();
    tile.extend([x.tile[ndim - 2], y.tile[ndim - 1]]);
    let last = tile[ndim - 2] * tile[ndim - 1] * dtype.size() as u64;
    let cut = (tile[ndim - 2] < shape[ndim - 2]) as u8 + (tile[ndim - 1] < shape[ndim - 1]) as u8;
    let default = grid::default_tile(shape, dtype);
    // Long thin tiles would stream an operand from memory for every few rows of the result.
    let thin = tile[ndim - 2].min(tile[ndim - 1]) < RESULT_MIN;
    if last > grid::SQUARE_BYTES || (cut == 2 && thin) {
        tile[ndim - 2..].copy_from_slice(&default[ndim - 2..]);
    }
    grid::sensible_tile(shape, dtype, tile)
}

/// How the product `node` runs.
pub fn product_kind(node: &Node) -> Product {
    let (x, y) = (&node.inputs[0], &node.inputs[1]);
    let ndim = node.ndim();
    let item = node.dtype.size() as u64;
    let inner = x.shape[ndim - 1];
    let tile = x.tile[ndim - 1].min(y.tile[ndim - 2]);
    let block_bytes = |side: u64| side * inner * item;
    let widest = block_bytes(node.tile[ndim - 2]).max(block_bytes(node.tile[ndim - 1]));
    if tile >= inner && widest <= 2 * grid::SQUARE_BYTES {
        return Product::Aligned;
    }
    let default = square_side(node.dtype);
    let inner_tile = if (INNER_MIN..=2 * default).contains(&tile) {
        tile
    } else {
        default
    };
    if node.nbytes() <= TREE_BYTES && node.is_single_tile() {
        // Operands cut along the inner dimension lie in runs of it: any number of rows is one run.
        return Product::Contraction {
            inner_tile: if tile < inner { tile } else { inner_tile },
        };
    }
    if inner_tile >= inner {
        return Product::Aligned;
    }
    Product::Blocked {
        inner_tile: short_step(node, inner, inner_tile),
    }
}

/// The tile of the inner dimension of a product whose operands are both read again and again.
fn short_step(node: &Node, inner: u64, inner_tile: u64) -> u64 {
    let (ndim, dtype) = (node.ndim(), node.dtype);
    if !node.shape[ndim - 2..].iter().all(|&side| is_reused(side, dtype)) {
        return inner_tile;
    }
    let steps = |inner_tile: u64| {
        let counts = grid::counts(&node.shape, &node.tile);
        let factors = counts.into_iter().chain([inner.div_ceil(inner_tile)]);
        factors.fold(1, u64::saturating_mul)
    };
    let mut step = inner_tile;
    if step >= INNER_LONG && step.is_multiple_of(4) {
        step /= 4;
    }
    while step < inner_tile.max(square_side(dtype)) && steps(step) > STEPS_MAX {
        step *= 2;
    }
    step
}
