//! Few rows of many: reads that need little of the tiles they touch leave the tiles and read what they need.
//!
//! Tiles are some MiB, so that a sweep is a few large reads; ten rows of a long file would bring in ten tiles. A read
//! that needs at most an eighth of the tiles it touches is looked at together with the others of its array that do, and
//! where all of them move fewer bytes without the tiles, each becomes an array of its own: a selection of the stored one.
//! This depends on the program and its files only, so results and forecasts stay those of every limit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use outcore_store::{Interval, Io, Positions, Region, Selection, Source};

use super::compile::StepKind;
use super::gather::{concat_pieces, flat_index, hull, ArrayId, Base, BaseAxis, Gather};
use super::span::{resolve_all, Span};
use super::{ArrayInfo, ArrayKind, Plan, Producer};
use crate::expr::{grid, Node, Op, SourceKey};
use crate::{cancel, EngineError};

/// A read is for few elements when the tiles it touches hold this many times more.
const FEW: u64 = 8;
/// Without tiles, few elements must move fewer bytes by this factor: reads of pages cost more than their bytes.
const WORTH: u64 = 2;
/// Tiles that a read may touch for them to be looked at one by one.
const COUNTED_MAX: u64 = 1 << 16;
/// Tiles of one array that are told apart at most; those beyond count as touched already.
const SEEN_MAX: usize = 1 << 18;
/// Bytes at most of a tile that is longer than blocks.
const UNEVEN_MAX: u64 = 1 << 20;
/// Pieces that a read's cost is found from.
const SAMPLED: u64 = 1 << 14;

/// What reading some positions of an array alone costs.
struct Use {
    /// How the tiles of the selection are cut.
    tile: Vec<u64>,
    bytes: u64,
}

/// Gives reads of few elements arrays of their own. What sources have to read to know their costs goes through `io`.
///
/// # Errors
/// What sources report when asked for the cost of a read.
pub fn select_few(plan: &mut Plan, io: &Io) -> Result<(), EngineError> {
    let Plan { arrays, producers, .. } = plan;
    let mut reads: BTreeMap<ArrayId, HashMap<Vec<Positions>, Use>> = BTreeMap::new();
    each_use(producers, &mut |array, axes, region, block| {
        let positions = positions(axes, region);
        let known = reads.get(&array).is_some_and(|uses| uses.contains_key(&positions));
        let info = &arrays[array as usize];
        let Some(tile) = tile_of(axes, &positions, block, info.node.dtype.size() as u64).filter(|_| !known) else {
            return Ok(None);
        };
        if let Some(bytes) = few(info, &positions, io)? {
            reads.entry(array).or_default().insert(positions, Use { tile, bytes });
        }
        Ok(None)
    })?;
    reads.retain(|&array, uses| is_worth(&arrays[array as usize], uses));
    if reads.is_empty() {
        return Ok(());
    }
    let mut selections: HashMap<(ArrayId, Vec<Positions>), ArrayId> = HashMap::new();
    // What an algorithm takes, it takes in tiles.
    let works = producers.iter().filter_map(Producer::work);
    let mut used: HashSet<ArrayId> = works.flat_map(|step| step.sets.clone()).collect();
    each_use(producers, &mut |array, axes, region, block| {
        let positions = positions(axes, region);
        let known = reads.get(&array).and_then(|uses| uses.get(&positions));
        let Some(one) = known.filter(|one| holds_blocks(axes, &positions, block, &one.tile)) else {
            used.insert(array);
            return Ok(None);
        };
        if let Some(&id) = selections.get(&(array, positions.clone())) {
            return Ok(Some(id));
        }
        let id = arrays.len() as ArrayId;
        arrays.push(selection(&arrays[array as usize], &positions, &one.tile)?);
        selections.insert((array, positions), id);
        Ok(Some(id))
    })?;
    // What is read in parts only has no tiles of its own any more.
    for &array in reads.keys().filter(|array| !used.contains(array)) {
        arrays[array as usize].counts.fill(0);
    }
    Ok(())
}

/// Told an array, the axes of a gather of it, the box of the gathered value that a pass needs and the block it needs of
/// it at a time; gives the array to read instead.
type Visit<'a> = &'a mut dyn FnMut(ArrayId, &[BaseAxis], &[Interval], &[u64]) -> Result<Option<ArrayId>, EngineError>;

/// Calls `visit` for every gather of an array in the passes.
fn each_use(producers: &mut [Producer], visit: Visit<'_>) -> Result<(), EngineError> {
    for producer in producers {
        let Producer::Pass(pass) = producer else { continue };
        let whole: Vec<Interval> = pass
            .domain
            .shape
            .iter()
            .map(|&length| Interval::new(0, length))
            .collect();
        let tile: Vec<Interval> = pass
            .domain
            .tile
            .iter()
            .map(|&length| Interval::new(0, length))
            .collect();
        if whole.iter().any(|along| along.length == 0) {
            continue;
        }
        for step in &mut pass.steps {
            cancel::check();
            if let StepKind::Gather(gather) = &mut step.kind {
                let region = resolve_all(&step.spans, &whole);
                let block = step
                    .spans
                    .iter()
                    .map(|span: &Span| span.resolve(&tile).length)
                    .collect::<Vec<_>>();
                visit_leaves(gather, &region, &block, visit)?;
            }
        }
    }
    Ok(())
}

fn visit_leaves(gather: &mut Gather, region: &[Interval], block: &[u64], visit: Visit<'_>) -> Result<(), EngineError> {
    if region.iter().any(|along| along.length == 0) {
        return Ok(());
    }
    let base = gather.base_box(region);
    match &mut gather.base {
        Base::Array(array) => {
            if let Some(id) = visit(*array, &gather.axes, region, block)? {
                *array = id;
                gather.axes = gather.axes.iter().map(|axis| within_selection(*axis, region)).collect();
            }
        }
        Base::Generate { .. } => {}
        Base::Concat { axis, parts, ends } => {
            for (part, piece) in concat_pieces(*axis, ends, &base) {
                let lengths: Vec<u64> = piece.local.iter().map(|along| along.length).collect();
                visit_leaves(&mut parts[part], &piece.local, &lengths, visit)?;
            }
        }
        Base::Reshape { inner, from, to } => {
            let inside = hull(from, flat_index(to, &base, false), flat_index(to, &base, true));
            let lengths: Vec<u64> = inside.iter().map(|along| along.length).collect();
            visit_leaves(inner, &inside, &lengths, visit)?;
        }
    }
    Ok(())
}

/// The positions along each axis of the base that a box of the gathered value needs.
fn positions(axes: &[BaseAxis], region: &[Interval]) -> Vec<Positions> {
    axes.iter()
        .map(|axis| {
            let Some(output) = axis.output else {
                return Positions {
                    start: axis.start as u64,
                    step: 1,
                    count: 1,
                };
            };
            let along = region[output];
            let count = along.length;
            let first = axis.start + axis.step * along.start as i64;
            let last = first + axis.step * (count as i64 - 1);
            Positions {
                start: first.min(last) as u64,
                step: if count > 1 { axis.step.unsigned_abs() } else { 1 },
                count,
            }
        })
        .collect()
}

/// The axis over the selection of the positions that `region` needs.
fn within_selection(axis: BaseAxis, region: &[Interval]) -> BaseAxis {
    let Some(output) = axis.output else {
        return BaseAxis { start: 0, ..axis };
    };
    let (begin, count) = (region[output].start as i64, region[output].length as i64);
    let (start, step) = if axis.step > 0 {
        (-begin, 1)
    } else {
        (begin + count - 1, -1)
    };
    BaseAxis {
        output: Some(output),
        start,
        step,
    }
}

/// Tiles of a selection: what a block needs of it; one position where the gather needs one. Nothing where such a tile is large.
///
/// Blocks of a reversed axis are cut from its end: where they do not come out even, a tile is as long as the axis.
fn tile_of(axes: &[BaseAxis], positions: &[Positions], block: &[u64], item: u64) -> Option<Vec<u64>> {
    let mut tile: Vec<u64> = axes
        .iter()
        .zip(positions)
        .map(|(axis, at)| axis.output.map_or(1, |output| block[output].min(at.count)))
        .collect();
    if holds_blocks(axes, positions, block, &tile) {
        return Some(tile);
    }
    for ((axis, at), length) in axes.iter().zip(positions).zip(&mut tile) {
        if axis.step < 0 {
            *length = at.count;
        }
    }
    let bytes = tile.iter().fold(item, |bytes, length| bytes.saturating_mul(*length));
    (bytes <= UNEVEN_MAX).then_some(tile)
}

/// Whether each block of the gathered value lies in one tile of the selection.
fn holds_blocks(axes: &[BaseAxis], positions: &[Positions], block: &[u64], tile: &[u64]) -> bool {
    axes.iter().zip(positions).zip(tile).all(|((axis, at), &tile)| {
        let length = axis.output.map_or(1, |output| block[output].min(at.count)).max(1);
        let is_even = axis.step > 0 || at.count.is_multiple_of(length) && at.count.is_multiple_of(tile.max(1));
        tile >= at.count || tile.is_multiple_of(length) && is_even
    })
}

/// The bytes that reading some positions moves, if those are few of the tiles they lie in.
fn few(info: &ArrayInfo, positions: &[Positions], io: &Io) -> Result<Option<u64>, EngineError> {
    let ArrayKind::Source(source) = &info.kind else {
        return Ok(None);
    };
    let item = info.node.dtype.size() as u64;
    let chosen = positions.iter().fold(item, |bytes, at| bytes.saturating_mul(at.count));
    let touched = touched_bytes(&info.node, positions);
    if chosen.saturating_mul(FEW) > touched {
        return Ok(None);
    }
    Ok(Some(estimated_bytes(source, positions, io)?).filter(|&bytes| bytes < touched))
}

/// Tiles along one axis that hold some of the positions: every `step`-th from the first on.
fn touched(at: &Positions, tile: u64) -> (u64, u64, u64) {
    let last = at.start + at.count.saturating_sub(1) * at.step;
    match at.step >= tile {
        true => (at.start, at.step, at.count),
        false => (at.start / tile * tile, tile, last / tile - at.start / tile + 1),
    }
}

fn touched_bytes(node: &Node, positions: &[Positions]) -> u64 {
    let tile = node.tile.iter().zip(&node.shape);
    positions
        .iter()
        .zip(tile)
        .fold(node.dtype.size() as u64, |bytes, (at, (&tile, &length))| {
            let covered = touched(at, tile).2.saturating_mul(tile).min(length.max(tile));
            bytes.saturating_mul(covered)
        })
}

/// The bytes that reading a selection transfers, found from a part of it where it has very many pieces.
fn estimated_bytes(source: &Arc<dyn Source>, positions: &[Positions], io: &Io) -> Result<u64, EngineError> {
    let selection = Selection::new(source.clone(), positions.to_vec())?;
    let mut shape = selection.shape().to_vec();
    let last = shape.len().saturating_sub(1);
    let mut share = 1.0;
    for axis in 0..shape.len() {
        let pieces = |shape: &[u64]| {
            let cut = |&(axis, _): &(usize, &u64)| axis < last || positions[axis].step > 1;
            let counts = shape.iter().enumerate().filter(cut);
            counts.fold(1u64, |pieces, (_, &count)| pieces.saturating_mul(count))
        };
        let too_many = pieces(&shape).div_ceil(SAMPLED);
        if too_many > 1 && (axis < last || positions[axis].step > 1) {
            let whole = shape[axis];
            shape[axis] = (whole / too_many).max(1);
            share *= whole as f64 / shape[axis] as f64;
        }
    }
    let bytes = selection.cost(&Region::full(&shape), io)?.read_bytes;
    Ok((bytes as f64 * share) as u64)
}

/// Whether the uses together move fewer bytes as selections than the tiles they touch have.
fn is_worth(info: &ArrayInfo, uses: &HashMap<Vec<Positions>, Use>) -> bool {
    let bytes = uses.values().fold(0u64, |sum, one| sum.saturating_add(one.bytes));
    let tile_bytes = info.node.tile.iter().product::<u64>() * info.node.dtype.size() as u64;
    let mut seen = HashSet::new();
    let mut uncounted = 0u64;
    for positions in uses.keys() {
        cancel::check();
        if seen.len() > SEEN_MAX {
            break;
        }
        let tiles = positions.iter().zip(&info.node.tile);
        let along: Vec<(u64, u64, u64)> = tiles.map(|(at, &tile)| touched(at, tile)).collect();
        let count = along.iter().fold(1u64, |tiles, along| tiles.saturating_mul(along.2));
        if count > COUNTED_MAX {
            uncounted = uncounted.saturating_add(count);
            continue;
        }
        each_index(&along, &mut |at| {
            let position = at.iter().zip(&info.node.tile).zip(&info.counts);
            seen.insert(position.fold(0, |index, ((&at, &tile), &count)| index * count + at / tile));
        });
    }
    let tiles = (seen.len() as u64).saturating_add(uncounted);
    bytes.saturating_mul(WORTH) <= tiles.saturating_mul(tile_bytes)
}

/// Calls `visit` with every combination of `count` numbers from `start` on in steps, per axis.
fn each_index(along: &[(u64, u64, u64)], visit: &mut dyn FnMut(&[u64])) {
    let mut at: Vec<u64> = along.iter().map(|&(start, ..)| start).collect();
    loop {
        visit(&at);
        let ends = |axis: usize| at[axis] + along[axis].1 >= along[axis].0 + along[axis].1 * along[axis].2;
        let Some(axis) = (0..at.len()).rev().find(|&axis| !ends(axis)) else {
            return;
        };
        at[axis] += along[axis].1;
        for later in axis + 1..at.len() {
            at[later] = along[later].0;
        }
    }
}

fn selection(info: &ArrayInfo, positions: &[Positions], tile: &[u64]) -> Result<ArrayInfo, EngineError> {
    let ArrayKind::Source(source) = &info.kind else {
        return Err(EngineError::Plan("only stored arrays are read in parts".into()));
    };
    let source: Arc<dyn Source> = Arc::new(Selection::new(source.clone(), positions.to_vec())?);
    let shape = source.shape().to_vec();
    let tile = grid::bounded(&shape, source.dtype(), tile);
    let node = Node::intern(
        Op::Source(SourceKey(source.clone())),
        vec![],
        shape,
        source.dtype(),
        tile,
    );
    Ok(ArrayInfo {
        counts: grid::counts(&node.shape, &node.tile),
        kind: ArrayKind::Source(source),
        outputs: vec![],
        node,
    })
}
