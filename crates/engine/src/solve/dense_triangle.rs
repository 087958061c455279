//! L of a dense Cholesky factor as an array.

use std::ops::Range;
use std::sync::Arc;

use outcore_dtype::DType;

use super::analysis::Analysis;
use super::factorize::{dense_cholesky, is_factor_of};
use crate::expr::Expr;
use crate::ops;
use crate::task::costs::PER_ELEMENT;
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// Rows and columns of a tile.
const SIDE: u64 = 512;

/// The lower triangle L of a positive definite matrix, by its factor in tiles.
///
/// # Errors
/// As [`dense_cholesky`]; a matrix whose factor has not several tiles.
pub fn cholesky_lower(x: &Expr) -> Result<Expr, EngineError> {
    let (_, factor) = dense_cholesky(x, None)?;
    cholesky_triangle(x.shape[0], x.dtype, &factor)
}

/// L of so many rows, where `factor` has its tiles.
///
/// # Errors
/// Tiles that are no such factor's.
pub fn cholesky_triangle(rows: u64, dtype: DType, factor: &Expr) -> Result<Expr, EngineError> {
    let other = || EngineError::Argument("cholesky triangle: the tiles are not those of a factor".into());
    let analysis = Analysis::dense(u32::try_from(rows).map_err(|_| other())?, None);
    let is_cut = analysis.fronts.nodes.iter().all(|node| node.blocks().is_some());
    if rows == 0 || !is_cut || !is_factor_of(&analysis, factor, dtype) {
        return Err(other());
    }
    let triangle = CholeskyTriangle {
        analysis: Arc::new(analysis),
        grids: [Grid {
            shape: vec![rows, rows],
            tile: vec![SIDE.min(rows); 2],
            dtype,
        }],
    };
    Ok(ops::algorithm(Arc::new(triangle), std::slice::from_ref(factor))?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct CholeskyTriangle {
    analysis: Arc<Analysis>,
    grids: [Grid; 1],
}

/// A tile of the factor that has elements of a tile of L.
struct FactorBlock {
    tile: u32,
    rows: Range<u32>,
    columns: Range<u32>,
}

impl CholeskyTriangle {
    /// Tiles of the factor, whose sides differ by one, with elements of a tile.
    fn blocks(&self, task: u64) -> Vec<FactorBlock> {
        let node = &self.analysis.fronts.nodes[0];
        let Some(blocks) = node.blocks() else {
            return vec![];
        };
        let region = self.grids[0].region(task);
        let within = |axis: usize| {
            let own = region[axis].start..region[axis].end();
            (0..blocks.all).filter(move |&block| {
                let of = node.block(block);
                u64::from(of.start) < own.end && own.start < u64::from(of.end)
            })
        };
        let of = |row: u32, column: u32| FactorBlock {
            tile: blocks.tile(row, column),
            rows: node.block(row),
            columns: node.block(column),
        };
        within(0)
            .flat_map(|row| {
                within(1)
                    .filter(move |&column| column <= row)
                    .map(move |column| of(row, column))
            })
            .collect()
    }
}

impl Alone for CholeskyTriangle {
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        let [grid] = &self.grids;
        Some(
            Recipe::new("cholesky triangle")
                .word(grid.shape[0])
                .flag(grid.dtype == DType::C128),
        )
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for CholeskyTriangle {
    fn label(&self) -> String {
        "cholesky triangle".into()
    }
    fn tasks(&self) -> u64 {
        self.grids[0].tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let blocks = self.blocks(task);
        blocks.iter().for_each(|block| each(0, block.tile.into(), Access::Read));
        each(1, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        PER_ELEMENT * self.grids[0].shape.iter().product::<u64>() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (grid, out) = (&self.grids[0], &mut *bound.writes[0]);
        let (item, region) = (grid.dtype.size(), grid.region(task));
        out.fill(0);
        for (block, tile) in self.blocks(task).iter().zip(&bound.reads) {
            for (place, row) in block.rows.clone().map(u64::from).enumerate() {
                if !(region[0].start..region[0].end()).contains(&row) {
                    continue;
                }
                let is_diagonal = block.rows == block.columns;
                let width = block.columns.len();
                // Of a triangle each row is one longer than that before.
                let (start, length) = match is_diagonal {
                    true => (place * (place + 1) / 2, place + 1),
                    false => (place * width, width),
                };
                let first = u64::from(block.columns.start);
                let own = first.max(region[1].start)..(first + length as u64).min(region[1].end());
                if own.is_empty() {
                    continue;
                }
                let count = (own.end - own.start) as usize * item;
                let from = (start + (own.start - first) as usize) * item;
                let to = ((row - region[0].start) * region[1].length + own.start - region[1].start) as usize * item;
                out[to..to + count].copy_from_slice(&tile[from..from + count]);
            }
        }
        Ok(())
    }
}
