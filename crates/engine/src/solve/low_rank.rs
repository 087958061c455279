//! Factors whose tiles below the diagonal are of low rank: which those are, and orders of columns that make ranks low.

use outcore_kernels::TileElements;

use super::fronts::{FrontNode, Fronts, SIDE};
use super::pattern::Pattern;
use super::supernodes::SupernodeTree;
use super::tree::{check, Stop};
use crate::EngineError;

/// Puts columns of large supernodes beside those that they are near to, so that blocks of them are patches of a separator and
/// interact with low rank.
///
/// The place of the first neighbour that is eliminated before the supernode, or of a neighbour of a neighbour, says where a
/// column is: nested dissections number the parts of a graph part by part.
pub(super) fn cluster(pattern: &Pattern, tree: &mut SupernodeTree, stop: Stop<'_>) -> Result<(), EngineError> {
    let mut places = vec![0u32; tree.order.len()];
    for (place, &vertex) in tree.order.iter().enumerate() {
        places[vertex as usize] = place as u32;
    }
    let mut columns: Vec<(u32, u32)> = vec![];
    for one in &tree.supernodes {
        if u64::from(one.pivots) <= SIDE {
            continue;
        }
        check(stop)?;
        let own = &mut tree.order[one.first as usize..(one.first + one.pivots) as usize];
        let least_of = |vertex: usize| {
            let places = pattern
                .neighbours_of(vertex)
                .iter()
                .map(|other| places[*other as usize]);
            places.filter(|place| *place < one.first).min().unwrap_or(one.first)
        };
        columns.clear();
        columns.extend(own.iter().map(|&vertex| {
            let beyond = pattern
                .neighbours_of(vertex as usize)
                .iter()
                .map(|other| least_of(*other as usize))
                .min();
            (least_of(vertex as usize).min(beyond.unwrap_or(one.first)), vertex)
        }));
        columns.sort_by_key(|(place, _)| *place);
        own.iter_mut().zip(&columns).for_each(|(to, (_, vertex))| *to = *vertex);
    }
    Ok(())
}

impl Fronts {
    /// Whether a tile of the factor is below a diagonal: such may be of low rank, and have a header then.
    pub(super) fn is_below_diagonal(&self, tile: u64) -> bool {
        let after = self.nodes.partition_point(|node| u64::from(node.factor) <= tile);
        let Some(node) = after.checked_sub(1).map(|at| &self.nodes[at]) else {
            return false;
        };
        let is_diagonal = |own: u64| {
            let blocks = node.blocks();
            blocks.is_none_or(|blocks| (0..blocks.pivots).any(|block| u64::from(blocks.tile(block, block)) == own))
        };
        !is_diagonal(tile - u64::from(node.factor))
    }

    /// Bytes of the tiles of the factor with elements of a size; those that may be of low rank with all of their elements.
    pub(super) fn factor_bytes(&self, is_low_rank: bool, item: u64) -> Vec<u64> {
        let bytes = |(tile, elements): (usize, &u64)| match is_low_rank && self.is_below_diagonal(tile as u64) {
            true => elements * item + TileElements::HEADER as u64,
            false => elements * item,
        };
        self.factor.iter().enumerate().map(bytes).collect()
    }

    /// Whether tiles of such lengths may be those of the factor.
    pub(super) fn has_tiles(&self, is_low_rank: bool, tiles: &[u64], item: u64) -> bool {
        let most = self.factor_bytes(is_low_rank, item);
        let fits = |(tile, (bytes, most)): (usize, (&u64, &u64))| {
            bytes == most
                || is_low_rank
                    && self.is_below_diagonal(tile as u64)
                    && (TileElements::HEADER as u64..*most).contains(bytes)
        };
        most.len() == tiles.len() && tiles.iter().zip(&most).enumerate().all(fits)
    }
}

/// Bytes before the elements of a tile of a front, of a factor of low rank.
pub(super) fn header_bytes(node: &FrontNode, [row, column]: [u32; 2]) -> usize {
    let has_pivots = node.blocks().is_some_and(|blocks| column < blocks.pivots);
    match has_pivots && row != column {
        true => TileElements::HEADER,
        false => 0,
    }
}

/// The elements of a tile below the diagonal, of a factor of low rank.
///
/// # Errors
/// A tile that is none.
pub(super) fn low_rank_elements(tile: &[u8], sizes: [usize; 2], item: usize) -> Result<TileElements<'_>, EngineError> {
    TileElements::of(tile, sizes, item).ok_or_else(|| {
        EngineError::Argument("solve: a tile of the factor has not the elements that its header tells of".into())
    })
}
