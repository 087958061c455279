//! Subtrees that one task eliminates: fronts in its workspace, contribution blocks on a stack.

use super::factorize::{Cholesky, FactoredMatrix};
use super::fronts::{FrontCut, FrontNode};
use super::places::FrontPlaces;
use super::precision::RealNumber;
use super::supernodes::triangle;
use crate::task::Bound;
use crate::EngineError;

/// The memory of a task: a front column by column, blocks that wait, the places of rows in the front.
struct SubtreeDesk<'w, R> {
    front: &'w mut [R],
    stack: &'w mut [R],
    places: &'w mut [u32],
    /// Places of the rows of a block that is added.
    targets: &'w mut [u32],
    /// For each column its supernode, and where it begins in the tile of the factor.
    owners: &'w mut [[u32; 2]],
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
        let FrontCut::Subtrees { front, stack, .. } = node.cut else {
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
        let places = (rows + longest) * size_of::<u32>() + node.columns.len() * size_of::<[u32; 2]>();
        (elements + places + 5 * 64 + self.panel().elimination_bytes(self.most_pivots(node))) as u64
    }

    fn desk<'w, R: RealNumber>(&self, node: &FrontNode, mut workspace: &'w mut [u8]) -> SubtreeDesk<'w, R> {
        let [front, stack, rows, longest] = self.subtree_sizes(node);
        let size = self.size() as usize;
        SubtreeDesk {
            front: bytemuck::cast_slice_mut(take(&mut workspace, front * size)),
            stack: bytemuck::cast_slice_mut(take(&mut workspace, stack * size)),
            places: bytemuck::cast_slice_mut(take(&mut workspace, rows * 4)),
            targets: bytemuck::cast_slice_mut(take(&mut workspace, longest * 4)),
            owners: bytemuck::cast_slice_mut(take(&mut workspace, node.columns.len() * 8)),
            rest: workspace,
        }
    }

    pub(super) fn eliminate_subtrees<R: RealNumber>(
        &self,
        node: &FrontNode,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let words = self.words();
        let own = OwnRows {
            places: FrontPlaces::new(self.analysis(), node),
        };
        let desk = self.desk::<R>(node, workspace);
        let (factor, contribution) = bound.writes.split_first_mut().expect("a tile of the factor");
        let mut factor: &mut [R] = bytemuck::cast_slice_mut(factor);
        self.scatter(node, &bound.reads, desk.owners, factor)?;
        // Blocks that wait: their supernodes, and where each ends in the stack.
        let mut waiting: Vec<(u32, usize)> = vec![];
        for number in node.supernodes.clone() {
            let one = &self.analysis().supernodes[number as usize];
            let below = self.analysis().below(number);
            let side = one.front as usize;
            let front = &mut desk.front[..side * side * words];
            let panels;
            (panels, factor) = factor.split_at_mut(one.entries() as usize * words);
            begin_front(panels, [side, one.pivots as usize], front, words);
            for (place, column) in (one.first..one.first + one.pivots).enumerate() {
                desk.places[(column - node.columns.start) as usize] = place as u32;
            }
            for (place, &row) in below.iter().enumerate() {
                desk.places[own.of(row)] = one.pivots + place as u32;
            }
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
        let out: &mut [R] = bytemuck::cast_slice_mut(out);
        out.fill(R::ZERO);
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

    /// Puts the entries of the node's rows in the upper triangle where the tile of the factor has them.
    fn scatter<R: RealNumber>(
        &self,
        node: &FrontNode,
        reads: &[&[u8]],
        owners: &mut [[u32; 2]],
        factor: &mut [R],
    ) -> Result<(), EngineError> {
        let FactoredMatrix::Sparse(matrix) = self.matrix() else {
            return Ok(());
        };
        let (first, words) = (node.columns.start, self.words());
        let mut begin = 0;
        for number in node.supernodes.clone() {
            let one = &self.analysis().supernodes[number as usize];
            for column in 0..one.pivots {
                owners[(one.first + column - first) as usize] = [number, begin];
                begin += one.front - column;
            }
        }
        factor.fill(R::ZERO);
        let columns = u64::from(first)..u64::MAX;
        let mut unknown = None;
        matrix.for_each(&node.columns, columns, reads, |row, column, value| {
            let [number, begin] = owners[(row - first) as usize];
            let one = &self.analysis().supernodes[number as usize];
            let (end, column) = (one.first + one.pivots, column as u32);
            let place = match column < end {
                true => column.checked_sub(row),
                false => {
                    let below = self.analysis().below(number).binary_search(&column);
                    below.ok().map(|below| end - row + below as u32)
                }
            };
            let Some(place) = place else {
                // Entries left of the diagonal have their place in the row of the other index.
                if column > row {
                    unknown = Some([column, row]);
                }
                return;
            };
            let at = (begin + place) as usize * words;
            let value = self.transposed([row, column], value);
            factor[at..at + words]
                .iter_mut()
                .zip(value)
                .for_each(|(to, value)| *to += R::rounded(value));
        })?;
        match unknown {
            None => Ok(()),
            Some([row, column]) => Err(self.unknown(row, column)),
        }
    }
}

/// Puts columns that lie one behind the other, each from its diagonal on, into a front that is otherwise 0.
fn begin_front<R: RealNumber>(columns: &[R], [side, pivots]: [usize; 2], front: &mut [R], words: usize) {
    front.fill(R::ZERO);
    let mut from = 0;
    for column in 0..pivots {
        let (start, end) = ((column * side + column) * words, (column + 1) * side * words);
        front[start..end].copy_from_slice(&columns[from..from + end - start]);
        from += end - start;
    }
}

/// Copies the lower parts of some columns of a front.
fn copy_columns<R: RealNumber>(front: &[R], side: usize, columns: std::ops::Range<usize>, out: &mut [R], words: usize) {
    let mut at = 0;
    for column in columns {
        let from = &front[(column * side + column) * words..(column + 1) * side * words];
        out[at..at + from.len()].copy_from_slice(from);
        at += from.len();
    }
}

/// Adds a triangle that lies column by column to the columns of a front.
fn add_block<R: RealNumber>(block: &[R], targets: &[u32], front: &mut [R], side: usize, words: usize) {
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
            to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
        } else if words == 1 {
            rows.iter().zip(from).for_each(|(row, from)| to[*row as usize] += *from);
        } else {
            for (row, from) in rows.iter().zip(from.chunks_exact(words)) {
                let to = &mut to[*row as usize * words..(*row as usize + 1) * words];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            }
        }
    }
}

/// Adds a triangle that lies column by column to one that lies row by row.
fn add_rows<R: RealNumber>(block: &[R], targets: &[usize], out: &mut [R], words: usize) {
    let mut at = 0;
    for (column, &target) in targets.iter().enumerate() {
        for &row in &targets[column..] {
            let to = (row * (row + 1) / 2 + target) * words;
            let (to, from) = (&mut out[to..to + words], &block[at..at + words]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            at += words;
        }
    }
}
