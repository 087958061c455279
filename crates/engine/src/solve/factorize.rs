//! The factorization A = L Lᴴ by fronts: each is put together from entries of A and contribution blocks of its children, its
//! pivots are eliminated, and what is left is the contribution block to its parent (Duff, Reid, The multifrontal solution of
//! indefinite sparse symmetric linear systems, TOMS 9 (1983)).
//!
//! Fronts are lower triangles of tiles, each made whole before the next, so children's tiles go as the parent's come, and
//! which tiles are in memory is the placement's affair.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{BadPivot, Panel};

use super::analysis::Analysis;
use super::children::{ChildRows, Contribution};
use super::dense::DenseRows;
use super::durable::FactorSets;
use super::fronts::{BlockCounts, FrontNode, SIDE};
use super::orders::{orders, NodeTasks, TileTasks};
use super::precision::{is_single, single_of};
use super::tree::NONE;
use crate::expr::{Digest, Expr};
use crate::ops::{self, show};
use crate::sparse::{RowEntries, SparseMatrix};
use crate::task::{Access, Alone, Bound, FileOutput, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// Tiles that a task adds to another at most.
const TOGETHER: usize = 4;
/// Products that a task subtracts at most.
const PRODUCTS: u32 = 2;

/// A part of the work on a front.
#[derive(Clone, Copy, Debug)]
enum FactorStep {
    /// All of a node of subtrees.
    Subtrees,
    /// Adds what children contribute to a tile; the first makes it, of entries of A where it has pivots.
    Assemble { begin: u32, end: u32, is_first: bool },
    /// Subtracts products of tiles of blocks of pivots.
    Update { begin: u32, end: u32 },
    /// Makes a tile a part of the factor.
    Finish,
}

#[derive(Clone, Copy, Debug)]
struct FactorTask {
    node: u32,
    row: u32,
    column: u32,
    step: FactorStep,
}

/// The factor of a positive definite matrix, whose permuted rows are the input.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    analysis: Arc<Analysis>,
    matrix: FactoredMatrix,
    panel: Panel,
    tasks: Arc<[FactorTask]>,
    contributions: Arc<[Contribution]>,
    by_node: Arc<[NodeTasks]>,
    sets: FactorSets,
    /// By what rows and columns are scaled, where the factor is of single precision.
    scales: Option<Arc<[f64]>>,
}

/// The factor of the matrix of an analysis as tiles of a type, of double or single precision; `permuted` has its rows and
/// columns in the order of elimination, and of each row its entries on and right of the diagonal count. With `scales` of rows
/// and columns the factor is that of the scaled matrix.
///
/// # Errors
/// A matrix of another shape or type; scales of other rows.
pub fn cholesky(
    analysis: &Arc<Analysis>,
    permuted: &SparseMatrix,
    dtype: DType,
    scales: Option<Arc<[f64]>>,
) -> Result<Expr, EngineError> {
    let factorization = Cholesky::new(analysis, permuted, dtype, scales)?;
    Ok(ops::algorithm(Arc::new(factorization), std::slice::from_ref(&permuted.tiles))?.swap_remove(0))
}

/// The factor of a dense matrix as tiles, with its analysis. Elements on and below the diagonal count. With a tolerance of tiles
/// of low rank, rows are ordered and scaled for that.
///
/// # Errors
/// A matrix that is not square; elements that are no float32, float64, complex64 or complex128.
pub fn dense_cholesky(x: &Expr, low_rank: Option<f64>) -> Result<(Arc<Analysis>, Expr), EngineError> {
    let rows = match x.shape[..] {
        [rows, columns] if rows == columns && rows > 0 => u32::try_from(rows).ok(),
        _ => None,
    };
    let rows = rows.ok_or_else(|| EngineError::Shape(format!("cholesky: a matrix of shape {}", show(&x.shape))))?;
    let analysis = Arc::new(Analysis::dense(rows, low_rank));
    let factorization = Cholesky::of(
        &analysis,
        FactoredMatrix::Dense(DenseRows::new(x.grid())),
        x.dtype,
        None,
    )?;
    let factor = ops::algorithm(Arc::new(factorization), std::slice::from_ref(x))?.swap_remove(0);
    Ok((analysis, factor))
}

/// The matrix that is factorized.
#[derive(Clone, Debug)]
pub(super) enum FactoredMatrix {
    Sparse(RowEntries),
    Dense(DenseRows),
}

/// The first set, behind the matrix.
const FACTOR: usize = 1;

impl Cholesky {
    fn new(
        analysis: &Arc<Analysis>,
        permuted: &SparseMatrix,
        dtype: DType,
        scales: Option<Arc<[f64]>>,
    ) -> Result<Cholesky, EngineError> {
        let shape = permuted.file.matrix();
        if [shape.rows, shape.columns] != [analysis.rows(); 2] {
            let rows = analysis.rows();
            return Err(EngineError::Shape(format!(
                "factorize: a matrix of shape ({}, {}), and the analysis is of ({rows}, {rows})",
                shape.rows, shape.columns
            )));
        }
        let wide = permuted.dtype().unwrap_or(DType::F64);
        panel_of("factorize", wide)?;
        if ![wide, single_of(wide)].contains(&dtype) {
            return Err(EngineError::DType(format!(
                "factorize: a factor of {dtype} of a matrix of {wide}"
            )));
        }
        if let Some(scales) = scales.as_ref().filter(|scales| scales.len() as u64 != shape.rows) {
            return Err(EngineError::Shape(format!(
                "factorize: a matrix of shape ({}, {}), and {} scales",
                shape.rows,
                shape.columns,
                scales.len()
            )));
        }
        let matrix = FactoredMatrix::Sparse(RowEntries::new(permuted)?);
        Cholesky::of(analysis, matrix, dtype, scales)
    }

    fn of(
        analysis: &Arc<Analysis>,
        matrix: FactoredMatrix,
        dtype: DType,
        scales: Option<Arc<[f64]>>,
    ) -> Result<Cholesky, EngineError> {
        let panel = Panel::of_any_precision(dtype).ok_or_else(|| {
            EngineError::DType(format!(
                "factorize: values are {dtype}, and it takes floats of 32 and 64 bits"
            ))
        })?;
        let (tasks, contributions, by_node) = tasks_of(analysis);
        let fronts = &analysis.fronts;
        let bytes =
            |elements: &[u64]| -> Vec<u64> { elements.iter().map(|count| count * dtype.size() as u64).collect() };
        let first = |node: usize| fronts.nodes[node].contribution;
        Ok(Cholesky {
            sets: FactorSets::new(
                analysis,
                analysis.factor_bytes(dtype.size() as u64).into(),
                &bytes(&fronts.contribution),
                first,
            ),
            analysis: analysis.clone(),
            matrix,
            panel,
            tasks: tasks.into(),
            contributions: contributions.into(),
            by_node: by_node.into(),
            scales,
        })
    }

    fn node(&self, node: u32) -> &FrontNode {
        &self.analysis.fronts.nodes[node as usize]
    }

    /// The set of a tile of a front, and its number there.
    fn place(&self, node: &FrontNode, blocks: BlockCounts, [row, column]: [u32; 2]) -> (usize, u64) {
        let tile = blocks.tile(row, column);
        match column < blocks.pivots {
            true => (FACTOR, u64::from(node.factor + tile)),
            false => self.contribution(node.contribution + tile - blocks.factor_tiles()),
        }
    }

    /// The set of a tile of contribution blocks, and its number there.
    fn contribution(&self, tile: u32) -> (usize, u64) {
        (FACTOR + self.sets.of_contribution(tile), tile.into())
    }

    /// The tile of a contribution.
    fn contributed(&self, from: Contribution) -> (usize, u64) {
        let child = self.node(from.child);
        match child.blocks() {
            None => self.contribution(child.contribution),
            Some(blocks) => self.place(child, blocks, [from.row, from.column]),
        }
    }

    /// The front that a contribution comes from.
    pub(super) fn child(&self, from: Contribution) -> &FrontNode {
        self.node(from.child)
    }

    pub(super) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    pub(super) fn matrix(&self) -> &FactoredMatrix {
        &self.matrix
    }

    /// Tiles of the matrix that have entries of a node of subtrees, or of a tile of its blocks of pivots.
    pub(super) fn sources(&self, node: &FrontNode, tile: Option<[u32; 2]>) -> Vec<u64> {
        match (&self.matrix, tile) {
            (FactoredMatrix::Sparse(rows), None) => rows.tiles(&node.columns).collect(),
            (FactoredMatrix::Sparse(rows), Some([_, column])) => rows.tiles(&self.columns_of(node, column)).collect(),
            (FactoredMatrix::Dense(_), None) => vec![],
            (FactoredMatrix::Dense(dense), Some([row, column])) => dense.tiles(&node.block(row), &node.block(column)),
        }
    }

    pub(super) fn panel(&self) -> Panel {
        self.panel
    }

    /// By what a row and its column are scaled.
    pub(super) fn scale(&self, row: u32) -> f64 {
        self.scales.as_ref().map_or(1.0, |scales| scales[row as usize])
    }

    pub(super) fn contributions(&self) -> &[Contribution] {
        &self.contributions
    }

    pub(super) fn size(&self) -> u64 {
        self.panel.dtype().size() as u64
    }

    /// The error for an entry, in the order of elimination, that the pattern of the analysis has not.
    pub(super) fn unknown(&self, row: u32, column: u32) -> EngineError {
        let [row, column] = [row, column].map(|at| self.analysis.order[at as usize]);
        EngineError::Argument(format!(
            "factorize: the matrix has an entry in row {row} and column {column}, and the matrix of the analysis has none there"
        ))
    }

    /// The error for a pivot of a column in the order of elimination.
    pub(super) fn refused(&self, column: u32, BadPivot(pivot): BadPivot) -> EngineError {
        let row = self.analysis.order[column as usize + pivot];
        let (to, remedy) = match (is_single(self.panel.dtype()), self.analysis.low_rank) {
            (false, None) => (String::new(), ""),
            (false, Some(tolerance)) => (format!(", to {tolerance:e}"), "; a smaller low_rank has more digits"),
            (true, None) => (
                ", to single precision".to_string(),
                "; precision=\"double\" has more digits",
            ),
            (true, Some(tolerance)) => (
                format!(", to single precision and {tolerance:e}"),
                "; precision=\"double\", or a smaller low_rank, has more digits",
            ),
        };
        EngineError::LinAlg(format!(
            "cholesky: the matrix is not positive definite{to}: the pivot of row {row} is not positive{remedy}"
        ))
    }
}

/// Work in the type of a matrix, for those who factorize it.
pub(super) fn panel_of(name: &str, dtype: DType) -> Result<Panel, EngineError> {
    Panel::new(dtype).ok_or_else(|| {
        EngineError::DType(format!(
            "{name}: values are {dtype}, and it takes float64 and complex128"
        ))
    })
}

/// Whether tiles are those of a Cholesky factor of an analysis, with elements of a type, all of them full.
pub(super) fn is_factor_of(analysis: &Analysis, factor: &Expr, dtype: DType) -> bool {
    analysis.low_rank.is_none() && has_tiles(factor, &analysis.factor_bytes(dtype.size() as u64))
}

/// Whether tiles are as many and as long as those of a factor.
pub(super) fn has_tiles(factor: &Expr, lengths: &[u64]) -> bool {
    let grid = Grid::listed(lengths);
    factor.shape == grid.shape && factor.dtype == grid.dtype
}

/// The tasks of all fronts in postorder, and the contributions that their assembly names.
fn tasks_of(analysis: &Analysis) -> (Vec<FactorTask>, Vec<Contribution>, Vec<NodeTasks>) {
    let fronts = &analysis.fronts;
    let mut children: Vec<Vec<u32>> = vec![vec![]; fronts.nodes.len()];
    for (number, node) in fronts.nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE) {
        children[node.parent as usize].push(number as u32);
    }
    let (mut tasks, mut contributions, mut by_node) = (vec![], vec![], vec![]);
    for (number, node) in fronts.nodes.iter().enumerate() {
        let first = tasks.len() as u32;
        let mut add = |[row, column]: [u32; 2], step| {
            tasks.push(FactorTask {
                node: number as u32,
                row,
                column,
                step,
            });
        };
        let Some(blocks) = node.blocks() else {
            add([0, 0], FactorStep::Subtrees);
            by_node.push(NodeTasks::One(first));
            continue;
        };
        let (mut tiles, mut first) = (Vec::with_capacity(blocks.tiles() as usize), first);
        let spreads: Vec<ChildRows> = children[number]
            .iter()
            .map(|&child| ChildRows::new(analysis, child, node))
            .collect();
        for column in 0..blocks.all {
            for row in column..blocks.all {
                let tile = [row, column];
                let begin = contributions.len();
                spreads
                    .iter()
                    .for_each(|spread| spread.contribute(tile, &mut contributions));
                let chunks = (contributions.len() - begin).div_ceil(TOGETHER).max(1);
                for chunk in 0..chunks {
                    let from = begin + chunk * TOGETHER;
                    add(
                        tile,
                        FactorStep::Assemble {
                            begin: from as u32,
                            end: contributions.len().min(from + TOGETHER) as u32,
                            is_first: chunk == 0,
                        },
                    );
                }
                let before = blocks.pivots.min(column);
                for begin in (0..before).step_by(PRODUCTS as usize) {
                    let end = before.min(begin + PRODUCTS);
                    add(tile, FactorStep::Update { begin, end });
                }
                if column < blocks.pivots {
                    add(tile, FactorStep::Finish);
                }
                let own = TileTasks {
                    first,
                    assembly: chunks as u32,
                    updates: before.div_ceil(PRODUCTS),
                    finish: u32::from(column < blocks.pivots),
                };
                first = own.end();
                tiles.push(own);
            }
        }
        by_node.push(NodeTasks::Tiles(blocks, tiles));
    }
    (tasks, contributions, by_node)
}

impl Alone for Cholesky {
    fn key(&self) -> Vec<u8> {
        let analysis = self.analysis.digest.to_string();
        match &self.scales {
            None => analysis.into_bytes(),
            Some(scales) => format!("{analysis} {}", Digest::of(bytemuck::cast_slice(scales))).into_bytes(),
        }
    }
    fn results(&self) -> &[Grid] {
        self.sets.grids()
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        Some(self.sets.listed(result).clone())
    }
    fn recipe(&self) -> Option<Recipe> {
        let is_plain = matches!(self.matrix, FactoredMatrix::Dense(_)) && self.analysis.low_rank.is_none();
        is_plain.then(|| Recipe::new("dense cholesky"))
    }
    fn file(&self, result: usize) -> Option<FileOutput> {
        self.sets
            .file(result, self.analysis.rows(), self.panel.dtype(), self.analysis.clone())
    }
    fn beside(&self, result: usize) -> Option<usize> {
        self.sets.beside(result)
    }
}

impl Work for Cholesky {
    fn label(&self) -> String {
        "cholesky".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let FactorTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let node = self.node(node);
        let Some(blocks) = node.blocks() else {
            self.sources(node, None)
                .iter()
                .for_each(|tile| each(0, *tile, Access::Read));
            each(FACTOR, u64::from(node.factor), Access::Create);
            if node.below.end > node.below.start {
                let (set, tile) = self.contribution(node.contribution);
                each(set, tile, Access::Create);
            }
            return;
        };
        let (set, tile) = self.place(node, blocks, [row, column]);
        match step {
            FactorStep::Subtrees => {}
            FactorStep::Assemble { begin, end, is_first } => {
                if is_first && column < blocks.pivots {
                    let sources = self.sources(node, Some([row, column]));
                    sources.iter().for_each(|tile| each(0, *tile, Access::Read));
                }
                for contribution in &self.contributions[begin as usize..end as usize] {
                    let (set, tile) = self.contributed(*contribution);
                    each(set, tile, Access::Read);
                }
                each(set, tile, if is_first { Access::Create } else { Access::Update });
            }
            FactorStep::Update { begin, end } => {
                for pivots in begin..end {
                    each(FACTOR, self.place(node, blocks, [row, pivots]).1, Access::Read);
                    if row != column {
                        each(FACTOR, self.place(node, blocks, [column, pivots]).1, Access::Read);
                    }
                }
                each(set, tile, Access::Update);
            }
            FactorStep::Finish => {
                if row != column {
                    each(FACTOR, self.place(node, blocks, [column, column]).1, Access::Read);
                }
                each(set, tile, Access::Update);
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let FactorTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let node = self.node(node);
        let square = |block: u32| u64::from(node.block(block).end - node.block(block).start).pow(2) * self.size();
        match step {
            FactorStep::Subtrees => self.subtree_bytes(node),
            FactorStep::Assemble { .. } => 0,
            FactorStep::Update { begin, .. } => {
                let own = if row == column { square(row) } else { 0 };
                own + self.products_bytes(node, [row, column, begin])
            }
            FactorStep::Finish if row == column => {
                square(row) + self.panel.factor_bytes(node.block(row).len()) as u64 + 64
            }
            FactorStep::Finish => square(column) + self.compress_bytes(node, [row, column]),
        }
    }
    fn record_bytes(&self) -> u64 {
        let nodes: usize = self.by_node.iter().map(NodeTasks::bytes).sum();
        let lists = size_of_val(&*self.tasks) + size_of_val(&*self.contributions) + nodes;
        (lists + self.sets.bytes()) as u64
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        let tile = (0..self.sets.grids().len())
            .flat_map(|set| self.sets.listed(set).iter())
            .max();
        let tile = tile.copied().unwrap_or(0).min(SIDE * SIDE * self.size());
        orders(&self.by_node, PRODUCTS, memory, tile)
    }
    fn operations(&self) -> f64 {
        self.analysis.operations()
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let FactorTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        let node = self.node(node);
        let (tile, is_single) = ([row, column], is_single(self.panel.dtype()));
        match step {
            FactorStep::Subtrees if is_single => self.eliminate_subtrees::<f32>(node, bound, workspace),
            FactorStep::Subtrees => self.eliminate_subtrees::<f64>(node, bound, workspace),
            FactorStep::Assemble { begin, end, is_first } if is_single => {
                self.assemble::<f32>(node, tile, (begin, end, is_first), bound)
            }
            FactorStep::Assemble { begin, end, is_first } => {
                self.assemble::<f64>(node, tile, (begin, end, is_first), bound)
            }
            FactorStep::Update { begin, .. } => self.update(node, tile, begin, bound, workspace),
            FactorStep::Finish => self.finish(node, tile, bound, workspace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_tasks_are_told() {
        let analysis = Arc::new(Analysis::dense(20_000, None));
        let grid = Grid {
            shape: vec![20_000; 2],
            tile: vec![512; 2],
            dtype: DType::F64,
        };
        let matrix = FactoredMatrix::Dense(DenseRows::new(grid));
        let work = Cholesky::of(&analysis, matrix, DType::F64, None).expect("float64");
        let tiles = work.by_node.iter().map(|node| match node {
            NodeTasks::One(_) => 0,
            NodeTasks::Tiles(_, tiles) => tiles.capacity() * size_of_val(&tiles[0]),
        });
        let lists = size_of_val(&*work.tasks) + size_of_val(&*work.contributions) + size_of_val(&*work.by_node);
        let listed = work.sets.bytes();
        assert_eq!(work.record_bytes(), (lists + listed + tiles.sum::<usize>()) as u64);
        // Of what a program is said to take for a task, 160 bytes, a part.
        assert!(work.record_bytes() < 48 * work.tasks());
    }
}
