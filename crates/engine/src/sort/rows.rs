//! Rows of a matrix in the order of their keys.

use std::sync::Arc;

use outcore_store::Io;

use super::sort_by;
use crate::expr::grid::PANEL_BYTES;
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::{AxisSlice, Expr};
use crate::ops::{self, GatherOrder};
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// Rows are held, band by band of their columns, while those of a band take no more than this part of the memory.
const HELD_PART: u64 = 3;
/// Shorter runs of rows are not read from files: a copy moves less.
const RUN_BYTES: u64 = 4 << 10;
/// Rows of more columns do not go with the keys as columns of a sort.
const COLUMNS_MAX: u64 = 64;
/// Tiles that a sort holds of each column where memory is short.
const SORT_TILES: u64 = 3;

/// The rows of `x` as `sort_by` of the keys puts them; `order` says where each row of the result is in `x`, int64.
///
/// # Errors
/// Keys without an order, or operands that have not one number of rows.
pub fn rows_by(keys: &Expr, order: &Expr, x: &Expr) -> Result<Expr, EngineError> {
    // Checks all three.
    sort_by(keys, std::slice::from_ref(order), false, None)?;
    ops::gather(x, order, GatherOrder::AtOnce)?;
    if x.shape[0] != order.shape[0] {
        return Err(EngineError::Shape(format!(
            "sort: {} keys for rows of shape {}",
            order.shape[0],
            ops::show(&x.shape)
        )));
    }
    let result = [ops::gather_grid(x, order)];
    let inputs = [keys.clone(), order.clone(), x.clone()];
    Ok(ops::staged(Arc::new(RowsBy { result }), &inputs)?.swap_remove(0))
}

#[derive(Debug)]
struct RowsBy {
    result: [Grid; 1],
}

impl Staged for RowsBy {
    fn name(&self) -> String {
        "sort rows".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("rows by"))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Ordering {
            keys: inputs[0].clone(),
            order: inputs[1].clone(),
            x: inputs[2].clone(),
        }))
    }
}

struct Ordering {
    keys: Expr,
    order: Expr,
    x: Expr,
}

impl Ordering {
    fn columns(&self) -> u64 {
        self.x.shape[1..].iter().product()
    }

    /// Band after band, of which all rows are held: one read.
    fn held(&self, room: Room) -> Option<Result<Expr, EngineError>> {
        let row = |band: &Vec<u64>| band.iter().product::<u64>() * self.x.dtype.size() as u64;
        let fits = |band: &Vec<u64>| row(band).saturating_mul(self.x.shape[0]) <= room.memory / HELD_PART;
        let mut bands = ops::narrower(&self.x, RUN_BYTES);
        if !ops::is_cut_freely(&self.x) {
            bands.truncate(1);
        }
        let mut tile = vec![self.x.tile[0]];
        if let Some(band) = bands.into_iter().find(&fits) {
            tile.extend(band);
            return Some(ops::gather(
                &ops::in_bands(&self.x, &tile),
                &self.order,
                GatherOrder::AtOnce,
            ));
        }
        // A copy of the whole in scratch is worth it where the columns cannot go through a sort.
        let band = ops::narrowest(&self.x).into_iter().find(fits)?;
        let (copied, _) = ops::copied_in(&self.x, &band, room.memory / 6);
        (self.columns() > COLUMNS_MAX).then(|| ops::gather(&copied, &self.order, GatherOrder::AtOnce))
    }

    /// As columns that are sorted with the keys.
    fn sorted(&self, room: Room) -> Result<Expr, EngineError> {
        let (rows, columns) = (self.x.shape[0], self.columns());
        let x = ops::reshape(&self.x, &[rows, columns])?;
        let column = |at: u64| {
            let slices = [0, at as i64].map(|start| AxisSlice { start, step: 1 });
            ops::squeeze(&ops::slice(&x, &slices, &[rows, 1])?, &[1])
        };
        let apart = (0..columns).map(column).collect::<Result<Vec<_>, _>>()?;
        let together = (room.memory / (SORT_TILES * PANEL_BYTES)).saturating_sub(1).max(1);
        let mut ordered = Vec::new();
        for columns in apart.chunks(together as usize) {
            for column in sort_by(&self.keys, columns, false, None)?.into_iter().skip(1) {
                ordered.push(ops::expand_dims(&column, &[1])?);
            }
        }
        ops::reshape(&ops::concat(&ordered, 1)?, &self.x.shape)
    }
}

impl Stages for Ordering {
    fn next(&mut self, _found: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let columns = self.columns();
        let result = match self.held(room) {
            Some(held) => held?,
            None if (1..=COLUMNS_MAX).contains(&columns) => self.sorted(room)?,
            None => super::take(&self.x, &self.order)?,
        };
        Ok(Next::Done(vec![result]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal(
            "rows are sorted in no stages of their own".into(),
        ))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
