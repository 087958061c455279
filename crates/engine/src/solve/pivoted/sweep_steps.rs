//! Work on the rows of a node in a sweep.

use std::ops::Range;

use outcore_kernels::{PivotForm, PivotRecord, Transposition};

use super::super::assembly::unpack;
use super::super::band;
use super::super::fronts::FrontNode;
use super::super::places::FrontPlaces;
use super::blocks::{slot_of, split};
use super::fronts::{PivotedBlocks, PivotedNode};
use super::subtrees::{each_supernode, SubtreeColumns};
use super::sweeps::PivotedSweeps;
use crate::task::Bound;

/// A block of pivots as a square, with 0 beside pivots of two rows.
struct PivotSquare<'a> {
    square: &'a [u8],
    pivots: usize,
    records: &'a [PivotRecord],
}

impl PivotedSweeps {
    fn item(&self) -> usize {
        self.grid.dtype.size()
    }

    fn square<'s>(&self, tile: &'s [u8], side: usize, square: &'s mut [u8], is_unit: bool) -> PivotSquare<'s> {
        let (elements, counts, records) = split(tile, side);
        if !self.is_symmetric() {
            return PivotSquare {
                square: elements,
                pivots: counts.pivots as usize,
                records,
            };
        }
        unpack(elements, side, self.item(), square);
        for (place, record) in records.iter().enumerate() {
            if is_unit && record.form == PivotForm::FIRST {
                let at = ((place + 1) * side + place) * self.item();
                square[at..at + self.item()].fill(0);
            }
        }
        PivotSquare {
            square,
            pivots: counts.pivots as usize,
            records,
        }
    }

    /// The candidate that a place of the order has on the way up, or down.
    fn origin(&self, record: &PivotRecord, is_up: bool) -> usize {
        let is_row = is_up == (self.turn == Transposition::None);
        (if is_row { record.row } else { record.column }) as usize
    }

    fn interval(blocks: &PivotedBlocks, block: u32, row: usize) -> Range<usize> {
        let rows = blocks.block(block);
        rows.start as usize * row..rows.end as usize * row
    }

    /// Rows of a block in the order of its pivots, solved; those of candidates that were left go to their slots.
    pub(super) fn triangle(
        &self,
        blocks: &PivotedBlocks,
        block: u32,
        row: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let side = blocks.side(block);
        let (square, rest) = workspace.split_at_mut(side * side * self.item());
        let of = self.square(bound.reads[0], side, square, true);
        let (piece, below) = bound.writes.split_first_mut().expect("rows of candidates");
        let own = Self::interval(blocks, block, row);
        let before = &mut rest[..side * row];
        before.copy_from_slice(&piece[own.clone()]);
        for (record, to) in of.records.iter().zip(piece[own.clone()].chunks_exact_mut(row)) {
            let from = self.origin(record, true) * row;
            to.copy_from_slice(&before[from..from + row]);
        }
        let (triangle, turn) = self.turned(true);
        let sizes = [side, of.pivots, row / self.item()];
        self.vectors
            .solve_pivots(sizes, of.square, triangle, turn, &mut piece[own.clone()]);
        let slots = Self::interval(blocks, blocks.slots, row).start;
        for (place, record) in of.records.iter().enumerate().skip(of.pivots) {
            let Some(slot) = slot_of(record.form) else { continue };
            let from = own.start + place * row..own.start + (place + 1) * row;
            let to = slot as usize * row;
            match below.first_mut() {
                Some(below) => below[to..to + row].copy_from_slice(&piece[from.clone()]),
                None => piece.copy_within(from.clone(), slots + to),
            }
            piece[from].fill(0);
        }
    }

    pub(super) fn forward(
        &self,
        blocks: &PivotedBlocks,
        block: u32,
        rows: [u32; 2],
        row: usize,
        bound: &mut Bound<'_>,
    ) {
        let (_, turn) = self.turned(true);
        let width = row / self.item();
        let first = blocks.ends[blocks.pivots as usize] as usize * row;
        let own = Self::interval(blocks, block, row);
        for (tile, other) in (rows[0]..rows[1]).enumerate() {
            let sizes = [blocks.side(other), width, blocks.side(block)];
            let to = Self::interval(blocks, other, row);
            if rows[0] >= blocks.pivots {
                let y = &bound.reads[bound.reads.len() - 1][own.clone()];
                let to = &mut bound.writes[0][to.start - first..to.end - first];
                self.vectors.subtract_turned(sizes, bound.reads[tile], turn, y, to);
            } else {
                let (before, after) = bound.writes[0].split_at_mut(own.end);
                let to = &mut after[to.start - own.end..to.end - own.end];
                self.vectors
                    .subtract_turned(sizes, bound.reads[tile], turn, &before[own.clone()], to);
            }
        }
    }

    pub(super) fn divide(
        &self,
        blocks: &PivotedBlocks,
        block: u32,
        row: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let side = blocks.side(block);
        let of = self.square(bound.reads[0], side, &mut workspace[..side * side * self.item()], false);
        let own = Self::interval(blocks, block, row);
        let sizes = [side, row / self.item()];
        self.vectors
            .divide_pivots(sizes, self.kind, of.square, of.records, &mut bound.writes[0][own]);
    }

    pub(super) fn backward(
        &self,
        blocks: &PivotedBlocks,
        block: u32,
        rows: [u32; 2],
        row: usize,
        bound: &mut Bound<'_>,
    ) {
        let (_, turn) = self.turned(false);
        let width = row / self.item();
        let first = blocks.ends[blocks.pivots as usize] as usize * row;
        let own = Self::interval(blocks, block, row);
        let (before, after) = bound.writes[0].split_at_mut(own.end);
        let to = &mut before[own.clone()];
        for (tile, other) in (rows[0]..rows[1]).enumerate() {
            let sizes = [blocks.side(block), width, blocks.side(other)];
            let from = Self::interval(blocks, other, row);
            let x = match rows[0] >= blocks.pivots {
                true => &bound.reads[bound.reads.len() - 1][from.start - first..from.end - first],
                false => &after[from.start - own.end..from.end - own.end],
            };
            self.vectors.subtract_turned(sizes, bound.reads[tile], turn, x, to);
        }
    }

    /// As [`PivotedSweeps::triangle`] on the way down.
    pub(super) fn triangle_down(
        &self,
        blocks: &PivotedBlocks,
        block: u32,
        row: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let side = blocks.side(block);
        let (square, rest) = workspace.split_at_mut(side * side * self.item());
        let of = self.square(bound.reads[0], side, square, true);
        let own = Self::interval(blocks, block, row);
        let slots = Self::interval(blocks, blocks.slots, row).start;
        let x = &mut rest[..side * row];
        let piece = &mut *bound.writes[0];
        x.copy_from_slice(&piece[own.clone()]);
        for (place, record) in of.records.iter().enumerate().skip(of.pivots) {
            let Some(slot) = slot_of(record.form) else { continue };
            let from = slot as usize * row;
            let from = match bound.reads.get(1) {
                Some(below) => &below[from..from + row],
                None => &piece[slots + from..slots + from + row],
            };
            x[place * row..(place + 1) * row].copy_from_slice(from);
        }
        let (triangle, turn) = self.turned(false);
        let sizes = [side, of.pivots, row / self.item()];
        self.vectors.solve_pivots(sizes, of.square, triangle, turn, x);
        for (record, from) in of.records.iter().zip(x.chunks_exact(row)) {
            let to = own.start + self.origin(record, false) * row;
            piece[to..to + row].copy_from_slice(from);
        }
    }

    /// For each row of a child's contribution, the bytes of the row of its parent: in the tile of candidates, 0, or in that of
    /// the rows below them, 1.
    fn places_in_parent(&self, child: u32, row: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (parent, node) = self.node(self.node(child).0.parent);
        let candidates = node.candidates(parent) as usize;
        let places = self.fronts.places(&self.analysis, child).places;
        places.into_iter().map(move |place| {
            let (set, at) = match (place as usize).checked_sub(candidates) {
                None => (0, place as usize),
                Some(below) => (1, below),
            };
            (set, at * row..(at + 1) * row)
        })
    }

    /// Adds rows that a child contributes to those of its parent.
    pub(super) fn add_child(&self, child: u32, row: usize, bound: &mut Bound<'_>) {
        let rows = bound.reads[0].chunks_exact(row);
        for ((set, place), from) in self.places_in_parent(child, row).zip(rows) {
            self.vectors.add(from, &mut bound.writes[set][place]);
        }
    }

    /// X of the slots of a node and below, from its parent's rows.
    pub(super) fn gather(&self, number: u32, row: usize, reads: &[&[u8]], out: &mut [u8]) {
        for ((set, place), to) in self.places_in_parent(number, row).zip(out.chunks_exact_mut(row)) {
            to.copy_from_slice(&reads[set][place]);
        }
    }

    /// The supernodes of a node of subtrees.
    fn supernodes_of<'t>(&self, front: &FrontNode, tile: &'t [u8]) -> Vec<SubtreeColumns<'t>> {
        let mut all = vec![];
        each_supernode(&self.analysis, front, self.kind, self.item(), tile, |of| all.push(of));
        all
    }

    /// Rows of the candidates of a supernode and below it among those of the node.
    fn rows_of(&self, of: &SubtreeColumns<'_>, places: &FrontPlaces<'_>, is_up: bool) -> Vec<usize> {
        let candidates = of.columns.records.iter().map(|record| self.origin(record, is_up));
        let below = self.analysis.below(of.supernode).iter();
        let below = below.filter_map(|row| Some(places.of(*row)? as usize));
        candidates.chain(below).collect()
    }

    /// Candidates that roots of a node have left, by their slots: the row on the way up, or down.
    fn handed(&self, front: &FrontNode, of: &SubtreeColumns<'_>, is_up: bool) -> Vec<(usize, usize)> {
        if self.analysis.supernodes[of.supernode as usize].parent < front.supernodes.end {
            return vec![];
        }
        let left = of.columns.records[of.columns.pivots..].iter();
        left.filter_map(|record| Some((slot_of(record.form)? as usize, self.origin(record, is_up))))
            .collect()
    }

    pub(super) fn forward_subtrees(
        &self,
        front: &FrontNode,
        node: &PivotedNode,
        row: usize,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let own = front.columns.len() * row;
        let rows = own + (front.below.end - front.below.start) as usize * row;
        let x = &mut workspace[..rows];
        band::take_right(&self.grid, front, row, &bound.reads[1..], &mut x[..own]);
        x[own..].fill(0);
        let places = FrontPlaces::new(&self.analysis, front);
        let (_, turn) = self.turned(true);
        let (piece, below) = bound.writes.split_first_mut().expect("rows of the node");
        let mut below = below.first_mut();
        if let Some(below) = &mut below {
            below.fill(0);
        }
        for of in self.supernodes_of(front, bound.reads[0]) {
            let rows = self.rows_of(&of, &places, true);
            self.vectors
                .forward_columns(of.columns, row / self.item(), turn, &rows, x);
            for (slot, from) in self.handed(front, &of, true) {
                let from = from * row..(from + 1) * row;
                if let Some(below) = &mut below {
                    below[slot * row..(slot + 1) * row].copy_from_slice(&x[from.clone()]);
                }
                x[from].fill(0);
            }
        }
        piece.copy_from_slice(&x[..own]);
        if let Some(below) = below {
            below[node.slots as usize * row..].copy_from_slice(&x[own..]);
        }
    }

    pub(super) fn backward_subtrees(&self, number: u32, row: usize, bound: &mut Bound<'_>, workspace: &mut [u8]) {
        let (front, node) = self.node(number);
        let own = front.columns.len() * row;
        let below = node.rows_below(front) as usize * row;
        let slots = if below > 0 { node.slots as usize * row } else { 0 };
        // Own rows, rows below, slots: gathered with the slots first.
        let x = &mut workspace[..own + below];
        if below > 0 {
            self.gather(number, row, &bound.reads[1..], &mut x[own..]);
            x[own..].rotate_left(slots);
        }
        let after = own + below - slots;
        let places = FrontPlaces::new(&self.analysis, front);
        let turn = if self.is_symmetric() {
            Transposition::None
        } else {
            self.turn
        };
        for of in self.supernodes_of(front, bound.reads[0]).into_iter().rev() {
            for (slot, to) in self.handed(front, &of, false) {
                let from = after + slot * row;
                x.copy_within(from..from + row, to * row);
            }
            let from = self.rows_of(&of, &places, true);
            let rows = self.rows_of(&of, &places, false);
            self.vectors
                .backward_columns(of.columns, row / self.item(), turn, (&from, &rows), bound.writes[0], x);
        }
        bound.writes[0].copy_from_slice(&x[..own]);
    }
}
