//! How often each number occurs in a row, and what stands beside equal ones taken together: a few tables that are added to
//! in turn, then combined.

use std::sync::Arc;

use outcore_kernels::{clear_tally, merge_tallies, tally, Tally};

use super::{algorithm, in_tiles, show};
use crate::expr::{grid, Expr};
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;
use outcore_dtype::DType;

/// Tables that tasks add to at once. A constant, so that sums of floating-point numbers have the same bits everywhere.
const TABLES: u64 = 4;

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
    let table = |count: u64| Grid {
        shape: [&[rows * count], columns].concat(),
        tile: [&[rows.max(1)], &whole(columns)[..]].concat(),
        dtype,
    };
    let tables = TABLES.min(inputs[0].grid().tiles());
    let tallying = Tallying {
        op,
        numbers: inputs[0].grid(),
        columns: columns.iter().product::<u64>() as usize,
        tables,
        results: [table(1), table(tables)],
    };
    Ok(algorithm(Arc::new(tallying), &inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Tallying {
    op: Tally,
    numbers: Grid,
    columns: usize,
    tables: u64,
    /// The result, and the tables.
    results: [Grid; 2],
}

impl Tallying {
    fn inputs(&self) -> usize {
        if self.op == Tally::Count {
            1
        } else {
            2
        }
    }

    fn dtype(&self) -> DType {
        self.results[0].dtype
    }
}

impl Algorithm for Tallying {
    fn name(&self) -> String {
        match self.op {
            Tally::Count => "bincount".into(),
            op => format!("{op:?} of groups").to_lowercase(),
        }
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        if self.results[0].tiles() == 0 {
            return vec![];
        }
        vec![Arc::new(self.clone()), Arc::new(Total(self.clone()))]
    }
}

impl Work for Tallying {
    fn label(&self) -> String {
        self.name()
    }
    fn tasks(&self) -> u64 {
        self.numbers.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        (0..self.inputs()).for_each(|set| each(set, task, Access::Read));
        let access = if task < self.tables {
            Access::Create
        } else {
            Access::Update
        };
        each(self.inputs() + 1, task % self.tables, access);
    }
    fn operations(&self) -> f64 {
        (14.0 + self.columns as f64) * self.numbers.shape[0] as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let table = &mut *tiles.writes[0];
        if task < self.tables {
            clear_tally(self.op, self.dtype(), table);
        }
        let values = tiles.reads.get(1).copied().unwrap_or_default();
        tally(self.op, self.dtype(), tiles.reads[0], values, self.columns, table);
        Ok(())
    }
}

/// The tables as one.
#[derive(Clone, Debug)]
struct Total(Tallying);

impl Work for Total {
    fn label(&self) -> String {
        "total".into()
    }
    fn tasks(&self) -> u64 {
        1
    }
    fn operands(&self, _task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let inputs = self.0.inputs();
        (0..self.0.tables).for_each(|table| each(inputs + 1, table, Access::Read));
        each(inputs, 0, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.0.results[1].shape.iter().product::<u64>() as f64
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (op, dtype) = (self.0.op, self.0.dtype());
        let result = &mut *tiles.writes[0];
        clear_tally(op, dtype, result);
        tiles
            .reads
            .iter()
            .for_each(|table| merge_tallies(op, dtype, table, result));
        Ok(())
    }
}
