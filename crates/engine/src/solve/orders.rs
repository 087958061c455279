//! Orders of the tasks of a factorization: large fronts by squares of tiles, which read each tile of the factor less often.
//!
//! A square of g × g tiles stays while products of the columns before it are subtracted: of the tiles of these columns, 2 g are
//! read for g² tiles (Toledo, Gustavson, The design and implementation of SOLAR, IOPADS 1996, section 3).

use super::fronts::BlockCounts;
use crate::task::TaskOrder;

/// The tasks of a tile of a front, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileTasks {
    pub first: u32,
    /// Its assembly, the products that are subtracted, and its end.
    pub assembly: u32,
    pub updates: u32,
    pub finish: u32,
}

impl TileTasks {
    /// The task behind the last.
    pub fn end(self) -> u32 {
        self.first + self.assembly + self.updates + self.finish
    }
}

/// The tasks of a front, tile by tile as tiles are numbered; of a node of subtrees there is one.
#[derive(Clone, Debug)]
pub(super) enum NodeTasks {
    One(u32),
    Tiles(BlockCounts, Vec<TileTasks>),
}

impl NodeTasks {
    /// Bytes that the record takes.
    pub fn bytes(&self) -> usize {
        let tiles = match self {
            NodeTasks::One(_) => 0,
            NodeTasks::Tiles(_, tiles) => size_of_val(&tiles[..]),
        };
        size_of::<NodeTasks>() + tiles
    }
}

/// Sides of squares in tiles, multiples of the products of a task.
const SQUARES: [(&str, u32); 8] = [
    ("squares of 4", 4),
    ("squares of 6", 6),
    ("squares of 8", 8),
    ("squares of 12", 12),
    ("squares of 16", 16),
    ("squares of 20", 20),
    ("squares of 24", 24),
    ("squares of 32", 32),
];
/// Squares that are tried: the largest that fit into memory.
const TRIED: usize = 3;

/// Orders beside that of the numbers, for tiles of so many bytes; `together` products are one task.
pub(super) fn orders(nodes: &[NodeTasks], together: u32, memory: u64, tile: u64) -> Vec<TaskOrder> {
    let is_large = |node: &NodeTasks| matches!(node, NodeTasks::Tiles(blocks, _) if blocks.all > SQUARES[0].1);
    if !nodes.iter().any(is_large) {
        return vec![];
    }
    let order = |&(name, side): &(&'static str, u32)| {
        let mut tasks = vec![];
        for node in nodes {
            match node {
                NodeTasks::One(task) => tasks.push(*task),
                NodeTasks::Tiles(blocks, tiles) => by_squares(*blocks, tiles, (side, together), &mut tasks),
            }
        }
        TaskOrder { name, tasks }
    };
    let most = |node: &NodeTasks| match node {
        NodeTasks::One(_) => 0,
        NodeTasks::Tiles(blocks, _) => blocks.all,
    };
    let most = nodes.iter().map(most).max().unwrap_or(0);
    // A square, and for each product of a task the tiles beside it.
    let fits = |side: u64| (side * side + (side + 2) * u64::from(together)) * tile <= memory;
    let count = SQUARES
        .iter()
        .filter(|(_, side)| *side < most && fits(u64::from(*side)))
        .count()
        .max(1);
    SQUARES[count.saturating_sub(TRIED)..count].iter().map(order).collect()
}

fn by_squares(blocks: BlockCounts, tiles: &[TileTasks], (side, together): (u32, u32), tasks: &mut Vec<u32>) {
    let of = |row: u32, column: u32| tiles[blocks.tile(row, column) as usize];
    // Squares begin at the first column of pivots, and at the first behind them.
    let starts = |begin: u32, end: u32| {
        (begin..end)
            .step_by(side as usize)
            .map(move |start| (start, end.min(start + side)))
    };
    let groups: Vec<(u32, u32)> = starts(0, blocks.pivots)
        .chain(starts(blocks.pivots, blocks.all))
        .collect();
    for (at, &(left, right)) in groups.iter().enumerate() {
        for &(top, bottom) in &groups[at..] {
            let square = || (top..bottom).flat_map(|row| (left..right.min(row + 1)).map(move |column| (row, column)));
            for (row, column) in square() {
                let tile = of(row, column);
                tasks.extend(tile.first..tile.first + tile.assembly);
            }
            let chunks = |column: u32| left.min(blocks.pivots).min(column) / together;
            let before = left.min(blocks.pivots).div_ceil(together);
            for chunk in 0..before {
                for (row, column) in square() {
                    let tile = of(row, column);
                    if chunk < chunks(column).min(tile.updates) {
                        tasks.push(tile.first + tile.assembly + chunk);
                    }
                }
            }
            for column in left..right {
                for row in top.max(column)..bottom {
                    let tile = of(row, column);
                    let done = chunks(column).min(tile.updates);
                    let begin = tile.first + tile.assembly + done;
                    tasks.extend(begin..begin + tile.updates - done + tile.finish);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_have_each_task_once_and_products_behind_what_they_read() {
        for (pivots, all, together) in [(5, 9, 2), (8, 8, 4), (3, 17, 2), (1, 6, 1), (13, 14, 4)] {
            let blocks = BlockCounts { pivots, all };
            let (mut first, mut tiles, mut kinds) = (0, vec![], vec![]);
            for column in 0..all {
                for row in column..all {
                    let updates = pivots.min(column).div_ceil(together);
                    let finish = u32::from(column < pivots);
                    tiles.push(TileTasks {
                        first,
                        assembly: 2,
                        updates,
                        finish,
                    });
                    kinds.extend([None; 2]);
                    kinds.extend((0..updates).map(|chunk| Some((row, column, chunk))));
                    kinds.extend(vec![None; finish as usize]);
                    first += 2 + updates + finish;
                }
            }
            let nodes = [NodeTasks::Tiles(blocks, tiles.clone())];
            for order in [1 << 20, 1 << 30]
                .into_iter()
                .flat_map(|memory| orders(&nodes, together, memory, 1 << 12))
            {
                let mut at = vec![u32::MAX; first as usize];
                for (place, &task) in order.tasks.iter().enumerate() {
                    assert_eq!(std::mem::replace(&mut at[task as usize], place as u32), u32::MAX);
                }
                assert_eq!(order.tasks.len(), first as usize);
                let finished = |row: u32, column: u32| {
                    let tile = tiles[blocks.tile(row, column) as usize];
                    at[(tile.first + tile.assembly + tile.updates) as usize]
                };
                for (task, kind) in kinds.iter().enumerate() {
                    let Some((row, column, chunk)) = *kind else { continue };
                    for inner in chunk * together..pivots.min(column).min((chunk + 1) * together) {
                        assert!(finished(row, inner) < at[task] && finished(column, inner) < at[task]);
                    }
                }
            }
        }
    }
}
