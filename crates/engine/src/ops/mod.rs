//! One file per operator family: its shape rule, type rule and tile rule.
//!
//! A builder checks its operands, names both sides when they do not go together, and interns the node.
//!
//! Operators that are tile algorithms hold their `Work`s here too. Uses `expr` and `task`. Start with `scan.rs`, a whole tile
//! algorithm; `matmul.rs` shows a closed variant.

mod algorithm;
mod bands;
mod blocks;
mod compress;
mod concat;
mod describe;
mod elementwise;
mod fourier;
mod gather;
mod generate;
mod lanes;
mod map_blocks;
mod matmul;
mod reduce;
mod reshape;
mod scan;
mod search;
mod source;
mod staged;
mod tables;
mod tally;
mod uncut;
mod view;

pub use algorithm::algorithm;
pub(crate) use bands::{copied_in, in_bands, is_cut_freely, narrower, narrowest, rows_of};
pub use blocks::{blocks, Blocks};
pub use compress::{compress, compress_before, count_granules, full_counts, granule, nonzero, nonzero_before};
pub use concat::concat;
pub use describe::described;
pub use elementwise::{astype, binary, check, copy_tiled, in_tiles, select, unary};
pub use fourier::fourier;
pub use gather::{check_inside, edges, gather, gather_grid, GatherOrder, NamedRows};
pub use generate::{constant, generate, stand_in};
pub use lanes::sort_lanes;
pub use map_blocks::{map_blocks, BlockCall};
pub use matmul::{in_product_tiles, matmul, product_kind, Product};
pub use reduce::reduce;
pub(crate) use reshape::is_row_major;
pub use reshape::reshape;
pub use scan::scan;
pub use search::{check_search, search};
pub use source::source;
pub use staged::{has_staged, resolve, staged, with_inputs, Waiting};
pub use tally::{least_table_bytes, tallied};
pub use uncut::uncut;
pub use view::{broadcast_to, expand_dims, permute, slice, squeeze, take_runs};

use crate::expr::{Expr, Op};
use crate::EngineError;
use outcore_dtype::DType;

/// A shape as Python prints it.
pub(crate) fn show(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Element-wise steps and views that are looked through for the stored array below.
const DEPTH_MAX: usize = 16;

/// Whether the largest values that `x` is made of, element by element, are stored arrays: reading few of its elements
/// then reads few of theirs.
pub fn is_made_of_stored(x: &Expr) -> bool {
    fn look(x: &Expr, size: u64, depth: usize) -> bool {
        match &x.op {
            Op::Source(_) => true,
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Cast
            | Op::Check(_)
            | Op::Permute(_)
            | Op::Slice(_)
            | Op::Expand(_)
            | Op::Squeeze(_)
                if depth > 0 =>
            {
                let mut large = x.inputs.iter().filter(|input| input.elements() >= size).peekable();
                large.peek().is_some() && large.all(|input| look(input, size, depth - 1))
            }
            _ => false,
        }
    }
    look(x, x.elements(), DEPTH_MAX)
}

/// Refuses shapes whose byte count does not fit in 63 bits: they come from files and callers.
pub(crate) fn check_size(operator: &str, shape: &[u64], dtype: DType) -> Result<(), EngineError> {
    let bytes = shape
        .iter()
        .try_fold(dtype.size() as u64, |bytes, &length| bytes.checked_mul(length.max(1)));
    match bytes {
        Some(bytes) if bytes < 1 << 62 => Ok(()),
        _ => Err(EngineError::Shape(format!(
            "{operator}: an array of shape {} of {dtype} is too large to address",
            show(shape)
        ))),
    }
}

/// The common shape of operands by NumPy's broadcasting rule.
pub(crate) fn broadcast_shapes(operator: &str, shapes: &[&[u64]]) -> Result<Vec<u64>, EngineError> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut common = vec![1; ndim];
    for shape in shapes {
        for (axis, &length) in shape.iter().enumerate() {
            let target = &mut common[ndim - shape.len() + axis];
            if *target == 1 {
                *target = length;
            } else if length != 1 && length != *target {
                let sides = shapes.iter().map(|shape| show(shape)).collect::<Vec<_>>().join(" and ");
                return Err(EngineError::Shape(format!(
                    "{operator}: shapes {sides} do not broadcast: lengths {target} and {length} differ"
                )));
            }
        }
    }
    Ok(common)
}
