//! The factorization P A = L U of a dense matrix with partial pivoting, by slabs of columns.
//!
//! Each slab takes, one after the other, what the slabs on its left contribute: the exchanges of their rows, then U by their
//! unit lower triangle, then the products that are subtracted below. Then it is factorized itself. Exchanges are data; which
//! tiles a task touches is not, so the plan is known before the run.

use std::sync::Arc;

use outcore_kernels::{NoPivot, Pivoting, TileLayout};
use outcore_store::FactorOutput;

use super::dense::DenseRows;
use super::factorize::panel_of;
use super::slab_orders::{slab_orders, SlabStep, SlabTasks};
use super::slabs::{SlabCut, SlabExchanges, SlabExchangesMut, SlabRecord};
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::task::{Access, Alone, Bound, FileOutput, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// The factor of a dense matrix as tiles, with its cut. A column without a pivot is an error, or (`allows_singular`) leaves a zero
/// or NaN in U.
///
/// # Errors
/// A matrix that is not square; another type than float64 and complex128.
pub fn dense_lu(x: &Expr, allows_singular: bool) -> Result<(SlabCut, Expr), EngineError> {
    if x.ndim() != 2 || x.shape[0] != x.shape[1] {
        return Err(EngineError::Shape(format!("lu: a matrix of shape {}", show(&x.shape))));
    }
    let panel = panel_of("lu", x.dtype)?;
    let cut = SlabCut::of(x.shape[0], x.dtype).map_err(|reason| EngineError::Shape(format!("lu: {reason}")))?;
    let lengths: Arc<[u64]> = cut.lengths().into();
    let factorization = DenseLu {
        cut,
        allows_singular,
        pivoting: Pivoting::new(panel),
        matrix: DenseRows::new(x.grid()),
        columns: x.tile[1],
        tasks: SlabTasks::new(&cut),
        grids: [Grid::listed(&lengths)],
        listed: lengths,
    };
    let factor = ops::algorithm(Arc::new(factorization), std::slice::from_ref(x))?.swap_remove(0);
    Ok((cut, factor))
}

#[derive(Clone, Debug)]
struct DenseLu {
    cut: SlabCut,
    allows_singular: bool,
    pivoting: Pivoting,
    matrix: DenseRows,
    /// Of a tile of the matrix.
    columns: u64,
    tasks: SlabTasks,
    listed: Arc<[u64]>,
    grids: [Grid; 1],
}

/// The set behind the matrix.
const FACTOR: usize = 1;

impl DenseLu {
    fn item(&self) -> usize {
        self.cut.dtype().size()
    }

    /// Names the tiles of a slab from that with the pivots of a slab on, and the slab's own pivots.
    fn each_below(&self, from: u32, slab: u32, each: &mut dyn FnMut(usize, u64, Access)) {
        for row in self.cut.pivot_tile(from)..self.cut.tiles() {
            each(FACTOR, self.cut.tile(row, slab), Access::Update);
        }
        each(FACTOR, self.cut.pivots(slab), Access::Update);
    }

    fn exchange(&self, from: u32, slab: u32, bound: &mut Bound<'_>) {
        let Some((own, tiles)) = bound.writes.split_last_mut() else {
            return;
        };
        let (cut, item) = (&self.cut, self.item());
        let (block, width) = (cut.block(from), cut.columns(slab).len());
        let first = cut.rows_of(cut.pivot_tile(from)).start;
        let pivots = SlabExchanges::new(bound.reads[0], block.width, item).from(first);
        let layout = TileLayout::Columns;
        self.pivoting.exchange(
            (&mut *tiles, layout),
            [cut.height() as usize, width, block.first],
            &pivots,
            false,
        );
        let size = self
            .pivoting
            .solve_lower(block, bound.reads[1], (tiles[0], layout), width);
        SlabExchangesMut::new(own, width, item).take(1, size);
    }

    fn finish(&self, slab: u32, bound: &mut Bound<'_>) -> Result<(), EngineError> {
        let Some((own, tiles)) = bound.writes.split_last_mut() else {
            return Ok(());
        };
        let (cut, item) = (&self.cut, self.item());
        let block = cut.block(slab);
        let mut own = SlabExchangesMut::new(own, block.width, item);
        let (size, bad) = self.pivoting.factorize(block, tiles, own.pivots);
        own.take(1, size);
        for (column, to) in own.diagonal.chunks_exact_mut(item).enumerate() {
            let at = (column * block.height + block.first + column) * item;
            to.copy_from_slice(&tiles[0][at..at + item]);
        }
        let first = cut.rows_of(cut.pivot_tile(slab)).start;
        own.pivots.iter_mut().for_each(|pivot| *pivot += first);
        match bad {
            Some(NoPivot { column, is_zero }) if !self.allows_singular => {
                let column = cut.columns(slab).start as usize + column;
                Err(EngineError::LinAlg(match is_zero {
                    true => format!("lu: the matrix is singular: the pivot of column {column} is 0"),
                    false => format!(
                        "lu: the matrix has elements that are not finite, or too large: the pivot of column {column} is not finite"
                    ),
                }))
            }
            _ => Ok(()),
        }
    }
}

impl Alone for DenseLu {
    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.allows_singular)]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("lu").flag(self.allows_singular))
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
    fn listed(&self, _result: usize) -> Option<Arc<[u64]>> {
        Some(self.listed.clone())
    }
    fn file(&self, _result: usize) -> Option<FileOutput> {
        Some(FileOutput::Factor(FactorOutput {
            rows: self.cut.rows(),
            dtype: self.cut.dtype(),
            lengths: self.listed.clone(),
            record: Arc::new(SlabRecord),
        }))
    }
}

impl Work for DenseLu {
    fn label(&self) -> String {
        "lu".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.count()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        let (slab, step) = self.tasks.step(task);
        match step {
            SlabStep::Assemble { row, part } => {
                let sources = self.matrix.tiles(&cut.part_rows(row, part), &cut.columns(slab));
                sources.iter().for_each(|tile| each(0, *tile, Access::Read));
                let access = |is_first: bool| if is_first { Access::Create } else { Access::Update };
                each(FACTOR, cut.tile(row, slab), access(part == 0));
                each(FACTOR, cut.pivots(slab), access(part == 0 && row == 0));
            }
            SlabStep::Exchange { from } => {
                each(FACTOR, cut.pivots(from), Access::Read);
                each(FACTOR, cut.tile(cut.pivot_tile(from), from), Access::Read);
                self.each_below(from, slab, each);
            }
            SlabStep::Update { from, row } => {
                each(FACTOR, cut.tile(row, from), Access::Read);
                each(FACTOR, cut.tile(cut.pivot_tile(from), slab), Access::Read);
                each(FACTOR, cut.tile(row, slab), Access::Update);
            }
            SlabStep::Finish => self.each_below(slab, slab, each),
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        slab_orders(&self.tasks, &self.cut, self.columns, memory)
    }
    fn operations(&self) -> f64 {
        (self.cut.rows() as f64).powi(3) * 2.0 / 3.0
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let cut = &self.cut;
        let (slab, step) = self.tasks.step(task);
        let columns = cut.columns(slab);
        match step {
            SlabStep::Assemble { row, part } => {
                let (all, rows) = (cut.rows_of(row), cut.part_rows(row, part));
                let (tile, own) = bound.writes.split_at_mut(1);
                self.matrix.copy_columns([&all, &rows, &columns], &bound.reads, tile[0]);
                if part == 0 && row == 0 {
                    own[0].fill(0);
                }
                if rows.end == all.end {
                    let size = self.pivoting.largest(tile[0]);
                    SlabExchangesMut::new(own[0], columns.len(), self.item()).take(0, size);
                }
            }
            SlabStep::Exchange { from } => self.exchange(from, slab, bound),
            SlabStep::Update { from, row } => self.pivoting.subtract_lower(
                cut.block(from),
                bound.reads[0],
                bound.reads[1],
                (&mut *bound.writes[0], TileLayout::Columns),
                [cut.rows_of(row).len(), columns.len()],
            ),
            SlabStep::Finish => self.finish(slab, bound)?,
        }
        Ok(())
    }
}
