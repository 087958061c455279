//! Tiles of children's contribution blocks that have elements for the tiles of a front.

use super::analysis::Analysis;
use super::fronts::{FrontCut, FrontNode};
use super::places::FrontPlaces;

/// A tile of a child's contribution block that has elements for a tile of the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contribution {
    pub(super) child: u32,
    pub(super) row: u32,
    pub(super) column: u32,
}

/// Where rows of a child's contribution block are in the blocks of the parent.
pub(super) struct ChildRows {
    child: u32,
    /// For each block of the parent, the blocks of the child that have rows there.
    blocks: Vec<std::ops::Range<u32>>,
}

impl ChildRows {
    pub(super) fn new(analysis: &Analysis, child: u32, parent: &FrontNode) -> ChildRows {
        let of = &analysis.fronts.nodes[child as usize];
        let rows = analysis.fronts.below(of);
        let places = FrontPlaces::new(analysis, parent);
        let all = parent.blocks().map_or(0, |blocks| blocks.all);
        let mut begin = 0;
        let blocks = (0..all).map(|block| {
            let end = begin + places.before(&rows[begin..], parent.block(block).end);
            let own = begin..end;
            begin = end;
            match own.is_empty() {
                true => 0..0,
                false => child_block(of, own.start as u32)..child_block(of, own.end as u32 - 1) + 1,
            }
        });
        ChildRows {
            child,
            blocks: blocks.collect(),
        }
    }

    pub(super) fn contribute(&self, [row, column]: [u32; 2], to: &mut Vec<Contribution>) {
        for from in self.blocks[column as usize].clone() {
            for below in self.blocks[row as usize].clone().filter(|below| *below >= from) {
                to.push(Contribution {
                    child: self.child,
                    row: below,
                    column: from,
                });
            }
        }
    }
}

/// The block of a node's front that has a row of its contribution block.
fn child_block(node: &FrontNode, row: u32) -> u32 {
    match &node.cut {
        FrontCut::Subtrees { .. } => 0,
        FrontCut::Blocks { pivots, ends } => {
            let at = ends[*pivots as usize] + row;
            ends.partition_point(|end| *end <= at) as u32 - 1
        }
    }
}

/// Rows of a contribution block that are in a block of the node's front; all of a node of subtrees.
pub(super) fn rows_of_block(node: &FrontNode, block: u32) -> std::ops::Range<usize> {
    match &node.cut {
        FrontCut::Subtrees { .. } => 0..(node.below.end - node.below.start) as usize,
        FrontCut::Blocks { pivots, ends } => {
            let first = ends[*pivots as usize];
            let block = node.block(block);
            (block.start - first) as usize..(block.end - first) as usize
        }
    }
}
