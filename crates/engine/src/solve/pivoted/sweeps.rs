//! Solutions by factors with pivoting: a sweep from the leaves up and one from the roots down, as with the factor of a positive
//! definite matrix. A block's rows are in the order of its pivots between both; rows of candidates that were left go to their
//! slots on the way up, and come back on the way down.

use std::sync::Arc;

use outcore_kernels::{Panel, PivotTriangle, PivotedKind, RightHandSides, Transposition};

use super::super::band;
use super::super::fronts::FrontNode;
use super::super::sweeps::{band_tile, checked_right};
use super::super::tree::NONE;
use super::super::Analysis;
use super::fronts::{PivotedBlocks, PivotedFronts, PivotedNode};
use crate::expr::Expr;
use crate::ops;
use crate::task::costs::PER_ENTRY;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

const FACTOR: usize = 0;
const RIGHT: usize = 1;
const SOLUTION: usize = 2;
/// Rows of candidates of each node: of B, then of X.
const PIECES: usize = 3;
/// Rows of slots and below: what the forward sweep subtracts there, and X as the backward sweep needs it.
const CONTRIBUTIONS: usize = 4;
const BELOW: usize = 5;

/// Tiles of the factor that a task reads at most.
const TOGETHER: u32 = 4;

/// A factor with pivoting, and the way that it is applied in.
#[derive(Clone, Debug)]
pub struct PivotedFactor {
    pub analysis: Arc<Analysis>,
    pub tiles: Expr,
    pub kind: PivotedKind,
    pub turn: Transposition,
}

/// X of A X = B, or of Aᵀ X = B, Aᴴ X = B, where rows of B and X are in the order of elimination.
///
/// # Errors
/// B of another shape or type than the matrix.
pub fn pivoted_solved(of: &PivotedFactor, dtype: outcore_dtype::DType, b: &Expr) -> Result<Expr, EngineError> {
    checked_right(&of.analysis, dtype, b)?;
    let b = ops::in_tiles(b, band_tile(&of.analysis, &b.grid()));
    let sweeps = PivotedSweeps::new(of, b.grid())?;
    Ok(ops::algorithm(Arc::new(sweeps), &[of.tiles.clone(), b])?.swap_remove(0))
}

/// A part of the work on the rows of a node.
#[derive(Clone, Copy, Debug)]
enum PivotedSweepStep {
    Begin,
    Child(u32),
    /// The triangle of a block on the way up, then what it gives to some blocks behind it.
    Triangle(u32),
    Forward {
        block: u32,
        rows: [u32; 2],
    },
    Gather,
    /// D of a block, what blocks behind it give to it, its triangle on the way down.
    Divide(u32),
    Backward {
        block: u32,
        rows: [u32; 2],
    },
    TriangleDown(u32),
    Collect,
}

#[derive(Clone, Copy, Debug)]
struct PivotedSweepTask {
    node: u32,
    step: PivotedSweepStep,
}

#[derive(Clone, Debug)]
pub(super) struct PivotedSweeps {
    pub analysis: Arc<Analysis>,
    pub fronts: Arc<PivotedFronts>,
    pub kind: PivotedKind,
    pub turn: Transposition,
    pub vectors: RightHandSides,
    pub grid: Grid,
    tasks: Arc<[PivotedSweepTask]>,
    listed: [Arc<[u64]>; 2],
    grids: [Grid; 4],
}

impl PivotedSweeps {
    fn new(of: &PivotedFactor, grid: Grid) -> Result<PivotedSweeps, EngineError> {
        let panel = Panel::new(grid.dtype).ok_or_else(|| EngineError::DType(format!("solve: {}", grid.dtype)))?;
        let item = grid.dtype.size() as u64;
        let fronts = PivotedFronts::new(&of.analysis, of.kind, item);
        let nodes = &of.analysis.fronts.nodes;
        let bytes = |rows: &dyn Fn(&FrontNode, &PivotedNode) -> u64| -> Arc<[u64]> {
            let both: Vec<u64> = nodes
                .iter()
                .zip(&fronts.nodes)
                .map(|(front, node)| rows(front, node))
                .collect();
            let bands = (0..grid.counts()[1]).map(|band| grid.region(band)[1].length);
            bands
                .flat_map(|width| both.iter().map(move |rows| rows * width * item).collect::<Vec<_>>())
                .collect()
        };
        let pieces = bytes(&|front, node| node.candidates(front));
        let below = bytes(&|front, node| node.rows_below(front));
        let tasks = tasks_of(nodes, &fronts, of.kind, grid.counts()[0]);
        Ok(PivotedSweeps {
            grids: [
                grid.clone(),
                Grid::listed(&pieces),
                Grid::listed(&below),
                Grid::listed(&below),
            ],
            listed: [pieces, below],
            analysis: of.analysis.clone(),
            fronts: Arc::new(fronts),
            kind: of.kind,
            turn: of.turn,
            vectors: RightHandSides::new(panel),
            tasks: tasks.into(),
            grid,
        })
    }

    fn task(&self, task: u64) -> (u64, PivotedSweepTask) {
        let tasks = self.tasks.len() as u64;
        (task / tasks, self.tasks[(task % tasks) as usize])
    }

    pub fn node(&self, node: u32) -> (&FrontNode, &PivotedNode) {
        (
            &self.analysis.fronts.nodes[node as usize],
            &self.fronts.nodes[node as usize],
        )
    }

    pub fn row_bytes(&self, band: u64) -> usize {
        self.grid.region(band)[1].length as usize * self.grid.dtype.size()
    }

    fn of_node(&self, band: u64, node: u32) -> u64 {
        band * self.fronts.nodes.len() as u64 + u64::from(node)
    }

    pub fn is_symmetric(&self) -> bool {
        self.kind != PivotedKind::Unsymmetric
    }

    /// The tile between a block of pivots and one behind it that goes up, or down.
    fn factor_tile(&self, node: &PivotedNode, blocks: &PivotedBlocks, [block, row]: [u32; 2], is_up: bool) -> u64 {
        let is_lower = self.is_symmetric() || is_up == (self.turn == Transposition::None);
        let tile = if is_lower {
            blocks.tile(row, block)
        } else {
            blocks.tile(block, row)
        };
        u64::from(node.factor + tile.1)
    }

    /// How tiles are applied on the way up, or down.
    pub fn turned(&self, is_up: bool) -> (PivotTriangle, Transposition) {
        match (self.kind, is_up) {
            (PivotedKind::Unsymmetric, _) => match is_up == (self.turn == Transposition::None) {
                true => (PivotTriangle::Lower, self.turn),
                false => (PivotTriangle::Upper, self.turn),
            },
            (_, true) => (PivotTriangle::Lower, Transposition::None),
            (PivotedKind::Hermitian, false) => (PivotTriangle::Lower, Transposition::Adjoint),
            (PivotedKind::Symmetric, false) => (PivotTriangle::Lower, Transposition::Transpose),
        }
    }

    /// Names the tiles that have X of the slots of a node and below.
    fn gathered(&self, band: u64, number: u32, each: &mut dyn FnMut(usize, u64, Access)) {
        let (front, node) = self.node(number);
        if node.rows_below(front) == 0 {
            return;
        }
        each(PIECES, self.of_node(band, front.parent), Access::Read);
        let (parent, own) = self.node(front.parent);
        if own.rows_below(parent) > 0 {
            each(BELOW, self.of_node(band, front.parent), Access::Read);
        }
    }

    /// The tiles that a step on a front in tiles touches.
    fn operands_of_blocks(
        &self,
        band: u64,
        number: u32,
        (blocks, step): (&PivotedBlocks, PivotedSweepStep),
        each: &mut dyn FnMut(usize, u64, Access),
    ) {
        use PivotedSweepStep::{Backward, Begin, Child, Collect, Divide, Forward, Gather, Triangle, TriangleDown};
        let (front, node) = self.node(number);
        let own = self.of_node(band, number);
        let has_below = node.rows_below(front) > 0;
        let diagonal = |block: u32| u64::from(node.factor + blocks.tile(block, block).1);
        match step {
            Collect | Begin => {}
            Child(child) => {
                each(CONTRIBUTIONS, self.of_node(band, child), Access::Read);
                each(PIECES, own, Access::Update);
                if has_below {
                    each(CONTRIBUTIONS, own, Access::Update);
                }
            }
            Triangle(block) => {
                each(FACTOR, diagonal(block), Access::Read);
                each(PIECES, own, Access::Update);
                if has_below {
                    each(CONTRIBUTIONS, own, Access::Update);
                }
            }
            Divide(block) => {
                each(FACTOR, diagonal(block), Access::Read);
                each(PIECES, own, Access::Update);
            }
            TriangleDown(block) => {
                each(FACTOR, diagonal(block), Access::Read);
                if has_below {
                    each(BELOW, own, Access::Read);
                }
                each(PIECES, own, Access::Update);
            }
            Gather => {
                self.gathered(band, number, each);
                each(BELOW, own, Access::Create);
            }
            Forward { block, rows } | Backward { block, rows } => {
                let is_up = matches!(step, Forward { .. });
                for row in rows[0]..rows[1] {
                    each(
                        FACTOR,
                        self.factor_tile(node, blocks, [block, row], is_up),
                        Access::Read,
                    );
                }
                let is_below = rows[0] >= blocks.pivots;
                match (is_below, is_up) {
                    (false, _) => each(PIECES, own, Access::Update),
                    (true, true) => {
                        each(PIECES, own, Access::Read);
                        each(CONTRIBUTIONS, own, Access::Update);
                    }
                    (true, false) => {
                        each(BELOW, own, Access::Read);
                        each(PIECES, own, Access::Update);
                    }
                }
            }
        }
    }
}

fn tasks_of(nodes: &[FrontNode], fronts: &PivotedFronts, kind: PivotedKind, tiles: u64) -> Vec<PivotedSweepTask> {
    use PivotedSweepStep::{Backward, Begin, Child, Collect, Divide, Forward, Gather, Triangle, TriangleDown};
    let mut tasks = vec![];
    let groups = |first: u32, end: u32| {
        let starts = (first..end).step_by(TOGETHER as usize);
        starts.map(move |start| [start, end.min(start + TOGETHER)])
    };
    let behind = |blocks: &PivotedBlocks, block: u32| {
        let (pivots, all) = (blocks.pivots, blocks.all());
        groups(block + 1, pivots)
            .chain(groups(pivots.max(block + 1), all))
            .collect::<Vec<_>>()
    };
    for (number, node) in fronts.nodes.iter().enumerate() {
        let mut add = |step| {
            tasks.push(PivotedSweepTask {
                node: number as u32,
                step,
            });
        };
        add(Begin);
        let Some(blocks) = node.blocks() else { continue };
        fronts.children[number].iter().for_each(|child| add(Child(*child)));
        for block in 0..blocks.pivots {
            add(Triangle(block));
            behind(blocks, block)
                .into_iter()
                .for_each(|rows| add(Forward { block, rows }));
        }
    }
    for (number, node) in fronts.nodes.iter().enumerate().rev() {
        let mut add = |step| {
            tasks.push(PivotedSweepTask {
                node: number as u32,
                step,
            });
        };
        let Some(blocks) = node.blocks() else {
            add(TriangleDown(0));
            continue;
        };
        if nodes[number].parent != NONE {
            add(Gather);
        }
        for block in (0..blocks.pivots).rev() {
            if kind != PivotedKind::Unsymmetric {
                add(Divide(block));
            }
            behind(blocks, block)
                .into_iter()
                .for_each(|rows| add(Backward { block, rows }));
            add(TriangleDown(block));
        }
    }
    tasks.extend((0..tiles as u32).map(|tile| PivotedSweepTask {
        node: tile,
        step: Collect,
    }));
    tasks
}

impl Alone for PivotedSweeps {
    fn key(&self) -> Vec<u8> {
        format!("{} {:?} {:?}", self.analysis.digest, self.kind, self.turn).into_bytes()
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

impl Work for PivotedSweeps {
    fn label(&self) -> String {
        "pivoted solves".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64 * self.grid.counts()[1]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        use PivotedSweepStep::{Begin, Collect};
        let (band, PivotedSweepTask { node: number, step }) = self.task(task);
        let bands = self.grid.counts()[1];
        if let Collect = step {
            let nodes = band::nodes_of(&self.grid, &self.analysis.fronts.nodes, number);
            nodes.for_each(|node| each(PIECES, self.of_node(band, node), Access::Read));
            each(SOLUTION, u64::from(number) * bands + band, Access::Create);
            return;
        }
        let (front, node) = self.node(number);
        let own = self.of_node(band, number);
        let has_below = node.rows_below(front) > 0;
        let Some(blocks) = node.blocks() else {
            each(FACTOR, u64::from(node.factor), Access::Read);
            if let Begin = step {
                band::right_tiles(&self.grid, front).for_each(|tile| each(RIGHT, tile * bands + band, Access::Read));
                each(PIECES, own, Access::Create);
                if has_below {
                    each(CONTRIBUTIONS, own, Access::Create);
                }
            } else {
                self.gathered(band, number, each);
                each(PIECES, own, Access::Update);
            }
            return;
        };
        if let Begin = step {
            band::right_tiles(&self.grid, front).for_each(|tile| each(RIGHT, tile * bands + band, Access::Read));
            each(PIECES, own, Access::Create);
            if has_below {
                each(CONTRIBUTIONS, own, Access::Create);
            }
            return;
        }
        self.operands_of_blocks(band, number, (blocks, step), each);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        use PivotedSweepStep::{Begin, Divide, Triangle, TriangleDown};
        let (band, PivotedSweepTask { node: number, step }) = self.task(task);
        let row = self.row_bytes(band);
        if let PivotedSweepStep::Collect = step {
            return 0;
        }
        let (front, node) = self.node(number);
        let bytes = match (node.blocks(), step) {
            (None, _) => {
                let rows = front.columns.len() as u64 + (front.below.end - front.below.start) + u64::from(node.slots);
                rows as usize * row
            }
            (Some(blocks), Triangle(block) | Divide(block) | TriangleDown(block)) => {
                let side = blocks.side(block);
                side * side * self.grid.dtype.size() + side * row
            }
            (Some(_), Begin) => 0,
            _ => 0,
        };
        bytes as u64 + 64
    }
    fn record_bytes(&self) -> u64 {
        let listed: usize = self.listed.iter().map(|listed| size_of_val(&**listed)).sum();
        self.fronts.bytes() + (size_of_val(&*self.tasks) + listed) as u64
    }
    fn operations(&self) -> f64 {
        let sides = if self.is_symmetric() { 4.0 } else { 8.0 };
        sides * self.analysis.entries() as f64 * (PER_ENTRY / 2.0 + self.grid.shape[1] as f64)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        use PivotedSweepStep::{Backward, Begin, Child, Collect, Divide, Forward, Gather, Triangle, TriangleDown};
        let (band, PivotedSweepTask { node: number, step }) = self.task(task);
        let row = self.row_bytes(band);
        if let Collect = step {
            band::collect(&self.grid, &self.analysis.fronts.nodes, number, row, bound);
            return Ok(());
        }
        let (front, node) = self.node(number);
        let skipped = workspace.as_ptr().align_offset(64).min(workspace.len());
        let workspace = &mut workspace[skipped..];
        match (node.blocks(), step) {
            (None, Begin) => self.forward_subtrees(front, node, row, bound, workspace),
            (None, _) => self.backward_subtrees(number, row, bound, workspace),
            (Some(_), Begin) => {
                bound.writes[0].fill(0);
                let piece = &mut bound.writes[0][..front.columns.len() * row];
                band::take_right(&self.grid, front, row, &bound.reads, piece);
                if let Some(below) = bound.writes.get_mut(1) {
                    below.fill(0);
                }
            }
            (Some(_), Child(child)) => self.add_child(child, row, bound),
            (Some(blocks), Triangle(block)) => self.triangle(blocks, block, row, bound, workspace),
            (Some(blocks), Forward { block, rows }) => self.forward(blocks, block, rows, row, bound),
            (Some(_), Gather) => self.gather(number, row, &bound.reads, bound.writes[0]),
            (Some(blocks), Divide(block)) => self.divide(blocks, block, row, bound, workspace),
            (Some(blocks), Backward { block, rows }) => self.backward(blocks, block, rows, row, bound),
            (Some(blocks), TriangleDown(block)) => self.triangle_down(blocks, block, row, bound, workspace),
            (Some(_), Collect) => {}
        }
        Ok(())
    }
}
