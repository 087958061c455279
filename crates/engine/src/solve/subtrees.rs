//! Subtrees that one task eliminates: fronts in its workspace, contribution blocks on a stack.

use super::factorize::{Cholesky, FrontPlaces};
use super::fronts::{FrontCut, FrontNode};
use super::supernodes::{triangle, Supernode};
use crate::task::Bound;
use crate::EngineError;

/// The memory of a task: a front column by column, blocks that wait, the places of rows in the front.
struct SubtreeDesk<'w> {
    front: &'w mut [f64],
    stack: &'w mut [f64],
    places: &'w mut [u32],
    /// Places of the rows of a block that is added.
    targets: &'w mut [u32],
    rest: &'w mut [u8],
}

fn take<'w>(memory: &mut &'w mut [u8], bytes: usize) -> &'w mut [u8] {
    let (front, rest) = std::mem::take(memory).split_at_mut(bytes.next_multiple_of(64));
    *memory = rest;
    &mut front[..bytes]
}

/// Rows of a node, numbered from its first column on, and those of its contribution block behind them.
struct OwnRows<'a> {
    places: FrontPlaces<'a>,
}

impl OwnRows<'_> {
    fn of(&self, row: u32) -> usize {
        self.places.of(row).unwrap_or(0) as usize
    }
}

impl Cholesky {
    /// Elements of the front and the stack, rows that have places, and rows of the largest front.
    fn subtree_sizes(&self, node: &FrontNode) -> [usize; 4] {
        let FrontCut::Subtrees { front, stack } = node.cut else {
            return [0; 4];
        };
        let rows = node.columns.len() + (node.below.end - node.below.start) as usize;
        [front as usize, stack as usize, rows, front.isqrt() as usize]
    }

    fn most_pivots(&self, node: &FrontNode) -> usize {
        let supernodes = &self.analysis().supernodes[node.supernodes.start as usize..node.supernodes.end as usize];
        supernodes.iter().map(|one| one.pivots as usize).max().unwrap_or(0)
    }

    /// Memory of the task besides its tiles.
    pub(super) fn subtree_bytes(&self, node: &FrontNode) -> u64 {
        let [front, stack, rows, longest] = self.subtree_sizes(node);
        let elements = (front + stack) * self.size() as usize;
        let places = (rows + longest) * size_of::<u32>();
        (elements + places + 4 * 64 + self.panel().elimination_bytes(self.most_pivots(node))) as u64
    }

    fn desk<'w>(&self, node: &FrontNode, mut workspace: &'w mut [u8]) -> SubtreeDesk<'w> {
        let [front, stack, rows, longest] = self.subtree_sizes(node);
        let size = self.size() as usize;
        SubtreeDesk {
            front: bytemuck::cast_slice_mut(take(&mut workspace, front * size)),
            stack: bytemuck::cast_slice_mut(take(&mut workspace, stack * size)),
            places: bytemuck::cast_slice_mut(take(&mut workspace, rows * 4)),
            targets: bytemuck::cast_slice_mut(take(&mut workspace, longest * 4)),
            rest: workspace,
        }
    }

    pub(super) fn eliminate_subtrees(
        &self,
        node: &FrontNode,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let words = self.words();
        let own = OwnRows {
            places: FrontPlaces::new(self.analysis(), node),
        };
        let desk = self.desk(node, workspace);
        let (factor, contribution) = bound.writes.split_first_mut().expect("a tile of the factor");
        let mut factor: &mut [f64] = bytemuck::cast_slice_mut(factor);
        let mut entries = self.entries_by_column(node, &bound.reads)?;
        // Blocks that wait: their supernodes, and where each ends in the stack.
        let mut waiting: Vec<(u32, usize)> = vec![];
        for number in node.supernodes.clone() {
            let one = &self.analysis().supernodes[number as usize];
            let below = self.analysis().below(number);
            let side = one.front as usize;
            let front = &mut desk.front[..side * side * words];
            front.fill(0.0);
            for (place, column) in (one.first..one.first + one.pivots).enumerate() {
                desk.places[(column - node.columns.start) as usize] = place as u32;
            }
            for (place, &row) in below.iter().enumerate() {
                desk.places[own.of(row)] = one.pivots + place as u32;
            }
            entries.add(one, &own, desk.places, front, words);
            while let Some(&(child, end)) = waiting.last() {
                if self.analysis().supernodes[child as usize].parent != number {
                    break;
                }
                waiting.pop();
                let begin = waiting.last().map_or(0, |(_, end)| *end);
                let rows = self.analysis().below(child);
                let targets = &mut desk.targets[..rows.len()];
                for (target, &row) in targets.iter_mut().zip(rows) {
                    *target = desk.places[own.of(row)];
                }
                add_block(&desk.stack[begin..end], targets, front, side, words);
            }
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(front);
            let sides = [side, one.pivots as usize];
            let eliminated = self.panel().eliminate(sides, bytes, desk.rest);
            eliminated.map_err(|pivot| self.refused(one.first, pivot))?;
            let panels;
            (panels, factor) = factor.split_at_mut(one.entries() as usize * words);
            copy_columns(front, side, 0..one.pivots as usize, panels, words);
            if !below.is_empty() {
                let begin = waiting.last().map_or(0, |(_, end)| *end);
                let end = begin + triangle(one.below()) as usize * words;
                copy_columns(
                    front,
                    side,
                    one.pivots as usize..side,
                    &mut desk.stack[begin..end],
                    words,
                );
                waiting.push((number, end));
            }
        }
        let Some(out) = contribution.first_mut() else {
            return Ok(());
        };
        let out: &mut [f64] = bytemuck::cast_slice_mut(out);
        out.fill(0.0);
        let mut begin = 0;
        for (root, end) in waiting {
            let columns = node.columns.len();
            let rows = self.analysis().below(root);
            let targets: Vec<usize> = rows.iter().map(|row| own.of(*row) - columns).collect();
            add_rows(&desk.stack[begin..end], &targets, out, words);
            begin = end;
        }
        Ok(())
    }

    /// The entries of the node's rows in the upper triangle, by row.
    fn entries_by_column(&self, node: &FrontNode, reads: &[&[u8]]) -> Result<ColumnEntries, EngineError> {
        let first = node.columns.start;
        let mut starts = vec![0u32; node.columns.len() + 1];
        let columns = u64::from(first)..u64::MAX;
        self.matrix()
            .for_each(&node.columns, columns.clone(), reads, |row, column, _| {
                if column >= u64::from(row) {
                    starts[(row - first) as usize + 1] += 1;
                }
            })?;
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut entries = vec![(0u32, [0.0; 2]); starts[starts.len() - 1] as usize];
        let mut next = starts.clone();
        self.matrix()
            .for_each(&node.columns, columns, reads, |row, column, value| {
                if column >= u64::from(row) {
                    let place = &mut next[(row - first) as usize];
                    entries[*place as usize] = (column as u32, self.transposed(value));
                    *place += 1;
                }
            })?;
        Ok(ColumnEntries { first, starts, entries })
    }
}

/// Entries of columns of the lower triangle.
struct ColumnEntries {
    first: u32,
    starts: Vec<u32>,
    entries: Vec<(u32, [f64; 2])>,
}

impl ColumnEntries {
    /// Adds the entries of a supernode's pivots to its front.
    fn add(&mut self, one: &Supernode, own: &OwnRows<'_>, places: &[u32], front: &mut [f64], words: usize) {
        let side = one.front as usize;
        for pivot in 0..one.pivots as usize {
            let at = (one.first - self.first) as usize + pivot;
            for (row, value) in &self.entries[self.starts[at] as usize..self.starts[at + 1] as usize] {
                let place = pivot * side + places[own.of(*row)] as usize;
                let to = &mut front[place * words..(place + 1) * words];
                to.iter_mut().zip(value).for_each(|(to, value)| *to += value);
            }
        }
    }
}

/// Copies the lower parts of some columns of a front.
fn copy_columns(front: &[f64], side: usize, columns: std::ops::Range<usize>, out: &mut [f64], words: usize) {
    let mut at = 0;
    for column in columns {
        let from = &front[(column * side + column) * words..(column + 1) * side * words];
        out[at..at + from.len()].copy_from_slice(from);
        at += from.len();
    }
}

/// Adds a triangle that lies column by column to the columns of a front.
fn add_block(block: &[f64], targets: &[u32], front: &mut [f64], side: usize, words: usize) {
    let mut at = 0;
    for (column, &target) in targets.iter().enumerate() {
        let to = &mut front[target as usize * side * words..(target as usize + 1) * side * words];
        let rows = &targets[column..];
        let from = &block[at..at + rows.len() * words];
        at += from.len();
        let is_run = (rows[rows.len() - 1] - rows[0]) as usize == rows.len() - 1;
        if is_run {
            let first = rows[0] as usize * words;
            let to = &mut to[first..first + from.len()];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        } else if words == 1 {
            rows.iter().zip(from).for_each(|(row, from)| to[*row as usize] += from);
        } else {
            for (row, from) in rows.iter().zip(from.chunks_exact(words)) {
                let to = &mut to[*row as usize * words..(*row as usize + 1) * words];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
    }
}

/// Adds a triangle that lies column by column to one that lies row by row.
fn add_rows(block: &[f64], targets: &[usize], out: &mut [f64], words: usize) {
    let mut at = 0;
    for (column, &target) in targets.iter().enumerate() {
        for &row in &targets[column..] {
            let to = (row * (row + 1) / 2 + target) * words;
            let (to, from) = (&mut out[to..to + words], &block[at..at + words]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            at += words;
        }
    }
}
