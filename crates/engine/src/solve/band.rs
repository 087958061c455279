//! Rows of right-hand sides and solutions, in tiles along the rows of a matrix, as nodes have them.

use std::ops::Range;

use super::fronts::FrontNode;
use crate::task::{Bound, Grid};

/// Tiles along the rows of B that have rows of a node.
pub(super) fn right_tiles(grid: &Grid, node: &FrontNode) -> Range<u64> {
    let side = grid.tile[0];
    let (start, end) = (u64::from(node.columns.start), u64::from(node.columns.end));
    start / side..(end - 1) / side + 1
}

/// Nodes that have rows of a tile of the solution.
pub(super) fn nodes_of(grid: &Grid, nodes: &[FrontNode], tile: u32) -> Range<u32> {
    let start = u64::from(tile) * grid.tile[0];
    let end = (start + grid.tile[0]).min(grid.shape[0]);
    let first = nodes.partition_point(|node| u64::from(node.columns.end) <= start);
    let last = nodes.partition_point(|node| u64::from(node.columns.start) < end);
    first as u32..last as u32
}

/// Copies rows of B, of so many bytes each, for the columns of a node.
pub(super) fn take_right(grid: &Grid, node: &FrontNode, row_bytes: usize, tiles: &[&[u8]], piece: &mut [u8]) {
    let side = grid.tile[0];
    let mut to = piece;
    for (tile, bytes) in right_tiles(grid, node).zip(tiles) {
        let first = tile * side;
        let start = u64::from(node.columns.start).max(first) - first;
        let end = u64::from(node.columns.end).min(first + side) - first;
        let rows = &bytes[start as usize * row_bytes..end as usize * row_bytes];
        let (front, rest) = to.split_at_mut(rows.len());
        front.copy_from_slice(rows);
        to = rest;
    }
}

/// Puts rows of nodes into a tile of the solution.
pub(super) fn collect(grid: &Grid, nodes: &[FrontNode], tile: u32, row_bytes: usize, bound: &mut Bound<'_>) {
    let first = u64::from(tile) * grid.tile[0];
    let out = &mut *bound.writes[0];
    let end = first + (out.len() / row_bytes.max(1)) as u64;
    for (number, piece) in nodes_of(grid, nodes, tile).zip(&bound.reads) {
        let columns = &nodes[number as usize].columns;
        let (start, stop) = (u64::from(columns.start).max(first), u64::from(columns.end).min(end));
        let from = (start - u64::from(columns.start)) as usize * row_bytes;
        let to = (start - first) as usize * row_bytes;
        let bytes = (stop - start) as usize * row_bytes;
        out[to..to + bytes].copy_from_slice(&piece[from..from + bytes]);
    }
}
