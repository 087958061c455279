//! Work on the rows of a node in a sweep: rows of B taken, tiles of the factor applied, rows of X handed down.

use std::ops::Range;

use outcore_kernels::TileElements;

use super::assembly::unpack;
use super::band;
use super::fronts::FrontNode;
use super::places::FrontPlaces;
use super::sweeps::{has_below, TriangularSweeps, BELOW, PIECES};
use crate::task::{Access, Bound};
use crate::EngineError;

/// Bytes of some rows of the front.
fn bytes_of_rows(rows: &Range<u32>, row_bytes: usize) -> Range<usize> {
    rows.start as usize * row_bytes..rows.end as usize * row_bytes
}

impl TriangularSweeps {
    /// Names the tiles that have X below the pivots of a node.
    pub(super) fn gathered(&self, band: u64, node: &FrontNode, each: &mut dyn FnMut(usize, u64, Access)) {
        if !has_below(node) {
            return;
        }
        each(PIECES, self.of_node(band, node.parent), Access::Read);
        if has_below(self.node(node.parent)) {
            each(BELOW, self.of_node(band, node.parent), Access::Read);
        }
    }

    /// For each row below the pivots of a child, the bytes of the row of its parent: in the tile of pivots, 0, or in that of
    /// the rows below them, 1.
    fn places_in_parent<'a>(
        &'a self,
        child: &FrontNode,
        parent: &FrontNode,
        row_bytes: usize,
    ) -> impl Iterator<Item = Option<(usize, Range<usize>)>> + use<'a> {
        let (places, pivots) = (FrontPlaces::new(&self.analysis, parent), parent.columns.len());
        self.analysis.fronts.below(child).iter().map(move |&row| {
            let place = places.of(row)? as usize;
            let (set, at) = match place.checked_sub(pivots) {
                None => (0, place),
                Some(below) => (1, below),
            };
            Some((set, at * row_bytes..(at + 1) * row_bytes))
        })
    }

    /// Adds rows that a child contributes to those of its parent.
    pub(super) fn add_child(&self, node: &FrontNode, child: u32, width: usize, bound: &mut Bound<'_>) {
        let row_bytes = width * self.item();
        let rows = bound.reads[0].chunks_exact(row_bytes);
        for (place, from) in self.places_in_parent(self.node(child), node, row_bytes).zip(rows) {
            let Some((set, row)) = place else { continue };
            self.vectors.add(from, &mut bound.writes[set][row]);
        }
    }

    /// Solves with the tile on the diagonal of a block of pivots, or with its conjugate transpose.
    fn solve_diagonal(
        &self,
        node: &FrontNode,
        block: u32,
        is_transposed: bool,
        width: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (rows, item) = (node.block(block), self.item());
        let side = rows.len();
        let square = &mut workspace[..side * side * item];
        unpack(bound.reads[0], side, item, square);
        let rows = &mut bound.writes[0][bytes_of_rows(&rows, width * item)];
        self.vectors.solve([side, width], square, is_transposed, rows);
    }

    /// Subtracts a tile below the diagonal, or its conjugate transpose, times rows of X from rows of Y.
    fn subtract(
        &self,
        [m, width, n]: [usize; 3],
        (tile, is_transposed): (&[u8], bool),
        x: &[u8],
        y: &mut [u8],
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let sides = if is_transposed { [n, m] } else { [m, n] };
        match self.analysis.elements(tile, sides, self.item())? {
            TileElements::Full(l) => self.vectors.subtract([m, width, n], l, is_transposed, x, y),
            TileElements::LowRank { rank, u, w } => {
                let low = (rank, [u, w]);
                self.vectors
                    .subtract_low_rank([m, width, n], low, is_transposed, x, y, workspace);
            }
        }
        Ok(())
    }

    pub(super) fn forward(
        &self,
        node: &FrontNode,
        block: u32,
        rows: [u32; 2],
        width: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        if rows[0] == block {
            self.solve_diagonal(node, block, false, width, bound, workspace);
            return Ok(());
        }
        let row_bytes = width * self.item();
        let interval = |block: u32| bytes_of_rows(&node.block(block), row_bytes);
        let side = node.block(block).len();
        let pivots = node.columns.len() * row_bytes;
        let is_below = rows[0] >= node.blocks().map_or(0, |blocks| blocks.pivots);
        for (tile, row) in (rows[0]..rows[1]).enumerate() {
            let l = bound.reads[tile];
            let to = interval(row);
            let sizes = [node.block(row).len(), width, side];
            if is_below {
                let y = &bound.reads[bound.reads.len() - 1][interval(block)];
                let to = &mut bound.writes[0][to.start - pivots..to.end - pivots];
                self.subtract(sizes, (l, false), y, to, workspace)?;
            } else {
                let (before, after) = bound.writes[0].split_at_mut(interval(block).end);
                let y = &before[interval(block).start..];
                let offset = interval(block).end;
                let to = &mut after[to.start - offset..to.end - offset];
                self.subtract(sizes, (l, false), y, to, workspace)?;
            }
        }
        Ok(())
    }

    pub(super) fn backward(
        &self,
        node: &FrontNode,
        block: u32,
        rows: [u32; 2],
        width: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        if rows[0] == block {
            self.solve_diagonal(node, block, true, width, bound, workspace);
            return Ok(());
        }
        let row_bytes = width * self.item();
        let interval = |block: u32| bytes_of_rows(&node.block(block), row_bytes);
        let side = node.block(block).len();
        let pivots = node.columns.len() * row_bytes;
        let is_below = rows[0] >= node.blocks().map_or(0, |blocks| blocks.pivots);
        let (before, after) = bound.writes[0].split_at_mut(interval(block).end);
        let offset = before.len();
        let to = &mut before[interval(block).start..];
        for (tile, row) in (rows[0]..rows[1]).enumerate() {
            let from = interval(row);
            let x = match is_below {
                true => &bound.reads[bound.reads.len() - 1][from.start - pivots..from.end - pivots],
                false => &after[from.start - offset..from.end - offset],
            };
            let sizes = [side, width, node.block(row).len()];
            self.subtract(sizes, (bound.reads[tile], true), x, to, workspace)?;
        }
        Ok(())
    }

    /// X of the rows below the pivots, from the parent's pivots and the rows below them.
    pub(super) fn gather(&self, node: &FrontNode, width: usize, reads: &[&[u8]], out: &mut [u8]) {
        let (parent, row_bytes) = (self.node(node.parent), width * self.item());
        let rows = out.chunks_exact_mut(row_bytes);
        for (place, to) in self.places_in_parent(node, parent, row_bytes).zip(rows) {
            let Some((set, row)) = place else { continue };
            to.copy_from_slice(&reads[set][row]);
        }
    }

    pub(super) fn forward_subtrees(&self, node: &FrontNode, width: usize, bound: &mut Bound<'_>, workspace: &mut [u8]) {
        let (pivots, row_bytes) = (node.columns.len(), width * self.item());
        let rows = &mut workspace[..(pivots + (node.below.end - node.below.start) as usize) * row_bytes];
        let (piece, below) = rows.split_at_mut(pivots * row_bytes);
        band::take_right(&self.grid, node, row_bytes, &bound.reads[1..], piece);
        below.fill(0);
        let places = FrontPlaces::new(&self.analysis, node);
        let mut l = bound.reads[0];
        for number in node.supernodes.clone() {
            let one = &self.analysis.supernodes[number as usize];
            let first = (one.first - node.columns.start) as usize;
            let targets: Vec<usize> = self.places_below(&places, number);
            let (panels, rest) = l.split_at(one.entries() as usize * self.item());
            l = rest;
            self.vectors
                .forward([one.pivots as usize, width, first], panels, &targets, rows);
        }
        bound.writes[0].copy_from_slice(&rows[..pivots * row_bytes]);
        if let Some(below) = bound.writes.get_mut(1) {
            below.copy_from_slice(&rows[pivots * row_bytes..]);
        }
    }

    pub(super) fn backward_subtrees(
        &self,
        node: &FrontNode,
        width: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (pivots, row_bytes) = (node.columns.len(), width * self.item());
        let rows = &mut workspace[..(pivots + (node.below.end - node.below.start) as usize) * row_bytes];
        rows[..pivots * row_bytes].copy_from_slice(bound.writes[0]);
        if has_below(node) {
            self.gather(node, width, &bound.reads[1..], &mut rows[pivots * row_bytes..]);
        }
        let places = FrontPlaces::new(&self.analysis, node);
        let mut l = bound.reads[0];
        for number in node.supernodes.clone().rev() {
            let one = &self.analysis.supernodes[number as usize];
            let first = (one.first - node.columns.start) as usize;
            let targets: Vec<usize> = self.places_below(&places, number);
            let (rest, panels) = l.split_at(l.len() - one.entries() as usize * self.item());
            l = rest;
            self.vectors
                .backward([one.pivots as usize, width, first], panels, &targets, rows);
        }
        bound.writes[0].copy_from_slice(&rows[..pivots * row_bytes]);
    }

    /// Places of the rows below a supernode of a node of subtrees.
    fn places_below(&self, places: &FrontPlaces<'_>, supernode: u32) -> Vec<usize> {
        let rows = self.analysis.below(supernode).iter();
        rows.filter_map(|row| Some(places.of(*row)? as usize)).collect()
    }
}
