//! Tasks of a QR factorization by tiles, and their orders: which tiles of the matrix stay in memory while those of reflectors pass.
//!
//! Of columns of tiles that stay whole, c at once, n³ / (3 c) elements of reflectors are read again for a square matrix; of
//! squares of side s about n³ / s, with the rows of R that pass them. Matrices with many more rows than columns go by rows of
//! tiles, once, while R stays.

use super::cut::QrCut;
use crate::solve::numbering::group_of;
use crate::task::TaskOrder;

/// A part of the work on tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QrStep {
    /// Takes some rows of a tile from the matrix.
    Assemble { part: u32, column: u32 },
    /// Eliminates a tile of a column: its diagonal tile, or one below the triangle.
    Eliminate { pivot: u32, row: u32 },
    /// Turns tiles of a column on the right as a tile of reflectors says.
    Turn { pivot: u32, row: u32, column: u32 },
}

/// The tasks: parts of the matrix, then what each tile of reflectors does, made and then applied to all columns behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QrTasks {
    cut: QrCut,
}

impl QrTasks {
    pub fn new(cut: &QrCut) -> QrTasks {
        QrTasks { cut: *cut }
    }

    fn assemblies(&self) -> u64 {
        self.cut.all_parts() * u64::from(self.cut.counts()[1])
    }

    /// Tasks before those of a pivot column.
    fn start(&self, pivot: u32) -> u64 {
        let [down, across] = self.cut.counts().map(u64::from);
        let k = u64::from(pivot);
        // The sum of (down − l) (across − l) over l < k.
        let squares = k.saturating_sub(1) * k * (2 * k).saturating_sub(1) / 6;
        self.assemblies() + k * down * across + squares - (down + across) * (k * k.saturating_sub(1) / 2)
    }

    pub fn count(&self) -> u64 {
        self.start(self.cut.pivots())
    }

    pub fn step(&self, task: u64) -> QrStep {
        let across = u64::from(self.cut.counts()[1]);
        if task < self.assemblies() {
            return QrStep::Assemble {
                part: (task / across) as u32,
                column: (task % across) as u32,
            };
        }
        let pivots = self.cut.pivots().into();
        let low = group_of(pivots, task, |pivot| self.start(pivot as u32)) as u32;
        let (at, columns) = (task - self.start(low), across - u64::from(low));
        let (row, column) = (low + (at / columns) as u32, low + (at % columns) as u32);
        match column == low {
            true => QrStep::Eliminate { pivot: low, row },
            false => QrStep::Turn {
                pivot: low,
                row,
                column,
            },
        }
    }

    fn assembly(&self, part: u32, column: u32) -> u32 {
        part * self.cut.counts()[1] + column
    }

    /// The task of a tile of reflectors and a column; the column of the pivot itself is elimination.
    fn turn(&self, pivot: u32, row: u32, column: u32) -> u32 {
        let columns = u64::from(self.cut.counts()[1] - pivot);
        (self.start(pivot) + u64::from(row - pivot) * columns + u64::from(column - pivot)) as u32
    }
}

/// Columns of tiles that stay, and what orders are called: those that take tiles of the matrix as columns need them, and those
/// that take all columns of each tile of the matrix at once, for later columns too.
macro_rules! columns {
    ($($count:literal)*) => {
        &[
            $((
                $count,
                [
                    concat!($count, " columns of tiles at once"),
                    concat!($count, " columns of tiles at once, tiles of the matrix once"),
                ],
            ),)*
        ]
    };
}
const COLUMNS: &[(u32, [&str; 2])] = columns!(1 2 3 4 5 6 7 8 9 10 11 12 14 16 18 20 24 28 32 40 48 64 80);
const SQUARES: &[(u32, &str)] = &[
    (2, "squares of 2"),
    (4, "squares of 4"),
    (6, "squares of 6"),
    (8, "squares of 8"),
    (12, "squares of 12"),
    (16, "squares of 16"),
    (20, "squares of 20"),
    (24, "squares of 24"),
    (32, "squares of 32"),
    (48, "squares of 48"),
];
/// Orders of a kind that are tried: the largest that fit into memory.
const TRIED: usize = 2;

/// Orders beside that of the numbers, for a matrix whose tiles have so many columns.
pub(super) fn qr_orders(tasks: &QrTasks, cut: &QrCut, columns: u64, memory: u64) -> Vec<TaskOrder> {
    let ([down, across], tile) = (cut.counts(), cut.tile_bytes());
    if across < 2 && down < 2 {
        return vec![];
    }
    let holds = |tiles: u64| tiles.saturating_mul(tile) <= memory;
    let mut orders = vec![];
    let mut add = |name, sizes: [u32; 2], together| {
        orders.push(TaskOrder {
            name,
            tasks: by_blocks(tasks, cut, sizes, together),
        });
    };
    let fitting = COLUMNS
        .iter()
        .filter(|(count, _)| holds(u64::from(count * down)))
        .count();
    let together = (columns / QrCut::side()).clamp(1, across.into()) as u32;
    for &(count, [name, whole]) in &COLUMNS[fitting.saturating_sub(TRIED)..fitting] {
        if count < across {
            add(name, [down, count], 1);
            if together > 1 {
                add(whole, [down, count], together);
            }
        }
    }
    let fitting = SQUARES
        .iter()
        .filter(|(side, _)| holds(u64::from(side * side + 3 * side)))
        .count()
        .max(1);
    for &(side, name) in &SQUARES[fitting.saturating_sub(TRIED)..fitting] {
        if side < across.max(down) {
            add(name, [side, side], 1);
        }
    }
    // R and a row of tiles.
    let triangle = u64::from(cut.pivots()) * u64::from(across);
    if down > 1 && holds(triangle + 2 * u64::from(across)) {
        add("rows of tiles", [1, across], 1);
    }
    orders
}

/// Blocks of so many rows and columns of tiles, each with all that it takes from the left and, of its own columns, gives.
fn by_blocks(tasks: &QrTasks, cut: &QrCut, [high, wide]: [u32; 2], together: u32) -> Vec<u32> {
    let [down, across] = cut.counts();
    let mut order = Vec::with_capacity(tasks.count() as usize);
    let mut assembled = 0;
    for left in (0..across).step_by(wide as usize) {
        let right = across.min(left + wide);
        let end = across.min(right.next_multiple_of(together)).max(assembled);
        let mut part = 0;
        for top in (0..down).step_by(high as usize) {
            let bottom = down.min(top + high);
            while u64::from(part) < cut.all_parts() && cut.part(part).0 < bottom {
                order.extend((assembled..end).map(|column| tasks.assembly(part, column)));
                part += 1;
            }
            for pivot in 0..right.min(cut.pivots()).min(bottom) {
                for row in top.max(pivot)..bottom {
                    order.extend((left.max(pivot)..right).map(|column| tasks.turn(pivot, row, column)));
                }
            }
        }
        assembled = end;
    }
    order
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;

    use super::*;

    #[test]
    fn orders_have_each_task_once_behind_those_that_it_needs() {
        for (rows, columns) in [(100, 600), (2000, 2000), (9000, 1100), (1100, 5000), (7000, 7000)] {
            let cut = QrCut::of(rows, columns, DType::F64).unwrap();
            let tasks = QrTasks::new(&cut);
            for memory in [0, 20, 60, 200, 2000].map(|tiles: u64| tiles * cut.tile_bytes()) {
                for order in qr_orders(&tasks, &cut, 1024, memory) {
                    let mut place = vec![u32::MAX; tasks.count() as usize];
                    for (at, &task) in order.tasks.iter().enumerate() {
                        assert_eq!(
                            std::mem::replace(&mut place[task as usize], at as u32),
                            u32::MAX,
                            "{}",
                            order.name
                        );
                    }
                    assert_eq!(order.tasks.len(), place.len(), "{}", order.name);
                    let at = |task: u32| place[task as usize];
                    for task in 0..tasks.count() {
                        let own = match tasks.step(task) {
                            QrStep::Assemble { part, column } => tasks.assembly(part, column),
                            QrStep::Eliminate { pivot, row } => tasks.turn(pivot, row, pivot),
                            QrStep::Turn { pivot, row, column } => {
                                assert!(at(tasks.turn(pivot, row, pivot)) < at(task as u32));
                                tasks.turn(pivot, row, column)
                            }
                        };
                        assert_eq!(u64::from(own), task);
                        if let QrStep::Eliminate { pivot, row } | QrStep::Turn { pivot, row, .. } = tasks.step(task) {
                            let column = match tasks.step(task) {
                                QrStep::Turn { column, .. } => column,
                                _ => pivot,
                            };
                            // Of each tile in the order of rows, and of pivots.
                            assert!(row == pivot || at(tasks.turn(pivot, row - 1, column)) < at(task as u32));
                            assert!(pivot == 0 || at(tasks.turn(pivot - 1, row, column)) < at(task as u32));
                        }
                    }
                }
            }
        }
    }
}
