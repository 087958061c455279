//! Dense to band. Of each column of tiles the part below the diagonal becomes reflectors; then each tile of the rest takes the update
//! of the column before, and gives the products that the update of this one is made of, in one visit.

use std::sync::Arc;

use outcore_kernels::Hermitian;

use super::cut::{EigenSet, HermitianCut};
use crate::solve::dense::DenseRows;
use crate::solve::numbering::group_of;
use crate::task::{Access, Bound, Work};
use crate::EngineError;

/// Rows that are taken from the matrix at once.
const PART: usize = 256;

/// A part of the work on a column of tiles; those of `Assemble` come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BandStep {
    /// Takes some rows of a tile from the matrix.
    Assemble {
        row: u32,
        part: usize,
        column: u32,
    },
    /// Updates a tile of the column.
    Column {
        column: u32,
        row: u32,
    },
    /// Makes the reflectors of the column.
    Panel {
        column: u32,
    },
    /// Puts the column of the band together.
    Band {
        column: u32,
    },
    /// Updates a tile of the rest, and adds its products with the reflectors.
    Visit {
        column: u32,
        row: u32,
        at: u32,
    },
    /// Y of a row, and its part of the middle.
    Right {
        column: u32,
        row: u32,
    },
    Middle {
        column: u32,
        row: u32,
    },
    /// X of a row.
    Finish {
        column: u32,
        row: u32,
    },
}

#[derive(Debug)]
pub(super) struct ToBand {
    cut: Arc<HermitianCut>,
    kernels: Hermitian,
    matrix: DenseRows,
    /// The first task of each row of tiles of the matrix, then of each column.
    starts: Vec<u64>,
}

impl ToBand {
    pub fn new(cut: Arc<HermitianCut>, kernels: Hermitian, matrix: DenseRows) -> ToBand {
        let tiles = cut.tiles();
        let mut work = ToBand {
            cut,
            kernels,
            matrix,
            starts: vec![0],
        };
        for row in 0..tiles {
            let count = work.parts(row) as u64 * u64::from(row + 1);
            work.starts.push(work.tasks() + count);
        }
        for column in 0..tiles {
            let below = u64::from(tiles - 1 - column);
            let own = if column > 0 { below + 1 } else { 0 };
            let rest = if below > 0 {
                1 + below * (below + 1) / 2 + 3 * below
            } else {
                0
            };
            work.starts.push(work.tasks() + own + 1 + rest);
        }
        work
    }

    fn parts(&self, row: u32) -> usize {
        self.cut.height(row).div_ceil(PART)
    }

    fn step(&self, task: u64) -> BandStep {
        let group = self.starts.partition_point(|&start| start <= task) - 1;
        let at = task - self.starts[group];
        let tiles = self.cut.tiles();
        if group < tiles as usize {
            let row = group as u32;
            return BandStep::Assemble {
                row,
                part: (at / u64::from(row + 1)) as usize,
                column: (at % u64::from(row + 1)) as u32,
            };
        }
        let column = group as u32 - tiles;
        let below = u64::from(tiles - 1 - column);
        let own = if column > 0 { below + 1 } else { 0 };
        if at < own {
            let row = column + at as u32;
            return BandStep::Column { column, row };
        }
        match at - own {
            0 if below > 0 => BandStep::Panel { column },
            0 | 1 => BandStep::Band { column },
            at => self.step_of_rest(column, below, at - 2),
        }
    }

    fn step_of_rest(&self, column: u32, below: u64, at: u64) -> BandStep {
        let first = column + 1;
        let visits = below * (below + 1) / 2;
        if at < visits {
            // By diagonals, so that tasks behind each other have no row in common.
            let start = |diagonal: u64| diagonal * below - diagonal * diagonal.saturating_sub(1) / 2;
            let diagonal = group_of(below, at, start);
            let along = (at - start(diagonal)) as u32;
            return BandStep::Visit {
                column,
                row: first + diagonal as u32 + along,
                at: first + along,
            };
        }
        let at = at - visits;
        if at >= 2 * below {
            let row = first + (at - 2 * below) as u32;
            return BandStep::Finish { column, row };
        }
        let row = first + (at / 2) as u32;
        match at % 2 {
            0 => BandStep::Right { column, row },
            _ => BandStep::Middle { column, row },
        }
    }

    /// Names the reflectors and updates of the column before in some rows.
    fn each_update(&self, column: u32, rows: [u32; 2], each: &mut dyn FnMut(usize, u64, Access)) {
        let (cut, before) = (&self.cut, column - 1);
        let count = if rows[0] == rows[1] { 1 } else { 2 };
        for &row in &rows[..count] {
            each(cut.set(EigenSet::Tiles), cut.lower(row, before), Access::Read);
            each(cut.set(EigenSet::Updates), cut.below(row, before), Access::Read);
        }
    }

    /// The update of a tile by what [`ToBand::each_update`] names, and the reads behind that.
    fn update<'a>(&self, column: u32, rows: [u32; 2], reads: &'a [&'a [u8]], tile: &mut [u8]) -> &'a [&'a [u8]] {
        let sizes = rows.map(|row| self.cut.height(row));
        let count = self.cut.reflectors(column - 1);
        let (of, rest) = match reads {
            [v, x, rest @ ..] if rows[0] == rows[1] => ([*v, *x, *v, *x], rest),
            [vi, xi, vj, xj, rest @ ..] => ([*vi, *xi, *vj, *xj], rest),
            _ => return reads,
        };
        self.kernels.update(sizes, tile, of, count);
        rest
    }

    fn visit(&self, [column, row, at]: [u32; 3], bound: &mut Bound<'_>) {
        let mut writes = bound.writes.iter_mut();
        let Some(tile) = writes.next() else { return };
        let reads = match column {
            0 => &bound.reads[..],
            _ => self.update(column, [row, at], &bound.reads, tile),
        };
        let (sizes, count) = ([row, at].map(|row| self.cut.height(row)), self.cut.reflectors(column));
        let tile: &[u8] = tile;
        match (reads, writes.next(), writes.next()) {
            ([v], Some(low), None) => self.kernels.product((sizes, tile, false), v, low, count, true),
            ([vi, vj], Some(low), Some(high)) => {
                self.kernels.product((sizes, tile, false), vj, low, count, false);
                let is_first = row == at + 1;
                self.kernels.product((sizes, tile, true), vi, high, count, is_first);
            }
            _ => {}
        }
    }
}

impl Work for ToBand {
    fn label(&self) -> String {
        "dense to band".into()
    }
    fn tasks(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        let [tiles, low, high, updates] =
            [EigenSet::Tiles, EigenSet::Low, EigenSet::High, EigenSet::Updates].map(|set| cut.set(set));
        let [triangles, middles] = [EigenSet::Triangles, EigenSet::Middles].map(|set| cut.set(set));
        match self.step(task) {
            BandStep::Assemble { row, part, column } => {
                let [rows, columns] = self.intervals(row, part, column);
                let sources = self.matrix.tiles(&rows, &columns);
                sources.iter().for_each(|tile| each(0, *tile, Access::Read));
                let access = if part == 0 { Access::Create } else { Access::Update };
                each(tiles, cut.lower(row, column), access);
            }
            BandStep::Column { column, row } => {
                self.each_update(column, [row, column], each);
                each(tiles, cut.lower(row, column), Access::Update);
            }
            BandStep::Panel { column } => {
                (column + 1..cut.tiles()).for_each(|row| each(tiles, cut.lower(row, column), Access::Update));
                each(cut.set(EigenSet::Corners), column.into(), Access::Create);
                each(triangles, column.into(), Access::Create);
            }
            BandStep::Band { column } => {
                each(tiles, cut.lower(column, column), Access::Read);
                if column + 1 < cut.tiles() {
                    each(cut.set(EigenSet::Corners), column.into(), Access::Read);
                }
                each(cut.set(EigenSet::Band), column.into(), Access::Create);
            }
            BandStep::Visit { column, row, at } => {
                if column > 0 {
                    self.each_update(column, [row, at], each);
                }
                each(tiles, cut.lower(row, column), Access::Read);
                if row != at {
                    each(tiles, cut.lower(at, column), Access::Read);
                }
                each(tiles, cut.lower(row, at), Access::Update);
                let access = if row == at { Access::Create } else { Access::Update };
                each(low, cut.below(row, column), access);
                if row != at {
                    let access = if row == at + 1 { Access::Create } else { Access::Update };
                    each(high, cut.below(at, column), access);
                }
            }
            BandStep::Right { column, row } => {
                each(triangles, column.into(), Access::Read);
                each(low, cut.below(row, column), Access::Read);
                if row + 1 < cut.tiles() {
                    each(high, cut.below(row, column), Access::Read);
                }
                each(updates, cut.below(row, column), Access::Create);
            }
            BandStep::Middle { column, row } => {
                each(tiles, cut.lower(row, column), Access::Read);
                each(updates, cut.below(row, column), Access::Read);
                if row + 1 == cut.tiles() {
                    each(triangles, column.into(), Access::Read);
                }
                let access = if row == column + 1 {
                    Access::Create
                } else {
                    Access::Update
                };
                each(middles, column.into(), access);
            }
            BandStep::Finish { column, row } => {
                each(tiles, cut.lower(row, column), Access::Read);
                each(middles, column.into(), Access::Read);
                each(updates, cut.below(row, column), Access::Update);
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.step(task) {
            BandStep::Panel { .. } => self.kernels.panel_bytes(self.cut.side()) as u64,
            _ => 0,
        }
    }
    fn operations(&self) -> f64 {
        4.0 * (self.cut.rows() as f64).powi(3) / 3.0
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (cut, kernels) = (&self.cut, &self.kernels);
        match self.step(task) {
            BandStep::Assemble { row, part, column } => {
                let [rows, columns] = self.intervals(row, part, column);
                let whole = interval(cut.rows_of(row));
                let of = [&whole, &rows, &columns];
                self.matrix.copy_columns(of, &bound.reads, bound.writes[0]);
                if row == column && rows.end == whole.end {
                    kernels.mirror(cut.height(row), bound.writes[0]);
                }
            }
            BandStep::Column { column, row } => {
                self.update(column, [row, column], &bound.reads, bound.writes[0]);
            }
            BandStep::Panel { .. } => {
                if let [tiles @ .., corner, triangle] = &mut bound.writes[..] {
                    kernels.panel(cut.side(), tiles, corner, triangle, workspace);
                }
            }
            BandStep::Band { column } => {
                let below = bound.reads.get(1).copied();
                kernels.band_tile(cut.height(column), bound.reads[0], below, bound.writes[0]);
            }
            BandStep::Visit { column, row, at } => self.visit([column, row, at], bound),
            BandStep::Right { column, row } => {
                let (t, parts) = (bound.reads[0], &bound.reads[1..]);
                kernels.right_solve(cut.height(row), parts, t, bound.writes[0], cut.reflectors(column));
            }
            BandStep::Middle { column, row } => {
                let count = cut.reflectors(column);
                let (v, y, middle) = (bound.reads[0], bound.reads[1], &mut *bound.writes[0]);
                let layout = outcore_kernels::TileLayout::Columns;
                kernels.project(v, (y, middle, layout), count, count, row == column + 1);
                if let Some(t) = bound.reads.get(2) {
                    kernels.left_solve(t, (middle, layout), count, count, true);
                }
            }
            BandStep::Finish { column, row } => {
                let (v, middle) = (bound.reads[0], bound.reads[1]);
                kernels.halved(cut.height(row), v, middle, bound.writes[0], cut.reflectors(column));
            }
        }
        Ok(())
    }
}

impl ToBand {
    /// Rows and columns of the matrix that a part of a tile has.
    fn intervals(&self, row: u32, part: usize, column: u32) -> [std::ops::Range<u32>; 2] {
        let rows = self.cut.rows_of(row);
        let start = rows.start + part * PART;
        [
            interval(start..rows.end.min(start + PART)),
            interval(self.cut.rows_of(column)),
        ]
    }
}

fn interval(range: std::ops::Range<usize>) -> std::ops::Range<u32> {
    range.start as u32..range.end as u32
}
