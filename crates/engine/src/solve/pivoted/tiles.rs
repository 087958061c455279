//! Work on the tiles of a front: assembly, products that are subtracted, the elimination of a block of columns.

use std::ops::Range;

use outcore_kernels::{CandidateSides, PivotForm, PivotRecord, PivotedKind};

use super::super::assembly::{pack, row_start, runs, unpack};
use super::super::dense::DenseRows;
use super::super::places::FrontPlaces;
use super::blocks::{in_slot, record_bytes, slot_of, split, write, PivotCounts};
use super::fronts::{PivotedBlocks, PivotedNode};
use super::tasks::{place_in, PivotedContribution, PivotedFactorization, PivotedSource};
use crate::task::Bound;
use crate::EngineError;

/// Numbers of an element of a tile as float64.
fn element(place: usize, words: usize) -> Range<usize> {
    place * words..(place + 1) * words
}

/// The imaginary part the other way.
fn conjugate(values: &mut [f64]) {
    if let [_, imaginary] = values {
        *imaginary = -*imaginary;
    }
}

impl PivotedFactorization {
    pub(super) fn words(&self) -> usize {
        self.item() / size_of::<f64>()
    }

    /// The numbers of a value of the matrix, scaled; of its other side where `is_turned`.
    pub(super) fn scaled(&self, value: &[u8], [row, column]: [u32; 2], is_turned: bool) -> [f64; 2] {
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |bytes| f64::from_ne_bytes(*bytes));
        let scaling = &self.record.scaling;
        // One after the other: their product may be beyond the numbers that there are.
        let (by_row, by_column) = (scaling.rows[row as usize], scaling.columns[column as usize]);
        let mut value = [number(value), if value.len() > 8 { number(&value[8..]) } else { 0.0 }];
        if is_turned && self.kind() == PivotedKind::Hermitian {
            value[1] = -value[1];
        }
        value.map(|part| part * by_row * by_column)
    }

    pub(super) fn assemble(
        &self,
        number: u32,
        tile: [u32; 2],
        (begin, end, is_first): (u32, u32, bool),
        bound: &mut Bound<'_>,
    ) -> Result<(), EngineError> {
        let (front, node) = self.node(number);
        let Some(blocks) = node.blocks() else { return Ok(()) };
        let mut from = 0;
        if is_first {
            bound.writes[0].fill(0);
            from = self.count_sources(front, Some((blocks, tile)));
            self.add_entries(number, tile, &bound.reads[..from], bound.writes[0])?;
            if tile == [blocks.slots; 2] {
                self.fill_slots(blocks, bound.writes[0]);
            }
        }
        for (contribution, bytes) in self.contributions[begin as usize..end as usize]
            .iter()
            .zip(&bound.reads[from..])
        {
            self.add(blocks, tile, *contribution, bytes, bound.writes[0]);
        }
        Ok(())
    }

    /// The identity for slots that are empty.
    fn fill_slots(&self, blocks: &PivotedBlocks, tile: &mut [u8]) {
        let (side, words) = (blocks.side(blocks.slots), self.words());
        let length = row_start(side, side, self.is_symmetric()) * self.item();
        let tile: &mut [f64] = bytemuck::cast_slice_mut(&mut tile[..length]);
        for slot in 0..side {
            tile[(row_start(slot, side, self.is_symmetric()) + slot) * words] = 1.0;
        }
    }

    /// Adds the entries of the matrix that belong to a tile.
    fn add_entries(&self, number: u32, tile: [u32; 2], reads: &[&[u8]], out: &mut [u8]) -> Result<(), EngineError> {
        let (front, node) = self.node(number);
        let Some(blocks) = node.blocks() else { return Ok(()) };
        let (is_transpose, lines) = self.source_of(front, blocks, tile);
        if lines.is_empty() {
            return Ok(());
        }
        // Of the matrix, lines are columns of the tile but where it lies right of the diagonal.
        let [row, column] = tile;
        let is_upper = row < column;
        let across = blocks.block(if is_upper { column } else { row });
        let along = blocks.block(if is_upper { row } else { column });
        let places = FrontPlaces::new(&self.analysis, front);
        let (own, beyond) = (front.columns.len() as u32, node.beyond());
        let is_packed = self.is_symmetric() && row == column;
        let width = blocks.side(column);
        let words = self.words();
        let length = row_start(blocks.side(row), width, is_packed) * self.item();
        let out: &mut [f64] = bytemuck::cast_slice_mut(&mut out[..length]);
        let source = match &self.source {
            PivotedSource::Sparse {
                columns: Some(columns), ..
            } if is_transpose => columns,
            PivotedSource::Sparse { rows, .. } => rows,
            PivotedSource::Dense(dense) => {
                if row.max(column) < blocks.own {
                    self.copy_dense(dense, [blocks.block(row), blocks.block(column)], reads, out);
                }
                return Ok(());
            }
        };
        let mut unknown = None;
        let first = u64::from(if self.is_symmetric() {
            lines.start
        } else {
            front.columns.start
        });
        source.for_each(&lines, first..u64::MAX, reads, |line, other, value| {
            let is_below = other >= u64::from(line);
            if (self.is_symmetric() && !is_below) || other < u64::from(front.columns.start) {
                return;
            }
            let Some(place) = place_in(&places, own, beyond, other as u32) else {
                unknown = Some([other as u32, line]);
                return;
            };
            if !across.contains(&place) {
                return;
            }
            let (there, here) = (
                (place - across.start) as usize,
                (line - front.columns.start - along.start) as usize,
            );
            let (row, column) = if is_upper { (here, there) } else { (there, here) };
            let of = if is_transpose {
                [other as u32, line]
            } else {
                [line, other as u32]
            };
            let value = self.scaled(value, of, self.is_symmetric());
            let at = element(row_start(row, width, is_packed) + column, words);
            out[at].iter_mut().zip(value).for_each(|(to, value)| *to += value);
        })?;
        match unknown {
            None => Ok(()),
            Some([row, column]) => Err(self.unknown(row, column)),
        }
    }

    /// Copies the elements of a tile of a dense matrix, scaled; of one on the diagonal its lower triangle.
    fn copy_dense(&self, dense: &DenseRows, [rows, columns]: [Range<u32>; 2], reads: &[&[u8]], out: &mut [f64]) {
        let is_packed = rows == columns;
        dense.copy(&rows, &columns, reads, (bytemuck::cast_slice_mut(out), is_packed));
        let (scaling, words) = (&self.record.scaling, self.words());
        for (row, at) in rows.enumerate() {
            let end = if is_packed { row + 1 } else { columns.len() };
            let start = row_start(row, columns.len(), is_packed) * words;
            let elements = out[start..start + end * words].chunks_exact_mut(words);
            for (element, column) in elements.zip(columns.clone()) {
                // One after the other: their product may be beyond the numbers that there are.
                let (by_row, by_column) = (scaling.rows[at as usize], scaling.columns[column as usize]);
                element.iter_mut().for_each(|part| *part = *part * by_row * by_column);
            }
        }
    }

    /// The error for an entry, in the order of elimination, that the pattern of the analysis has not.
    pub(super) fn unknown(&self, row: u32, column: u32) -> EngineError {
        let [row, column] = [row, column].map(|at| self.analysis.order[at as usize]);
        EngineError::Argument(format!(
            "factorize: the matrix has an entry in row {row} and column {column}, and the matrix of the analysis has none there"
        ))
    }

    /// Adds the elements of a child's tile that belong to a tile of the parent.
    fn add(&self, blocks: &PivotedBlocks, tile: [u32; 2], of: PivotedContribution, from: &[u8], out: &mut [u8]) {
        let [row, column] = tile;
        let places = self.fronts.places(&self.analysis, of.child);
        let (_, child) = self.node(of.child);
        let rows_of = |block: u32| match child.blocks() {
            None => 0..places.places.len(),
            Some(blocks) => blocks.rows_of_block(block),
        };
        let (own_rows, own_columns) = (rows_of(of.row), rows_of(of.column));
        let is_triangle = self.is_symmetric() && of.row == of.column;
        let is_packed = self.is_symmetric() && row == column;
        let wanted = [places.within(&blocks.block(row)), places.within(&blocks.block(column))];
        // A tile of slots and own columns has its elements on the other side of the child's diagonal.
        let is_turned = self.is_symmetric() && wanted[0].start < wanted[1].start;
        let both = |one: &Range<usize>, other: &Range<usize>| one.start.max(other.start)..one.end.min(other.end);
        let (rows, columns) = match is_turned {
            false => (both(&wanted[0], &own_rows), both(&wanted[1], &own_columns)),
            true => (both(&wanted[1], &own_rows), both(&wanted[0], &own_columns)),
        };
        let (width, words) = (blocks.side(column), self.words());
        let length = row_start(blocks.side(row), width, is_packed) * self.item();
        let out: &mut [f64] = bytemuck::cast_slice_mut(&mut out[..length]);
        let from: &[f64] = bytemuck::cast_slice(from);
        let within = |row: usize, block: u32| (places.places[row] - blocks.block(block).start) as usize;
        let start_of = |row: usize| row_start(row - own_rows.start, own_columns.len(), is_triangle);
        if is_turned {
            let is_conjugate = self.kind() == PivotedKind::Hermitian;
            for source in rows {
                let to_column = within(source, column);
                for other in columns.clone() {
                    let mut value = [0.0; 2];
                    let at = element(start_of(source) + other - own_columns.start, words);
                    value[..words].copy_from_slice(&from[at]);
                    if is_conjugate {
                        conjugate(&mut value[..words]);
                    }
                    let to = element(row_start(within(other, row), width, is_packed) + to_column, words);
                    out[to].iter_mut().zip(value).for_each(|(to, value)| *to += value);
                }
            }
            return;
        }
        let targets: Vec<u32> = columns.clone().map(|other| within(other, column) as u32).collect();
        let column_runs = runs(&targets);
        for source in rows {
            let begin = start_of(source) + columns.start - own_columns.start;
            // A row of a triangle ends at the diagonal.
            let length = match is_triangle {
                true => (source + 1).saturating_sub(columns.start).min(columns.len()),
                false => columns.len(),
            };
            let start = row_start(within(source, row), width, is_packed);
            for run in column_runs.iter().take_while(|run| run.from < length) {
                let count = run.length.min(length - run.from) * words;
                let (to, at) = ((start + run.to) * words, (begin + run.from) * words);
                let (to, from) = (&mut out[to..to + count], &from[at..at + count]);
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
    }

    pub(super) fn update(
        &self,
        blocks: &PivotedBlocks,
        [row, column]: [u32; 2],
        pivots: Range<u32>,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (height, width, item) = (blocks.side(row), blocks.side(column), self.item());
        let is_packed = self.is_symmetric() && row == column;
        let length = row_start(height, width, is_packed) * item;
        let tile = &mut bound.writes[0][..length];
        let mut reads = bound.reads.iter();
        let mut next = || reads.next().copied().unwrap_or(&[]);
        let (square, rest) = workspace.split_at_mut(if is_packed { height * height * item } else { 0 });
        if is_packed {
            unpack(tile, height, item, square);
        }
        for block in pivots {
            let inner = blocks.side(block);
            let (triangle, counts, records) = split(next(), inner);
            let left = next();
            let right = if is_packed { left } else { next() };
            let c: &mut [u8] = if is_packed { &mut *square } else { &mut *tile };
            let sizes = [height, width, inner];
            let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
            let is_slots = row == blocks.slots || column == blocks.slots;
            let may_be_empty = [row, column, block].into_iter().any(|block| blocks.is_spare(block));
            if counts.pivots > 0 && !(may_be_empty && (is_zero(left) || is_zero(right))) {
                if self.is_symmetric() {
                    let w = &mut rest[..width * inner * item];
                    let panel = self.panel;
                    panel.times_pivots([width, inner], self.kind(), right, triangle, records, w);
                    panel.subtract_scaled(sizes, self.kind(), is_packed, [left, w], c);
                } else {
                    self.panel.subtract_rows(sizes, counts.pivots as usize, left, right, c);
                }
            }
            if is_slots && counts.after > counts.before {
                let parts = SlotParts {
                    triangle,
                    records,
                    left,
                    right,
                    inner,
                };
                self.take_left(blocks, [row, column], &parts, bytemuck::cast_slice_mut(c));
            }
        }
        if is_packed {
            pack(square, height, item, tile);
        }
    }

    /// Takes what a block of pivots has left into a tile of slots.
    fn take_left(&self, blocks: &PivotedBlocks, [row, column]: [u32; 2], of: &SlotParts<'_>, c: &mut [f64]) {
        let (words, width, slots) = (self.words(), blocks.side(column), blocks.slots);
        let kind = self.kind();
        let is_symmetric = self.is_symmetric();
        let [triangle, left, right]: [&[f64]; 3] = [of.triangle, of.left, of.right].map(bytemuck::cast_slice);
        let inner = of.inner;
        let kept = |place: usize, record: &PivotRecord| Some((place, slot_of(record.form)? as usize));
        let kept: Vec<(usize, usize)> = of
            .records
            .iter()
            .enumerate()
            .filter_map(|(place, record)| kept(place, record))
            .collect();
        let get = |from: &[f64], at: usize, is_conjugate: bool| {
            let mut value = [0.0; 2];
            value[..words].copy_from_slice(&from[element(at, words)]);
            if is_conjugate {
                conjugate(&mut value[..words]);
            }
            value
        };
        let mut put = |[row, column]: [usize; 2], value: [f64; 2], is_own: bool| {
            let to = &mut c[element(row * width + column, words)];
            if is_own {
                to.fill(0.0);
            }
            to.iter_mut().zip(value).for_each(|(to, value)| *to += value);
        };
        let first_slot = kept.first().map_or(0, |(_, slot)| *slot);
        if row == slots && column == slots {
            for &(place, slot) in &kept {
                for &(other, into) in &kept {
                    if is_symmetric && other > place {
                        continue;
                    }
                    let at = if is_symmetric {
                        row_start(place, inner, true) + other
                    } else {
                        place * inner + other
                    };
                    put([slot, into], get(triangle, at, false), slot == into);
                }
                for before in 0..first_slot {
                    let below = get(
                        left,
                        before * inner + place,
                        is_symmetric && kind == PivotedKind::Hermitian,
                    );
                    if is_symmetric {
                        put([slot, before], below, false);
                    } else {
                        put([before, slot], below, false);
                        put([slot, before], get(right, place * width + before, false), false);
                    }
                }
            }
        } else if column == slots {
            for row in 0..blocks.side(row) {
                for &(place, slot) in &kept {
                    put([row, slot], get(left, row * inner + place, false), false);
                }
            }
        } else {
            for &(place, slot) in &kept {
                for column in 0..width {
                    let at = if is_symmetric {
                        column * inner + place
                    } else {
                        place * width + column
                    };
                    put([slot, column], get(right, at, kind == PivotedKind::Hermitian), false);
                }
            }
        }
    }

    /// Eliminates a block of columns over all of its height.
    pub(super) fn eliminate(
        &self,
        node: &PivotedNode,
        blocks: &PivotedBlocks,
        block: u32,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (width, item) = (blocks.side(block), self.item());
        let height = (blocks.ends[blocks.all() as usize] - blocks.block(block).start) as usize;
        let before = match block {
            0 => 0,
            _ => split(bound.reads[0], blocks.side(block - 1)).1.after,
        };
        let skipped = workspace.as_ptr().align_offset(64).min(workspace.len());
        let columns = &mut workspace[skipped..skipped + height * width * item];
        self.gather(width, height, &bound.writes, bytemuck::cast_slice_mut(columns));
        let is_root_slots = blocks.slots < blocks.pivots && block == blocks.slots;
        let room = if is_root_slots { 0 } else { node.slots - before };
        let mut records = vec![
            PivotRecord {
                column: 0,
                row: 0,
                form: PivotForm::LEFT
            };
            width
        ];
        let sides = CandidateSides {
            height,
            width,
            lead: height,
        };
        let pivots = self
            .panel
            .eliminate_candidates(sides, self.rule, room as usize, columns, &mut records);
        for (slot, record) in (before..).zip(&mut records[pivots..]) {
            record.form = in_slot(slot);
        }
        let counts = PivotCounts {
            pivots: pivots as u32,
            before,
            after: before + (width - pivots) as u32,
            candidates: width as u32,
        };
        let records_at = bound.writes[0].len() - record_bytes(width);
        write(counts, &records, &mut bound.writes[0][records_at..]);
        self.put_back(width, height, bytemuck::cast_slice(columns), &mut bound.writes);
    }

    /// Copies tiles of a block of columns into columns.
    fn gather(&self, width: usize, height: usize, tiles: &[&mut [u8]], columns: &mut [f64]) {
        let words = self.words();
        let Some((diagonal, below)) = tiles.split_first() else {
            return;
        };
        let tile: &[f64] = bytemuck::cast_slice(&diagonal[..diagonal.len() - record_bytes(width)]);
        for row in 0..width {
            let start = row_start(row, width, self.is_symmetric());
            let length = if self.is_symmetric() { row + 1 } else { width };
            for column in 0..length {
                columns[element(column * height + row, words)].copy_from_slice(&tile[element(start + column, words)]);
            }
        }
        let mut first = width;
        for tile in below {
            let tile: &[f64] = bytemuck::cast_slice(tile);
            let rows = tile.len() / (width * words);
            turned(tile, [rows, width], &mut columns[first * words..], height, words);
            first += rows;
        }
    }

    /// Copies columns back into their tiles.
    fn put_back(&self, width: usize, height: usize, columns: &[f64], tiles: &mut [&mut [u8]]) {
        let words = self.words();
        let Some((diagonal, below)) = tiles.split_first_mut() else {
            return;
        };
        let length = diagonal.len() - record_bytes(width);
        let tile: &mut [f64] = bytemuck::cast_slice_mut(&mut diagonal[..length]);
        for row in 0..width {
            let start = row_start(row, width, self.is_symmetric());
            let length = if self.is_symmetric() { row + 1 } else { width };
            for column in 0..length {
                tile[element(start + column, words)].copy_from_slice(&columns[element(column * height + row, words)]);
            }
        }
        let mut first = width;
        for tile in below {
            let tile: &mut [f64] = bytemuck::cast_slice_mut(tile);
            let rows = tile.len() / (width * words);
            turned_back(&columns[first * words..], height, tile, [rows, width], words);
            first += rows;
        }
    }

    /// Makes a tile of U: rows in the order of the pivots, solved with L of the block.
    pub(super) fn row(
        &self,
        blocks: &PivotedBlocks,
        [row, column]: [u32; 2],
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) {
        let (height, width) = (blocks.side(row), blocks.side(column));
        let (l, counts, records) = split(bound.reads[0], height);
        let tile = &mut *bound.writes[0];
        let bytes = width * self.item();
        let before = &mut workspace[..height * bytes];
        before.copy_from_slice(tile);
        for (record, to) in records.iter().zip(tile.chunks_exact_mut(bytes)) {
            let from = record.row as usize * bytes;
            to.copy_from_slice(&before[from..from + bytes]);
        }
        self.panel
            .solve_unit_rows([height, counts.pivots as usize, width], l, tile);
    }
}

/// The tiles that the product of a block of pivots reads, where the result has slots.
struct SlotParts<'a> {
    triangle: &'a [u8],
    records: &'a [PivotRecord],
    left: &'a [u8],
    right: &'a [u8],
    /// Candidates of the block.
    inner: usize,
}

/// Rows and columns that are turned at a time, so that both sides stay in the processor's caches.
const TURNED: usize = 16;

/// Puts rows into columns that lie `lead` elements apart.
fn turned(tile: &[f64], [rows, width]: [usize; 2], columns: &mut [f64], lead: usize, words: usize) {
    for first in (0..rows).step_by(TURNED) {
        for column in 0..width {
            for row in first..rows.min(first + TURNED) {
                columns[element(column * lead + row, words)]
                    .copy_from_slice(&tile[element(row * width + column, words)]);
            }
        }
    }
}

/// Puts columns that lie `lead` elements apart into rows.
fn turned_back(columns: &[f64], lead: usize, tile: &mut [f64], [rows, width]: [usize; 2], words: usize) {
    for first in (0..width).step_by(TURNED) {
        for row in 0..rows {
            for column in first..width.min(first + TURNED) {
                tile[element(row * width + column, words)]
                    .copy_from_slice(&columns[element(column * lead + row, words)]);
            }
        }
    }
}
