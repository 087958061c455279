//! Work on elements of the inverse: those of a front taken from its parent, made tile by tile, or of whole subtrees.

use bytemuck::Pod;

use super::assembly::{runs, unpack};
use super::children::rows_of_block;
use super::fronts::FrontNode;
use super::inverse::{between, InverseElements};
use super::places::FrontPlaces;
use super::supernodes::trapezoid;
use super::sweeps::has_below;
use crate::task::Bound;

/// The memory of a task on subtrees: their columns of elements, those of the rows below one supernode, the rest.
struct ElementsDesk<'w> {
    columns: &'w mut [u8],
    below: &'w mut [u8],
    rest: &'w mut [u8],
}

impl InverseElements {
    /// Bytes of the columns of a node of subtrees, of the largest square below pivots, and of the kernel's workspace.
    fn subtree_sizes(&self, node: &FrontNode) -> [usize; 3] {
        let mut sizes = [0; 3];
        for one in &self.analysis.supernodes[node.supernodes.start as usize..node.supernodes.end as usize] {
            sizes[0] += one.entries() as usize * self.item();
            sizes[1] = sizes[1].max(one.below().pow(2) as usize * self.item());
            sizes[2] = sizes[2].max(self.kernels.columns_bytes([one.front as usize, one.pivots as usize]));
        }
        sizes
    }

    /// Memory of the task besides its tiles.
    pub(super) fn subtree_bytes(&self, node: &FrontNode) -> usize {
        self.subtree_sizes(node)
            .iter()
            .map(|bytes| bytes.next_multiple_of(64))
            .sum()
    }

    fn desk<'w>(&self, node: &FrontNode, workspace: &'w mut [u8]) -> ElementsDesk<'w> {
        let [columns, below, _] = self.subtree_sizes(node);
        let (first, rest) = workspace.split_at_mut(columns.next_multiple_of(64));
        let (second, rest) = rest.split_at_mut(below.next_multiple_of(64));
        ElementsDesk {
            columns: &mut first[..columns],
            below: &mut second[..below],
            rest,
        }
    }

    /// Takes elements of the rows below a node's pivots from tiles of its parent.
    pub(super) fn gather(
        &self,
        node: &FrontNode,
        tile: [u32; 2],
        sources: &[[u32; 2]],
        is_last: bool,
        bound: &mut Bound<'_>,
    ) {
        let out = &mut *bound.writes[0];
        for (source, from) in sources.iter().zip(&bound.reads) {
            match self.item() {
                8 => self.take::<u64>(node, tile, (*source, from), out),
                _ => self.take::<[u64; 2]>(node, tile, (*source, from), out),
            }
        }
        if is_last && tile[0] == tile[1] {
            self.kernels.mirror(rows_of_block(node, tile[0]).len(), out);
        }
    }

    /// Takes the elements of one tile of the parent.
    fn take<T: Pod>(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        (source, from): ([u32; 2], &[u8]),
        out: &mut [u8],
    ) {
        let (from, out): (&[T], &mut [T]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(out));
        let parent = self.node(node.parent);
        let (below, places) = (
            self.analysis.fronts.below(node),
            FrontPlaces::new(&self.analysis, parent),
        );
        let [own_rows, own_columns] = [row, column].map(|block| rows_of_block(node, block));
        // Rows of the tile that are in a block of the parent: their places in the tile, and in the block.
        let shared = |own: &std::ops::Range<usize>, block: u32| {
            let (rows, block) = (&below[own.clone()], parent.block(block));
            let some = places.before(rows, block.start)..places.before(rows, block.end);
            let targets = rows[some.clone()]
                .iter()
                .filter_map(|row| Some(places.of(*row)? - block.start));
            (some, targets.collect::<Vec<u32>>())
        };
        let (rows, from_rows) = shared(&own_rows, source[0]);
        let (columns, from_columns) = shared(&own_columns, source[1]);
        let (column_runs, width) = (runs(&from_columns), parent.block(source[1]).len());
        for (own, &from_row) in rows.zip(&from_rows) {
            // Elements right of the diagonal come by its mirror.
            let length = match row == column {
                true => (own + 1).saturating_sub(columns.start).min(columns.len()),
                false => columns.len(),
            };
            let to = &mut out[own * own_columns.len() + columns.start..];
            let from = &from[from_row as usize * width..];
            for run in column_runs.iter().take_while(|run| run.from < length) {
                let count = run.length.min(length - run.from);
                to[run.from..run.from + count].copy_from_slice(&from[run.to..run.to + count]);
            }
        }
    }

    pub(super) fn update(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        (blocks, is_first): (std::ops::Range<u32>, bool),
        bound: &mut Bound<'_>,
    ) {
        let out = &mut *bound.writes[0];
        if is_first {
            out.fill(0);
        }
        let [height, width] = [row, column].map(|block| node.block(block).len());
        for (other, pair) in blocks.zip(bound.reads.chunks_exact(2)) {
            let sizes = [height, width, node.block(other).len()];
            let (_, is_adjoint) = between([row, column], other);
            match row == column {
                true => self.kernels.add_product(sizes, (pair[0], true), pair[1], out),
                false => self.kernels.add_product(sizes, (pair[1], is_adjoint), pair[0], out),
            }
        }
    }

    pub(super) fn finish(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        is_first: bool,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (height, width, item) = (node.block(row).len(), node.block(column).len(), self.item());
        let (square, rest) = workspace.split_at_mut(width * width * item);
        unpack(bound.reads[0], width, item, square);
        let (out, pieces) = bound.writes.split_last_mut().expect("a tile of elements");
        if is_first {
            out.fill(0);
        }
        match row == column {
            true => self.kernels.finish_diagonal(width, square, out, rest),
            false => self.kernels.finish_below([height, width], square, out),
        }
        let Some(piece) = pieces.first_mut() else { return };
        let places = FrontPlaces::new(&self.analysis, node);
        let [top, left] = [row, column].map(|block| node.block(block).start);
        let tile = node.blocks().map_or(0, |blocks| blocks.tile(row, column));
        let wanted = self.wanted.of_tile((node.factor + tile) as usize);
        for (to, &[row, column]) in piece.chunks_exact_mut(item).zip(wanted) {
            let [row, column] = [row, column].map(|at| places.of(at).unwrap_or(0));
            let at = ((row - top) as usize * width + (column - left) as usize) * item;
            to.copy_from_slice(&out[at..at + item]);
        }
    }

    pub(super) fn invert_subtrees(&self, node: &FrontNode, bound: &mut Bound<'_>, workspace: &mut [u8]) {
        match self.item() {
            8 => self.invert_subtrees_of::<u64>(node, bound, workspace),
            _ => self.invert_subtrees_of::<[u64; 2]>(node, bound, workspace),
        }
    }

    fn invert_subtrees_of<T: Pod>(&self, node: &FrontNode, bound: &mut Bound<'_>, workspace: &mut [u8]) {
        let (desk, item) = (self.desk(node, workspace), self.item());
        let given: &[T] = match has_below(node) {
            true => bytemuck::cast_slice(bound.reads[1]),
            false => &[],
        };
        let mut begin = desk.columns.len();
        let places = ColumnPlaces::new(self, node);
        for number in node.supernodes.clone().rev() {
            let one = &self.analysis.supernodes[number as usize];
            let (end, count) = (begin, one.below() as usize);
            begin -= one.entries() as usize * item;
            let below = &mut desk.below[..count * count * item];
            let (_, known) = desk.columns.split_at(end);
            places.below(
                number,
                (bytemuck::cast_slice(known), end / item),
                given,
                bytemuck::cast_slice_mut(below),
            );
            self.kernels.mirror(count, below);
            let sizes = [one.front as usize, one.pivots as usize];
            let l = &bound.reads[0][begin..end];
            self.kernels
                .columns(sizes, l, below, &mut desk.columns[begin..end], desk.rest);
        }
        let columns: &[T] = bytemuck::cast_slice(desk.columns);
        let wanted = self.wanted.of_tile(node.factor as usize);
        let piece: &mut [T] = bytemuck::cast_slice_mut(bound.writes[0]);
        for (to, &[row, column]) in piece.iter_mut().zip(wanted) {
            *to = columns[places.of(row, column)];
        }
    }
}

/// Where elements of the columns of a node of subtrees lie, in those of all supernodes one behind the other.
struct ColumnPlaces<'a> {
    of: &'a InverseElements,
    node: &'a FrontNode,
    /// Where the columns of each supernode begin.
    starts: Vec<usize>,
}

impl<'a> ColumnPlaces<'a> {
    fn new(of: &'a InverseElements, node: &'a FrontNode) -> ColumnPlaces<'a> {
        let mut start = 0;
        let starts = node.supernodes.clone().map(|number| {
            let begin = start;
            start += of.analysis.supernodes[number as usize].entries() as usize;
            begin
        });
        ColumnPlaces {
            starts: starts.collect(),
            of,
            node,
        }
    }

    /// The supernode of a column, and where the column begins.
    fn column(&self, column: u32) -> (u32, usize) {
        let supernodes = &self.of.analysis.supernodes;
        let own = &supernodes[self.node.supernodes.start as usize..self.node.supernodes.end as usize];
        let at = own.partition_point(|one| one.first + one.pivots <= column);
        let before = u64::from(column - own[at].first);
        let begin = self.starts[at] + trapezoid(before, own[at].front.into()) as usize;
        (self.node.supernodes.start + at as u32, begin)
    }

    /// The place of an element that is there.
    fn of(&self, row: u32, column: u32) -> usize {
        let (number, begin) = self.column(column);
        let one = &self.of.analysis.supernodes[number as usize];
        let end = one.first + one.pivots;
        match row < end {
            true => begin + (row - column) as usize,
            false => {
                let below = self.of.analysis.below(number).binary_search(&row).unwrap_or(0);
                begin + (end - column) as usize + below
            }
        }
    }

    /// Elements of the rows below a supernode, on and below their diagonal: from columns of the node that are known, which
    /// begin at a place, and from those that are given of the rows below all of the node.
    fn below<T: Pod>(&self, supernode: u32, (known, first): (&[T], usize), given: &[T], out: &mut [T]) {
        let analysis = &self.of.analysis;
        let (rows, below) = (analysis.below(supernode), analysis.fronts.below(self.node));
        let count = rows.len();
        for (at, &column) in rows.iter().enumerate() {
            if column >= self.node.columns.end {
                let left = below.partition_point(|row| *row < column);
                let mut top = left;
                for (own, &row) in rows.iter().enumerate().skip(at) {
                    top += below[top..].iter().take_while(|other| **other < row).count();
                    out[own * count + at] = given[top * below.len() + left];
                }
                continue;
            }
            let (number, begin) = self.column(column);
            let one = &analysis.supernodes[number as usize];
            let (end, others) = (one.first + one.pivots, analysis.below(number));
            let mut place = 0;
            for (own, &row) in rows.iter().enumerate().skip(at) {
                let place = match row < end {
                    true => (row - column) as usize,
                    false => {
                        place += others[place..].iter().take_while(|other| **other < row).count();
                        (end - column) as usize + place
                    }
                };
                out[own * count + at] = known[begin + place - first];
            }
        }
    }
}
