//! Fronts cut into tiles: whole subtrees of small fronts are one task each, large fronts are tiles of their lower triangles.
//! All follows from the pattern, nothing from memory, so that bits are the same at every limit.

use super::supernodes::{triangle, FrontRows, Supernode, SupernodeTree};
use super::tree::NONE;

/// Longest side of a tile of a front.
pub const SIDE: u64 = 512;
/// Elements of the workspace of a subtree at most, and of its columns of the factor.
pub(super) const SUBTREE: u64 = 1 << 20;

/// Subtrees that one task eliminates, or a front in tiles.
#[derive(Clone, Debug)]
pub struct FrontNode {
    /// Its supernodes; a large front is one.
    pub supernodes: std::ops::Range<u32>,
    /// Columns that are eliminated.
    pub columns: std::ops::Range<u32>,
    /// Rows of the contribution block, in [`Fronts::rows`].
    pub below: std::ops::Range<u64>,
    /// The node that takes the contribution block; `NONE` where there is none.
    pub parent: u32,
    pub cut: FrontCut,
    /// Tiles of the factor, and of contribution blocks, before those of the node.
    pub factor: u32,
    pub contribution: u32,
}

/// How a node is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontCut {
    /// One tile of the factor, and one of the contribution block if there is any: trees whose roots have one parent.
    Subtrees {
        /// Elements of the largest front, and of contribution blocks that wait.
        front: u64,
        stack: u64,
    },
    /// Blocks of rows and columns: where each begins, and the last ends.
    Blocks {
        /// Blocks of pivots.
        pivots: u32,
        ends: Vec<u32>,
    },
}

impl FrontNode {
    /// Blocks of pivots and of all; nothing of a subtree.
    pub fn blocks(&self) -> Option<BlockCounts> {
        match &self.cut {
            FrontCut::Subtrees { .. } => None,
            FrontCut::Blocks { pivots, ends } => Some(BlockCounts {
                pivots: *pivots,
                all: ends.len() as u32 - 1,
            }),
        }
    }

    /// Rows of a block of the front.
    pub fn block(&self, block: u32) -> std::ops::Range<u32> {
        match &self.cut {
            FrontCut::Subtrees { .. } => 0..0,
            FrontCut::Blocks { ends, .. } => ends[block as usize]..ends[block as usize + 1],
        }
    }
}

/// Blocks of a front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    pub pivots: u32,
    pub all: u32,
}

impl BlockCounts {
    /// The number of a tile among those of its front, column by column from the diagonal down.
    pub fn tile(self, row: u32, column: u32) -> u32 {
        column * self.all - column * (column + 1) / 2 + row
    }

    /// Tiles of the columns of pivots.
    pub fn factor_tiles(self) -> u32 {
        self.tile(self.pivots, self.pivots)
    }

    pub fn tiles(self) -> u32 {
        self.all * (self.all + 1) / 2
    }
}

/// The nodes of a factorization in postorder, and the elements of their tiles.
#[derive(Debug)]
pub struct Fronts {
    pub nodes: Vec<FrontNode>,
    /// Rows below the pivots of supernodes, and behind them those of nodes with several roots.
    pub rows: FrontRows,
    /// Elements of each tile of the factor, and of each tile of contribution blocks.
    pub factor: Vec<u64>,
    pub contribution: Vec<u64>,
}

/// The demands of a supernode's subtree where one task eliminates it.
#[derive(Clone, Copy, Debug, Default)]
struct SubtreeDemand {
    /// The first supernode of the subtree.
    first: u32,
    /// Entries of the factor, elements of the largest front, and of contribution blocks that wait.
    entries: u64,
    front: u64,
    stack: u64,
}

impl SubtreeDemand {
    fn fits(&self) -> bool {
        self.entries <= SUBTREE && self.front + self.stack <= SUBTREE
    }

    /// The demands of supernodes, children before parents.
    fn of_all(supernodes: &[Supernode]) -> Vec<SubtreeDemand> {
        let mut demands: Vec<SubtreeDemand> = Vec::with_capacity(supernodes.len());
        // Contribution blocks of the children so far, and their number of supernodes.
        let mut waiting = vec![0u64; supernodes.len()];
        let begin = |number: usize| SubtreeDemand {
            first: number as u32,
            ..SubtreeDemand::default()
        };
        demands.extend((0..supernodes.len()).map(begin));
        for (number, one) in supernodes.iter().enumerate() {
            let own = &mut demands[number];
            own.entries += one.entries();
            own.front = own.front.max(u64::from(one.front).pow(2));
            own.stack = own.stack.max(triangle(one.below()));
            let own = *own;
            if one.parent != NONE {
                let (parent, waiting) = (&mut demands[one.parent as usize], &mut waiting[one.parent as usize]);
                parent.first = parent.first.min(own.first);
                parent.entries += own.entries;
                parent.front = parent.front.max(own.front);
                parent.stack = parent.stack.max(*waiting + own.stack);
                *waiting += triangle(one.below());
                parent.stack = parent.stack.max(*waiting);
            }
        }
        demands
    }
}

impl Fronts {
    /// Cuts the fronts of a tree whose rows are known.
    pub fn new(tree: &SupernodeTree, rows: FrontRows) -> Fronts {
        let supernodes = &tree.supernodes;
        let demands = SubtreeDemand::of_all(supernodes);
        let mut fronts = Fronts {
            nodes: vec![],
            rows,
            factor: vec![],
            contribution: vec![],
        };
        let mut of_supernode = vec![NONE; supernodes.len()];
        // A subtree that waits for its siblings: where it begins, its roots, its demands in all.
        let mut group: Option<SiblingGroup> = None;
        for (number, one) in supernodes.iter().enumerate() {
            let demand = demands[number];
            if !demand.fits() {
                fronts.close(&mut group, supernodes, &mut of_supernode);
                of_supernode[number] = fronts.nodes.len() as u32;
                fronts.add_blocks(number as u32, one);
            } else if one.parent == NONE || !demands[one.parent as usize].fits() {
                let goes_with = group.as_ref().is_some_and(|group| group.takes(one, &demand));
                if !goes_with {
                    fronts.close(&mut group, supernodes, &mut of_supernode);
                }
                let begun = group.get_or_insert_with(|| SiblingGroup::new(one.parent, demand.first));
                begun.add(number as u32, one, &demand);
            }
        }
        fronts.close(&mut group, supernodes, &mut of_supernode);
        for node in &mut fronts.nodes {
            let root = supernodes[node.supernodes.end as usize - 1];
            if root.parent != NONE {
                node.parent = of_supernode[root.parent as usize];
            }
        }
        fronts.shrink();
        fronts
    }

    /// The front of a dense matrix, in tiles.
    pub(super) fn dense(one: &Supernode, rows: FrontRows) -> Fronts {
        let mut fronts = Fronts {
            nodes: vec![],
            rows,
            factor: vec![],
            contribution: vec![],
        };
        fronts.add_blocks(0, one);
        fronts.shrink();
        fronts
    }

    /// Gives back the room for more records: what an allocator has used before stays resident.
    fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.rows.rows.shrink_to_fit();
        self.factor.shrink_to_fit();
        self.contribution.shrink_to_fit();
    }

    /// Ends the subtrees that are eliminated together.
    fn close(&mut self, group: &mut Option<SiblingGroup>, supernodes: &[Supernode], of_supernode: &mut [u32]) {
        let Some(group) = group.take() else { return };
        let below = match group.roots[..] {
            [root] => self.rows.starts[root as usize]..self.rows.starts[root as usize + 1],
            _ => self.rows.join(&group.roots),
        };
        let (first, last) = (group.first, group.roots[group.roots.len() - 1]);
        let (begin, end) = (supernodes[first as usize], supernodes[last as usize]);
        for &root in &group.roots {
            of_supernode[root as usize] = self.nodes.len() as u32;
        }
        self.nodes.push(FrontNode {
            supernodes: first..last + 1,
            columns: begin.first..end.first + end.pivots,
            below: below.clone(),
            parent: NONE,
            cut: FrontCut::Subtrees {
                front: group.demand.front,
                stack: group.demand.stack,
            },
            factor: self.factor.len() as u32,
            contribution: self.contribution.len() as u32,
        });
        self.factor.push(group.demand.entries);
        if below.end > below.start {
            self.contribution.push(triangle(below.end - below.start));
        }
    }

    fn add_blocks(&mut self, number: u32, one: &Supernode) {
        let mut ends = vec![0];
        cut(&mut ends, one.pivots);
        let pivots = ends.len() as u32 - 1;
        cut(&mut ends, one.front - one.pivots);
        ends.shrink_to_fit();
        let node = FrontNode {
            supernodes: number..number + 1,
            columns: one.first..one.first + one.pivots,
            below: self.rows.starts[number as usize]..self.rows.starts[number as usize + 1],
            parent: NONE,
            cut: FrontCut::Blocks { pivots, ends },
            factor: self.factor.len() as u32,
            contribution: self.contribution.len() as u32,
        };
        let blocks = node.blocks().map_or(0, |blocks| blocks.all);
        for column in 0..blocks {
            for row in column..blocks {
                let (height, width) = (node.block(row).len() as u64, node.block(column).len() as u64);
                let elements = if row == column {
                    triangle(height)
                } else {
                    height * width
                };
                match column < pivots {
                    true => self.factor.push(elements),
                    false => self.contribution.push(elements),
                }
            }
        }
        self.nodes.push(node);
    }

    /// Bytes that the records of tiles take at most.
    pub fn tile_bytes(supernodes: &[Supernode]) -> u64 {
        let tiles = |one: &Supernode| match u64::from(one.front).pow(2) > SUBTREE {
            true => triangle((u64::from(one.front)).div_ceil(SIDE) + 1),
            false => 4,
        };
        2 * 8 * supernodes.iter().map(tiles).sum::<u64>()
    }

    /// Rows of the contribution block of a node.
    pub fn below(&self, node: &FrontNode) -> &[u32] {
        &self.rows.rows[node.below.start as usize..node.below.end as usize]
    }

    /// Bytes that the records take.
    pub fn bytes(&self) -> u64 {
        let ends = |node: &FrontNode| node.blocks().map_or(0, |blocks| (blocks.all as usize + 1) * 4);
        let ends: usize = self.nodes.iter().map(ends).sum();
        let records = self.nodes.len() * size_of::<FrontNode>() + ends + self.rows.starts.len() * 8;
        (records + self.rows.rows.len() * 4 + (self.factor.len() + self.contribution.len()) * 8) as u64
    }
}

/// Appends where blocks of about equal length end.
pub(super) fn cut(ends: &mut Vec<u32>, length: u32) {
    let begin = ends[ends.len() - 1];
    let blocks = length.div_ceil(SIDE as u32);
    ends.extend((1..=blocks).map(|block| begin + (u64::from(length) * u64::from(block) / u64::from(blocks)) as u32));
}

/// Sibling subtrees that one task eliminates.
struct SiblingGroup {
    parent: u32,
    first: u32,
    roots: Vec<u32>,
    demand: SubtreeDemand,
    /// Contribution blocks of the roots, and their rows.
    waiting: u64,
    below: u64,
}

impl SiblingGroup {
    fn new(parent: u32, first: u32) -> SiblingGroup {
        SiblingGroup {
            parent,
            first,
            roots: vec![],
            demand: SubtreeDemand::default(),
            waiting: 0,
            below: 0,
        }
    }

    fn with(&self, one: &Supernode, demand: &SubtreeDemand) -> SubtreeDemand {
        let stack = self.demand.stack.max(self.waiting + demand.stack);
        SubtreeDemand {
            first: self.first,
            entries: self.demand.entries + demand.entries,
            front: self.demand.front.max(demand.front),
            stack: stack.max(self.waiting + triangle(one.below())),
        }
    }

    /// Whether a subtree goes with the others: one contribution block for all is no larger than theirs.
    fn takes(&self, one: &Supernode, demand: &SubtreeDemand) -> bool {
        let joined = triangle(self.below.max(one.below()));
        let rows = self.below + one.below();
        self.parent == one.parent
            && self.with(one, demand).fits()
            && (triangle(rows) <= SUBTREE / 4 || joined * 2 > triangle(rows))
    }

    fn add(&mut self, number: u32, one: &Supernode, demand: &SubtreeDemand) {
        self.demand = self.with(one, demand);
        self.roots.push(number);
        self.waiting += triangle(one.below());
        self.below += one.below();
    }
}
