//! `searchsorted`: the sorted row held in memory, or both sides sorted together.

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::sort::Side;
use outcore_kernels::{Binary, Generator, Scan};
use outcore_store::Io;

use super::sort_by;
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::{AxisSlice, Expr};
use crate::ops;
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// The sorted row is held while it takes no more than this part of the memory.
const HELD_PART: u64 = 3;

/// For each of a row of `values` how many elements of the sorted row come before it (`Left`), or before it or equal it
/// (`Right`), int64.
///
/// # Errors
/// Types that differ or have no order; more than one axis.
pub fn search_sorted(sorted: &Expr, values: &Expr, side: Side) -> Result<Expr, EngineError> {
    ops::check_search(sorted, values)?;
    let result = [Grid {
        dtype: DType::I64,
        ..values.grid()
    }];
    let inputs = [sorted.clone(), values.clone()];
    Ok(ops::staged(Arc::new(StagedSearch { side, result }), &inputs)?.swap_remove(0))
}

#[derive(Debug)]
struct StagedSearch {
    side: Side,
    result: [Grid; 1],
}

impl Staged for StagedSearch {
    fn name(&self) -> String {
        "searchsorted".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.side == Side::Right)]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("search sorted").flag(self.side == Side::Right))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Searching {
            side: self.side,
            sorted: inputs[0].clone(),
            values: inputs[1].clone(),
        }))
    }
}

struct Searching {
    side: Side,
    sorted: Expr,
    values: Expr,
}

impl Searching {
    /// Both sorted as one, equal elements on the side that is asked for; what was counted of the sorted row up to each
    /// value goes back to where the value came from.
    fn together(&self) -> Result<Expr, EngineError> {
        let (row, values) = (self.sorted.shape[0], self.values.shape[0]);
        let (parts, first) = match self.side {
            Side::Left => ([&self.values, &self.sorted], 0),
            Side::Right => ([&self.sorted, &self.values], row),
        };
        let joined = ops::concat(&parts.map(Expr::clone), 0)?;
        let counting = Generator::Arange {
            start: Scalar::Int(0),
            step: Scalar::Int(1),
        };
        let positions = ops::generate(counting, joined.shape.clone(), DType::I64)?;
        let origin = sort_by(&joined, &[positions], false, None)?.swap_remove(1);
        let limit = ops::constant(Scalar::Int(if first == 0 { values } else { row } as i64), DType::I64)?;
        let limit = ops::broadcast_to(&limit, &origin.shape)?;
        let is_row = match self.side {
            Side::Left => ops::binary(Binary::GreaterEqual, &origin, &limit)?,
            Side::Right => ops::binary(Binary::Less, &origin, &limit)?,
        };
        let before = ops::scan(Scan::Sum, &ops::astype(&is_row, DType::I64)?, 0, None)?;
        let back = sort_by(&origin, &[before], false, None)?.swap_remove(1);
        let start = first as i64;
        ops::slice(&back, &[AxisSlice { start, step: 1 }], &[values])
    }
}

impl Stages for Searching {
    fn next(&mut self, _found: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let held = self.sorted.nbytes() <= room.memory / HELD_PART || self.values.shape[0] == 0;
        let result = match held {
            true => ops::search(&self.sorted, &self.values, self.side)?,
            false => self.together()?,
        };
        Ok(Next::Done(vec![result]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal("searchsorted has no stages of its own".into()))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
