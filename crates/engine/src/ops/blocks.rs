//! Some rows in a row, at places evenly apart: what a sample of stored values is made of.

use super::elementwise::with_operands;
use super::{is_made_of_stored, reshape, slice, squeeze};
use crate::expr::{AxisSlice, Expr, Op};
use crate::EngineError;

/// Blocks of rows.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Rows of a block.
    pub rows: u64,
    /// Every so many blocks one is taken.
    pub step: u64,
}

fn every(step: u64) -> AxisSlice {
    AxisSlice {
        start: 0,
        step: step as i64,
    }
}

/// Every `step`-th block of `rows` rows of `x`, along a new first axis; rows behind the last whole block are in none.
/// Of element-wise values, slices and single columns of stored arrays only what is in the blocks is read.
///
/// # Errors
/// Fewer rows than a block has.
pub fn blocks(x: &Expr, of: Blocks) -> Result<Expr, EngineError> {
    let length = x.shape.first().copied().unwrap_or(0);
    if of.rows == 0 || of.step == 0 || length < of.rows {
        return Err(EngineError::Shape(format!(
            "blocks: {} rows have none of {} every {}",
            length, of.rows, of.step
        )));
    }
    match is_made_of_stored(x) {
        true => sunk(x, of, length),
        false => cut(x, of),
    }
}

/// Blocks of `x`, of `length` rows, as what is made of blocks of its operands.
fn sunk(x: &Expr, of: Blocks, length: u64) -> Result<Expr, EngineError> {
    let operand = |index: usize| {
        let input = &x.inputs[index];
        match input.ndim() == x.ndim() && input.shape[0] == length {
            true => sunk(input, of, length),
            // One value for all rows.
            false => Ok(input.clone()),
        }
    };
    match &x.op {
        Op::Slice(slices) if slices[0] == every(1) && x.inputs[0].shape[0] == length => {
            let inner = sunk(&x.inputs[0], of, length)?;
            let slices: Vec<AxisSlice> = std::iter::once(every(1)).chain(slices.iter().copied()).collect();
            let counts = [&inner.shape[..2], &x.shape[1..]].concat();
            slice(&inner, &slices, &counts)
        }
        Op::Squeeze(axes) if axes[0] > 0 => {
            let axes: Vec<usize> = axes.iter().map(|axis| axis + 1).collect();
            squeeze(&sunk(&x.inputs[0], of, length)?, &axes)
        }
        _ if x.ndim() == 1 => with_operands(x, operand)?.map_or_else(|| cut(x, of), Ok),
        _ => cut(x, of),
    }
}

fn cut(x: &Expr, of: Blocks) -> Result<Expr, EngineError> {
    let count = x.shape[0] / of.rows;
    let whole: Vec<AxisSlice> = vec![every(1); x.ndim()];
    let kept = [&[count * of.rows], &x.shape[1..]].concat();
    let all = reshape(&slice(x, &whole, &kept)?, &[&[count, of.rows], &x.shape[1..]].concat())?;
    let mut steps = vec![every(1); all.ndim()];
    steps[0] = every(of.step);
    let mut counts = all.shape.clone();
    counts[0] = count.div_ceil(of.step);
    slice(&all, &steps, &counts)
}
