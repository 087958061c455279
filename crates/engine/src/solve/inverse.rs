//! Elements of A⁻¹ at places of the factor A = L Lᴴ, from the roots down: each front takes the elements of the rows below its
//! pivots from its parent, and gives those of its columns (Erisman, Tinney, On computing certain elements of the inverse of a
//! sparse matrix, CACM 18 (1975); Campbell, Davis, Computing the sparse inverse subset, 1995).
//!
//! The elements of a front lie in tiles as its factor and its contribution block do, but that tiles on the diagonal are full.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{Panel, SelectedInverse};

use super::analysis::Analysis;
use super::children::ChildRows;
use super::factorize::{is_factor_of, panel_of};
use super::fronts::{BlockCounts, FrontNode};
use super::inverse_places::WantedPlaces;
use super::sweeps::has_below;
use super::tree::NONE;
use crate::expr::{Digest, Expr};
use crate::ops;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

/// Tiles of a parent that a task takes elements from at most.
const TOGETHER: usize = 4;
/// Products that a task adds at most.
const PRODUCTS: u32 = 2;
/// Elements of a tile of the values.
const VALUES_TILE: u64 = 1 << 17;

/// The factor, which is read.
const FACTOR: usize = 0;
const VALUES: usize = 1;
/// Values that are wanted, of each tile of the factor.
const PIECES: usize = 2;
/// Elements in the columns of pivots, and of the rows below them.
const PIVOTS: usize = 3;
const BELOW: usize = 4;

/// A part of the work on a front.
#[derive(Clone, Copy, Debug)]
enum InverseStep {
    /// All of a node of subtrees.
    Subtrees,
    /// Takes elements of the rows below the pivots from tiles of the parent.
    Gather {
        begin: u32,
        end: u32,
        is_first: bool,
        is_last: bool,
    },
    /// Adds products with the tiles of some blocks of rows.
    Update { begin: u32, end: u32, is_first: bool },
    /// Makes the elements of a tile.
    Finish { is_first: bool },
    /// Puts pieces into the tile `node` of the values.
    Collect,
}

#[derive(Clone, Copy, Debug)]
struct InverseTask {
    node: u32,
    row: u32,
    column: u32,
    step: InverseStep,
}

#[derive(Clone, Debug)]
pub(super) struct InverseElements {
    pub(super) analysis: Arc<Analysis>,
    pub(super) wanted: Arc<WantedPlaces>,
    pub(super) kernels: SelectedInverse,
    dtype: DType,
    tasks: Arc<[InverseTask]>,
    /// Tiles of the parent that tasks take elements from.
    sources: Arc<[[u32; 2]]>,
    listed: [Arc<[u64]>; 3],
    grids: [Grid; 4],
}

/// The elements of the inverse at some places, in their order, by the tiles of the factor of a matrix with elements of a type.
///
/// # Errors
/// Tiles that are no factor's; another type than float64 and complex128.
pub fn selected_inverse(
    analysis: &Arc<Analysis>,
    factor: &Expr,
    dtype: DType,
    wanted: Arc<WantedPlaces>,
) -> Result<Expr, EngineError> {
    let panel = panel_of("inverse", dtype)?;
    if !is_factor_of(analysis, factor, dtype) {
        return Err(EngineError::Argument(
            "inverse: the tiles are not those of a factor of the analysis".into(),
        ));
    }
    let work = InverseElements::new(analysis, panel, wanted);
    Ok(ops::algorithm(Arc::new(work), std::slice::from_ref(factor))?.swap_remove(0))
}

impl InverseElements {
    fn new(analysis: &Arc<Analysis>, panel: Panel, wanted: Arc<WantedPlaces>) -> InverseElements {
        let (dtype, item) = (panel.dtype(), panel.dtype().size() as u64);
        let count = wanted.len() as u64;
        let values = Grid {
            shape: vec![count],
            tile: vec![count.clamp(1, VALUES_TILE)],
            dtype,
        };
        let pieces: Arc<[u64]> = (0..analysis.fronts.factor.len())
            .map(|tile| wanted.of_tile(tile).len() as u64 * item)
            .collect();
        let mut elements = [vec![0; pieces.len()], vec![0; analysis.fronts.contribution.len()]];
        let mut give = |(set, tile): (usize, u64), bytes: u64| elements[set - PIVOTS][tile as usize] = bytes;
        for node in &analysis.fronts.nodes {
            let Some(blocks) = node.blocks() else {
                if has_below(node) {
                    let bytes = (node.below.end - node.below.start).pow(2) * item;
                    give(InverseElements::place_of(node, [0, 0]), bytes);
                }
                continue;
            };
            for column in 0..blocks.all {
                for row in column..blocks.all {
                    let bytes = (node.block(row).len() * node.block(column).len()) as u64 * item;
                    give(InverseElements::place(node, blocks, [row, column]), bytes);
                }
            }
        }
        let (tasks, sources) = tasks_of(analysis, &wanted, values.tiles());
        let [pivots, below] = elements.map(Arc::from);
        let listed = [pieces, pivots, below];
        InverseElements {
            grids: [
                values,
                Grid::listed(&listed[0]),
                Grid::listed(&listed[1]),
                Grid::listed(&listed[2]),
            ],
            listed,
            kernels: SelectedInverse::new(panel),
            dtype,
            tasks: tasks.into(),
            sources: sources.into(),
            analysis: analysis.clone(),
            wanted,
        }
    }

    pub(super) fn node(&self, node: u32) -> &FrontNode {
        &self.analysis.fronts.nodes[node as usize]
    }

    pub(super) fn item(&self) -> usize {
        self.dtype.size()
    }

    /// The set of a tile of a front, and its number there.
    fn place(node: &FrontNode, blocks: BlockCounts, [row, column]: [u32; 2]) -> (usize, u64) {
        let tile = blocks.tile(row, column);
        match column < blocks.pivots {
            true => (PIVOTS, u64::from(node.factor + tile)),
            false => (BELOW, u64::from(node.contribution + tile - blocks.factor_tiles())),
        }
    }

    /// The set of a tile of elements, of whatever kind its node is, and its number there.
    fn place_of(node: &FrontNode, tile: [u32; 2]) -> (usize, u64) {
        match node.blocks() {
            None => (BELOW, u64::from(node.contribution)),
            Some(blocks) => InverseElements::place(node, blocks, tile),
        }
    }

    /// Names the pieces that have values of a tile of the values.
    fn pieces_of(&self, tile: u32) -> std::ops::Range<u64> {
        let start = u64::from(tile) * self.grids[0].tile[0];
        let end = (start + self.grids[0].tile[0]).min(self.grids[0].shape[0]);
        self.wanted.tiles_of(start as usize..end as usize)
    }
}

/// The tile of elements that is multiplied with that of the factor in a block of rows, and whether its adjoint is.
pub(super) fn between([row, column]: [u32; 2], other: u32) -> ([u32; 2], bool) {
    match row == column {
        true => ([other, column], false),
        false => ([row.max(other), row.min(other)], row < other),
    }
}

/// By node whether it has places that are wanted, or elements that such a node takes.
fn needed(analysis: &Analysis, wanted: &WantedPlaces) -> Vec<bool> {
    let nodes = &analysis.fronts.nodes;
    let mut needed = vec![false; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        let tiles = node.blocks().map_or(1, BlockCounts::factor_tiles);
        needed[number] |= (node.factor..node.factor + tiles).any(|tile| !wanted.of_tile(tile as usize).is_empty());
        if needed[number] && node.parent != NONE {
            needed[node.parent as usize] = true;
        }
    }
    needed
}

/// All tasks, from the last node to the first, and the tiles of parents that they take elements from.
fn tasks_of(analysis: &Analysis, wanted: &WantedPlaces, values: u64) -> (Vec<InverseTask>, Vec<[u32; 2]>) {
    let (mut tasks, mut sources) = (vec![], vec![]);
    let (nodes, needed) = (&analysis.fronts.nodes, needed(analysis, wanted));
    for (number, node) in nodes.iter().enumerate().rev().filter(|(number, _)| needed[*number]) {
        let mut add = |row, column, step| {
            tasks.push(InverseTask {
                node: number as u32,
                row,
                column,
                step,
            });
        };
        if has_below(node) && node.parent != NONE {
            for ([row, column], from) in gathered(analysis, number as u32) {
                let chunks = from.len().div_ceil(TOGETHER);
                for (chunk, tiles) in from.chunks(TOGETHER).enumerate() {
                    let begin = sources.len() as u32;
                    sources.extend_from_slice(tiles);
                    let (is_first, is_last) = (chunk == 0, chunk + 1 == chunks);
                    let end = sources.len() as u32;
                    add(
                        row,
                        column,
                        InverseStep::Gather {
                            begin,
                            end,
                            is_first,
                            is_last,
                        },
                    );
                }
            }
        }
        let Some(blocks) = node.blocks() else {
            add(0, 0, InverseStep::Subtrees);
            continue;
        };
        for column in (0..blocks.pivots).rev() {
            // The tile on the diagonal is made last: those below it are needed there.
            for row in (column + 1..blocks.all).chain([column]) {
                for begin in (column + 1..blocks.all).step_by(PRODUCTS as usize) {
                    let end = blocks.all.min(begin + PRODUCTS);
                    let is_first = begin == column + 1;
                    add(row, column, InverseStep::Update { begin, end, is_first });
                }
                let is_first = column + 1 == blocks.all;
                add(row, column, InverseStep::Finish { is_first });
            }
        }
    }
    tasks.extend((0..values as u32).map(|tile| InverseTask {
        node: tile,
        row: 0,
        column: 0,
        step: InverseStep::Collect,
    }));
    (tasks, sources)
}

/// Tiles of the rows below a node's pivots, each with the tiles of the parent that have elements of it.
fn gathered(analysis: &Analysis, number: u32) -> Vec<([u32; 2], Vec<[u32; 2]>)> {
    let node = &analysis.fronts.nodes[number as usize];
    let parent = &analysis.fronts.nodes[node.parent as usize];
    let all = parent.blocks().map_or(0, |blocks| blocks.all);
    let spread = ChildRows::new(analysis, number, parent);
    let first = node.blocks().map_or(0, |blocks| blocks.pivots);
    let count = node.blocks().map_or(1, |blocks| blocks.all) - first;
    let mut from: Vec<Vec<[u32; 2]>> = vec![vec![]; (count * (count + 1) / 2) as usize];
    let place = |row: u32, column: u32| {
        let (row, column) = (row - first, column - first);
        (row * (row + 1) / 2 + column) as usize
    };
    let mut contributions = vec![];
    for column in 0..all {
        for row in column..all {
            contributions.clear();
            spread.contribute([row, column], &mut contributions);
            for contribution in &contributions {
                from[place(contribution.row, contribution.column)].push([row, column]);
            }
        }
    }
    let tiles = (first..first + count).flat_map(|row| (first..=row).map(move |column| [row, column]));
    tiles.zip(from).collect()
}

impl Alone for InverseElements {
    fn key(&self) -> Vec<u8> {
        format!("{} {}", self.analysis.digest, Digest::of(&self.wanted.bytes())).into_bytes()
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        Some(self.listed[result.checked_sub(1)?].clone())
    }
}

impl Work for InverseElements {
    fn label(&self) -> String {
        "elements of the inverse".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let InverseTask {
            node: number,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        if let InverseStep::Collect = step {
            let pieces = self
                .pieces_of(number)
                .filter(|tile| !self.wanted.of_tile(*tile as usize).is_empty());
            pieces.for_each(|tile| each(PIECES, tile, Access::Read));
            each(VALUES, number.into(), Access::Create);
            return;
        }
        let node = self.node(number);
        let (set, tile) = InverseElements::place_of(node, [row, column]);
        let created = |is_first| if is_first { Access::Create } else { Access::Update };
        let mut wanted = |tile: u64| {
            if !self.wanted.of_tile(tile as usize).is_empty() {
                each(PIECES, tile, Access::Create);
            }
        };
        match (step, node.blocks()) {
            (InverseStep::Subtrees, _) => {
                wanted(node.factor.into());
                each(FACTOR, node.factor.into(), Access::Read);
                if has_below(node) {
                    each(BELOW, node.contribution.into(), Access::Read);
                }
            }
            (
                InverseStep::Gather {
                    begin, end, is_first, ..
                },
                _,
            ) => {
                let parent = self.node(node.parent);
                for source in &self.sources[begin as usize..end as usize] {
                    let (set, tile) = InverseElements::place_of(parent, *source);
                    each(set, tile, Access::Read);
                }
                each(set, tile, created(is_first));
            }
            (InverseStep::Update { begin, end, is_first }, Some(blocks)) => {
                for other in begin..end {
                    each(
                        FACTOR,
                        u64::from(node.factor + blocks.tile(other, column)),
                        Access::Read,
                    );
                    let (set, tile) = InverseElements::place(node, blocks, between([row, column], other).0);
                    each(set, tile, Access::Read);
                }
                each(set, tile, created(is_first));
            }
            (InverseStep::Finish { is_first }, Some(blocks)) => {
                wanted(tile);
                each(
                    FACTOR,
                    u64::from(node.factor + blocks.tile(column, column)),
                    Access::Read,
                );
                each(set, tile, created(is_first));
            }
            _ => {}
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let InverseTask {
            node,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        match step {
            InverseStep::Subtrees => self.subtree_bytes(self.node(node)) as u64,
            InverseStep::Finish { .. } => {
                let side = self.node(node).block(column).len();
                let square = (side * side * self.item()) as u64 + 64;
                square
                    + if row == column {
                        self.kernels.diagonal_bytes(side) as u64
                    } else {
                        0
                    }
            }
            InverseStep::Gather { .. } | InverseStep::Update { .. } | InverseStep::Collect => 0,
        }
    }
    fn record_bytes(&self) -> u64 {
        let listed: usize = self.listed.iter().map(|listed| size_of_val(&**listed)).sum();
        (size_of_val(&*self.tasks) + size_of_val(&*self.sources) + listed) as u64 + self.wanted.record_bytes()
    }
    fn operations(&self) -> f64 {
        2.0 * self.analysis.operations()
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let InverseTask {
            node: number,
            row,
            column,
            step,
        } = self.tasks[task as usize];
        match step {
            InverseStep::Collect => {
                let mut out = &mut *bound.writes[0];
                let mut from = self
                    .wanted
                    .offset_in(self.pieces_of(number), u64::from(number) * self.grids[0].tile[0])
                    * self.item();
                for piece in &bound.reads {
                    let length = (piece.len() - from).min(out.len());
                    let (front, rest) = out.split_at_mut(length);
                    front.copy_from_slice(&piece[from..from + length]);
                    (out, from) = (rest, 0);
                }
            }
            InverseStep::Subtrees => self.invert_subtrees(self.node(number), bound, workspace),
            InverseStep::Gather {
                begin, end, is_last, ..
            } => {
                self.gather(
                    self.node(number),
                    [row, column],
                    &self.sources[begin as usize..end as usize],
                    is_last,
                    bound,
                );
            }
            InverseStep::Update { begin, end, is_first } => {
                self.update(self.node(number), [row, column], (begin..end, is_first), bound);
            }
            InverseStep::Finish { is_first } => {
                self.finish(self.node(number), [row, column], is_first, bound, workspace)
            }
        }
        Ok(())
    }
}
