//! Fronts with room for candidates that are left: each hands up to so many on to its parent, in slots behind the parent's own
//! columns. Sizes follow from the pattern alone; an empty slot is a row and a column of the identity.
//!
//! Places of a front in tiles: its own columns, those inherited from its children, its slots, the rows below. The slots of a
//! root are eliminated there.

use std::ops::Range;

use outcore_kernels::PivotedKind;

use super::super::fronts::{cut, FrontCut, FrontNode};
use super::super::places::FrontPlaces;
use super::super::supernodes::triangle;
use super::super::tree::NONE;
use super::super::Analysis;
use super::blocks::{header_words, record_bytes};

/// Slots of a front in tiles at most and at least.
const SLOTS: std::ops::RangeInclusive<u32> = 2..=64;
/// Slots of a node of subtrees at most and at least.
const SUBTREE_SLOTS: std::ops::RangeInclusive<u32> = 2..=24;
/// Places that a front has for candidates of its children at least.
const INHERITED: u64 = 4;
/// The share of its columns that a front has slots for, and by which subtrees may grow.
const SHARE: u32 = 10;

/// A node with its slots.
#[derive(Clone, Debug)]
pub(super) struct PivotedNode {
    /// Places that children hand candidates on to, and those that the node hands on.
    pub inherited: u32,
    pub slots: u32,
    /// The first of its slots among the parent's inherited.
    pub offset: u32,
    pub cut: PivotedCut,
    /// Tiles of the factor, and of contribution blocks, before those of the node.
    pub factor: u32,
    pub contribution: u32,
}

#[derive(Clone, Debug)]
pub(super) enum PivotedCut {
    Subtrees(SubtreeRoom),
    Blocks(PivotedBlocks),
}

/// The room of subtrees in one task.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubtreeRoom {
    /// Rows of a front at most, elements of blocks that wait, words of the tile of the factor.
    pub side: usize,
    pub stack: usize,
    /// Elements of these that candidates left may take.
    pub more: usize,
    pub words: usize,
}

/// How a front is cut.
#[derive(Clone, Debug)]
pub(super) struct PivotedBlocks {
    /// Where each begins, and the last ends.
    pub ends: Vec<u32>,
    /// Blocks of own columns; the block of slots; blocks of pivots.
    pub own: u32,
    pub slots: u32,
    pub pivots: u32,
    pub is_symmetric: bool,
}

impl PivotedBlocks {
    pub fn all(&self) -> u32 {
        self.ends.len() as u32 - 1
    }

    pub fn block(&self, block: u32) -> Range<u32> {
        self.ends[block as usize]..self.ends[block as usize + 1]
    }

    pub fn side(&self, block: u32) -> usize {
        self.block(block).len()
    }

    /// Whether the block has places of what is left: often all are empty.
    pub fn is_spare(&self, block: u32) -> bool {
        (self.own..=self.slots).contains(&block)
    }

    /// The first block of the contribution block.
    fn first_below(&self) -> u32 {
        self.pivots
    }

    /// The number of a tile among those of its front, and whether it is one of the factor: columns from the diagonal down, each
    /// followed by the row from behind the diagonal where the matrix is not symmetric.
    pub fn tile(&self, row: u32, column: u32) -> (bool, u32) {
        let (low, high) = (row.min(column), row.max(column));
        let before = low * self.all() - low * low.saturating_sub(1) / 2;
        let own = high - low;
        let number = match self.is_symmetric {
            true => before + own,
            // Columns before have 2 length − 1 tiles.
            false => 2 * before - low + if row >= column { own } else { self.all() - low + own - 1 },
        };
        let is_factor = low < self.pivots;
        (is_factor, number - if is_factor { 0 } else { self.factor_tiles() })
    }

    pub fn factor_tiles(&self) -> u32 {
        let pivots = self.pivots;
        let below = pivots * self.all() - pivots * pivots.saturating_sub(1) / 2;
        if self.is_symmetric {
            below
        } else {
            2 * below - pivots
        }
    }

    /// Tiles of the front, in the order of their numbers.
    pub fn tiles(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        (0..self.all()).flat_map(move |low| {
            let columns = (low..self.all()).map(move |row| [row, low]);
            let rows = (low + 1..self.all()).map(move |column| [low, column]);
            columns.chain(rows.filter(|_| !self.is_symmetric))
        })
    }

    /// The block of a row of the contribution block, and the rows of a block there.
    pub fn block_of_row(&self, row: usize) -> u32 {
        let at = self.ends[self.first_below() as usize] + row as u32;
        self.ends.partition_point(|end| *end <= at) as u32 - 1
    }

    pub fn rows_of_block(&self, block: u32) -> Range<usize> {
        let first = self.ends[self.first_below() as usize];
        let block = self.block(block);
        (block.start - first) as usize..(block.end - first) as usize
    }

    /// Bytes of a tile.
    fn tile_bytes(&self, [row, column]: [u32; 2], item: u64) -> u64 {
        let (height, width) = (self.side(row) as u64, self.side(column) as u64);
        let is_diagonal = row == column;
        let elements = match is_diagonal && self.is_symmetric {
            true => triangle(height),
            false => height * width,
        };
        let records = if is_diagonal && row < self.pivots {
            record_bytes(width as usize) as u64
        } else {
            0
        };
        elements * item + records
    }
}

/// The nodes of a factorization with pivoting, and the bytes of their tiles.
#[derive(Debug)]
pub(super) struct PivotedFronts {
    pub nodes: Vec<PivotedNode>,
    pub children: Vec<Vec<u32>>,
    pub factor: Vec<u64>,
    pub contribution: Vec<u64>,
}

/// Slots of each node: a share of its columns, less where children are so many that theirs were more than a share of their
/// parent's, and none of a node of subtrees that has no parent.
fn slots_of(analysis: &Analysis) -> Vec<u32> {
    let nodes = &analysis.fronts.nodes;
    let wanted = |node: &FrontNode| match node.cut {
        FrontCut::Blocks { .. } => (node.columns.len() as u32 / SHARE).clamp(*SLOTS.start(), *SLOTS.end()),
        FrontCut::Subtrees { .. } if node.parent == NONE => 0,
        FrontCut::Subtrees { .. } => {
            let root = analysis.supernodes[node.supernodes.end as usize - 1];
            (root.pivots / SHARE).clamp(*SUBTREE_SLOTS.start(), *SUBTREE_SLOTS.end())
        }
    };
    let mut all = vec![0u64; nodes.len()];
    for node in nodes.iter().filter(|node| node.parent != NONE) {
        all[node.parent as usize] += u64::from(wanted(node));
    }
    let of = |node: &FrontNode| {
        let Some(parent) = nodes.get(node.parent as usize) else {
            return wanted(node);
        };
        let (all, most) = (
            all[node.parent as usize],
            parent.columns.len() as u64 / u64::from(SHARE),
        );
        let part = u64::from(wanted(node)) * most.max(INHERITED) / all.max(1);
        (part.max(1) as u32).min(wanted(node))
    };
    nodes.iter().map(of).collect()
}

impl PivotedFronts {
    pub fn new(analysis: &Analysis, kind: PivotedKind, item: u64) -> PivotedFronts {
        let nodes = &analysis.fronts.nodes;
        let mut fronts = PivotedFronts {
            nodes: Vec::with_capacity(nodes.len()),
            children: vec![vec![]; nodes.len()],
            factor: vec![],
            contribution: vec![],
        };
        let slots = slots_of(analysis);
        let mut inherited = vec![0u32; nodes.len()];
        for (number, node) in nodes.iter().enumerate() {
            let mut own = fronts.sized(analysis, node, (slots[number], inherited[number]), (kind, item));
            if node.parent != NONE {
                let taken = &mut inherited[node.parent as usize];
                own.offset = *taken;
                *taken += own.slots;
                fronts.children[node.parent as usize].push(number as u32);
            }
            fronts.nodes.push(own);
        }
        fronts
    }

    fn sized(
        &mut self,
        analysis: &Analysis,
        node: &FrontNode,
        (slots, inherited): (u32, u32),
        (kind, item): (PivotedKind, u64),
    ) -> PivotedNode {
        let (factor, contribution) = (self.factor.len() as u32, self.contribution.len() as u32);
        let is_symmetric = kind != PivotedKind::Unsymmetric;
        let below = (node.below.end - node.below.start) as u32;
        let square = |side: u64| if is_symmetric { triangle(side) } else { side * side };
        let cut = match &node.cut {
            FrontCut::Subtrees { front, stack, .. } => {
                let room = SubtreeRoom::new(analysis, node, [*front, *stack], (is_symmetric, item));
                self.factor.push(8 * room.words as u64);
                if below > 0 {
                    self.contribution.push(square(u64::from(slots + below)) * item);
                }
                PivotedCut::Subtrees(room)
            }
            FrontCut::Blocks { .. } => {
                let own = node.columns.len() as u32;
                let blocks = PivotedBlocks::new([own, inherited, slots, below], is_symmetric);
                for tile in blocks.tiles() {
                    let bytes = blocks.tile_bytes(tile, item);
                    match blocks.tile(tile[0], tile[1]).0 {
                        true => self.factor.push(bytes),
                        false => self.contribution.push(bytes),
                    }
                }
                PivotedCut::Blocks(blocks)
            }
        };
        PivotedNode {
            inherited,
            slots,
            offset: 0,
            cut,
            factor,
            contribution,
        }
    }

    /// Bytes that the records take.
    pub fn bytes(&self) -> u64 {
        let nodes = self.nodes.iter().map(|node| match &node.cut {
            PivotedCut::Subtrees(_) => 0,
            PivotedCut::Blocks(blocks) => 4 * blocks.ends.capacity(),
        });
        let children = self.children.iter().map(|children| 4 * children.capacity());
        let records = self.nodes.capacity() * size_of::<PivotedNode>() + nodes.sum::<usize>();
        let lists = self.children.capacity() * size_of::<Vec<u32>>() + children.sum::<usize>();
        (records + lists + 8 * (self.factor.capacity() + self.contribution.capacity())) as u64
    }

    /// Places of the rows of a child's contribution block in its parent.
    pub fn places(&self, analysis: &Analysis, child: u32) -> PivotedPlaces {
        let of = &analysis.fronts.nodes[child as usize];
        let (node, parent) = (&self.nodes[child as usize], &analysis.fronts.nodes[of.parent as usize]);
        let own = parent.columns.len() as u32;
        let beyond = self.nodes[of.parent as usize].beyond();
        let places = FrontPlaces::new(analysis, parent);
        let slots = (0..node.slots).map(|slot| own + node.offset + slot);
        let below = analysis.fronts.below(of).iter().map(|&row| {
            let place = places.of(row).unwrap_or(0);
            if place < own {
                place
            } else {
                place + beyond
            }
        });
        PivotedPlaces {
            places: slots.chain(below).collect(),
            slots: node.slots as usize,
        }
    }
}

/// Places of rows in a parent.
pub(super) struct PivotedPlaces {
    /// Slots first, then rows below, each ascending.
    pub places: Vec<u32>,
    slots: usize,
}

impl PivotedPlaces {
    /// The rows that are in an interval of places.
    pub fn within(&self, interval: &Range<u32>) -> Range<usize> {
        let of = |first: usize, places: &[u32]| {
            let begin = first + places.partition_point(|place| *place < interval.start);
            begin..first + places.partition_point(|place| *place < interval.end)
        };
        let slots = of(0, &self.places[..self.slots]);
        match slots.is_empty() {
            true => of(self.slots, &self.places[self.slots..]),
            false => slots,
        }
    }
}

impl PivotedNode {
    /// Places between its own columns and the rows below.
    pub fn beyond(&self) -> u32 {
        self.inherited + self.slots
    }

    pub fn blocks(&self) -> Option<&PivotedBlocks> {
        match &self.cut {
            PivotedCut::Subtrees(_) => None,
            PivotedCut::Blocks(blocks) => Some(blocks),
        }
    }

    /// Rows of its contribution block: slots and rows below; none of a root.
    pub fn rows_below(&self, node: &FrontNode) -> u64 {
        match node.below.end - node.below.start {
            0 => 0,
            below => u64::from(self.slots) + below,
        }
    }

    /// Candidates of the node.
    pub fn candidates(&self, node: &FrontNode) -> u64 {
        let own = node.columns.len() as u64;
        match self.blocks() {
            None => own,
            Some(blocks) => u64::from(blocks.ends[blocks.pivots as usize]),
        }
    }
}

impl PivotedBlocks {
    fn new([own, inherited, slots, below]: [u32; 4], is_symmetric: bool) -> PivotedBlocks {
        let mut ends = vec![0];
        cut(&mut ends, own);
        let own = ends.len() as u32 - 1;
        if inherited > 0 {
            cut(&mut ends, inherited);
        }
        let before = ends.len() as u32 - 1;
        cut(&mut ends, slots);
        if below > 0 {
            cut(&mut ends, below);
        }
        PivotedBlocks {
            ends,
            own,
            slots: before,
            pivots: if below > 0 { before } else { before + 1 },
            is_symmetric,
        }
    }
}

impl SubtreeRoom {
    fn new(
        analysis: &Analysis,
        node: &FrontNode,
        [front, stack]: [u64; 2],
        (is_symmetric, item): (bool, u64),
    ) -> SubtreeRoom {
        let most = front.isqrt();
        let more = (most / u64::from(SHARE)).max(8);
        let side = most + more;
        // Blocks that wait are triangles or squares.
        let stack = if is_symmetric { stack } else { 2 * stack };
        let words_of = |entries: u64| entries * item / 8;
        let mut words = 0;
        for one in &analysis.supernodes[node.supernodes.start as usize..node.supernodes.end as usize] {
            let pivots = u64::from(one.pivots);
            let entries = if is_symmetric {
                one.entries()
            } else {
                2 * one.entries() - pivots
            };
            words += words_of(entries) + header_words(pivots);
        }
        words += words / u64::from(SHARE) + words_of(4 * side);
        let spare = stack / u64::from(SHARE) + 4 * more * side;
        SubtreeRoom {
            side: side as usize,
            stack: (stack + spare) as usize,
            more: spare as usize,
            words: words as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_numbered_one_behind_the_other() {
        for is_symmetric in [true, false] {
            for below in [0, 700] {
                let blocks = PivotedBlocks::new([1100, 40, 16, below], is_symmetric);
                let (mut factor, mut others) = (0, 0);
                for [row, column] in blocks.tiles() {
                    let (is_factor, number) = blocks.tile(row, column);
                    assert_eq!(is_factor, row.min(column) < blocks.pivots);
                    let next = if is_factor { &mut factor } else { &mut others };
                    assert_eq!(number, *next, "{row} {column}");
                    *next += 1;
                }
                assert_eq!(factor, blocks.factor_tiles());
                assert_eq!(others == 0, below == 0);
            }
        }
    }
}
