//! Orders of the tasks of a dense factorization with pivoting: groups of columns of tiles that stay in memory together, so that
//! each tile of L on their left is read once for all of them.

use super::super::fronts::BlockCounts;
use super::super::orders::TileTasks;
use crate::task::TaskOrder;

/// Columns of a group.
const GROUPS: [(&str, u32); 10] = [
    ("2 columns at once", 2),
    ("3 columns at once", 3),
    ("4 columns at once", 4),
    ("5 columns at once", 5),
    ("6 columns at once", 6),
    ("8 columns at once", 8),
    ("10 columns at once", 10),
    ("12 columns at once", 12),
    ("16 columns at once", 16),
    ("24 columns at once", 24),
];
/// Groups that are tried: the largest that fit into memory.
const TRIED: usize = 3;

/// Orders beside that of the numbers, for a front of so many columns of tiles, the first of so many bytes.
pub(super) fn orders_by_columns(all: u32, together: u32, memory: u64, column: u64) -> Vec<TaskOrder> {
    if all < 3 {
        return vec![];
    }
    // A column more is the workspace of the elimination.
    let fits = |group: u32| (u64::from(group) + 1) * column <= memory;
    let count = GROUPS
        .iter()
        .filter(|(_, group)| *group < all && fits(*group))
        .count()
        .max(1);
    let tiles = tiles_of(all, together);
    let order = |&(name, group): &(&'static str, u32)| TaskOrder {
        name,
        tasks: by_columns(&tiles, all, (group, together)),
    };
    GROUPS[count.saturating_sub(TRIED)..count].iter().map(order).collect()
}

/// Tiles of the lower triangle, column by column; the elimination of a column ends its last tile.
fn tiles_of(all: u32, together: u32) -> Vec<TileTasks> {
    let (mut first, mut tiles) = (0, vec![]);
    for column in 0..all {
        for row in column..all {
            let tile = TileTasks {
                first,
                assembly: 1,
                updates: column.div_ceil(together),
                finish: u32::from(row + 1 == all),
            };
            first = tile.end();
            tiles.push(tile);
        }
    }
    tiles
}

fn by_columns(tiles: &[TileTasks], all: u32, (group, together): (u32, u32)) -> Vec<u32> {
    let blocks = BlockCounts { pivots: all, all };
    let of = |row: u32, column: u32| tiles[blocks.tile(row, column) as usize];
    let mut tasks = vec![];
    for left in (0..all).step_by(group as usize) {
        let right = all.min(left + group);
        for column in left..right {
            tasks.extend((column..all).map(|row| of(row, column).first));
        }
        // Products of blocks of pivots that all lie on the left.
        let before = left / together;
        for chunk in 0..before {
            for row in left..all {
                tasks.extend(
                    (left..right.min(row + 1))
                        .map(|column| of(row, column))
                        .map(|tile| tile.first + tile.assembly + chunk),
                );
            }
        }
        for column in left..right {
            for row in column..all {
                let tile = of(row, column);
                tasks.extend(tile.first + tile.assembly + before..tile.end());
            }
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_each_task_once_and_columns_end_in_turn() {
        for (all, together) in [(3, 2), (7, 2), (12, 2), (9, 4)] {
            let tiles = tiles_of(all, together);
            let count = tiles[tiles.len() - 1].end();
            let ends: Vec<u32> = tiles
                .iter()
                .filter(|tile| tile.finish > 0)
                .map(|tile| tile.end() - 1)
                .collect();
            for group in [2, 3, 5] {
                let order = by_columns(&tiles, all, (group, together));
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<u32>>(), "{all} {group}");
                let of_ends: Vec<u32> = order.iter().copied().filter(|task| ends.contains(task)).collect();
                assert_eq!(of_ends, ends);
            }
        }
    }
}
