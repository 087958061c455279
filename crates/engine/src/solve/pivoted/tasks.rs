//! The tasks of a factorization with pivoting. Each block of columns is eliminated by one task over all of its height, so that
//! the test of a pivot is exact; what it leaves goes to the slots of the front as products of its pivots are subtracted there.

use std::ops::Range;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{Panel, PivotRule, PivotedKind};

use super::super::dense::DenseRows;
use super::super::durable::FactorSets;
use super::super::factorize::panel_of;
use super::super::fronts::FrontNode;
use super::super::places::FrontPlaces;
use super::super::Analysis;
use super::columns::orders_by_columns;
use super::fronts::{PivotedBlocks, PivotedFronts, PivotedNode};
use super::scaling::{PivotScaling, PivotedRecord};
use crate::expr::{Digest, Expr};
use crate::ops;
use crate::sparse::{RowEntries, SparseMatrix};
use crate::task::{Access, Alone, Bound, FileOutput, Grid, TaskOrder, Work};
use crate::EngineError;

/// Tiles that a task adds to another at most.
const TOGETHER: usize = 4;
/// Products that a task subtracts at most.
const PRODUCTS: u32 = 2;

/// A part of the work on a front.
#[derive(Clone, Copy, Debug)]
enum PivotedStep {
    /// All of a node of subtrees.
    Subtrees,
    /// Adds what children contribute to a tile; the first makes it, of entries of A where it has own columns.
    Assemble { begin: u32, end: u32, is_first: bool },
    /// Subtracts products of blocks of pivots, and takes what these leave where the tile has slots.
    Update { begin: u32, end: u32 },
    /// Eliminates a block of columns.
    Eliminate,
    /// Makes a tile of U of a row of blocks.
    Row,
}

#[derive(Clone, Copy, Debug)]
struct PivotedTask {
    node: u32,
    row: u32,
    column: u32,
    step: PivotedStep,
}

/// A tile of a child's contribution block that has elements for a tile of the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PivotedContribution {
    pub child: u32,
    pub row: u32,
    pub column: u32,
}

/// The matrix that is factorized, A of an analysis, scaled, and the rule that its pivots are chosen by.
#[derive(Clone, Debug)]
pub struct PivotedMatrix {
    pub analysis: Arc<Analysis>,
    /// Rows and columns in the order of elimination.
    pub matrix: SparseMatrix,
    /// The transpose, where the matrix is not symmetric.
    pub transpose: Option<SparseMatrix>,
    pub scaling: PivotScaling,
    pub rule: PivotRule,
}

/// The matrix as tasks read it.
#[derive(Clone, Debug)]
pub(super) enum PivotedSource {
    /// Its rows, and those of the transpose where it is not symmetric.
    Sparse {
        rows: RowEntries,
        columns: Option<RowEntries>,
    },
    /// A symmetric matrix, of which elements on and below the diagonal count.
    Dense(DenseRows),
}

#[derive(Clone, Debug)]
pub(super) struct PivotedFactorization {
    pub analysis: Arc<Analysis>,
    pub fronts: Arc<PivotedFronts>,
    pub source: PivotedSource,
    pub record: Arc<PivotedRecord>,
    pub rule: PivotRule,
    pub panel: Panel,
    tasks: Arc<[PivotedTask]>,
    pub contributions: Arc<[PivotedContribution]>,
    sets: FactorSets,
}

/// The factor of a matrix as tiles.
///
/// # Errors
/// A matrix of another shape or type than the analysis.
pub fn pivoted(of: &PivotedMatrix) -> Result<Expr, EngineError> {
    let factorization = PivotedFactorization::new(of)?;
    let mut inputs = vec![of.matrix.tiles.clone()];
    inputs.extend(of.transpose.iter().map(|matrix| matrix.tiles.clone()));
    Ok(ops::algorithm(Arc::new(factorization), &inputs)?.swap_remove(0))
}

/// The factor A = L D Lᴴ, or L D Lᵀ, of a dense symmetric matrix as tiles, with its analysis. The scaling has the row of the
/// caller's matrix that each is.
///
/// # Errors
/// A matrix that is not square, or scales of other rows; another type than float64 and complex128.
pub fn dense_ldl(x: &Expr, scaling: PivotScaling, rule: PivotRule) -> Result<(Arc<Analysis>, Expr), EngineError> {
    let counts = [scaling.rows.len(), scaling.columns.len(), scaling.order.len()].map(|count| count as u64);
    let rows = match x.shape[..] {
        [rows, columns] if rows == columns && rows > 0 && counts == [rows; 3] => u32::try_from(rows).ok(),
        _ => None,
    };
    let rows = rows.ok_or_else(|| EngineError::Shape(format!("ldl: a matrix of shape {}", ops::show(&x.shape))))?;
    let analysis = Arc::new(Analysis::dense(rows, None));
    let source = PivotedSource::Dense(DenseRows::new(x.grid()));
    let factorization = PivotedFactorization::of(&analysis, source, (scaling, rule), x.dtype)?;
    let factor = ops::algorithm(Arc::new(factorization), std::slice::from_ref(x))?.swap_remove(0);
    Ok((analysis, factor))
}

impl PivotedFactorization {
    fn new(of: &PivotedMatrix) -> Result<PivotedFactorization, EngineError> {
        let analysis = &of.analysis;
        let rows = analysis.rows();
        let shape = of.matrix.file.matrix();
        if [shape.rows, shape.columns] != [rows; 2] {
            return Err(EngineError::Shape(format!(
                "factorize: a matrix of shape ({}, {}), and the analysis is of ({rows}, {rows})",
                shape.rows, shape.columns
            )));
        }
        let source = PivotedSource::Sparse {
            rows: RowEntries::new(&of.matrix)?,
            columns: of.transpose.as_ref().map(RowEntries::new).transpose()?,
        };
        let dtype = of.matrix.dtype().unwrap_or(DType::F64);
        PivotedFactorization::of(analysis, source, (of.scaling.clone(), of.rule), dtype)
    }

    fn of(
        analysis: &Arc<Analysis>,
        source: PivotedSource,
        (scaling, rule): (PivotScaling, PivotRule),
        dtype: DType,
    ) -> Result<PivotedFactorization, EngineError> {
        let panel = panel_of("factorize", dtype)?;
        let fronts = PivotedFronts::new(analysis, rule.kind, dtype.size() as u64);
        let (tasks, contributions) = tasks_of(analysis, &fronts, rule.kind);
        let first = |node: usize| fronts.nodes[node].contribution;
        Ok(PivotedFactorization {
            source,
            record: Arc::new(PivotedRecord {
                analysis: analysis.clone(),
                scaling,
                kind: rule.kind,
            }),
            rule,
            panel,
            sets: FactorSets::new(analysis, fronts.factor.as_slice().into(), &fronts.contribution, first),
            tasks: tasks.into(),
            contributions: contributions.into(),
            fronts: Arc::new(fronts),
            analysis: analysis.clone(),
        })
    }

    pub fn kind(&self) -> PivotedKind {
        self.rule.kind
    }

    pub fn is_symmetric(&self) -> bool {
        self.rule.kind != PivotedKind::Unsymmetric
    }

    pub fn node(&self, node: u32) -> (&FrontNode, &PivotedNode) {
        (
            &self.analysis.fronts.nodes[node as usize],
            &self.fronts.nodes[node as usize],
        )
    }

    pub fn item(&self) -> usize {
        self.panel.dtype().size()
    }

    fn factor_set(&self) -> usize {
        match &self.source {
            PivotedSource::Sparse { columns: Some(_), .. } => 2,
            _ => 1,
        }
    }

    fn place(&self, node: &PivotedNode, blocks: &PivotedBlocks, [row, column]: [u32; 2]) -> (usize, u64) {
        match blocks.tile(row, column) {
            (true, tile) => (self.factor_set(), u64::from(node.factor + tile)),
            (false, tile) => self.contribution(node.contribution + tile),
        }
    }

    /// The set of a tile of contribution blocks, and its number there.
    fn contribution(&self, tile: u32) -> (usize, u64) {
        (self.factor_set() + self.sets.of_contribution(tile), tile.into())
    }

    fn contributed(&self, from: PivotedContribution) -> (usize, u64) {
        let (_, child) = self.node(from.child);
        match child.blocks() {
            None => self.contribution(child.contribution),
            Some(blocks) => self.place(child, blocks, [from.row, from.column]),
        }
    }

    /// The columns of the matrix that a block is of; none where it has no own columns.
    pub fn columns_of(&self, node: &FrontNode, blocks: &PivotedBlocks, block: u32) -> Range<u32> {
        match block < blocks.own {
            true => node.columns.start + blocks.block(block).start..node.columns.start + blocks.block(block).end,
            false => 0..0,
        }
    }

    /// Rows of the matrix that has the entries of a tile, and whether they are those of the transpose.
    pub fn source_of(&self, node: &FrontNode, blocks: &PivotedBlocks, [row, column]: [u32; 2]) -> (bool, Range<u32>) {
        match row < column {
            true => (false, self.columns_of(node, blocks, row)),
            false => (!self.is_symmetric(), self.columns_of(node, blocks, column)),
        }
    }

    /// Names tiles of the matrix that have entries of a node of subtrees, or of a tile.
    fn sources(
        &self,
        node: &FrontNode,
        tile: Option<(&PivotedBlocks, [u32; 2])>,
        each: &mut dyn FnMut(usize, u64, Access),
    ) {
        let (rows, columns) = match (&self.source, tile) {
            (PivotedSource::Sparse { rows, columns }, _) => (rows, columns),
            (PivotedSource::Dense(dense), Some((blocks, [row, column]))) if row.max(column) < blocks.own => {
                let tiles = dense.tiles(&blocks.block(row), &blocks.block(column));
                tiles.into_iter().for_each(|tile| each(0, tile, Access::Read));
                return;
            }
            (PivotedSource::Dense(_), _) => return,
        };
        let mut of = |is_transpose: bool, lines: &Range<u32>| {
            let (set, rows) = match columns {
                Some(columns) if is_transpose => (1, columns),
                _ => (0, rows),
            };
            rows.tiles(lines).for_each(|tile| each(set, tile, Access::Read));
        };
        match tile {
            None => {
                of(false, &node.columns);
                if columns.is_some() {
                    of(true, &node.columns);
                }
            }
            Some((blocks, tile)) => {
                let (is_transpose, lines) = self.source_of(node, blocks, tile);
                of(is_transpose, &lines);
            }
        }
    }

    /// Tiles of the matrix that [`PivotedFactorization::sources`] names.
    pub fn count_sources(&self, node: &FrontNode, tile: Option<(&PivotedBlocks, [u32; 2])>) -> usize {
        let mut count = 0;
        self.sources(node, tile, &mut |_, _, _| count += 1);
        count
    }
}

fn tasks_of(
    analysis: &Analysis,
    fronts: &PivotedFronts,
    kind: PivotedKind,
) -> (Vec<PivotedTask>, Vec<PivotedContribution>) {
    let (mut tasks, mut contributions) = (vec![], vec![]);
    for (number, node) in fronts.nodes.iter().enumerate() {
        let mut add = |[row, column]: [u32; 2], step| {
            tasks.push(PivotedTask {
                node: number as u32,
                row,
                column,
                step,
            });
        };
        let Some(blocks) = node.blocks() else {
            add([0, 0], PivotedStep::Subtrees);
            continue;
        };
        let spreads: Vec<PivotedSpread> = fronts.children[number]
            .iter()
            .map(|&child| PivotedSpread::new(analysis, fronts, child, blocks))
            .collect();
        for tile in blocks.tiles() {
            let [row, column] = tile;
            let begin = contributions.len();
            spreads
                .iter()
                .for_each(|spread| spread.contribute(fronts, tile, kind, &mut contributions));
            let chunks = (contributions.len() - begin).div_ceil(TOGETHER).max(1);
            for chunk in 0..chunks {
                let from = begin + chunk * TOGETHER;
                let (begin, end) = (from as u32, contributions.len().min(from + TOGETHER) as u32);
                let is_first = chunk == 0;
                add(tile, PivotedStep::Assemble { begin, end, is_first });
            }
            let before = blocks.pivots.min(row.min(column));
            for begin in (0..before).step_by(PRODUCTS as usize) {
                let end = before.min(begin + PRODUCTS);
                add(tile, PivotedStep::Update { begin, end });
            }
            if row < column && row < blocks.pivots {
                add(tile, PivotedStep::Row);
            }
            if row + 1 == blocks.all() && column < blocks.pivots {
                add([column, column], PivotedStep::Eliminate);
            }
        }
    }
    (tasks, contributions)
}

/// Where rows of a child's contribution block are in the blocks of the parent.
struct PivotedSpread {
    child: u32,
    /// For each block of the parent, rows of the child.
    rows: Vec<Range<usize>>,
}

impl PivotedSpread {
    fn new(analysis: &Analysis, fronts: &PivotedFronts, child: u32, blocks: &PivotedBlocks) -> PivotedSpread {
        let places = fronts.places(analysis, child);
        let rows = (0..blocks.all()).map(|block| places.within(&blocks.block(block)));
        PivotedSpread {
            child,
            rows: rows.collect(),
        }
    }

    fn contribute(
        &self,
        fronts: &PivotedFronts,
        [row, column]: [u32; 2],
        kind: PivotedKind,
        to: &mut Vec<PivotedContribution>,
    ) {
        let (rows, columns) = (&self.rows[row as usize], &self.rows[column as usize]);
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let is_symmetric = kind != PivotedKind::Unsymmetric;
        // A triangle has the elements of a tile of slots and own columns on its other side.
        let (rows, columns) = match is_symmetric && rows.start < columns.start {
            true => (columns, rows),
            false => (rows, columns),
        };
        let block = |row: usize| match fronts.nodes[self.child as usize].blocks() {
            None => 0,
            Some(blocks) => blocks.block_of_row(row),
        };
        for column in block(columns.start)..=block(columns.end - 1) {
            for row in block(rows.start)..=block(rows.end - 1) {
                if !is_symmetric || row >= column {
                    to.push(PivotedContribution {
                        child: self.child,
                        row,
                        column,
                    });
                }
            }
        }
    }
}

impl Alone for PivotedFactorization {
    fn key(&self) -> Vec<u8> {
        let mut key = self.analysis.digest.to_string().into_bytes();
        key.extend(format!("{:?}", self.rule).bytes());
        for scales in [&self.record.scaling.rows, &self.record.scaling.columns] {
            key.extend(Digest::of(bytemuck::cast_slice(scales)).to_string().bytes());
        }
        key
    }
    fn results(&self) -> &[Grid] {
        self.sets.grids()
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        Some(self.sets.listed(result).clone())
    }
    fn file(&self, result: usize) -> Option<FileOutput> {
        self.sets
            .file(result, self.analysis.rows(), self.panel.dtype(), self.record.clone())
    }
    fn beside(&self, result: usize) -> Option<usize> {
        self.sets.beside(result)
    }
}

impl Work for PivotedFactorization {
    fn label(&self) -> String {
        if self.is_symmetric() { "ldl" } else { "lu" }.into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let PivotedTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let (front, node) = self.node(node);
        let factor = self.factor_set();
        let Some(blocks) = node.blocks() else {
            self.sources(front, None, each);
            each(factor, u64::from(node.factor), Access::Create);
            if node.rows_below(front) > 0 {
                let (set, tile) = self.contribution(node.contribution);
                each(set, tile, Access::Create);
            }
            return;
        };
        let tile = [row, column];
        let (set, own) = self.place(node, blocks, tile);
        let at = |row, column| self.place(node, blocks, [row, column]).1;
        match step {
            PivotedStep::Subtrees => {}
            PivotedStep::Assemble { begin, end, is_first } => {
                if is_first {
                    self.sources(front, Some((blocks, tile)), each);
                }
                for contribution in &self.contributions[begin as usize..end as usize] {
                    let (set, tile) = self.contributed(*contribution);
                    each(set, tile, Access::Read);
                }
                each(set, own, if is_first { Access::Create } else { Access::Update });
            }
            PivotedStep::Update { begin, end } => {
                for pivots in begin..end {
                    each(factor, at(pivots, pivots), Access::Read);
                    each(factor, at(row, pivots), Access::Read);
                    if !self.is_symmetric() {
                        each(factor, at(pivots, column), Access::Read);
                    } else if row != column {
                        each(factor, at(column, pivots), Access::Read);
                    }
                }
                each(set, own, Access::Update);
            }
            PivotedStep::Eliminate => {
                if column > 0 {
                    each(factor, at(column - 1, column - 1), Access::Read);
                }
                for row in column..blocks.all() {
                    each(factor, at(row, column), Access::Update);
                }
            }
            PivotedStep::Row => {
                each(factor, at(row, row), Access::Read);
                each(set, own, Access::Update);
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let PivotedTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let (front, node) = self.node(node);
        let Some(blocks) = node.blocks() else {
            return self.subtree_bytes(front, node);
        };
        let (height, width) = (blocks.side(row) as u64, blocks.side(column) as u64);
        let item = self.item() as u64;
        match step {
            PivotedStep::Subtrees | PivotedStep::Assemble { .. } => 0,
            PivotedStep::Update { begin, end } if self.is_symmetric() => {
                let most = (begin..end).map(|block| blocks.side(block)).max().unwrap_or(0) as u64;
                let square = if row == column { height * width } else { 0 };
                (square + width * most) * item
            }
            PivotedStep::Update { .. } => 0,
            PivotedStep::Eliminate => {
                let all = u64::from(blocks.ends[blocks.all() as usize] - blocks.block(column).start);
                all * width * item + 64
            }
            PivotedStep::Row => height * width * item,
        }
    }
    fn record_bytes(&self) -> u64 {
        let lists = size_of_val(&*self.tasks) + size_of_val(&*self.contributions);
        self.fronts.bytes() + (lists + self.sets.bytes()) as u64
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        match (&self.source, self.fronts.nodes.first().and_then(PivotedNode::blocks)) {
            (PivotedSource::Dense(_), Some(blocks)) => {
                let bytes = |row: u32| self.sets.listed(0)[blocks.tile(row, 0).1 as usize];
                let column = (0..blocks.all()).map(bytes).sum();
                orders_by_columns(blocks.all(), PRODUCTS, memory, column)
            }
            _ => vec![],
        }
    }
    fn operations(&self) -> f64 {
        self.analysis.operations() * if self.is_symmetric() { 1.0 } else { 2.0 }
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let PivotedTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let number = node;
        let (front, node) = self.node(node);
        let Some(blocks) = node.blocks() else {
            return self.eliminate_subtrees(front, node, bound, workspace);
        };
        let tile = [row, column];
        match step {
            PivotedStep::Subtrees => {}
            PivotedStep::Assemble { begin, end, is_first } => {
                self.assemble(number, tile, (begin, end, is_first), bound)?;
            }
            PivotedStep::Update { begin, end } => self.update(blocks, tile, begin..end, bound, workspace),
            PivotedStep::Eliminate => self.eliminate(node, blocks, column, bound, workspace),
            PivotedStep::Row => self.row(blocks, tile, bound, workspace),
        }
        Ok(())
    }
}

/// Places of the rows of the matrix in a front.
pub(super) fn place_in(places: &FrontPlaces<'_>, own: u32, beyond: u32, row: u32) -> Option<u32> {
    let place = places.of(row)?;
    Some(if place < own { place } else { place + beyond })
}
