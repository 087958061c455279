//! Solutions by a dense LU factor, with A, its transpose or its adjoint: a sweep over the slabs and one back.
//!
//! Right-hand sides are cut into bands of columns. With A, the first sweep exchanges rows and subtracts by L as the factorization
//! did to a slab, and the second solves with U; with the transpose, Uᵀ comes first, then Lᵀ and the exchanges backward.

use std::sync::Arc;

use outcore_kernels::{Panel, Pivoting, TileLayout, Transposition};

use super::band::by_bands;
use super::slabs::{SlabCut, SlabExchanges};
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::task::costs::PER_ENTRY;
use crate::task::{Access, Alone, Bound, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// Columns of a band.
const BAND: u64 = 256;

/// X of A X = B, of Aᵀ X = B or Aᴴ X = B, where `factor` has the tiles of the factor of A.
///
/// # Errors
/// B of another shape or type than the matrix.
pub fn lu_solved(cut: &SlabCut, factor: &Expr, b: &Expr, of: Transposition) -> Result<Expr, EngineError> {
    if b.ndim() != 2 || b.shape[0] != cut.rows() || b.shape[1] == 0 {
        let rows = cut.rows();
        return Err(EngineError::Shape(format!(
            "solve: ({rows}, {rows}) and right-hand sides of shape {}: {rows} and {} rows differ",
            show(&b.shape),
            b.shape.first().copied().unwrap_or(1)
        )));
    }
    let panel = Panel::new(b.dtype).filter(|_| b.dtype == cut.dtype()).ok_or_else(|| {
        EngineError::DType(format!(
            "solve: a factor of {} and right-hand sides of {}",
            cut.dtype(),
            b.dtype
        ))
    })?;
    if !cut.is_cut_of(factor) {
        return Err(EngineError::Argument(
            "solve: the tiles are not those of a dense LU factor".into(),
        ));
    }
    let b = ops::in_tiles(b, vec![cut.height().min(cut.rows()), BAND.min(b.shape[1])]);
    let sweeps = SlabSweeps {
        cut: *cut,
        of,
        pivoting: Pivoting::new(panel),
        tasks: tasks_of(cut, of).into(),
        grids: [b.grid()],
    };
    Ok(ops::algorithm(Arc::new(sweeps), &[factor.clone(), b])?.swap_remove(0))
}

const FACTOR: usize = 0;
const RIGHT: usize = 1;
const SOLUTION: usize = 2;

/// A part of the work on a band of columns.
#[derive(Clone, Copy, Debug)]
enum SlabSweepStep {
    /// Takes a tile of B.
    Begin { row: u32 },
    /// Exchanges rows as a slab did, and solves with its unit lower triangle.
    Lower { slab: u32 },
    /// Solves with the triangle of U of a slab.
    Upper { slab: u32 },
    /// Subtracts products of a tile of a slab, from the rows of the tile.
    Subtract { slab: u32, row: u32 },
    /// Solves with the transposed triangle of U.
    UpperTransposed { slab: u32 },
    /// Solves with the transposed triangle of L, and exchanges rows backward.
    LowerTransposed { slab: u32 },
    /// Subtracts products of the transpose of a tile of a slab, from the rows of its pivots.
    Gather { slab: u32, row: u32 },
}

/// The tasks of a band.
fn tasks_of(cut: &SlabCut, of: Transposition) -> Vec<SlabSweepStep> {
    let mut tasks: Vec<SlabSweepStep> = (0..cut.tiles()).map(|row| SlabSweepStep::Begin { row }).collect();
    let above = |slab: u32| 0..cut.pivot_tile(slab);
    let below = |slab: u32| cut.pivot_tile(slab) + 1..cut.tiles();
    match of {
        Transposition::None => {
            for slab in 0..cut.slabs() {
                tasks.push(SlabSweepStep::Lower { slab });
                tasks.extend(below(slab).map(|row| SlabSweepStep::Subtract { slab, row }));
            }
            for slab in (0..cut.slabs()).rev() {
                tasks.push(SlabSweepStep::Upper { slab });
                tasks.extend(above(slab).map(|row| SlabSweepStep::Subtract { slab, row }));
            }
        }
        Transposition::Transpose | Transposition::Adjoint => {
            for slab in 0..cut.slabs() {
                tasks.extend(above(slab).map(|row| SlabSweepStep::Gather { slab, row }));
                tasks.push(SlabSweepStep::UpperTransposed { slab });
            }
            for slab in (0..cut.slabs()).rev() {
                tasks.extend(below(slab).map(|row| SlabSweepStep::Gather { slab, row }));
                tasks.push(SlabSweepStep::LowerTransposed { slab });
            }
        }
    }
    tasks
}

#[derive(Clone, Debug)]
struct SlabSweeps {
    cut: SlabCut,
    of: Transposition,
    pivoting: Pivoting,
    tasks: Arc<[SlabSweepStep]>,
    grids: [Grid; 1],
}

impl SlabSweeps {
    /// The band of columns and the task in it.
    fn task(&self, task: u64) -> (u64, SlabSweepStep) {
        let tasks = self.tasks.len() as u64;
        (task / tasks, self.tasks[(task % tasks) as usize])
    }

    fn bands(&self) -> u64 {
        self.grids[0].counts()[1]
    }

    /// Exchanges rows of a band as a slab did, or backward.
    fn exchange(&self, slab: u32, width: usize, bound: &mut Bound<'_>, backward: bool) {
        let cut = &self.cut;
        let block = cut.block(slab);
        let first = cut.rows_of(cut.pivot_tile(slab)).start;
        let pivots = SlabExchanges::new(bound.reads[0], block.width, cut.dtype().size()).from(first);
        self.pivoting.exchange(
            (&mut bound.writes, TileLayout::Rows),
            [cut.height() as usize, width, block.first],
            &pivots,
            backward,
        );
    }
}

impl Alone for SlabSweeps {
    fn key(&self) -> Vec<u8> {
        vec![self.of.number()]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("lu solves").word(self.of.number().into()))
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for SlabSweeps {
    fn label(&self) -> String {
        "lu solves".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64 * self.bands()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, step) = self.task(task);
        let cut = &self.cut;
        let solution = |row: u32| u64::from(row) * self.bands() + band;
        match step {
            SlabSweepStep::Begin { row } => {
                each(RIGHT, solution(row), Access::Read);
                each(SOLUTION, solution(row), Access::Create);
            }
            SlabSweepStep::Lower { slab } | SlabSweepStep::LowerTransposed { slab } => {
                let own = cut.pivot_tile(slab);
                each(FACTOR, cut.pivots(slab), Access::Read);
                each(FACTOR, cut.tile(own, slab), Access::Read);
                (own..cut.tiles()).for_each(|row| each(SOLUTION, solution(row), Access::Update));
            }
            SlabSweepStep::Upper { slab } | SlabSweepStep::UpperTransposed { slab } => {
                let own = cut.pivot_tile(slab);
                each(FACTOR, cut.tile(own, slab), Access::Read);
                each(SOLUTION, solution(own), Access::Update);
            }
            SlabSweepStep::Subtract { slab, row } => {
                each(FACTOR, cut.tile(row, slab), Access::Read);
                each(SOLUTION, solution(cut.pivot_tile(slab)), Access::Read);
                each(SOLUTION, solution(row), Access::Update);
            }
            SlabSweepStep::Gather { slab, row } => {
                each(FACTOR, cut.tile(row, slab), Access::Read);
                each(SOLUTION, solution(row), Access::Read);
                each(SOLUTION, solution(cut.pivot_tile(slab)), Access::Update);
            }
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        by_bands(self.tasks.len() as u32, self.bands(), self.cut.slab_bytes(), memory)
    }
    fn operations(&self) -> f64 {
        (self.cut.rows() as f64).powi(2) * (PER_ENTRY + 2.0 * self.grids[0].shape[1] as f64)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, step) = self.task(task);
        let (cut, pivoting) = (&self.cut, &self.pivoting);
        let width = self.grids[0].region(band)[1].length as usize;
        let rows = TileLayout::Rows;
        match step {
            SlabSweepStep::Begin { .. } => bound.writes[0].copy_from_slice(bound.reads[0]),
            SlabSweepStep::Lower { slab } => {
                self.exchange(slab, width, bound, false);
                let to = (&mut *bound.writes[0], rows);
                pivoting.solve_lower(cut.block(slab), bound.reads[1], to, width);
            }
            SlabSweepStep::Upper { slab } => {
                pivoting.solve_upper(cut.block(slab), bound.reads[0], bound.writes[0], width);
            }
            SlabSweepStep::Subtract { slab, row } => pivoting.subtract_lower(
                cut.block(slab),
                bound.reads[0],
                bound.reads[1],
                (&mut *bound.writes[0], rows),
                [cut.rows_of(row).len(), width],
            ),
            SlabSweepStep::UpperTransposed { slab } => {
                pivoting.solve_upper_transposed(cut.block(slab), bound.reads[0], bound.writes[0], width, self.of);
            }
            SlabSweepStep::LowerTransposed { slab } => {
                pivoting.solve_lower_transposed(cut.block(slab), bound.reads[1], bound.writes[0], width, self.of);
                self.exchange(slab, width, bound, true);
            }
            SlabSweepStep::Gather { slab, row } => pivoting.subtract_transposed(
                cut.block(slab),
                (bound.reads[0], cut.rows_of(row).len()),
                bound.reads[1],
                (&mut *bound.writes[0], width),
                self.of,
            ),
        }
        Ok(())
    }
}
