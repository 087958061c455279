//! Rows of right-hand sides and solutions, in tiles along the rows of a matrix, as nodes have them.

use std::ops::Range;

use super::fronts::FrontNode;
use crate::task::{Bound, Grid, TaskOrder};

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

/// Bands of a group, which read the factor together.
const GROUPS: [(&str, u64); 8] = [
    ("2 bands at once", 2),
    ("3 bands at once", 3),
    ("4 bands at once", 4),
    ("6 bands at once", 6),
    ("8 bands at once", 8),
    ("12 bands at once", 12),
    ("16 bands at once", 16),
    ("32 bands at once", 32),
];
/// Groups that are tried: the largest that fit into memory.
const TRIED: usize = 2;

/// Orders of tasks of bands, each with as many tasks: a task of all bands of a group, then the next.
pub(super) fn by_bands(tasks: u32, bands: u64, bytes: u64, memory: u64) -> Vec<TaskOrder> {
    if bands < 2 {
        return vec![];
    }
    let count = GROUPS
        .iter()
        .filter(|(_, group)| bands.min(*group) * bytes <= memory)
        .count()
        .max(1);
    let order = |&(name, group): &(&'static str, u64)| {
        let groups = (0..bands).step_by(group as usize);
        let of_group = |start: u64| {
            let end = bands.min(start + group) as u32;
            (0..tasks).flat_map(move |task| (start as u32..end).map(move |band| band * tasks + task))
        };
        TaskOrder {
            name,
            tasks: groups.flat_map(of_group).collect(),
        }
    };
    GROUPS[count.saturating_sub(TRIED)..count].iter().map(order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_each_task_of_each_band_once() {
        for bands in [2, 3, 7] {
            for order in by_bands(5, bands, 10, 45) {
                let mut tasks = order.tasks.clone();
                tasks.sort_unstable();
                assert_eq!(tasks, (0..5 * bands as u32).collect::<Vec<_>>());
            }
        }
    }
}
