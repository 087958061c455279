//! The analysis of a symmetric pattern: all that is known of a factorization before it begins.

use bytemuck::Pod;
use outcore_kernels::TileElements;
use outcore_store::FactorRecord;

use super::fronts::{FrontNode, Fronts, SUBTREE};
use super::low_rank::{cluster, header_bytes, low_rank_elements};
use super::pattern::Pattern;
use super::supernodes::{supernode_bytes, FrontRows, Supernode, SupernodeTree};
use super::tree::{tree_bytes, EliminationTree, Stop, NONE};
use crate::expr::Digest;
use crate::EngineError;

/// The fronts of a factorization, and the order that it eliminates in.
#[derive(Debug)]
pub struct Analysis {
    /// The row that is eliminated as each.
    pub order: Vec<u32>,
    pub supernodes: Vec<Supernode>,
    pub fronts: Fronts,
    /// The tolerance of tiles of low rank, by the rows of a matrix with a diagonal of 1; nothing where tiles are full.
    pub low_rank: Option<f64>,
    /// Equal where the order, the fronts and the tolerance are.
    pub digest: Digest,
}

impl Analysis {
    /// The supernodes of a pattern whose rows are eliminated in an order, but for exchanges that leave the factor what it is.
    ///
    /// # Errors
    /// It was stopped.
    pub fn tree(pattern: &Pattern, order: Vec<u32>, stop: Stop<'_>) -> Result<SupernodeTree, EngineError> {
        SupernodeTree::new(&EliminationTree::new(pattern, order, stop)?, stop)
    }

    /// The analysis of a pattern with its supernodes, and a tolerance where tiles are to be of low rank.
    ///
    /// # Errors
    /// It was stopped.
    pub fn of_tree(
        pattern: &Pattern,
        mut tree: SupernodeTree,
        low_rank: Option<f64>,
        stop: Stop<'_>,
    ) -> Result<Analysis, EngineError> {
        if low_rank.is_some() {
            cluster(pattern, &mut tree, stop)?;
        }
        let rows = FrontRows::new(pattern, &tree, stop)?;
        Ok(Analysis::of(tree, rows, low_rank))
    }

    /// The analysis of a dense matrix of so many rows: one front. With a tolerance where tiles are to be of low rank.
    pub fn dense(rows: u32, low_rank: Option<f64>) -> Analysis {
        let one = Supernode {
            first: 0,
            pivots: rows,
            front: rows,
            parent: NONE,
        };
        let tree = SupernodeTree {
            order: (0..rows).collect(),
            supernodes: vec![one],
        };
        let none = FrontRows {
            starts: vec![0, 0],
            rows: vec![],
        };
        Analysis {
            digest: Digest::of(
                match low_rank {
                    None => format!("dense {rows}"),
                    Some(tolerance) => format!("dense {rows} {tolerance:e}"),
                }
                .as_bytes(),
            ),
            fronts: Fronts::dense(&one, none),
            order: tree.order,
            supernodes: tree.supernodes,
            low_rank,
        }
    }

    fn of(tree: SupernodeTree, rows: FrontRows, low_rank: Option<f64>) -> Analysis {
        let digest = digest_of(&tree, &rows, low_rank);
        let fronts = Fronts::new(&tree, rows);
        Analysis {
            order: tree.order,
            supernodes: tree.supernodes,
            fronts,
            low_rank,
            digest,
        }
    }

    /// The analysis of the record of a factor, whose tiles have so many bytes each with elements of a size.
    ///
    /// # Errors
    /// Why the sections are none: numbers that do not go together.
    pub fn restored(sections: &[&[u8]], tiles: &[u64], item: u64) -> Result<Analysis, &'static str> {
        let analysis = Analysis::unchecked(sections)?;
        let low_rank = analysis.low_rank.is_some();
        let goes_with = |analysis: &Analysis| analysis.fronts.has_tiles(low_rank, tiles, item);
        if goes_with(&analysis) {
            return Ok(analysis);
        }
        let dense = analysis.as_dense().filter(goes_with);
        dense.ok_or("the tiles are not those of the record")
    }

    /// The analysis of a dense matrix, where this may be one: such is in tiles however small it is.
    pub(super) fn as_dense(&self) -> Option<Analysis> {
        let rows = self.order.len() as u32;
        (self.supernodes.len() == 1 && self.order.iter().copied().eq(0..rows))
            .then(|| Analysis::dense(rows, self.low_rank))
    }

    /// As [`Analysis::restored`], whatever the tiles are.
    pub(super) fn unchecked(sections: &[&[u8]]) -> Result<Analysis, &'static str> {
        let (order, supernodes, starts, rows, low_rank) = match sections {
            [order, supernodes, starts, rows] => (order, supernodes, starts, rows, None),
            [order, supernodes, starts, rows, tolerance] => {
                (order, supernodes, starts, rows, Some(numbers(tolerance)?))
            }
            _ => return Err("the record has other sections"),
        };
        let low_rank = match low_rank.as_deref() {
            None => None,
            Some([tolerance]) if is_tolerance(*tolerance) => Some(*tolerance),
            Some(_) => return Err("the tolerance of the record is none"),
        };
        let tree = SupernodeTree {
            order: numbers(order)?,
            supernodes: numbers(supernodes)?,
        };
        let rows = FrontRows {
            starts: numbers(starts)?,
            rows: numbers(rows)?,
        };
        tree.check(&rows)?;
        Ok(Analysis::of(tree, rows, low_rank))
    }

    /// Bytes that the rows and tiles of fronts take at most: of each supernode, and of each node.
    pub fn front_bytes(tree: &SupernodeTree) -> u64 {
        let rows: u64 = tree.supernodes.iter().map(Supernode::below).sum();
        2 * 4 * rows + Fronts::tile_bytes(&tree.supernodes)
    }

    /// Bytes that the trees of so many rows take at most while they are made, beside the pattern and rows of fronts.
    pub fn tree_bytes(rows: u64) -> u64 {
        tree_bytes(rows).max(supernode_bytes(rows)) + 8 * rows
    }

    pub fn rows(&self) -> u64 {
        self.order.len() as u64
    }

    /// Entries of the factor, with the zeros that larger supernodes cost.
    pub fn entries(&self) -> u64 {
        self.supernodes.iter().map(Supernode::entries).sum()
    }

    /// Multiplications and additions of the factorization.
    pub fn operations(&self) -> f64 {
        self.supernodes.iter().map(Supernode::operations).sum()
    }

    /// Bytes that the analysis takes.
    pub fn bytes(&self) -> u64 {
        (self.order.len() * 4 + self.supernodes.len() * size_of::<Supernode>()) as u64 + self.fronts.bytes()
    }

    /// Bytes of the tiles of the factor with elements of a size; those that may be of low rank with all of their elements.
    pub(super) fn factor_bytes(&self, item: u64) -> Vec<u64> {
        self.fronts.factor_bytes(self.low_rank.is_some(), item)
    }

    /// Bytes before the elements of a tile of a front.
    pub(super) fn header(&self, node: &FrontNode, tile: [u32; 2]) -> usize {
        self.low_rank.map_or(0, |_| header_bytes(node, tile))
    }

    /// The elements of a tile of the factor below the diagonal.
    ///
    /// # Errors
    /// A tile of low rank that is none.
    pub(super) fn elements<'a>(
        &self,
        tile: &'a [u8],
        sizes: [usize; 2],
        item: usize,
    ) -> Result<TileElements<'a>, EngineError> {
        match self.low_rank {
            None => Ok(TileElements::Full(tile)),
            Some(_) => low_rank_elements(tile, sizes, item),
        }
    }

    /// Rows of the contribution block of a supernode.
    pub fn below(&self, supernode: u32) -> &[u32] {
        self.fronts.rows.of(supernode as usize)
    }
}

/// The order, the supernodes (first column, pivots, rows of the front, parent), where rows below each begin, and those rows;
/// of tiles of low rank their tolerance.
impl FactorRecord for Analysis {
    fn sections(&self) -> Vec<&[u8]> {
        let rows = &self.fronts.rows;
        let own = self.supernodes.len();
        let mut sections = vec![
            bytemuck::cast_slice(&self.order),
            bytemuck::cast_slice(&self.supernodes),
            bytemuck::cast_slice(&rows.starts),
            bytemuck::cast_slice(&rows.rows[..rows.starts[own] as usize]),
        ];
        sections.extend(self.low_rank.as_ref().map(bytemuck::bytes_of));
        sections
    }
    fn has_room(&self) -> bool {
        self.low_rank.is_some()
    }
    fn taken(&self, tile: usize, room: &[u8]) -> usize {
        match self.has_room() && self.fronts.is_below_diagonal(tile as u64) {
            true => TileElements::taken(room),
            false => room.len(),
        }
    }
}

/// Whether a number may be a tolerance of tiles of low rank.
pub(super) fn is_tolerance(number: f64) -> bool {
    number > 0.0 && number < 1.0
}

/// Operations that take as long as the tasks that a front of few columns adds, where no task eliminates its whole subtree.
const FRONT_OPERATIONS: f64 = 300e-6 * 60e9;
/// Zeros of a column in a front of few columns.
const FRONT_ZEROS: u64 = 8;

/// The effort of a factorization in an order, as operations: its multiplications and additions, without the zeros of larger
/// supernodes, and its tasks. Chains of small columns have few operations and a task for each few of them.
///
/// # Errors
/// It was stopped.
pub fn effort_of(pattern: &Pattern, order: Vec<u32>, stop: Stop<'_>) -> Result<f64, EngineError> {
    let tree = EliminationTree::new(pattern, order, stop)?;
    let mut below: Vec<u64> = tree
        .counts
        .iter()
        .map(|&count| u64::from(count) + FRONT_ZEROS)
        .collect();
    let mut effort = 0.0;
    for (column, (&parent, &count)) in tree.parents.iter().zip(&tree.counts).enumerate() {
        let entries = below[column];
        if parent != NONE {
            below[parent as usize] += entries;
        }
        effort += f64::from(count).powi(2);
        let continues = column > 0 && tree.parents[column - 1] == column as u32 && tree.counts[column - 1] == count + 1;
        if entries > SUBTREE && !continues {
            effort += FRONT_OPERATIONS;
        }
    }
    Ok(effort)
}

/// Numbers of a section.
pub(super) fn numbers<T: Pod>(section: &[u8]) -> Result<Vec<T>, &'static str> {
    match section.len().is_multiple_of(size_of::<T>()) {
        true => Ok(section
            .chunks_exact(size_of::<T>())
            .map(bytemuck::pod_read_unaligned)
            .collect()),
        false => Err("a section of the record is cut off"),
    }
}

fn digest_of(tree: &SupernodeTree, rows: &FrontRows, low_rank: Option<f64>) -> Digest {
    let mut parts: Vec<u8> = vec![];
    let supernodes: Vec<u32> = tree
        .supernodes
        .iter()
        .flat_map(|one| [one.first, one.pivots, one.front, one.parent])
        .collect();
    for numbers in [&tree.order, &supernodes, &rows.rows] {
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        parts.extend_from_slice(Digest::of(bytes).to_string().as_bytes());
    }
    parts.extend(low_rank.iter().flat_map(|tolerance| tolerance.to_ne_bytes()));
    Digest::of(&parts)
}

#[cfg(test)]
mod tests {
    use super::super::fronts::FrontCut;
    use super::*;

    /// The graph of a grid of side³ points.
    fn cube(side: u32) -> Pattern {
        let mut pattern = Pattern::default();
        for vertex in 0..side.pow(3) {
            pattern.starts.push(pattern.neighbours.len() as u64);
            let along = [side * side, side, 1];
            let place = |stride: u32| vertex / stride % side;
            let before = along.iter().filter(|stride| place(**stride) > 0);
            pattern.neighbours.extend(before.map(|stride| vertex - stride));
            let after = along.iter().rev().filter(|stride| place(**stride) + 1 < side);
            pattern.neighbours.extend(after.map(|stride| vertex + stride));
        }
        pattern.starts.push(pattern.neighbours.len() as u64);
        pattern
    }

    #[test]
    fn an_analysis_has_allocated_the_bytes_that_it_says() {
        let pattern = cube(14);
        let order = (0..pattern.vertices() as u32).collect();
        let tree = Analysis::tree(&pattern, order, &|| false).expect("not stopped");
        let grid = Analysis::of_tree(&pattern, tree, None, &|| false).expect("not stopped");
        for analysis in [grid, Analysis::dense(5000, None)] {
            let Fronts {
                nodes,
                rows,
                factor,
                contribution,
            } = &analysis.fronts;
            let ends = nodes.iter().map(|node| match &node.cut {
                FrontCut::Subtrees { .. } => 0,
                FrontCut::Blocks { ends, .. } => 4 * ends.capacity(),
            });
            let records = nodes.capacity() * size_of_val(&nodes[0]) + ends.sum::<usize>();
            let rows = 8 * rows.starts.capacity() + 4 * rows.rows.capacity();
            let tiles = 8 * (factor.capacity() + contribution.capacity());
            let numbers = 4 * analysis.order.capacity() + size_of::<Supernode>() * analysis.supernodes.capacity();
            assert_eq!(analysis.bytes(), (records + rows + tiles + numbers) as u64);
        }
    }
}
