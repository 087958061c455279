//! Supernodes: columns of the factor with the same rows below them, and children that are taken into their parents where that
//! costs few zeros; their order is Liu's, of the least memory.
//!
//! Amalgamation: Ashcraft, Grimes, The influence of relaxed supernode partitions, TOMS 15 (1989). Order of children: Liu, On
//! the storage requirement in the out-of-core multifrontal method, TOMS 12 (1986), section 4.

use bytemuck::{Pod, Zeroable};

use super::tree::{check, inverse, EliminationTree, Stop, NONE};
use crate::EngineError;

/// Columns of the factor that are eliminated together, in a front of all their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Supernode {
    /// The first column.
    pub first: u32,
    /// Columns: the pivots of its front.
    pub pivots: u32,
    /// Rows and columns of its front.
    pub front: u32,
    /// Its parent; `NONE` of a root.
    pub parent: u32,
}

impl Supernode {
    /// Rows below the pivots: the side of the contribution block.
    pub fn below(&self) -> u64 {
        u64::from(self.front - self.pivots)
    }

    /// Entries of its columns of the factor.
    pub fn entries(&self) -> u64 {
        trapezoid(u64::from(self.pivots), u64::from(self.front))
    }

    /// Multiplications and additions of its elimination.
    pub fn operations(&self) -> f64 {
        let column = |length: f64| length * (length + 1.0) * (2.0 * length + 1.0) / 6.0;
        column(f64::from(self.front)) - column(f64::from(self.front - self.pivots))
    }
}

/// Entries of the first `pivots` columns of a lower triangle of side `front`.
pub fn trapezoid(pivots: u64, front: u64) -> u64 {
    pivots * front - pivots * pivots.saturating_sub(1) / 2
}

/// Entries of a lower triangle.
pub fn triangle(side: u64) -> u64 {
    side * (side + 1) / 2
}

/// Supernodes in postorder, and the order of elimination that they are numbered by.
#[derive(Debug)]
pub struct SupernodeTree {
    pub supernodes: Vec<Supernode>,
    /// The vertex that is eliminated as each column.
    pub order: Vec<u32>,
}

/// Bytes that [`SupernodeTree::new`] takes at most for so many columns, its result included.
pub fn supernode_bytes(columns: u64) -> u64 {
    100 * columns
}

/// A supernode while children are taken into it.
#[derive(Clone, Copy, Debug)]
struct RelaxedSupernode {
    pivots: u64,
    front: u64,
    /// Entries that are none of the relaxation's zeros.
    entries: u64,
    parent: u32,
    /// The last of its own members, and the first supernode of those taken in.
    into: u32,
}

impl SupernodeTree {
    /// Supernodes of a tree. The parts of a tree that `NONE` ends are ordered one after the other.
    ///
    /// # Errors
    /// It was stopped.
    pub fn new(tree: &EliminationTree, stop: Stop<'_>) -> Result<SupernodeTree, EngineError> {
        let (firsts, mut merging) = fundamental(tree);
        check(stop)?;
        amalgamate(&mut merging);
        check(stop)?;
        Ok(renumbered(tree, &firsts, &merging))
    }
}

impl SupernodeTree {
    /// Refuses trees that no analysis makes: each supernode's columns follow those before, children and their subtrees lie
    /// together before their parent, and rows below a supernode are rows of its parent.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub(super) fn check(&self, rows: &FrontRows) -> Result<(), &'static str> {
        let columns = u32::try_from(self.order.len()).map_err(|_| "too many columns")?;
        let mut seen = vec![false; self.order.len()];
        for &row in &self.order {
            let seen = seen
                .get_mut(row as usize)
                .ok_or("the order has a row outside of the matrix")?;
            if std::mem::replace(seen, true) {
                return Err("the order has a row twice");
            }
        }
        let ends = rows.starts.len() == self.supernodes.len() + 1
            && rows.starts.first() == Some(&0)
            && rows.starts.last() == Some(&(rows.rows.len() as u64))
            && rows.starts.is_sorted();
        if !ends {
            return Err("rows of supernodes do not lie one behind the other");
        }
        // The first supernode of each subtree, and supernodes in it.
        let mut subtrees: Vec<(usize, usize)> = (0..self.supernodes.len()).map(|one| (one, 1)).collect();
        let mut next = 0;
        for (number, one) in self.supernodes.iter().enumerate() {
            let end = one.first.checked_add(one.pivots).filter(|end| *end <= columns);
            let end = end.filter(|_| one.first == next && one.pivots > 0 && one.front >= one.pivots);
            let end = end.ok_or("supernodes do not lie one behind the other")?;
            next = end;
            let below = rows.of(number);
            let is_ascending = below.is_sorted_by(|before, row| before < row);
            let is_inside =
                below.first().is_none_or(|row| *row >= end) && below.last().is_none_or(|row| *row < columns);
            if below.len() as u64 != one.below() || !is_ascending || !is_inside {
                return Err("rows below a supernode are not those of its front");
            }
            let (first, count) = subtrees[number];
            if number + 1 - first != count {
                return Err("a subtree does not lie together");
            }
            if one.parent == NONE {
                if !below.is_empty() {
                    return Err("a root has rows below it");
                }
                continue;
            }
            let parent = self
                .supernodes
                .get(one.parent as usize)
                .filter(|_| one.parent as usize > number);
            let parent = parent.ok_or("a parent does not follow its child")?;
            let (pivots, above) = (
                parent.first..parent.first.saturating_add(parent.pivots),
                rows.of(one.parent as usize),
            );
            let is_of_parent = |row: &u32| pivots.contains(row) || above.binary_search(row).is_ok();
            if !below.iter().all(is_of_parent) {
                return Err("rows below a supernode are none of its parent");
            }
            let own = &mut subtrees[one.parent as usize];
            *own = (own.0.min(first), own.1 + count);
        }
        match next == columns {
            true => Ok(()),
            false => Err("supernodes do not have all columns"),
        }
    }
}

/// Supernodes without zeros: each column has the rows of the next, and is its only child.
fn fundamental(tree: &EliminationTree) -> (Vec<u32>, Vec<RelaxedSupernode>) {
    let n = tree.order.len();
    let mut children = vec![0u32; n];
    for &parent in tree.parents.iter().filter(|parent| **parent != NONE) {
        children[parent as usize] = (children[parent as usize] + 1).min(2);
    }
    let goes_on = |column: usize| {
        column > 0
            && tree.parents[column - 1] == column as u32
            && children[column] == 1
            && tree.counts[column - 1] == tree.counts[column] + 1
    };
    let firsts: Vec<u32> = (0..n)
        .filter(|column| !goes_on(*column))
        .map(|column| column as u32)
        .collect();
    let mut of_column = vec![0u32; n];
    for (number, &first) in firsts.iter().enumerate() {
        let end = firsts.get(number + 1).map_or(n, |next| *next as usize);
        of_column[first as usize..end].fill(number as u32);
    }
    let merging = firsts.iter().enumerate().map(|(number, &first)| {
        let end = firsts.get(number + 1).map_or(n, |next| *next as usize);
        let (pivots, front) = ((end - first as usize) as u64, u64::from(tree.counts[first as usize]));
        RelaxedSupernode {
            pivots,
            front,
            entries: trapezoid(pivots, front),
            parent: match tree.parents[end - 1] {
                NONE => NONE,
                parent => of_column[parent as usize],
            },
            into: number as u32,
        }
    });
    let merging = merging.collect();
    (firsts, merging)
}

/// Whether so many columns may have so large a part of zeros.
fn may_have(pivots: u64, zeros: f64) -> bool {
    match pivots {
        0..=4 => true,
        5..=16 => zeros < 0.8,
        17..=48 => zeros < 0.15,
        _ => zeros < 0.05,
    }
}

/// Takes children into their parents, from the leaves up, those of the fewest zeros first.
fn amalgamate(merging: &mut [RelaxedSupernode]) {
    let lists = ChildLists::of(merging.iter().map(|one| one.parent));
    let mut order: Vec<(u64, u32)> = vec![];
    for parent in 0..merging.len() {
        order.clear();
        for &child in lists.of_parent(parent) {
            let child_of = &merging[child as usize];
            // Rows of the merged front that the child's columns have not.
            let lacking = (child_of.pivots + merging[parent].front).saturating_sub(child_of.front);
            order.push((lacking * child_of.pivots, child));
        }
        order.sort_unstable();
        for &(_, child) in &order {
            let (one, other) = (merging[parent], merging[child as usize]);
            let pivots = one.pivots + other.pivots;
            let front = one.front + other.pivots;
            let entries = one.entries + other.entries;
            let zeros = 1.0 - entries as f64 / trapezoid(pivots, front) as f64;
            if may_have(pivots, zeros) {
                merging[parent] = RelaxedSupernode {
                    pivots,
                    front,
                    entries,
                    ..one
                };
                merging[child as usize].into = parent as u32;
            }
        }
    }
}

/// Children of each node, ascending, in one list.
struct ChildLists {
    starts: Vec<u32>,
    children: Vec<u32>,
}

impl ChildLists {
    fn of(parents: impl ExactSizeIterator<Item = u32> + Clone) -> ChildLists {
        let mut starts = vec![0u32; parents.len() + 2];
        for parent in parents.clone().filter(|parent| *parent != NONE) {
            starts[parent as usize + 2] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut children = vec![0; *starts.last().expect("two at least") as usize];
        for (child, parent) in parents.enumerate().filter(|(_, parent)| *parent != NONE) {
            let place = &mut starts[parent as usize + 1];
            children[*place as usize] = child as u32;
            *place += 1;
        }
        ChildLists { starts, children }
    }

    fn of_parent(&self, parent: usize) -> &[u32] {
        &self.children[self.starts[parent] as usize..self.starts[parent + 1] as usize]
    }
}

/// Numbers supernodes in the order of the least memory, and columns with them.
fn renumbered(tree: &EliminationTree, firsts: &[u32], merging: &[RelaxedSupernode]) -> SupernodeTree {
    let n = tree.order.len();
    // A parent has a larger number than its children, so what a node was taken into is found from above.
    let mut heads: Vec<u32> = (0..merging.len() as u32).collect();
    for node in (0..merging.len()).rev() {
        if merging[node].into != node as u32 {
            heads[node] = heads[merging[node].into as usize];
        }
    }
    let parents: Vec<u32> = (0..merging.len())
        .map(|node| match (heads[node] == node as u32, merging[node].parent) {
            (true, parent) if parent != NONE => heads[parent as usize],
            _ => NONE,
        })
        .collect();
    let members = ChildLists::of(heads.iter().copied());
    let lists = ChildLists::of(parents.iter().copied());
    let sequence = least_memory(merging, &heads, &parents, &lists);
    let (mut order, mut supernodes) = (Vec::with_capacity(n), Vec::with_capacity(sequence.len()));
    for &node in &sequence {
        let first = order.len() as u32;
        for &member in members.of_parent(node as usize) {
            let end = firsts.get(member as usize + 1).map_or(n, |next| *next as usize);
            order.extend_from_slice(&tree.order[firsts[member as usize] as usize..end]);
        }
        supernodes.push(Supernode {
            first,
            pivots: order.len() as u32 - first,
            front: merging[node as usize].front as u32,
            parent: parents[node as usize],
        });
    }
    let mut numbers = vec![NONE; merging.len()];
    for (number, &node) in sequence.iter().enumerate() {
        numbers[node as usize] = number as u32;
    }
    for supernode in &mut supernodes {
        if supernode.parent != NONE {
            supernode.parent = numbers[supernode.parent as usize];
        }
    }
    SupernodeTree { supernodes, order }
}

/// The postorder whose fronts and contribution blocks take the least memory at once: of the children, the one first that
/// leaves the most behind its own peak.
fn least_memory(merging: &[RelaxedSupernode], heads: &[u32], parents: &[u32], lists: &ChildLists) -> Vec<u32> {
    let kept = |node: u32| triangle(merging[node as usize].front - merging[node as usize].pivots);
    let mut peaks = vec![0u64; merging.len()];
    let mut ordered = lists.children.clone();
    for node in (0..merging.len()).filter(|node| heads[*node] == *node as u32) {
        let interval = lists.starts[node] as usize..lists.starts[node + 1] as usize;
        let children = &mut ordered[interval];
        children.sort_by_key(|&child| {
            (
                std::cmp::Reverse(peaks[child as usize].saturating_sub(kept(child))),
                child,
            )
        });
        let (mut before, mut peak) = (0, 0);
        for &child in children.iter() {
            peak = peak.max(before + peaks[child as usize]);
            before += kept(child);
        }
        peaks[node] = peak.max(before + triangle(merging[node].front));
    }
    let mut sequence = Vec::with_capacity(merging.len());
    let roots = (0..merging.len()).filter(|node| heads[*node] == *node as u32 && parents[*node] == NONE);
    let mut stack: Vec<(u32, u32)> = vec![];
    for root in roots {
        stack.push((root as u32, 0));
        while let Some((node, at)) = stack.last_mut() {
            let children = lists.starts[*node as usize]..lists.starts[*node as usize + 1];
            let next = children.start + *at;
            if next < children.end {
                *at += 1;
                stack.push((ordered[next as usize], 0));
            } else {
                sequence.push(*node);
                stack.pop();
            }
        }
    }
    sequence
}

/// Supernodes between two looks at the caller.
const SUPERNODES_BETWEEN: usize = 1 << 8;

/// Rows below the pivots of each supernode, ascending, in one list.
#[derive(Debug)]
pub struct FrontRows {
    pub starts: Vec<u64>,
    pub rows: Vec<u32>,
}

impl FrontRows {
    /// The rows of fronts, from the leaves up.
    ///
    /// # Errors
    /// It was stopped.
    pub fn new(
        pattern: &super::pattern::Pattern,
        tree: &SupernodeTree,
        stop: Stop<'_>,
    ) -> Result<FrontRows, EngineError> {
        let places = inverse(&tree.order);
        let lists = ChildLists::of(tree.supernodes.iter().map(|one| one.parent));
        let mut starts = Vec::with_capacity(tree.supernodes.len() + 1);
        let total: u64 = tree.supernodes.iter().map(Supernode::below).sum();
        let mut rows: Vec<u32> = Vec::with_capacity(total as usize);
        let mut marks = vec![NONE; tree.order.len()];
        for (number, one) in tree.supernodes.iter().enumerate() {
            if number.is_multiple_of(SUPERNODES_BETWEEN) {
                check(stop)?;
            }
            starts.push(rows.len() as u64);
            let begin = rows.len();
            let end = one.first + one.pivots;
            for column in one.first..end {
                for &neighbour in pattern.neighbours_of(tree.order[column as usize] as usize) {
                    let row = places[neighbour as usize];
                    if row >= end && marks[row as usize] != number as u32 {
                        marks[row as usize] = number as u32;
                        rows.push(row);
                    }
                }
            }
            for &child in lists.of_parent(number) {
                for at in starts[child as usize]..starts[child as usize + 1] {
                    let row = rows[at as usize];
                    if row >= end && marks[row as usize] != number as u32 {
                        marks[row as usize] = number as u32;
                        rows.push(row);
                    }
                }
            }
            rows[begin..].sort_unstable();
        }
        starts.push(rows.len() as u64);
        Ok(FrontRows { starts, rows })
    }

    /// The rows below the pivots of a supernode.
    pub fn of(&self, supernode: usize) -> &[u32] {
        &self.rows[self.starts[supernode] as usize..self.starts[supernode + 1] as usize]
    }
}

impl FrontRows {
    /// Appends the union of the rows of some supernodes.
    pub fn join(&mut self, supernodes: &[u32]) -> std::ops::Range<u64> {
        let begin = self.rows.len();
        let mut union: Vec<u32> = supernodes
            .iter()
            .flat_map(|&one| self.of(one as usize))
            .copied()
            .collect();
        union.sort_unstable();
        union.dedup();
        self.rows.extend(union);
        begin as u64..self.rows.len() as u64
    }
}
