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
/// The most steps that a product of large files is cut into.
const STEPS_MAX: u64 = 1 << 17;
/// Stored operands are read again and again where both sides of the result are at least so many square tiles long.
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
    let (x, y) = (squared(&x)?, squared(&y)?);
    let tile = result_tile(&x, &y, &shape, dtype);
    Ok(Node::intern(Op::Matmul, vec![x, y], shape, dtype, tile))
}

/// The side of a square tile.
fn square_side(dtype: DType) -> u64 {
    grid::default_tile(&[1 << 20, 1 << 20], dtype)[0]
}

/// Whether a product of two stored arrays reads both again and again where memory is short, and one of them may be read in other tiles
/// than its own.
fn is_reread(x: &Expr, y: &Expr, shape: &[u64]) -> bool {
    let sides = &shape[shape.len() - 2..];
    let is_long = sides.iter().all(|side| side / square_side(x.dtype) >= REUSES);
    // A result that is small beside its operands stays in memory while these go by once.
    let is_short = x.shape[x.ndim() - 1] < REUSES.saturating_mul(sides[0].max(sides[1]));
    let has_tiles = || has_wide_tile(x) || has_wide_tile(y);
    is_long && is_short && is_stored(x) && is_stored(y) && has_tiles()
}

/// Whether an operand is a row-major file with tiles for products, be they its own or not.
fn has_wide_tile(operand: &Expr) -> bool {
    match operand.op {
        Op::Permute(_) => has_wide_tile(&operand.inputs[0]),
        Op::Source(_) => super::is_row_major(operand) && grid::wide_tile(&operand.shape, operand.dtype).is_some(),
        _ => false,
    }
}

fn is_stored(operand: &Expr) -> bool {
    match operand.op {
        Op::Permute(_) => is_stored(&operand.inputs[0]),
        Op::Source(_) => true,
        _ => false,
    }
}

/// The tiles in which a product reads two operands where memory is short: results and steps are cut for these, also where the
/// operands are read in their own, so that bits are the same.
fn tiles_in_products(x: &Expr, y: &Expr, shape: &[u64]) -> [Vec<u64>; 2] {
    match is_reread(x, y, shape) {
        true => [x, y].map(tile_in_products),
        false => [x, y].map(|operand| operand.tile.clone()),
    }
}

fn tile_in_products(operand: &Expr) -> Vec<u64> {
    let own = || operand.tile.clone();
    match &operand.op {
        Op::Permute(axes) => {
            let tile = tile_in_products(&operand.inputs[0]);
            axes.iter().map(|&axis| tile[axis]).collect()
        }
        Op::Source(_) if super::is_row_major(operand) => {
            grid::wide_tile(&operand.shape, operand.dtype).unwrap_or_else(own)
        }
        _ => own(),
    }
}

/// A product of which row-major files are read in tiles for products; nothing where there are none, or each is read once.
///
/// # Errors
/// None that the product would not have given.
pub fn in_product_tiles(product: &Expr) -> Result<Option<Expr>, EngineError> {
    let is_blocked = matches!(product.op, Op::Matmul) && matches!(product_kind(product), Product::Blocked { .. });
    if !is_blocked || !is_reread(&product.inputs[0], &product.inputs[1], &product.shape) {
        return Ok(None);
    }
    let inputs: Result<Vec<Expr>, EngineError> = product.inputs.iter().map(in_wide_tiles).collect();
    let inputs = inputs?;
    let is_same = inputs.iter().zip(&product.inputs).all(|(new, old)| new.id == old.id);
    let (shape, tile) = (product.shape.clone(), product.tile.clone());
    Ok((!is_same).then(|| Node::intern(Op::Matmul, inputs, shape, product.dtype, tile)))
}

fn in_wide_tiles(operand: &Expr) -> Result<Expr, EngineError> {
    match &operand.op {
        Op::Permute(axes) => super::permute(&in_wide_tiles(&operand.inputs[0])?, axes),
        Op::Source(_) if super::is_row_major(operand) => {
            let Some(tile) = grid::wide_tile(&operand.shape, operand.dtype) else {
                return Ok(operand.clone());
            };
            let (op, shape) = (operand.op.clone(), operand.shape.clone());
            Ok(Node::intern(op, vec![], shape, operand.dtype, tile))
        }
        _ => Ok(operand.clone()),
    }
}

/// A computed operand of a large product is held in square tiles, not in the panels its sources are stored in: a block
/// of it then touches one tile.
fn squared(operand: &Expr) -> Result<Expr, EngineError> {
    let ndim = operand.ndim();
    if operand.tile[ndim - 2].min(operand.tile[ndim - 1]) >= INNER_MIN {
        return Ok(operand.clone());
    }
    match &operand.op {
        Op::Permute(axes) => super::permute(&squared(&operand.inputs[0])?, axes),
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_) => Ok(Node::intern(
            operand.op.clone(),
            operand.inputs.clone(),
            operand.shape.clone(),
            operand.dtype,
            grid::default_tile(&operand.shape, operand.dtype),
        )),
        _ => Ok(operand.clone()),
    }
}

/// Rows as `x` is cut, columns as `y` is; a square default where that is too large or too small to compute on.
fn result_tile(x: &Expr, y: &Expr, shape: &[u64], dtype: DType) -> Vec<u64> {
    let ndim = shape.len();
    let [rows, columns] = tiles_in_products(x, y, shape);
    let mut tile: Vec<u64> = (0..ndim - 2).map(|axis| rows[axis].min(columns[axis])).collect();
    tile.extend([rows[ndim - 2], columns[ndim - 1]]);
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
    let [rows, columns] = tiles_in_products(x, y, &node.shape);
    let tile = rows[ndim - 1].min(columns[ndim - 2]);
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

/// The tile of the inner dimension of a product whose operands are both read again and again: not longer than a square tile, since
/// what is read ahead of the products takes memory from the result, and not so short that there are too many steps.
fn short_step(node: &Node, inner: u64, inner_tile: u64) -> u64 {
    if !is_reread(&node.inputs[0], &node.inputs[1], &node.shape) {
        return inner_tile;
    }
    let steps = |inner_tile: u64| {
        let counts = grid::counts(&node.shape, &node.tile);
        let factors = counts.into_iter().chain([inner.div_ceil(inner_tile)]);
        factors.fold(1, u64::saturating_mul)
    };
    let longest = square_side(node.dtype);
    let mut step = inner_tile.min(longest);
    while step < longest && steps(step) > STEPS_MAX {
        step *= 2;
    }
    step
}
