//! `x[index]` with an index that may be larger than memory: rows held, swept over, or met in sorted order.

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::Generator;
use outcore_store::{Io, Picked, Region, Source};

use super::segments::Assumed;
use super::sort_by;
use crate::expr::grid::PANEL_BYTES;
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::{AxisSlice, Expr, Node, Op, SourceKey};
use crate::ops::{self, GatherOrder, NamedRows};
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// Rows are held while they take no more than this part of the memory.
const HELD_PART: u64 = 3;
/// Rows of more elements are swept over: sorting them back would move each element by itself.
const SORTED_ELEMENTS_MAX: u64 = 8;
/// By themselves, elements must move fewer bytes than all of their array by this factor.
const WORTH: u64 = 2;
/// More of them are not looked for one by one: what is known of each takes memory and time.
const PICKED_MAX: u64 = 1 << 15;
/// Tiles that a sort holds of each column where memory is short.
const SORT_TILES: u64 = 3;

/// `x[index]` along the first axis; `index` is a row of int64 that counts from the front.
///
/// # Errors
/// An index of another kind; at run time, one that names no row.
pub fn take(x: &Expr, index: &Expr) -> Result<Expr, EngineError> {
    taken(x, index, false)
}

/// The same of an index that ascends, whose tiles meet few tiles of rows each.
///
/// # Errors
/// As `take`.
pub fn take_ascending(x: &Expr, index: &Expr) -> Result<Expr, EngineError> {
    taken(x, index, true)
}

fn taken(x: &Expr, index: &Expr, is_ascending: bool) -> Result<Expr, EngineError> {
    // Checks both.
    ops::gather(x, index, GatherOrder::AtOnce)?;
    let result = [ops::gather_grid(x, index)];
    let taking = Arc::new(Take { result, is_ascending });
    Ok(ops::staged(taking, &[x.clone(), index.clone()])?.swap_remove(0))
}

#[derive(Debug)]
struct Take {
    result: [Grid; 1],
    is_ascending: bool,
}

impl Staged for Take {
    fn name(&self) -> String {
        "take".into()
    }
    fn key(&self) -> Vec<u8> {
        if self.is_ascending {
            vec![1]
        } else {
            vec![]
        }
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("take").flag(self.is_ascending))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Taking {
            x: inputs[0].clone(),
            index: inputs[1].clone(),
            is_ascending: self.is_ascending,
        }))
    }
}

struct Taking {
    x: Expr,
    index: Expr,
    is_ascending: bool,
}

impl Taking {
    /// How the room lets rows and results come together; none where sorting moves less.
    fn order(&self, room: Room) -> Option<GatherOrder> {
        if self.x.nbytes() <= room.memory / HELD_PART || self.index.shape[0] == 0 {
            return Some(GatherOrder::AtOnce);
        }
        let result = ops::gather_grid(&self.x, &self.index);
        // A tile of the result and its part of the index are held, and beside them tiles of rows come and go.
        let tile: u64 = result.tile.iter().product::<u64>() * result.dtype.size() as u64;
        let group = room.memory / 2 / (tile + result.tile[0] * size_of::<i64>() as u64);
        let sweeps = result.counts()[0].div_ceil(group.max(1));
        let narrow = self.x.shape[1..].iter().product::<u64>() <= SORTED_ELEMENTS_MAX;
        (!narrow || sweeps <= 1).then_some(GatherOrder::Sweeps(group.max(1)))
    }

    /// Elements of a stored array by themselves, where the index is known and they are few: which pages or chunks hold them is
    /// known too.
    fn picked(&self, io: &Io) -> Result<Option<Expr>, EngineError> {
        let grid = ops::gather_grid(&self.x, &self.index);
        if self.index.shape[0] > PICKED_MAX.min(grid.tile[0]) {
            return Ok(None);
        }
        let (Some(seen), Some(index)) = (Seen::of(&self.x), known(&self.index)) else {
            return Ok(None);
        };
        let count = self.x.elements();
        let positions: Option<Vec<u64>> = index
            .into_iter()
            .map(|at| {
                u64::try_from(at)
                    .ok()
                    .filter(|at| *at < count)
                    .map(|at| seen.position(at))
            })
            .collect();
        let Some(positions) = positions.filter(|all| !all.is_empty()) else {
            return Ok(None); // none, or one that is to be refused
        };
        let Op::Source(SourceKey(named)) = &self.index.op else {
            return Ok(None);
        };
        let picked = Picked::new(seen.source, positions, named.identity())?;
        let bytes = picked.cost(&Region::full(&grid.shape), io)?.read_bytes;
        let is_worth = bytes.saturating_mul(WORTH) <= self.x.nbytes();
        Ok(is_worth.then(|| stored(Arc::new(picked), &grid.tile)))
    }

    /// Rows met in the order of the index.
    fn met(&self) -> Result<Expr, EngineError> {
        let met = InOrder {
            results: [ops::gather_grid(&self.x, &self.index), self.index.grid()],
        };
        let inputs = [self.index.clone(), self.index.clone(), self.x.clone()];
        Ok(ops::staged(Arc::new(met), &inputs)?.swap_remove(0))
    }

    /// The index sorted, rows met in its order, and sorted back.
    fn sorted(&self, room: Room) -> Result<Expr, EngineError> {
        let columns = self.x.shape[1..].iter().product::<u64>();
        let positions = ops::generate(counting(), self.index.shape.clone(), DType::I64)?;
        let ordered = sort_by(&self.index, &[positions], false, None)?;
        let x = match self.x.ndim() {
            1 => self.x.clone(),
            _ => ops::reshape(&self.x, &[self.x.shape[0], columns])?,
        };
        let met = InOrder {
            results: [ops::gather_grid(&x, &ordered[0]), ordered[1].grid()],
        };
        let met = ops::staged(Arc::new(met), &[ordered[0].clone(), ordered[1].clone(), x.clone()])?;
        if x.ndim() == 1 {
            return Ok(sort_by(&met[1], &met[..1], false, None)?.swap_remove(1));
        }
        let column = |at: u64| {
            let slices = [
                AxisSlice { start: 0, step: 1 },
                AxisSlice {
                    start: at as i64,
                    step: 1,
                },
            ];
            ops::squeeze(&ops::slice(&met[0], &slices, &[met[0].shape[0], 1])?, &[1])
        };
        let apart = (0..columns).map(column).collect::<Result<Vec<_>, _>>()?;
        // A sort holds tiles of all its columns several times.
        let together = (room.memory / (SORT_TILES * PANEL_BYTES)).saturating_sub(1).max(1);
        let mut back = Vec::new();
        for columns in apart.chunks(together as usize) {
            for column in sort_by(&met[1], columns, false, None)?.into_iter().skip(1) {
                back.push(ops::expand_dims(&column, &[1])?);
            }
        }
        let joined = ops::concat(&back, 1)?;
        let shape: Vec<u64> = std::iter::once(self.index.shape[0])
            .chain(self.x.shape[1..].iter().copied())
            .collect();
        match shape == joined.shape {
            true => Ok(joined),
            false => ops::reshape(&joined, &shape),
        }
    }
}

/// A stored array whose elements are those of a row, in C order after its axes were put in another order.
struct Seen<'a> {
    source: Arc<dyn Source>,
    permuted: Option<(&'a [usize], &'a [u64])>,
}

impl<'a> Seen<'a> {
    fn of(row: &'a Expr) -> Option<Seen<'a>> {
        let array = match row.op {
            Op::Reshape => &row.inputs[0],
            _ => row,
        };
        let (stored, permuted) = match &array.op {
            Op::Permute(axes) => (&array.inputs[0], Some((&axes[..], &array.shape[..]))),
            _ => (array, None),
        };
        match &stored.op {
            Op::Source(SourceKey(source)) if row.ndim() == 1 && source.memory().is_none() => Some(Seen {
                source: source.clone(),
                permuted,
            }),
            _ => None,
        }
    }

    /// Where in the stored array an element of the row is.
    fn position(&self, at: u64) -> u64 {
        let Some((axes, shape)) = self.permuted else {
            return at;
        };
        let (mut rest, mut places) = (at, vec![0; shape.len()]);
        for (axis, length) in axes.iter().zip(shape).rev() {
            places[*axis] = rest % length;
            rest /= length;
        }
        let stored = places.iter().zip(self.source.shape());
        stored.fold(0, |position, (place, length)| position * length + place)
    }
}

/// What an index in memory says.
fn known(index: &Expr) -> Option<Vec<i64>> {
    let Op::Source(SourceKey(source)) = &index.op else {
        return None;
    };
    let view = source.memory()?;
    let at = |place: u64| {
        let element = view.offset as i64 + place as i64 * view.strides[0];
        let bytes = &view.data[element as usize * size_of::<i64>()..][..size_of::<i64>()];
        i64::from_ne_bytes(bytes.try_into().expect("an element has its bytes"))
    };
    Some((0..index.shape[0]).map(at).collect())
}

fn counting() -> Generator {
    Generator::Arange {
        start: Scalar::Int(0),
        step: Scalar::Int(1),
    }
}

impl Stages for Taking {
    fn next(&mut self, _found: &[StageResult], room: Room, io: &Io) -> Result<Next, EngineError> {
        if let Some(picked) = self.picked(io)? {
            return Ok(Next::Done(vec![picked]));
        }
        let result = match self.order(room) {
            Some(GatherOrder::Sweeps(_)) | None if self.is_ascending => self.met()?,
            Some(order) => ops::gather(&self.x, &self.index, order)?,
            None => self.sorted(room)?,
        };
        Ok(Next::Done(vec![result]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal("take has no stages of its own".into()))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}

/// Rows in the order of a sorted index, and the column that goes with it, unchanged: which rows each tile of the index
/// meets is known when it has been sorted.
#[derive(Debug)]
struct InOrder {
    results: [Grid; 2],
}

impl Staged for InOrder {
    fn name(&self) -> String {
        "take in order".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(SortedTake {
            inputs: inputs.to_vec(),
            rows: self.results[0].tile[0],
        }))
    }
}

struct SortedTake {
    /// The sorted index, what goes with it, and the rows.
    inputs: Vec<Expr>,
    /// Rows of a tile of the result.
    rows: u64,
}

impl SortedTake {
    fn done(&self, columns: [Expr; 2], ranges: Vec<NamedRows>) -> Result<Next, EngineError> {
        let [index, beside] = columns;
        let order = GatherOrder::Sorted(Arc::new(ranges));
        Ok(Next::Done(vec![ops::gather(&self.inputs[2], &index, order)?, beside]))
    }
}

/// A node that reads what is stored in the tiles of another.
fn stored(source: Arc<dyn outcore_store::Source>, tile: &[u64]) -> Expr {
    let (shape, dtype) = (source.shape().to_vec(), source.dtype());
    Node::intern(Op::Source(SourceKey(source)), vec![], shape, dtype, tile.to_vec())
}

impl Stages for SortedTake {
    fn next(&mut self, results: &[StageResult], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        let [StageResult::Stored(index), StageResult::Stored(beside), StageResult::Fact(edges)] = results else {
            let edges = ops::edges(&self.inputs[0], self.rows)?;
            let kept = [Keep::Stored, Keep::Stored, Keep::Fact];
            let outputs = [self.inputs[0].clone(), self.inputs[1].clone(), edges];
            return Ok(Next::Stage {
                label: "sort the index".into(),
                awaits: "which rows each part of the sorted index names".into(),
                outputs: outputs.into_iter().zip(kept).collect(),
            });
        };
        ops::check_inside(self.inputs[2].shape[0], edges)?;
        let (edges, _) = edges.as_chunks::<8>();
        let edges: Vec<u64> = edges.iter().map(|edge| u64::from_ne_bytes(*edge)).collect();
        let (ranges, _) = edges.as_chunks::<2>();
        let tile = &self.inputs[0].tile;
        let columns = [stored(index.clone(), tile), stored(beside.clone(), tile)];
        self.done(
            columns,
            ranges.iter().map(|&[first, last]| NamedRows { first, last }).collect(),
        )
    }

    /// As if the index were spread evenly: every other meets as many tiles of rows or fewer, each of them in one go.
    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        let (length, rows) = (self.inputs[0].shape[0], self.inputs[2].shape[0]);
        let parts = length.div_ceil(self.rows);
        let place = |at: u64| (u128::from(at) * u128::from(rows - 1) / u128::from(parts)) as u64;
        let column = |which: usize| {
            let node = &self.inputs[which];
            let identity = format!("a sorted index to come: {} {which}", node.id);
            stored(Arc::new(Assumed::like(node, identity)), &node.tile)
        };
        self.done(
            [column(0), column(1)],
            (0..parts)
                .map(|at| NamedRows {
                    first: place(at),
                    last: place(at + 1),
                })
                .collect(),
        )
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
