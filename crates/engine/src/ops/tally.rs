//! How often each number occurs in a row, and what stands beside equal ones taken together.
//!
//! A table has a row for each number. Where it is large because the values are wide, it is cut into bands of columns, each
//! of which is finished before the next is begun: few numbers beside rows of any width take one read and little memory.
//! Tiles keep their rows however wide they are, so that the order of additions is that of the widest.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::KeyOrder;
use outcore_kernels::{clear_tally, merge_tallies, tally, tally_places, tally_squares, Tally, TallyTypes};
use outcore_store::Io;

use super::tables::{gathered, Tabled, TABLES};
use super::{in_bands, in_tiles, narrower, show, staged};
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::{grid, Expr};
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// Tables of more bytes are cut into bands where they can be.
const TABLE_BYTES: u64 = 4 << 20;
/// The shortest run of a row that a band is read by.
const RUN_BYTES: u64 = 16 << 10;

/// How often each of the numbers `0 .. rows` is among the int64 elements of a row, or what `op` makes of the values beside
/// it in the type of `dtype`, int64 or float64: real numbers, one for each number or an array of them. With `centers`, a row
/// of values for each number, a sum is that of squared distances from them, and a minimum that of the rows in which values
/// equal them or are NaN. Other numbers are left out.
///
/// # Errors
/// Operands of other types, or shapes that differ.
pub fn tallied(
    op: Tally,
    numbers: &Expr,
    values: Option<&Expr>,
    centers: Option<&Expr>,
    rows: u64,
    dtype: DType,
) -> Result<Expr, EngineError> {
    let beside = values.unwrap_or(numbers);
    if numbers.ndim() != 1 || beside.shape.first() != numbers.shape.first() {
        return Err(EngineError::Shape(format!(
            "bincount: numbers of shape {} and values of shape {} are not of one length",
            show(&numbers.shape),
            show(&beside.shape)
        )));
    }
    let fits = KeyOrder::new(beside.dtype, false).is_some() && matches!(dtype, DType::I64 | DType::F64);
    let fits = fits && (dtype == DType::F64 || !op.is_ordered());
    if numbers.dtype != DType::I64 || !fits || (values.is_none() && dtype != DType::I64) {
        return Err(EngineError::DType(format!(
            "bincount: {} beside {} in {dtype}",
            numbers.dtype, beside.dtype
        )));
    }
    if values.is_some() == (op == Tally::Count) {
        return Err(EngineError::Argument(
            "bincount: counts have no values, all else has".into(),
        ));
    }
    let columns = &beside.shape[1..];
    if let Some(centers) = centers {
        let shape = [&[rows], columns].concat();
        let fits = match op {
            Tally::Sum => (centers.dtype, dtype) == (DType::F64, DType::F64),
            Tally::Min => matches!(centers.dtype, DType::I64 | DType::F64) && dtype == DType::I64,
            _ => false,
        };
        if !fits || centers.shape != shape {
            return Err(EngineError::Argument(
                "bincount: centers are no rows of the table".into(),
            ));
        }
    }
    let operands = TallyOperands {
        op,
        numbers: numbers.clone(),
        values: values.cloned(),
        centers: centers.cloned(),
        rows,
        dtype,
        tables: tables_at_once(op, beside, rows),
    };
    let is_small = beside.ndim() <= 2 && table_bytes(rows, columns) <= TABLE_BYTES;
    let tile = match values {
        Some(values) if is_small && values.ndim() == 2 => grid::uncut(&values.shape, dtype, values.tile.clone(), &[1]),
        Some(values) if values.ndim() > 1 => values.tile.clone(),
        _ => numbers.tile.clone(),
    };
    if values.is_none() || is_small || table_bytes(rows, &tile[1..]) <= TABLE_BYTES {
        return operands.table(&tile);
    }
    let result = [operands.grid(&tile)];
    let inputs = operands.list();
    Ok(staged(Arc::new(Banded { operands, result }), &inputs)?.swap_remove(0))
}

/// Bytes of the table of the narrowest band that values can be cut into.
pub fn least_table_bytes(values: &Expr, rows: u64) -> u64 {
    let bands = narrower(values, RUN_BYTES);
    table_bytes(rows, bands.last().expect("at least the tiles as they are"))
}

/// One table where the values come in order, and where even that of the narrowest band is large: several would take the
/// memory that tiles need. The room decides how wide a band is, and must not enter here.
fn tables_at_once(op: Tally, values: &Expr, rows: u64) -> u64 {
    let is_large = || values.ndim() > 1 && least_table_bytes(values, rows) > TABLE_BYTES;
    match op.is_ordered() || is_large() {
        true => 1,
        false => TABLES,
    }
}

fn table_bytes(rows: u64, columns: &[u64]) -> u64 {
    let columns = columns
        .iter()
        .fold(size_of::<f64>() as u64, |bytes, &length| bytes.saturating_mul(length));
    rows.saturating_mul(columns)
}

#[derive(Clone, Debug)]
struct TallyOperands {
    op: Tally,
    numbers: Expr,
    values: Option<Expr>,
    centers: Option<Expr>,
    rows: u64,
    dtype: DType,
    /// Tables that tasks add to at once.
    tables: u64,
}

impl TallyOperands {
    fn list(&self) -> Vec<Expr> {
        let others = self.values.iter().chain(&self.centers);
        std::iter::once(&self.numbers).chain(others).cloned().collect()
    }

    /// The result, where the values have such tiles.
    fn grid(&self, tile: &[u64]) -> Grid {
        let beside = self.values.as_ref().unwrap_or(&self.numbers);
        let columns = tile[1..].iter().map(|&length| length.max(1));
        Grid {
            shape: [&[self.rows], &beside.shape[1..]].concat(),
            tile: std::iter::once(self.rows.max(1)).chain(columns).collect(),
            dtype: self.dtype,
        }
    }

    /// The table of values in such tiles.
    fn table(&self, tile: &[u64]) -> Result<Expr, EngineError> {
        let table = self.grid(tile);
        let tallying = Tallying {
            op: self.op,
            types: TallyTypes {
                values: self.values.as_ref().map_or(DType::I64, |values| values.dtype),
                table: self.dtype,
            },
            rows: self.rows,
            elements: tile[0],
            columns: tile[1..].iter().product(),
            centers: self.centers.as_ref().map(|centers| centers.dtype),
        };
        let tile: Vec<u64> = tile.iter().map(|&length| length.max(1)).collect();
        let numbers = in_tiles(&self.numbers, vec![tile[0]]);
        let is_narrowed = |values: &Expr| tile[1..].iter().zip(&values.tile[1..]).any(|(band, own)| band < own);
        let values = self.values.iter().map(|values| match is_narrowed(values) {
            true => in_bands(values, &tile),
            false => in_tiles(values, tile.clone()),
        });
        let centers = self.centers.iter().map(|centers| in_tiles(centers, table.tile.clone()));
        let inputs: Vec<Expr> = std::iter::once(numbers).chain(values).chain(centers).collect();
        gathered(tallying, &inputs, table, self.tables)
    }
}

/// A table that may be cut into narrower bands than the tiles of the values, as the room is.
#[derive(Debug)]
struct Banded {
    operands: TallyOperands,
    result: [Grid; 1],
}

impl Staged for Banded {
    fn name(&self) -> String {
        name_of(self.operands.op)
    }
    fn key(&self) -> Vec<u8> {
        [
            &[u8::from(self.operands.centers.is_some())],
            &self.operands.rows.to_le_bytes()[..],
        ]
        .concat()
    }
    fn recipe(&self) -> Option<Recipe> {
        let TallyOperands { op, rows, dtype, .. } = &self.operands;
        Some(recipe_of(*op, *rows, *dtype))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        let mut operands = self.operands.clone();
        operands.numbers = inputs[0].clone();
        operands.values = inputs.get(1).cloned();
        operands.centers = inputs.get(2).cloned();
        Ok(Box::new(operands))
    }
}

impl Stages for TallyOperands {
    fn next(&mut self, _found: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let values = self.values.as_ref().unwrap_or(&self.numbers);
        let others = 1 + u64::from(self.centers.is_some());
        let need = |band: &[u64]| {
            let tile = values.tile[0] * band.iter().product::<u64>() * values.dtype.size() as u64;
            (self.tables + others) * table_bytes(self.rows, band) + 2 * (room.threads as u64 + 1) * tile
        };
        let mut bands = narrower(values, RUN_BYTES);
        let fitting = bands.iter().position(|band| need(band) <= room.memory / 4 * 3);
        let band = bands.swap_remove(fitting.unwrap_or(bands.len() - 1));
        let tile = [&values.tile[..1], &band].concat();
        Ok(Next::Done(vec![self.table(&tile)?]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal("a table has no stages of its own".into()))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}

fn name_of(op: Tally) -> String {
    match op {
        Tally::Count => "bincount".into(),
        op => format!("{op:?} of groups").to_lowercase(),
    }
}

fn recipe_of(op: Tally, rows: u64, dtype: DType) -> Recipe {
    Recipe::new("tally").text(op.name()).word(rows).text(dtype.name())
}

#[derive(Clone, Debug)]
struct Tallying {
    op: Tally,
    types: TallyTypes,
    rows: u64,
    /// Of a tile of numbers.
    elements: u64,
    /// Of a tile of values.
    columns: u64,
    centers: Option<DType>,
}

impl Tabled for Tallying {
    fn name(&self) -> String {
        name_of(self.op)
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Recipe {
        recipe_of(self.op, self.rows, self.types.table)
    }
    fn tiled(&self) -> usize {
        2
    }
    fn operations(&self) -> f64 {
        (14.0 + self.columns as f64) * self.elements as f64
    }
    fn clear(&self, table: &mut [u8]) {
        clear_tally(self.op, self.types.table, table);
    }
    fn add(&self, below: u64, tiles: &[&[u8]], table: &mut [u8]) {
        let columns = (table.len() as u64 / size_of::<f64>() as u64 / self.rows.max(1)) as usize;
        match self.centers {
            Some(centers) if self.op == Tally::Min => {
                let (first, types) = ((below * self.elements) as i64, (self.types.values, centers));
                return tally_places(types, tiles[0], tiles[1], (tiles[2], columns), first, table);
            }
            Some(_) => return tally_squares(self.types.values, tiles[0], tiles[1], tiles[2], columns, table),
            None => {}
        }
        let values = tiles.get(1).copied().unwrap_or_default();
        tally(self.op, self.types, tiles[0], values, columns, table);
    }
    fn merge(&self, from: &[u8], into: &mut [u8]) {
        merge_tallies(self.op, self.types.table, from, into);
    }
}
