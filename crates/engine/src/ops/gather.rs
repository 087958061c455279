//! Rows that an index names, gathered tile by tile: three orders of the same work.
//!
//! With all rows in memory each tile of the result is one task. Else a task takes one tile of rows and one of the result:
//! so many tiles of the result as fit are held while the rows pass by, or, where the index is sorted, only those pairs
//! come together whose positions overlap.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_kernels::{find_outside, gather_rows, positions_between, RowsInBlocks};

use super::{algorithm, show};
use crate::expr::{grid, Expr};
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;
use outcore_dtype::DType;

/// In which order rows and results come together. The values are the same in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherOrder {
    /// All rows stay in memory.
    AtOnce,
    /// So many row tiles of the result are filled by each sweep over the rows.
    Sweeps(u64),
    /// For each row tile of the result the first and the last position that its part of the index, which is sorted, names.
    Sorted(Arc<Vec<NamedRows>>),
}

/// The first and the last row that a part of a sorted index names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedRows {
    pub first: u64,
    pub last: u64,
}

/// How `gather` cuts its result, whatever the order.
pub fn gather_grid(x: &Expr, index: &Expr) -> Grid {
    let mut result = x.grid();
    (result.shape[0], result.tile[0]) = (index.shape[0], 1);
    let row: u64 = result.tile.iter().product::<u64>() * x.dtype.size() as u64;
    let rows = (grid::PANEL_BYTES / row.max(8)).max(1);
    result.tile[0] = (1 << rows.ilog2()).min(index.shape[0].max(1));
    result
}

/// `x[index]` along the first axis. `index` is int64, one-dimensional, and counts from the front.
///
/// # Errors
/// An index of another kind; at run time, one that names no row.
pub fn gather(x: &Expr, index: &Expr, order: GatherOrder) -> Result<Expr, EngineError> {
    if x.ndim() == 0 || index.ndim() != 1 || index.dtype != DType::I64 {
        return Err(EngineError::Shape(format!(
            "take: an index of shape {} of {} into shape {}; it is a row of int64",
            show(&index.shape),
            index.dtype,
            show(&x.shape)
        )));
    }
    if x.shape[0] == 0 && index.shape[0] > 0 {
        return Err(EngineError::Index(format!(
            "take: {} indices into shape {}, whose first axis has length 0",
            index.shape[0],
            show(&x.shape)
        )));
    }
    let result = gather_grid(x, index);
    let counts = TileCounts {
        rows: x.grid().counts()[0],
        targets: result.counts()[0],
    };
    let work = GatherRows {
        rows: x.grid(),
        index: index.grid(),
        before: pairs_before(&order, x.tile[0]),
        result: [result],
        counts,
        order,
    };
    Ok(algorithm(Arc::new(work), &[x.clone(), index.clone()])?.swap_remove(0))
}

/// Pairs before each row tile of the result where the index is sorted.
fn pairs_before(order: &GatherOrder, rows: u64) -> Vec<u64> {
    let GatherOrder::Sorted(ranges) = order else {
        return vec![];
    };
    let mut total = 0;
    let pairs = ranges.iter().map(|named| {
        total += named.last / rows - named.first / rows + 1;
        total
    });
    std::iter::once(0).chain(pairs).collect()
}

#[derive(Clone, Debug)]
struct GatherRows {
    rows: Grid,
    index: Grid,
    result: [Grid; 1],
    order: GatherOrder,
    before: Vec<u64>,
    /// Row tiles of the array and of the result.
    counts: TileCounts,
}

#[derive(Clone, Copy, Debug)]
struct TileCounts {
    rows: u64,
    targets: u64,
}

/// A row tile of the result and the row tiles that a task fills it from.
struct Pair {
    /// Row tile of the result.
    target: u64,
    /// Row tiles of the array.
    from: std::ops::Range<u64>,
    /// Which of the tiles side by side.
    across: u64,
    first: bool,
}

impl GatherRows {
    fn across(&self) -> u64 {
        self.rows.counts()[1..].iter().product()
    }

    fn pair(&self, task: u64) -> Pair {
        let TileCounts { rows, targets } = self.counts;
        match &self.order {
            GatherOrder::AtOnce => Pair {
                target: task % targets,
                from: 0..rows,
                across: task / targets,
                first: true,
            },
            GatherOrder::Sweeps(group) => {
                let (across, task) = (task / (rows * targets), task % (rows * targets));
                let begin = task / (group * rows) * group;
                let (task, size) = (task - begin * rows, (*group).min(targets - begin));
                let from = task / size;
                Pair {
                    target: begin + task % size,
                    from: from..from + 1,
                    across,
                    first: from == 0,
                }
            }
            GatherOrder::Sorted(ranges) => {
                let pairs = *self.before.last().expect("begins with zero");
                let (across, task) = (task / pairs, task % pairs);
                let target = self.before.partition_point(|before| *before <= task) - 1;
                let from = ranges[target].first / self.rows.tile[0] + task - self.before[target];
                Pair {
                    target: target as u64,
                    from: from..from + 1,
                    across,
                    first: task == self.before[target],
                }
            }
        }
    }

    /// The elements of the index for a row tile of the result.
    fn range(&self, target: u64) -> Interval {
        let start = target * self.result[0].tile[0];
        Interval::between(start, (start + self.result[0].tile[0]).min(self.result[0].shape[0]))
    }
}

impl Alone for GatherRows {
    fn key(&self) -> Vec<u8> {
        let numbers: Vec<u64> = match &self.order {
            GatherOrder::AtOnce => vec![],
            GatherOrder::Sweeps(group) => vec![*group],
            GatherOrder::Sorted(ranges) => ranges.iter().flat_map(|rows| [rows.first, rows.last]).collect(),
        };
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for GatherRows {
    fn label(&self) -> String {
        "take".into()
    }

    fn tasks(&self) -> u64 {
        let TileCounts { rows, targets } = self.counts;
        let pairs = match &self.order {
            GatherOrder::AtOnce => targets,
            GatherOrder::Sweeps(_) => rows * targets,
            GatherOrder::Sorted(_) => *self.before.last().expect("begins with zero"),
        };
        pairs * self.across()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let pair = self.pair(task);
        let across = self.across();
        pair.from
            .for_each(|tile| each(0, tile * across + pair.across, Access::Read));
        let index = self.range(pair.target).tiles(self.index.tile[0]);
        index.for_each(|tile| each(1, tile, Access::Read));
        let access = if pair.first { Access::Create } else { Access::Update };
        each(2, pair.target * across + pair.across, access);
    }

    fn operations(&self) -> f64 {
        let elements = self.result[0].shape.iter().product::<u64>() as f64;
        let looked_at = match self.order {
            GatherOrder::Sweeps(_) => self.index.shape[0] as f64 * self.counts.rows as f64 * self.across() as f64,
            _ => 0.0,
        };
        30.0 * elements + 5.0 * looked_at
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let pair = self.pair(task);
        let (blocks, index) = tiles.reads.split_at((pair.from.end - pair.from.start) as usize);
        let region = self.rows.region(pair.from.start * self.across() + pair.across);
        let row: u64 = region[1..].iter().map(|along| along.length).product();
        let row_bytes = row as usize * self.rows.dtype.size();
        let rows = RowsInBlocks {
            row_bytes,
            per_block: self.rows.tile[0],
            first: region[0].start,
            blocks,
        };
        let range = self.range(pair.target);
        let length = self.rows.shape[0];
        for (tile, index) in range.tiles(self.index.tile[0]).zip(index) {
            let start = tile * self.index.tile[0];
            let item = size_of::<i64>();
            let part = range.intersection(Interval::new(start, (index.len() / item) as u64));
            let positions = &index[(part.start - start) as usize * item..(part.end() - start) as usize * item];
            let from = part.start;
            if pair.first {
                check_inside(length, positions)?;
            }
            let part = match self.order {
                GatherOrder::Sorted(_) => positions_between(positions, region[0].start, region[0].end()),
                _ => 0..positions.len() / item,
            };
            let place = (from - range.start) as usize + part.start;
            let target = &mut tiles.writes[0][place * row_bytes..(place + part.len()) * row_bytes];
            gather_rows(&rows, &positions[part.start * item..part.end * item], target);
        }
        Ok(())
    }
}

/// Refuses positions that are none, naming one as it was before those below zero were counted from the end.
///
/// # Errors
/// A position outside, named.
pub fn check_inside(length: u64, positions: &[u8]) -> Result<(), EngineError> {
    match find_outside(length, positions) {
        None => Ok(()),
        Some(outside) => {
            let position = if outside < 0 {
                outside.wrapping_sub(length as i64)
            } else {
                outside
            };
            Err(EngineError::Index(format!(
                "take: index {position} is out of bounds for an axis of length {length}"
            )))
        }
    }
}

/// The first and the last of every `stride` elements of a sorted row of int64, two for each.
///
/// # Errors
/// A row whose tiles are not whole multiples of `stride`.
pub fn edges(sorted: &Expr, stride: u64) -> Result<Expr, EngineError> {
    let (length, tile) = (sorted.shape[0], sorted.tile[0]);
    if tile % stride != 0 && tile < length {
        return Err(EngineError::Internal(format!(
            "edges: tiles of {tile} in parts of {stride}"
        )));
    }
    let work = Edges {
        stride,
        tiles: sorted.grid().tiles(),
        result: [Grid {
            shape: vec![2 * length.div_ceil(stride)],
            tile: vec![2 * tile.div_ceil(stride)],
            dtype: DType::I64,
        }],
    };
    Ok(algorithm(Arc::new(work), std::slice::from_ref(sorted))?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Edges {
    stride: u64,
    tiles: u64,
    result: [Grid; 1],
}

impl Alone for Edges {
    fn key(&self) -> Vec<u8> {
        self.stride.to_le_bytes().to_vec()
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for Edges {
    fn label(&self) -> String {
        "note positions".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, task, Access::Read);
        each(1, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.result[0].shape[0] as f64
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let item = size_of::<i64>();
        let parts = tiles.reads[0].chunks(self.stride as usize * item);
        for (edges, part) in tiles.writes[0].chunks_exact_mut(2 * item).zip(parts) {
            edges[..item].copy_from_slice(&part[..item]);
            edges[item..].copy_from_slice(&part[part.len() - item..]);
        }
        Ok(())
    }
}
