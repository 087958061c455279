//! Axes that tiles reach along from end to end, for functions that need them whole.
//!
//! Tiles of a file are seldom long enough, and all that lie along such an axis may be more than the memory holds. Each is
//! then cut into narrow ones, as wide as a tile of the result, which go to scratch, and those that lie behind each other
//! are joined: one read and one write. Where the tiles of the file fit, nothing is written.

use std::sync::Arc;

use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};
use outcore_store::{Interval, Io};

use super::{algorithm, show, staged};
use crate::expr::grid::{is_cut, PANEL_BYTES};
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::Expr;
use crate::task::{Access, Algorithm, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// The part of the memory for all tiles that lie along the whole axes, and that for tiles which are cut together.
const HELD_PART: u64 = 6;
const CUT_PART: u64 = 8;

/// `x` in tiles that its first `whole` axes are not cut in.
///
/// # Errors
/// More axes than there are.
pub fn uncut(x: &Expr, whole: usize) -> Result<Expr, EngineError> {
    if whole > x.ndim() {
        let shape = show(&x.shape);
        return Err(EngineError::Shape(format!(
            "{whole} whole axes of an array of shape {shape}"
        )));
    }
    let axes: Vec<usize> = (0..whole).collect();
    if !is_cut(x, &axes) || x.elements() == 0 {
        return Ok(x.clone());
    }
    let result = Grid {
        tile: narrowed(x, whole),
        ..x.grid()
    };
    let uncut = Uncut {
        whole,
        result: [result],
    };
    Ok(staged(Arc::new(uncut), std::slice::from_ref(x))?.swap_remove(0))
}

/// The tiles of `x` with the first axes whole, and the others divided until a tile is no larger than a panel: so each lies
/// within tiles of `x`.
fn narrowed(x: &Expr, whole: usize) -> Vec<u64> {
    let mut tile = x.tile.clone();
    tile[..whole].copy_from_slice(&x.shape[..whole]);
    for axis in whole..tile.len() {
        while tile[axis] > 1 && tile.iter().product::<u64>() * x.dtype.size() as u64 > PANEL_BYTES {
            let least = (2..).find(|&divisor| tile[axis].is_multiple_of(divisor)).unwrap_or(1);
            tile[axis] /= least;
        }
    }
    tile
}

#[derive(Debug)]
struct Uncut {
    whole: usize,
    result: [Grid; 1],
}

impl Staged for Uncut {
    fn name(&self) -> String {
        "whole axes".into()
    }
    fn key(&self) -> Vec<u8> {
        (self.whole as u64).to_le_bytes().to_vec()
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("whole axes").word(self.whole as u64))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(UncutStages {
            x: inputs[0].clone(),
            whole: self.whole,
            result: self.result[0].clone(),
        }))
    }
}

struct UncutStages {
    x: Expr,
    whole: usize,
    result: Grid,
}

impl UncutStages {
    /// How the tiles of `x` are cut: as many as fit along the first axis at once.
    fn narrow(&self, room: Room) -> Grid {
        let mut tile = self.x.tile.clone();
        tile[self.whole..].copy_from_slice(&self.result.tile[self.whole..]);
        let together =
            room.memory / CUT_PART / (self.x.tile.iter().product::<u64>() * self.x.dtype.size() as u64).max(1);
        tile[0] = tile[0].saturating_mul(together.max(1)).min(self.x.shape[0]);
        Grid { tile, ..self.x.grid() }
    }
}

impl Stages for UncutStages {
    fn next(&mut self, _found: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let along: u64 = self.x.shape[..self.whole].iter().product();
        let across: u64 = self.x.tile[self.whole..].iter().product();
        let held = along.saturating_mul(across * self.x.dtype.size() as u64);
        if held <= room.memory / HELD_PART {
            return Ok(Next::Done(vec![self.x.clone()]));
        }
        let joining = Joining {
            whole: self.whole,
            x: self.x.grid(),
            results: [self.result.clone(), self.narrow(room)],
        };
        let mut nodes = algorithm(Arc::new(joining), std::slice::from_ref(&self.x))?;
        Ok(Next::Done(vec![nodes.swap_remove(0)]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Err(EngineError::Internal("whole axes have no stages of their own".into()))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}

/// Tiles cut into narrow ones, and those that lie behind each other along the first axes joined.
#[derive(Clone, Debug)]
struct Joining {
    whole: usize,
    x: Grid,
    /// The result, and the narrow tiles.
    results: [Grid; 2],
}

impl Algorithm for Joining {
    fn name(&self) -> String {
        "whole axes".into()
    }
    fn key(&self) -> Vec<u8> {
        let words = self.results[1].tile.iter().copied().chain([self.whole as u64]);
        words.flat_map(u64::to_le_bytes).collect()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        vec![Arc::new(self.clone())]
    }
}

impl Joining {
    /// Tiles of `x` that are cut together, as many as a narrow tile is long.
    fn groups(&self) -> Vec<u64> {
        let mut groups = self.x.counts();
        groups[0] = self.results[1].counts()[0];
        groups
    }

    fn cuts(&self) -> u64 {
        self.groups().iter().product()
    }

    /// The tiles of `x` of a group.
    fn cut(&self, group: u64, each: &mut dyn FnMut(u64)) {
        let counts = self.x.counts();
        let across: u64 = counts[1..].iter().product();
        let together = self.results[1].tile[0].div_ceil(self.x.tile[0]);
        let first = group / across * together;
        (first..counts[0].min(first + together)).for_each(|along| each(along * across + group % across));
    }

    /// The narrow tiles that a group is cut into.
    fn pieces(&self, mut group: u64, each: &mut dyn FnMut(u64)) {
        let (groups, counts) = (self.groups(), self.results[1].counts());
        let mut ranges = vec![0..0; counts.len()];
        for axis in (0..counts.len()).rev() {
            let at = group % groups[axis];
            group /= groups[axis];
            let per = if axis < self.whole {
                1
            } else {
                self.x.tile[axis] / self.results[1].tile[axis]
            };
            ranges[axis] = at * per..counts[axis].min((at + 1) * per);
        }
        let mut numbers = vec![0];
        for (range, count) in ranges.into_iter().zip(&counts) {
            numbers = numbers
                .iter()
                .flat_map(|number| range.clone().map(move |at| number * count + at))
                .collect();
        }
        numbers.into_iter().for_each(each);
    }
}

impl Work for Joining {
    fn label(&self) -> String {
        "whole axes".into()
    }
    fn tasks(&self) -> u64 {
        self.cuts() + self.results[0].tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let Some(lane) = task.checked_sub(self.cuts()) else {
            self.cut(task, &mut |tile| each(0, tile, Access::Read));
            return self.pieces(task, &mut |tile| each(2, tile, Access::Create));
        };
        let along: u64 = self.results[1].counts()[..self.whole].iter().product();
        let across = self.results[0].tiles();
        (0..along).for_each(|tile| each(2, tile * across + lane, Access::Read));
        each(1, lane, Access::Create);
    }
    fn operations(&self) -> f64 {
        2.0 * self.x.shape.iter().product::<u64>() as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let [result, narrow] = &self.results;
        let mut reads = Vec::new();
        let Some(lane) = task.checked_sub(self.cuts()) else {
            self.cut(task, &mut |tile| reads.push(self.x.region(tile)));
            let mut writes = Vec::new();
            self.pieces(task, &mut |tile| writes.push(narrow.region(tile)));
            for (target, region) in tiles.writes.iter_mut().zip(&writes) {
                for (data, from) in tiles.reads.iter().zip(&reads) {
                    copy_common(narrow.dtype.size(), (data, from), (target, region));
                }
            }
            return Ok(());
        };
        let region = result.region(lane);
        for (number, data) in tiles.reads.iter().enumerate() {
            let from = narrow.region(number as u64 * result.tiles() + lane);
            copy_common(narrow.dtype.size(), (data, &from), (&mut *tiles.writes[0], &region));
        }
        Ok(())
    }
}

/// Copies the elements of one tile that lie in another.
fn copy_common(item: usize, (data, from): (&[u8], &[Interval]), (target, to): (&mut [u8], &[Interval])) {
    let sides = from.iter().zip(to);
    let common: Vec<Interval> = sides
        .map(|(from, to)| {
            let (begin, end) = (from.start.max(to.start), from.end().min(to.end()));
            Interval::new(begin, end.saturating_sub(begin))
        })
        .collect();
    let shape: Vec<usize> = common.iter().map(|along| along.length as usize).collect();
    if shape.contains(&0) {
        return;
    }
    let (from_strides, to_strides) = (strides(from), strides(to));
    let offset = |tile: &[Interval], strides: &[isize]| -> usize {
        let axes = common.iter().zip(tile).zip(strides);
        axes.map(|((common, tile), stride)| (common.start - tile.start) as usize * *stride as usize)
            .sum()
    };
    copy_strided(
        item,
        &shape,
        StridedBytes::new(data, offset(from, &from_strides), &from_strides),
        StridedBytesMut::new(target, offset(to, &to_strides), &to_strides),
    );
}

/// Elements between neighbours of a tile along each axis, in C order.
fn strides(tile: &[Interval]) -> Vec<isize> {
    let mut strides = vec![1; tile.len()];
    for axis in (1..tile.len()).rev() {
        strides[axis - 1] = strides[axis] * tile[axis].length as isize;
    }
    strides
}
