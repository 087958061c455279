//! Whole columns at a time: sorts and order statistics along the first axis of arrays of many short columns.
//!
//! A task holds one band of columns from the first row to the last, so that every tile is read once. Bands are the tiles
//! of the array where they fit the memory; else narrower ones, in which a stored array is read; else, where files cannot be
//! read so, narrower ones that a copy in scratch is cut into. Results do not depend on how wide they are.

mod kind;
mod work;

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::sort::KeyOrder;
use outcore_kernels::Generator;
use outcore_store::Io;

use self::kind::ColumnKind;
use self::work::WholeColumns;
use super::{order_statistics, sort_by};
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::{AxisSlice, Expr};
use crate::task::{Grid, Recipe};
use crate::{ops, EngineError};

/// Bands are narrower than the tiles where those are larger than this.
const BAND_BYTES: u64 = 32 << 20;
/// Shorter runs of rows are not read from files: a copy moves less.
const RUN_BYTES: u64 = 4 << 10;
/// A column is long where it takes more than this part of the memory.
const LONG_PARTS: u64 = 16;
/// Columns that are sorted one by one where none can be held, at most.
const LANES_MAX: u64 = 64;

fn whole(kind: ColumnKind, x: &Expr, descending: bool, codes: Option<&Expr>) -> Result<Vec<Expr>, EngineError> {
    let name = kind.name();
    let order = KeyOrder::new(x.dtype, descending)
        .ok_or_else(|| EngineError::DType(format!("{name}: {} has no order", x.dtype)))?;
    if x.ndim() == 0 || x.shape[0] > 1 << 32 {
        return Err(EngineError::Shape(format!(
            "{name}: shape {} has no columns that a task can hold",
            ops::show(&x.shape)
        )));
    }
    if x.shape[0] == 0 && matches!(kind, ColumnKind::Quantiles(_) | ColumnKind::Middles { .. }) {
        return Err(EngineError::Shape(format!(
            "{name}: shape {} has no rows",
            ops::show(&x.shape)
        )));
    }
    let x = &in_default_bands(x);
    let results = kind.results(&x.grid());
    let inputs: Vec<Expr> = std::iter::once(x).chain(codes).cloned().collect();
    ops::staged(Arc::new(Columns { kind, order, results }), &inputs)
}

/// `x` in bands of some MiB where those cost nothing: tiles that do not depend on the room, for results are cut alike.
fn in_default_bands(x: &Expr) -> Expr {
    let column = x.shape[0] * x.dtype.size() as u64;
    let bands = ops::narrower(x, RUN_BYTES);
    let fitting = bands
        .iter()
        .position(|band| band.iter().product::<u64>() * column <= BAND_BYTES);
    match fitting.unwrap_or(bands.len() - 1) {
        at if at > 0 && ops::is_cut_freely(x) => {
            ops::in_bands(x, &[&[ops::rows_of(&bands[at], x)], &bands[at][..]].concat())
        }
        _ => x.clone(),
    }
}

/// `x` sorted along its first axis, or (`positions`) where the elements were, int64. Stable; NaN comes last.
///
/// # Errors
/// A type without an order, a number, or columns of more than 2³² elements.
pub fn sort_columns(x: &Expr, descending: bool, positions: bool) -> Result<Expr, EngineError> {
    let kind = if positions {
        ColumnKind::Positions
    } else {
        ColumnKind::Sorted
    };
    Ok(whole(kind, x, descending, None)?.swap_remove(0))
}

/// As `order_statistics`, of an array of any number of axes along the first: what it gives has the other axes behind that
/// of the fractions.
///
/// # Errors
/// As there.
pub fn column_statistics(x: &Expr, fractions: &[f64]) -> Result<Vec<Expr>, EngineError> {
    if let Some(outside) = fractions.iter().find(|fraction| !(0.0..=1.0).contains(*fraction)) {
        return Err(EngineError::Argument(format!(
            "quantile: q={outside} is not between 0 and 1"
        )));
    }
    whole(ColumnKind::Quantiles(fractions.to_vec()), x, false, None)
}

/// For each number below `groups` the elements on both sides of the middle of the rows of `x` beside which it stands in
/// `codes` (a row of int64): two arrays with a row for each. NaN for groups without elements (0 in integer types), and
/// where a group has a NaN, unless `omit` passes those over. Other codes are left out.
///
/// # Errors
/// As `sort_columns`; codes of another length or type.
pub fn group_middles(x: &Expr, codes: &Expr, groups: u64, omit: bool) -> Result<Vec<Expr>, EngineError> {
    if x.ndim() == 0 || codes.dtype != DType::I64 || codes.shape != x.shape[..1] {
        return Err(EngineError::Shape(format!(
            "median of groups: codes of shape {} of {} for rows of shape {}",
            ops::show(&codes.shape),
            codes.dtype,
            ops::show(&x.shape)
        )));
    }
    whole(ColumnKind::Middles { groups, omit }, x, false, Some(codes))
}

#[derive(Debug)]
struct Columns {
    kind: ColumnKind,
    order: KeyOrder,
    results: Vec<Grid>,
}

impl Staged for Columns {
    fn name(&self) -> String {
        self.kind.name().into()
    }
    fn key(&self) -> Vec<u8> {
        self.kind.key(self.order)
    }
    fn recipe(&self) -> Option<Recipe> {
        let descending = self.order.descending();
        Some(match &self.kind {
            ColumnKind::Sorted => Recipe::new("sort columns").flag(descending).flag(false),
            ColumnKind::Positions => Recipe::new("sort columns").flag(descending).flag(true),
            ColumnKind::Quantiles(fractions) => Recipe::new("column statistics").floats(fractions.clone()),
            ColumnKind::Middles { groups, omit } => Recipe::new("group middles").word(*groups).flag(*omit),
        })
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(ColumnStages {
            kind: self.kind.clone(),
            order: self.order,
            x: inputs[0].clone(),
            codes: inputs.get(1).cloned(),
        }))
    }
}

struct ColumnStages {
    kind: ColumnKind,
    order: KeyOrder,
    x: Expr,
    codes: Option<Expr>,
}

impl ColumnStages {
    /// The algorithm over `x`, in whose tiles bands are.
    fn over(&self, x: &Expr) -> WholeColumns {
        WholeColumns::new(self.kind.clone(), self.order, x.grid(), self.codes.is_some())
    }

    fn nodes(&self, x: Expr) -> Result<Vec<Expr>, EngineError> {
        let algorithm = Arc::new(self.over(&x));
        let codes = self
            .codes
            .iter()
            .map(|codes| ops::in_tiles(codes, vec![codes.shape[0].max(1)]));
        let inputs: Vec<Expr> = std::iter::once(x).chain(codes).collect();
        ops::algorithm(algorithm, &inputs)
    }

    /// Rows of a tile of a band. Results as long as `x` keep its own, of whose tiles theirs are made.
    fn rows_of(&self, band: &[u64]) -> u64 {
        match self.kind {
            ColumnKind::Sorted | ColumnKind::Positions => self.x.tile[0],
            ColumnKind::Quantiles(_) | ColumnKind::Middles { .. } => ops::rows_of(band, &self.x),
        }
    }

    /// `x` in bands that fit the room: those that cost nothing first, then copies.
    fn banded(&self, room: Room) -> Option<Expr> {
        let x = &self.x;
        let most = room.memory / 4 * 3;
        let need = |x: &Expr| self.over(x).task_bytes();
        let mut free = ops::narrower(x, RUN_BYTES);
        if !ops::is_cut_freely(x) {
            free.truncate(1);
        }
        let free: Vec<Expr> = free
            .iter()
            .enumerate()
            .map(|(at, band)| match at {
                0 => x.clone(),
                _ => ops::in_bands(x, &[&[self.rows_of(band)], &band[..]].concat()),
            })
            .collect();
        // Two at a time: one is read while the other is worked on.
        let fits = |times: u64| move |need: u64| need.saturating_mul(times) <= most;
        for times in [room.threads as u64 + 1, 2, 1] {
            if let Some(found) = free.iter().find(|x| fits(times)(need(x))) {
                return Some(found.clone());
            }
        }
        // Each tile of the copy is made of tiles of `x`, which are held beside it.
        let bands = ops::narrowest(x);
        let mut copies = bands.iter().skip(1).map(|band| ops::copied_in(x, band, most / 4));
        copies
            .find(|(copy, beside)| fits(2)(need(copy)) && fits(2)(*beside))
            .map(|(copy, _)| copy)
    }

    /// What is said where not even a single column can be held.
    fn refusal(&self, room: Room) -> EngineError {
        let single = vec![1; self.x.ndim() - 1];
        let (column, beside) = ops::copied_in(&self.x, &single, 0);
        let need = (self.over(&column).task_bytes().max(beside) * 2).div_ceil(3) * 4 + 4;
        EngineError::Memory {
            operator: self.kind.name().into(),
            need,
            available: room.memory,
            smallest: need,
            exact: false,
            detail: format!("a column of {} elements is held whole", self.x.shape[0]),
            planning: false,
        }
    }

    fn lanes(&self) -> u64 {
        self.x.shape[1..].iter().product()
    }

    /// Whether not a single column can be held.
    fn is_long(&self, room: Room) -> bool {
        self.x.shape[0].saturating_mul(LONG_PARTS * self.x.dtype.size() as u64) > room.memory
    }

    /// Columns that cannot be held, each sorted as a row.
    fn of_lanes(&self) -> Result<Vec<Expr>, EngineError> {
        let (x, length) = (&self.x, self.x.shape[0]);
        let columns = self.lanes();
        let flat = ops::reshape(x, &[length, columns])?;
        let is_of_places = self.kind == ColumnKind::Positions;
        let every = Generator::Arange {
            start: Scalar::Int(0),
            step: Scalar::Int(1),
        };
        let places = is_of_places
            .then(|| ops::generate(every, vec![length], DType::I64))
            .transpose()?;
        let lane = |column: u64| {
            let slices = [0, column].map(|start| AxisSlice {
                start: start as i64,
                step: 1,
            });
            let lane = ops::squeeze(&ops::slice(&flat, &slices, &[length, 1])?, &[1])?;
            let sorted = sort_by(&lane, places.as_slice(), self.order.descending(), None)?;
            ops::expand_dims(&sorted[usize::from(is_of_places)], &[0])
        };
        let lanes = (0..columns).map(lane).collect::<Result<Vec<_>, _>>()?;
        let grid = self.kind.results(&x.grid()).swap_remove(0);
        let turned = ops::permute(&ops::concat(&lanes, 0)?, &[1, 0])?;
        Ok(vec![ops::in_tiles(&ops::reshape(&turned, &grid.shape)?, grid.tile)])
    }

    /// Quantiles of columns that are too long to be held, in two reads.
    fn of_long(&self, fractions: &[f64]) -> Result<Vec<Expr>, EngineError> {
        let columns = self.lanes();
        let found = order_statistics(&ops::reshape(&self.x, &[self.x.shape[0], columns])?, fractions)?;
        let shapes = self.kind.results(&self.x.grid());
        let pairs = found.iter().zip(shapes);
        pairs.map(|(found, grid)| ops::reshape(found, &grid.shape)).collect()
    }
}

impl Stages for ColumnStages {
    fn next(&mut self, _found: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let count = self.kind.results(&self.x.grid()).len();
        let mut nodes = match (self.banded(room), &self.kind) {
            (Some(x), _) => self.nodes(x)?,
            (None, ColumnKind::Quantiles(fractions)) if self.is_long(room) => self.of_long(fractions)?,
            (None, ColumnKind::Sorted | ColumnKind::Positions) if self.lanes() <= LANES_MAX => self.of_lanes()?,
            (None, _) => return Err(self.refusal(room)),
        };
        nodes.truncate(count);
        Ok(Next::Done(nodes))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal("columns are held in no stages".into()))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
