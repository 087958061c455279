//! Solutions by the factor A = L Lᴴ: a sweep from the leaves up, L Y = B, and one from the roots down, Lᴴ X = Y.
//!
//! Each node has the rows of its pivots as a tile of its own, so the sweeps read a tile of the factor once each. Columns of B
//! that are cut apart are solved apart.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{Panel, RightHandSides};

use super::analysis::Analysis;
use super::band;
use super::fronts::{BlockCounts, FrontNode};
use super::tree::NONE;
use crate::expr::grid::PANEL_BYTES;
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::task::costs::PER_ENTRY;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

/// X of A X = B, where `factor` has the tiles of the factor of the permuted matrix, and rows of B and X are in the order of
/// elimination.
///
/// # Errors
/// B of another shape or type than the matrix.
pub fn solved(analysis: &Arc<Analysis>, factor: &Expr, dtype: DType, b: &Expr) -> Result<Expr, EngineError> {
    checked_right(analysis, dtype, b)?;
    let b = ops::in_tiles(b, band_tile(analysis, &b.grid()));
    let sweeps = TriangularSweeps::new(analysis, b.grid())?;
    Ok(ops::algorithm(Arc::new(sweeps), &[factor.clone(), b])?.swap_remove(0))
}

/// Refuses right-hand sides of another shape or type than the matrix.
pub(super) fn checked_right(analysis: &Analysis, dtype: DType, b: &Expr) -> Result<(), EngineError> {
    if b.ndim() != 2 || b.shape[0] != analysis.rows() {
        let rows = analysis.rows();
        return Err(EngineError::Shape(format!(
            "solve: ({rows}, {rows}) and right-hand sides of shape {}: {rows} and {} rows differ",
            show(&b.shape),
            b.shape.first().copied().unwrap_or(1)
        )));
    }
    if b.dtype != dtype {
        return Err(EngineError::DType(format!(
            "solve: a factor of {dtype} and right-hand sides of {}",
            b.dtype
        )));
    }
    Ok(())
}

/// Bytes that the rows of the largest node take in a band of columns at most, in bands of as many columns as these or more.
const BAND_BYTES: u64 = 8 << 20;
const BAND_COLUMNS: std::ops::RangeInclusive<u64> = 8..=128;

/// Tiles of right-hand sides in bands of columns: each band reads the factor twice, and has a node's rows in memory.
pub(super) fn band_tile(analysis: &Analysis, grid: &Grid) -> Vec<u64> {
    let item = grid.dtype.size() as u64;
    let rows = |node: &FrontNode| node.columns.len() as u64 + node.below.end - node.below.start;
    let rows = analysis.fronts.nodes.iter().map(rows).max().unwrap_or(1).max(1);
    let columns = (BAND_BYTES / (rows * item)).clamp(*BAND_COLUMNS.start(), *BAND_COLUMNS.end());
    if grid.tile[1] <= columns {
        return grid.tile.clone();
    }
    let rows = (PANEL_BYTES / (columns * item)).max(1);
    vec![rows.min(grid.shape[0]).max(1), columns]
}

const FACTOR: usize = 0;
const RIGHT: usize = 1;
const SOLUTION: usize = 2;
/// Rows of pivots of each node: of Y, then of X.
pub(super) const PIECES: usize = 3;
/// Rows below the pivots: what the forward sweep subtracts there, and X as the backward sweep needs it.
const CONTRIBUTIONS: usize = 4;
pub(super) const BELOW: usize = 5;

/// Tiles of the factor that a task reads at most.
const TOGETHER: u32 = 4;

/// A part of the work on the rows of a node.
#[derive(Clone, Copy, Debug)]
enum SweepStep {
    /// Takes rows of B, and of a large front what some children contribute.
    Begin,
    Child(u32),
    /// Forward, with some tiles below the diagonal of a block of pivots, or with that on the diagonal.
    Forward {
        block: u32,
        rows: [u32; 2],
    },
    /// Takes X below the pivots from the parent.
    Gather,
    Backward {
        block: u32,
        rows: [u32; 2],
    },
    /// Puts pieces into a tile of the solution; `node` is the tile along the rows.
    Collect,
}

#[derive(Clone, Copy, Debug)]
struct SweepTask {
    node: u32,
    step: SweepStep,
}

#[derive(Clone, Debug)]
pub(super) struct TriangularSweeps {
    pub(super) analysis: Arc<Analysis>,
    pub(super) vectors: RightHandSides,
    pub(super) grid: Grid,
    /// Of one band of columns.
    tasks: Arc<[SweepTask]>,
    listed: [Arc<[u64]>; 2],
    grids: [Grid; 4],
}

impl TriangularSweeps {
    fn new(analysis: &Arc<Analysis>, grid: Grid) -> Result<TriangularSweeps, EngineError> {
        let panel =
            Panel::of_any_precision(grid.dtype).ok_or_else(|| EngineError::DType(format!("solve: {}", grid.dtype)))?;
        let nodes = &analysis.fronts.nodes;
        let mut children: Vec<Vec<u32>> = vec![vec![]; nodes.len()];
        for (number, node) in nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE) {
            children[node.parent as usize].push(number as u32);
        }
        let item = grid.dtype.size() as u64;
        let bytes = |rows: &dyn Fn(&FrontNode) -> u64| -> Arc<[u64]> {
            let bands = (0..grid.counts()[1]).map(|band| grid.region(band)[1].length);
            bands
                .flat_map(|width| nodes.iter().map(move |node| rows(node) * width * item))
                .collect()
        };
        let pieces = bytes(&|node| node.columns.len() as u64);
        let below = bytes(&|node| node.below.end - node.below.start);
        let tasks = tasks_of(analysis, &children, grid.counts()[0]);
        Ok(TriangularSweeps {
            grids: [
                grid.clone(),
                Grid::listed(&pieces),
                Grid::listed(&below),
                Grid::listed(&below),
            ],
            listed: [pieces, below],
            analysis: analysis.clone(),
            vectors: RightHandSides::new(panel),
            tasks: tasks.into(),
            grid,
        })
    }

    /// The band of columns and the task in it.
    fn task(&self, task: u64) -> (u64, SweepTask) {
        let tasks = self.tasks.len() as u64;
        (task / tasks, self.tasks[(task % tasks) as usize])
    }

    pub(super) fn node(&self, node: u32) -> &FrontNode {
        &self.analysis.fronts.nodes[node as usize]
    }

    fn width(&self, band: u64) -> usize {
        self.grid.region(band)[1].length as usize
    }

    pub(super) fn item(&self) -> usize {
        self.grid.dtype.size()
    }

    /// The tile of a set that has a node's rows.
    pub(super) fn of_node(&self, band: u64, node: u32) -> u64 {
        band * self.analysis.fronts.nodes.len() as u64 + u64::from(node)
    }

    fn factor_tile(node: &FrontNode, blocks: BlockCounts, row: u32, column: u32) -> u64 {
        u64::from(node.factor + blocks.tile(row, column))
    }
}

/// The tasks of one band of columns.
fn tasks_of(analysis: &Analysis, children: &[Vec<u32>], tiles: u64) -> Vec<SweepTask> {
    let mut tasks = vec![];
    let nodes = &analysis.fronts.nodes;
    let groups = |first: u32, end: u32| {
        let starts = (first..end).step_by(TOGETHER as usize);
        starts.map(move |start| [start, end.min(start + TOGETHER)])
    };
    for (number, node) in nodes.iter().enumerate() {
        let mut add = |step| {
            tasks.push(SweepTask {
                node: number as u32,
                step,
            });
        };
        add(SweepStep::Begin);
        let Some(blocks) = node.blocks() else { continue };
        children[number]
            .iter()
            .filter(|child| has_below(&nodes[**child as usize]))
            .for_each(|child| add(SweepStep::Child(*child)));
        for block in 0..blocks.pivots {
            add(SweepStep::Forward {
                block,
                rows: [block; 2],
            });
            groups(block + 1, blocks.pivots).for_each(|rows| add(SweepStep::Forward { block, rows }));
            groups(blocks.pivots, blocks.all)
                .filter(|[first, _]| *first > block)
                .for_each(|rows| add(SweepStep::Forward { block, rows }));
        }
    }
    for (number, node) in nodes.iter().enumerate().rev() {
        let mut add = |step| {
            tasks.push(SweepTask {
                node: number as u32,
                step,
            });
        };
        let Some(blocks) = node.blocks() else {
            add(SweepStep::Backward { block: 0, rows: [0; 2] });
            continue;
        };
        if has_below(node) {
            add(SweepStep::Gather);
        }
        for block in (0..blocks.pivots).rev() {
            groups(block + 1, blocks.pivots).for_each(|rows| add(SweepStep::Backward { block, rows }));
            groups(blocks.pivots, blocks.all).for_each(|rows| add(SweepStep::Backward { block, rows }));
            add(SweepStep::Backward {
                block,
                rows: [block; 2],
            });
        }
    }
    tasks.extend((0..tiles as u32).map(|tile| SweepTask {
        node: tile,
        step: SweepStep::Collect,
    }));
    tasks
}

/// Whether a node has rows below its pivots.
pub(super) fn has_below(node: &FrontNode) -> bool {
    node.below.end > node.below.start
}

impl Alone for TriangularSweeps {
    fn key(&self) -> Vec<u8> {
        self.analysis.digest.to_string().into_bytes()
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        match result {
            0 => None,
            1 => Some(self.listed[0].clone()),
            _ => Some(self.listed[1].clone()),
        }
    }
}

impl Work for TriangularSweeps {
    fn label(&self) -> String {
        "triangular solves".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64 * self.grid.counts()[1]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, SweepTask { node: number, step }) = self.task(task);
        if let SweepStep::Collect = step {
            let nodes = band::nodes_of(&self.grid, &self.analysis.fronts.nodes, number);
            nodes.for_each(|node| each(PIECES, self.of_node(band, node), Access::Read));
            each(
                SOLUTION,
                u64::from(number) * self.grid.counts()[1] + band,
                Access::Create,
            );
            return;
        }
        let node = self.node(number);
        let own = self.of_node(band, number);
        match (step, node.blocks()) {
            (SweepStep::Begin, blocks) => {
                if blocks.is_none() {
                    each(FACTOR, u64::from(node.factor), Access::Read);
                }
                let bands = self.grid.counts()[1];
                band::right_tiles(&self.grid, node).for_each(|tile| each(RIGHT, tile * bands + band, Access::Read));
                each(PIECES, own, Access::Create);
                if has_below(node) {
                    each(CONTRIBUTIONS, own, Access::Create);
                }
            }
            (SweepStep::Child(child), _) => {
                each(CONTRIBUTIONS, self.of_node(band, child), Access::Read);
                each(PIECES, own, Access::Update);
                if has_below(node) {
                    each(CONTRIBUTIONS, own, Access::Update);
                }
            }
            (SweepStep::Forward { block, rows }, Some(blocks)) => {
                if rows[0] == block {
                    each(FACTOR, Self::factor_tile(node, blocks, block, block), Access::Read);
                    each(PIECES, own, Access::Update);
                    return;
                }
                for row in rows[0]..rows[1] {
                    each(FACTOR, Self::factor_tile(node, blocks, row, block), Access::Read);
                }
                if rows[0] < blocks.pivots {
                    each(PIECES, own, Access::Update);
                } else {
                    each(PIECES, own, Access::Read);
                    each(CONTRIBUTIONS, own, Access::Update);
                }
            }
            (SweepStep::Gather, _) => {
                self.gathered(band, node, each);
                each(BELOW, own, Access::Create);
            }
            (SweepStep::Backward { block, rows }, Some(blocks)) => {
                if rows[0] == block {
                    each(FACTOR, Self::factor_tile(node, blocks, block, block), Access::Read);
                } else {
                    for row in rows[0]..rows[1] {
                        each(FACTOR, Self::factor_tile(node, blocks, row, block), Access::Read);
                    }
                    if rows[0] >= blocks.pivots {
                        each(BELOW, own, Access::Read);
                    }
                }
                each(PIECES, own, Access::Update);
            }
            (SweepStep::Backward { .. }, None) => {
                each(FACTOR, u64::from(node.factor), Access::Read);
                self.gathered(band, node, each);
                each(PIECES, own, Access::Update);
            }
            (SweepStep::Forward { .. } | SweepStep::Collect, _) => {}
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let (band, SweepTask { node: number, step }) = self.task(task);
        let width = self.width(band);
        match step {
            SweepStep::Collect | SweepStep::Gather | SweepStep::Child(_) => 0,
            SweepStep::Forward { block, rows } | SweepStep::Backward { block, rows }
                if self.node(number).blocks().is_some() =>
            {
                let node = self.node(number);
                let side = node.block(block).len();
                let low_rank = |row| self.vectors.low_rank_bytes([node.block(row).len(), width, side]);
                let own = match (rows[0] == block, self.analysis.low_rank) {
                    (true, _) => side * side * self.item(),
                    (false, None) => 0,
                    (false, Some(_)) => (rows[0]..rows[1]).map(low_rank).max().unwrap_or(0),
                };
                own as u64 + 64
            }
            _ => {
                let node = self.node(number);
                let rows = node.columns.len() as u64 + node.below.end - node.below.start;
                if node.blocks().is_some() {
                    0
                } else {
                    (rows * width as u64 * self.item() as u64) + 64
                }
            }
        }
    }
    fn record_bytes(&self) -> u64 {
        let listed: usize = self.listed.iter().map(|listed| size_of_val(&**listed)).sum();
        (size_of_val(&*self.tasks) + listed) as u64
    }
    fn operations(&self) -> f64 {
        2.0 * self.analysis.entries() as f64 * (PER_ENTRY + 2.0 * self.grid.shape[1] as f64)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, SweepTask { node: number, step }) = self.task(task);
        let width = self.width(band);
        if let SweepStep::Collect = step {
            let nodes = &self.analysis.fronts.nodes;
            band::collect(&self.grid, nodes, number, width * self.item(), bound);
            return Ok(());
        }
        let node = self.node(number);
        match (step, node.blocks().is_some()) {
            (SweepStep::Begin, true) => {
                band::take_right(&self.grid, node, width * self.item(), &bound.reads, bound.writes[0]);
                if let Some(below) = bound.writes.get_mut(1) {
                    below.fill(0);
                }
            }
            (SweepStep::Begin, false) => self.forward_subtrees(node, width, bound, workspace),
            (SweepStep::Child(child), _) => self.add_child(node, child, width, bound),
            (SweepStep::Forward { block, rows }, true) => self.forward(node, block, rows, width, bound, workspace)?,
            (SweepStep::Gather, _) => self.gather(node, width, &bound.reads, bound.writes[0]),
            (SweepStep::Backward { block, rows }, true) => self.backward(node, block, rows, width, bound, workspace)?,
            (SweepStep::Backward { .. }, false) => self.backward_subtrees(node, width, bound, workspace),
            (SweepStep::Forward { .. } | SweepStep::Collect, _) => {}
        }
        Ok(())
    }
}
