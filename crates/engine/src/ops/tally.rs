//! How often each number occurs in a row, and what stands beside equal ones taken together.

use outcore_kernels::{clear_tally, merge_tallies, tally, Tally};

use super::tables::{gathered, Tabled};
use super::{in_tiles, show};
use crate::expr::{grid, Expr};
use crate::task::Grid;
use crate::EngineError;
use outcore_dtype::DType;

/// How often each of the numbers `0 .. rows` is among the int64 elements of a row, or what `op` makes of the values beside
/// it: float64 or int64, one value for each number or a row of them. Other numbers are left out.
///
/// # Errors
/// Operands of other types, or shapes that differ.
pub fn tallied(op: Tally, numbers: &Expr, values: Option<&Expr>, rows: u64) -> Result<Expr, EngineError> {
    let beside = values.unwrap_or(numbers);
    if numbers.ndim() != 1 || !matches!(beside.ndim(), 1 | 2) || numbers.shape[0] != beside.shape[0] {
        return Err(EngineError::Shape(format!(
            "bincount: numbers of shape {} and values of shape {} are not of one length",
            show(&numbers.shape),
            show(&beside.shape)
        )));
    }
    let dtype = values.map_or(DType::I64, |values| values.dtype);
    if numbers.dtype != DType::I64 || !matches!(dtype, DType::I64 | DType::F64) {
        return Err(EngineError::DType(format!(
            "bincount: {} beside {dtype}",
            numbers.dtype
        )));
    }
    if values.is_some() == (op == Tally::Count) {
        return Err(EngineError::Internal(
            "bincount: counts have no values, all else has".into(),
        ));
    }
    let columns = &beside.shape[1..];
    let whole = |lengths: &[u64]| lengths.iter().map(|&length| length.max(1)).collect::<Vec<_>>();
    let length = match values {
        Some(values) if values.ndim() == 2 => grid::uncut(&values.shape, dtype, values.tile.clone(), &[1])[0],
        _ => numbers.tile[0],
    };
    let tiled = |of: &Expr| in_tiles(of, [&[length], &whole(&of.shape[1..])[..]].concat());
    let inputs: Vec<Expr> = std::iter::once(numbers).chain(values).map(tiled).collect();
    let table = Grid {
        shape: [&[rows], columns].concat(),
        tile: [&[rows.max(1)], &whole(columns)[..]].concat(),
        dtype,
    };
    let tallying = Tallying {
        op,
        dtype,
        elements: length,
        columns: columns.iter().product::<u64>() as usize,
    };
    gathered(tallying, &inputs, table)
}

#[derive(Clone, Debug)]
struct Tallying {
    op: Tally,
    dtype: DType,
    /// Of a tile of numbers.
    elements: u64,
    columns: usize,
}

impl Tabled for Tallying {
    fn name(&self) -> String {
        match self.op {
            Tally::Count => "bincount".into(),
            op => format!("{op:?} of groups").to_lowercase(),
        }
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn tiled(&self) -> usize {
        2
    }
    fn operations(&self) -> f64 {
        (14.0 + self.columns as f64) * self.elements as f64
    }
    fn clear(&self, table: &mut [u8]) {
        clear_tally(self.op, self.dtype, table);
    }
    fn add(&self, tiles: &[&[u8]], table: &mut [u8]) {
        let values = tiles.get(1).copied().unwrap_or_default();
        tally(self.op, self.dtype, tiles[0], values, self.columns, table);
    }
    fn merge(&self, from: &[u8], into: &mut [u8]) {
        merge_tallies(self.op, self.dtype, from, into);
    }
}
