//! Bands of columns: the same array in narrower tiles, read in them where its files allow.

use outcore_store::Layout;

use super::{copy_tiled, DEPTH_MAX};
use crate::expr::grid::PANEL_BYTES;
use crate::expr::{Expr, Node, Op, SourceKey};

/// Tile lengths behind the first axis, each narrower than those before: those of `x`, then halves of them along the first
/// axis that can be cut, as files are read without loss: chunks are not cut, nor rows into runs of less than `run_bytes`.
pub(crate) fn narrower(x: &Expr, run_bytes: u64) -> Vec<Vec<u64>> {
    let units = units(x, DEPTH_MAX);
    let chunked = units.iter().skip(1).any(|&unit| unit > 1);
    let item = x.dtype.size() as u64;
    let is_short = |band: &[u64]| !chunked && band.iter().product::<u64>() * item < 2 * run_bytes;
    halved(x, &units, is_short)
}

/// The same down to single columns, for what is copied into such tiles.
pub(crate) fn narrowest(x: &Expr) -> Vec<Vec<u64>> {
    halved(x, &vec![1; x.ndim()], |_| false)
}

fn halved(x: &Expr, units: &[u64], is_last: impl Fn(&[u64]) -> bool) -> Vec<Vec<u64>> {
    let mut all = vec![x.tile.get(1..).unwrap_or(&[]).to_vec()];
    loop {
        let last = all.last().expect("begins with one");
        let can_be_cut = |&axis: &usize| last[axis] > units[axis + 1];
        let Some(axis) = (0..last.len()).find(can_be_cut).filter(|_| !is_last(last)) else {
            return all;
        };
        let mut next = last.clone();
        next[axis] = next[axis].div_ceil(2).next_multiple_of(units[axis + 1]);
        match next[axis] < last[axis] {
            true => all.push(next),
            false => return all,
        }
    }
}

/// Whether `x` in narrower tiles is read in them, and nothing is copied.
pub(crate) fn is_cut_freely(x: &Expr) -> bool {
    fn look(x: &Expr, depth: usize) -> bool {
        let is_view = matches!(&x.op, Op::Slice(slices) if slices.iter().all(|slice| slice.step == 1));
        match &x.op {
            Op::Source(_) => true,
            Op::Permute(_) | Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast if depth > 0 => x
                .inputs
                .iter()
                .filter(|input| input.elements() == x.elements())
                .all(|input| look(input, depth - 1)),
            Op::Slice(_) => is_view && depth > 0 && look(&x.inputs[0], depth - 1),
            _ => false,
        }
    }
    look(x, DEPTH_MAX)
}

/// Per axis the length of parts that are read whole; 1 where any part can be read.
fn units(x: &Expr, depth: usize) -> Vec<u64> {
    let any = || vec![1; x.ndim()];
    match &x.op {
        Op::Source(SourceKey(source)) => match source.layout() {
            Layout::Chunks(chunk) => chunk
                .iter()
                .zip(&x.shape)
                .map(|(&chunk, &length)| chunk.min(length).max(1))
                .collect(),
            Layout::RowMajor | Layout::Memory => any(),
        },
        Op::Permute(axes) if depth > 0 => {
            let inner = units(&x.inputs[0], depth - 1);
            axes.iter().map(|&axis| inner[axis]).collect()
        }
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast if depth > 0 => {
            let same = x.inputs.iter().filter(|input| input.shape == x.shape);
            same.map(|input| units(input, depth - 1)).fold(any(), |most, units| {
                most.iter().zip(&units).map(|(&most, &unit)| most.max(unit)).collect()
            })
        }
        _ => any(),
    }
}

/// How many rows of a band make a tile of some MiB, in whole tiles of `x`.
pub(crate) fn rows_of(band: &[u64], x: &Expr) -> u64 {
    let row = band.iter().product::<u64>().max(1) * x.dtype.size() as u64;
    let rows = (PANEL_BYTES / row).max(1).next_multiple_of(x.tile[0]);
    rows.min(x.shape[0].max(1))
}

/// A copy of `x` in tiles of a narrower band, each of which is made of tiles of no more than `bytes` where it can be; and
/// the bytes of those.
pub(crate) fn copied_in(x: &Expr, band: &[u64], bytes: u64) -> (Expr, u64) {
    let row = x.tile[1..].iter().product::<u64>() * x.dtype.size() as u64;
    let most = (bytes / row.max(1) / x.tile[0]).max(1) * x.tile[0];
    let rows = rows_of(band, x).min(most);
    (copy_tiled(x, [&[rows], band].concat()), rows * row)
}

/// `x` in tiles of this shape: stored arrays below it are read in them where they can be, so that nothing is held twice;
/// what is not read so is cut anew.
pub(crate) fn in_bands(x: &Expr, tile: &[u64]) -> Expr {
    sunk(x, tile, DEPTH_MAX).unwrap_or_else(|| copy_tiled(x, tile.to_vec()))
}

/// The same where that takes no copy of `x` itself.
fn sunk(x: &Expr, tile: &[u64], depth: usize) -> Option<Expr> {
    if x.tile == tile {
        return Some(x.clone());
    }
    let depth = depth.checked_sub(1)?;
    let of = |input: &Expr, tile: &[u64]| sunk(input, tile, depth).unwrap_or_else(|| copy_tiled(input, tile.to_vec()));
    let inputs = match &x.op {
        Op::Source(_) => {
            let mut parts = tile.iter().zip(&x.shape).zip(units(x, 0));
            if !parts.all(|((&tile, &length), unit)| tile.is_multiple_of(unit) || tile >= length) {
                return None;
            }
            vec![]
        }
        Op::Permute(axes) => {
            let mut inner = vec![0; tile.len()];
            axes.iter().zip(tile).for_each(|(&axis, &length)| inner[axis] = length);
            vec![of(&x.inputs[0], &inner)]
        }
        Op::Slice(slices) if slices.iter().all(|slice| slice.step == 1) => vec![of(&x.inputs[0], tile)],
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => {
            let side = |input: &Expr| match input.shape == x.shape {
                true => of(input, tile),
                false => input.clone(),
            };
            x.inputs.iter().map(side).collect()
        }
        _ => return None,
    };
    Some(Node::intern(
        x.op.clone(),
        inputs,
        x.shape.clone(),
        x.dtype,
        tile.to_vec(),
    ))
}
