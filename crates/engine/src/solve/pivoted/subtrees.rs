//! Subtrees that one task eliminates with pivoting. A candidate that is left goes to the parent's front, as far as there is
//! room; what the roots leave goes to the slots of the node.
//!
//! The tile of the factor has for each supernode counts and records of its candidates, whose numbers are those of columns in
//! the node, then the columns of L from the diagonal down, each followed by its row of U where the matrix is not symmetric.

use outcore_kernels::{CandidateSides, PivotColumns, PivotForm, PivotRecord, PivotedKind};

use super::super::fronts::FrontNode;
use super::super::places::FrontPlaces;
use super::super::supernodes::{triangle, Supernode};
use super::super::Analysis;
use super::blocks::{header_words, in_slot, read, write, PivotCounts};
use super::fronts::{PivotedCut, PivotedNode, SubtreeRoom};
use super::tasks::{PivotedFactorization, PivotedSource};
use crate::task::Bound;
use crate::EngineError;

fn take<'w>(memory: &mut &'w mut [u8], bytes: usize) -> &'w mut [u8] {
    let (front, rest) = std::mem::take(memory).split_at_mut(bytes.next_multiple_of(64));
    *memory = rest;
    &mut front[..bytes]
}

/// A contribution block that waits: its supernode, where it begins in the stack, its candidates by the columns and rows that
/// they have in the node.
struct WaitingBlock {
    supernode: u32,
    begin: usize,
    left: Vec<[u32; 2]>,
    below: usize,
}

/// The memory of a task.
struct PivotedDesk<'w> {
    front: &'w mut [f64],
    stack: &'w mut [f64],
    /// Places of the rows of the node in the front.
    places: &'w mut [u32],
    /// For each column its supernode, and where it begins among entries of A.
    owners: &'w mut [[u32; 2]],
    rest: &'w mut [u8],
}

/// The part of their room that subtrees have used.
struct RoomUsed {
    words: usize,
    /// Words that supernodes to come take at least, and candidates that wait.
    to_come: usize,
    waiting: usize,
    /// Elements that blocks that wait take more than they would without candidates.
    more: usize,
}

impl PivotedFactorization {
    fn rows_of(&self, front: &FrontNode) -> usize {
        front.columns.len() + (front.below.end - front.below.start) as usize
    }

    fn entries_in(&self, pivots: usize, side: usize) -> usize {
        let below = pivots * side - pivots * pivots.saturating_sub(1) / 2;
        if self.is_symmetric() {
            below
        } else {
            2 * below - pivots
        }
    }

    fn square(&self, side: usize) -> usize {
        if self.is_symmetric() {
            triangle(side as u64) as usize
        } else {
            side * side
        }
    }

    /// Memory of the task besides its tiles.
    pub(super) fn subtree_bytes(&self, front: &FrontNode, node: &PivotedNode) -> u64 {
        let PivotedCut::Subtrees(room) = node.cut else { return 0 };
        let elements = (room.side * room.side + room.stack) * self.item();
        let places = self.rows_of(front) * 4 + front.columns.len() * 8;
        (elements + places + 5 * 64 + self.panel.rest_bytes(room.side)) as u64
    }

    fn desk<'w>(&self, front: &FrontNode, room: SubtreeRoom, mut workspace: &'w mut [u8]) -> PivotedDesk<'w> {
        PivotedDesk {
            front: bytemuck::cast_slice_mut(take(&mut workspace, room.side * room.side * self.item())),
            stack: bytemuck::cast_slice_mut(take(&mut workspace, room.stack * self.item())),
            places: bytemuck::cast_slice_mut(take(&mut workspace, self.rows_of(front) * 4)),
            owners: bytemuck::cast_slice_mut(take(&mut workspace, front.columns.len() * 8)),
            rest: workspace,
        }
    }

    pub(super) fn eliminate_subtrees(
        &self,
        front: &FrontNode,
        node: &PivotedNode,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let PivotedCut::Subtrees(room) = node.cut else {
            return Ok(());
        };
        let desk = self.desk(front, room, workspace);
        let (factor, contribution) = bound.writes.split_first_mut().expect("a tile of the factor");
        let entries = self.scatter(front, &bound.reads, desk.owners, factor)?;
        let own = &self.analysis.supernodes[front.supernodes.start as usize..front.supernodes.end as usize];
        let mut run = SubtreeRun {
            of: self,
            front,
            node,
            room,
            desk,
            entries,
            used: RoomUsed {
                words: 0,
                to_come: own.iter().map(|one| self.least_words(one)).sum(),
                waiting: 0,
                more: 0,
            },
            handed: 0,
            waiting: vec![],
            to_parent: vec![0; own.len()],
        };
        for number in front.supernodes.clone() {
            run.eliminate(number, factor);
        }
        factor[run.used.words * 8..].fill(0);
        if let Some(out) = contribution.first_mut() {
            run.hand_on(bytemuck::cast_slice_mut(out));
        }
        Ok(())
    }

    /// Words that a supernode takes without candidates of its children.
    fn least_words(&self, one: &Supernode) -> usize {
        let entries = self.entries_in(one.pivots as usize, one.front as usize) * self.words();
        entries + header_words(u64::from(one.pivots)) as usize
    }

    /// Where an element of a contribution block of so many rows is.
    fn at(&self, row: usize, column: usize, side: usize) -> usize {
        match self.is_symmetric() {
            true => row * (row + 1) / 2 + column,
            false => row * side + column,
        }
    }

    /// Puts entries of the node's rows and columns where the tile of the factor ends, supernode by supernode: columns of L, each
    /// with its row of U behind it. Gives the byte where they begin.
    fn scatter(
        &self,
        front: &FrontNode,
        reads: &[&[u8]],
        owners: &mut [[u32; 2]],
        factor: &mut [u8],
    ) -> Result<usize, EngineError> {
        let (first, words) = (front.columns.start, self.words());
        let mut length = 0;
        for number in front.supernodes.clone() {
            let one = &self.analysis.supernodes[number as usize];
            for column in 0..one.pivots {
                owners[(one.first + column - first) as usize] = [number, length];
                length += self.entries_in(1, (one.front - column) as usize) as u32;
            }
        }
        let begin = factor.len() - length as usize * self.item();
        let entries: &mut [f64] = bytemuck::cast_slice_mut(&mut factor[begin..]);
        entries.fill(0.0);
        let mut unknown = None;
        let mut add = |line: u32, other: u64, is_upper: bool, value: [f64; 2]| {
            let [number, begin] = owners[(line - first) as usize];
            let one = &self.analysis.supernodes[number as usize];
            let (end, other) = (one.first + one.pivots, other as u32);
            let place = match other < end {
                true => Some(other - line),
                false => {
                    let below = self.analysis.below(number).binary_search(&other);
                    below.ok().map(|below| end - line + below as u32)
                }
            };
            let Some(place) = place else {
                unknown = Some([other, line]);
                return;
            };
            let column = one.front - (line - one.first);
            let at = (begin + if is_upper { column + place - 1 } else { place }) as usize * words;
            entries[at..at + words]
                .iter_mut()
                .zip(value)
                .for_each(|(to, value)| *to += value);
        };
        let PivotedSource::Sparse {
            rows,
            columns: transpose,
        } = &self.source
        else {
            return Ok(begin); // a dense matrix has no subtrees
        };
        let lines = &front.columns;
        let of_rows = rows.tiles(lines).count();
        let columns = u64::from(first)..u64::MAX;
        let is_symmetric = self.is_symmetric();
        rows.for_each(lines, columns.clone(), &reads[..of_rows], |line, other, value| {
            // Of a symmetric matrix these are columns of L, else rows of U.
            if other > u64::from(line) || (is_symmetric && other == u64::from(line)) {
                add(
                    line,
                    other,
                    !is_symmetric,
                    self.scaled(value, [line, other as u32], is_symmetric),
                );
            }
        })?;
        if let Some(of_columns) = transpose {
            of_columns.for_each(lines, columns, &reads[of_rows..], |line, other, value| {
                if other >= u64::from(line) {
                    add(line, other, false, self.scaled(value, [other as u32, line], false));
                }
            })?;
        }
        match unknown {
            None => Ok(begin),
            Some([row, column]) => Err(self.unknown(row, column)),
        }
    }

    /// Puts the entries of a supernode into its front, and gives their words.
    fn begin_front(&self, one: &Supernode, entries: &[f64], data: &mut [f64], [side, width]: [usize; 2]) -> usize {
        let words = self.words();
        let (pivots, all) = (one.pivots as usize, one.front as usize);
        // Candidates that children left lie between own columns and rows below.
        let place = |number: usize| {
            if number < pivots {
                number
            } else {
                number + width - pivots
            }
        };
        let mut at = 0;
        for column in 0..pivots {
            let start = column * side * words;
            let beside = (pivots - column) * words;
            data[start + column * words..start + pivots * words].copy_from_slice(&entries[at..at + beside]);
            let below = (all - pivots) * words;
            data[start + width * words..start + width * words + below]
                .copy_from_slice(&entries[at + beside..at + beside + below]);
            at += beside + below;
            if !self.is_symmetric() {
                for other in column + 1..all {
                    let to = (place(other) * side + column) * words;
                    data[to..to + words].copy_from_slice(&entries[at..at + words]);
                    at += words;
                }
            }
        }
        at
    }

    /// Calls `each` with row, column and place of the elements of a contribution block, which lie column by column.
    fn each_element(&self, targets: &[usize], mut each: impl FnMut([usize; 2], usize)) {
        let mut at = 0;
        for (number, &column) in targets.iter().enumerate() {
            let first = if self.is_symmetric() { number } else { 0 };
            for &row in &targets[first..] {
                each([row, column], at);
                at += self.words();
            }
        }
    }

    /// Adds a contribution block to a front.
    fn add_square(&self, block: &[f64], targets: &[usize], data: &mut [f64], side: usize) {
        let words = self.words();
        self.each_element(targets, |[row, column], at| {
            // The lower triangle counts; of candidates that were left, rows below may lie before them.
            let is_turned = self.is_symmetric() && row < column;
            let (row, column) = if is_turned { (column, row) } else { (row, column) };
            let to = (column * side + row) * words;
            let from = &block[at..at + words];
            data[to] += from[0];
            if let [_, imaginary] = from {
                let is_conjugate = is_turned && self.kind() == PivotedKind::Hermitian;
                data[to + 1] += if is_conjugate { -imaginary } else { *imaginary };
            }
        });
    }

    /// As [`PivotedFactorization::add_square`], to a tile of a contribution block.
    fn add_to_rows(&self, block: &[f64], targets: &[usize], out: &mut [f64], side: usize) {
        let words = self.words();
        self.each_element(targets, |[row, column], at| {
            let to = self.at(row, column, side) * words;
            let (to, from) = (&mut out[to..to + words], &block[at..at + words]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        });
    }

    /// Copies what is left of a front behind its pivots.
    fn copy_rest(&self, data: &[f64], side: usize, pivots: usize, out: &mut [f64]) {
        let words = self.words();
        let mut at = 0;
        for column in pivots..side {
            let first = if self.is_symmetric() { column } else { pivots };
            let from = &data[(column * side + first) * words..(column + 1) * side * words];
            out[at..at + from.len()].copy_from_slice(from);
            at += from.len();
        }
    }

    /// Puts counts, records, columns of L and rows of U of a supernode, and gives the words that they take.
    fn put_columns(
        &self,
        counts: PivotCounts,
        records: &[PivotRecord],
        data: &[f64],
        side: usize,
        out: &mut [u8],
    ) -> usize {
        let words = self.words();
        let header = header_words(records.len() as u64) as usize;
        write(counts, records, &mut out[..header * 8]);
        let out: &mut [f64] = bytemuck::cast_slice_mut(&mut out[header * 8..]);
        let mut at = 0;
        for pivot in 0..counts.pivots as usize {
            let from = &data[(pivot * side + pivot) * words..(pivot + 1) * side * words];
            out[at..at + from.len()].copy_from_slice(from);
            at += from.len();
            if !self.is_symmetric() {
                for column in pivot + 1..side {
                    let from = (column * side + pivot) * words;
                    out[at..at + words].copy_from_slice(&data[from..from + words]);
                    at += words;
                }
            }
        }
        header + at
    }
}

/// The elimination of a node of subtrees, supernode by supernode.
struct SubtreeRun<'a, 'w> {
    of: &'a PivotedFactorization,
    front: &'a FrontNode,
    node: &'a PivotedNode,
    room: SubtreeRoom,
    desk: PivotedDesk<'w>,
    /// The byte where entries of A that are to come begin in the tile of the factor.
    entries: usize,
    used: RoomUsed,
    /// Candidates that roots have left.
    handed: u32,
    waiting: Vec<WaitingBlock>,
    /// Candidates that children have left to each supernode.
    to_parent: Vec<u32>,
}

/// A supernode's candidates, by the column and row that each has in the node, and rows of its front.
struct SubtreeFront {
    candidates: Vec<[u32; 2]>,
    side: usize,
}

impl SubtreeRun<'_, '_> {
    /// The row of the node that a row of the matrix is.
    fn row(&self, row: u32) -> usize {
        let places = FrontPlaces::new(&self.of.analysis, self.front);
        places.of(row).unwrap_or(0) as usize
    }

    fn is_root(&self, one: &Supernode) -> bool {
        one.parent >= self.front.supernodes.end
    }

    fn eliminate(&mut self, number: u32, factor: &mut [u8]) {
        let of = self.assembled(number, factor);
        let (one, width) = (&self.of.analysis.supernodes[number as usize], of.candidates.len());
        let most = self.most_left(one, of.side, width);
        let before = self.handed;
        let mut records = vec![EMPTY; width];
        let pivots = self.search(&of, most, &mut records);
        let left = &mut records[pivots..];
        if self.is_root(one) {
            for record in &mut *left {
                record.form = in_slot(self.handed);
                self.handed += 1;
            }
        } else {
            self.to_parent[(one.parent - self.front.supernodes.start) as usize] += left.len() as u32;
            self.used.waiting += left.len();
        }
        let left: Vec<[u32; 2]> = left.iter().map(|record| [record.column, record.row]).collect();
        let counts = PivotCounts {
            pivots: pivots as u32,
            before,
            after: self.handed,
            candidates: width as u32,
        };
        let words = self.of.words();
        let data = &self.desk.front[..of.side * of.side * words];
        let out = &mut factor[self.used.words * 8..];
        self.used.words += self.of.put_columns(counts, &records, data, of.side, out);
        let (rest, below) = (of.side - pivots, of.side - width);
        if rest > 0 {
            let begin = self.stacked();
            self.used.more += self.of.square(rest) - self.of.square(below);
            let out = &mut self.desk.stack[begin..][..self.of.square(rest) * words];
            self.of.copy_rest(data, of.side, pivots, out);
            self.waiting.push(WaitingBlock {
                supernode: number,
                begin,
                left,
                below,
            });
        }
    }

    /// Where the blocks that wait end in the stack.
    fn stacked(&self) -> usize {
        let end = |block: &WaitingBlock| block.begin + self.of.square(block.left.len() + block.below) * self.of.words();
        self.waiting.last().map_or(0, end)
    }

    /// The front of a supernode, of entries of A and blocks of its children.
    fn assembled(&mut self, number: u32, factor: &[u8]) -> SubtreeFront {
        let (of, supernodes) = (self.of, &self.of.analysis.supernodes);
        let one = &supernodes[number as usize];
        self.used.to_come -= of.least_words(one);
        let is_other = |block: &WaitingBlock| supernodes[block.supernode as usize].parent != number;
        let children = self.waiting.split_off(self.waiting.partition_point(is_other));
        let below = of.analysis.below(number);
        let (pivots, first) = (one.pivots as usize, one.first - self.front.columns.start);
        let mut candidates: Vec<[u32; 2]> = (first..first + one.pivots).map(|column| [column; 2]).collect();
        for child in &children {
            candidates.extend(&child.left);
            self.used.more -= of.square(child.left.len() + child.below) - of.square(child.below);
        }
        let width = candidates.len();
        self.used.waiting -= width - pivots;
        let side = width + below.len();
        for place in 0..pivots {
            self.desk.places[first as usize + place] = place as u32;
        }
        for (place, &row) in below.iter().enumerate() {
            let row = self.row(row);
            self.desk.places[row] = (width + place) as u32;
        }
        let data = &mut self.desk.front[..side * side * of.words()];
        data.fill(0.0);
        let own = bytemuck::cast_slice::<u8, f64>(&factor[self.entries..]);
        self.entries += 8 * of.begin_front(one, own, data, [side, width]);
        let mut next = pivots;
        for child in &children {
            let left = next..next + child.left.len();
            next = left.end;
            let rows = of.analysis.below(child.supernode);
            let below = rows.iter().map(|row| self.desk.places[self.row(*row)] as usize);
            let targets: Vec<usize> = left.chain(below).collect();
            let block = &self.desk.stack[child.begin..][..of.square(targets.len()) * of.words()];
            of.add_square(block, &targets, &mut self.desk.front[..side * side * of.words()], side);
        }
        SubtreeFront { candidates, side }
    }

    /// Eliminates what it can of a front, and gives the pivots.
    fn search(&mut self, of: &SubtreeFront, most: usize, records: &mut [PivotRecord]) -> usize {
        let (side, width, item) = (of.side, of.candidates.len(), self.of.item());
        let sides = CandidateSides {
            height: side,
            width,
            lead: side,
        };
        let data: &mut [u8] = bytemuck::cast_slice_mut(&mut self.desk.front[..side * side * self.of.words()]);
        let (panel, rule) = (self.of.panel, self.of.rule);
        let columns = &mut data[..side * width * item];
        let pivots = panel.eliminate_candidates(sides, rule, most, columns, records);
        panel.subtract_from_rest(side, pivots, rule.kind, records, data, self.desk.rest);
        for record in records {
            record.column = of.candidates[record.column as usize][0];
            record.row = of.candidates[record.row as usize][1];
        }
        pivots
    }

    /// Candidates that a supernode may leave, so that the rest has room whatever comes.
    fn most_left(&self, one: &Supernode, side: usize, width: usize) -> usize {
        let (of, below, used) = (self.of, side - width, &self.used);
        let mut most = width;
        while most > 0 && used.more + of.square(most + below) - of.square(below) > self.room.more {
            most -= 1;
        }
        if self.is_root(one) {
            return most.min((self.node.slots - self.handed) as usize);
        }
        let parent = &of.analysis.supernodes[one.parent as usize];
        let taken = self.to_parent[(one.parent - self.front.supernodes.start) as usize] as usize;
        most = most.min(self.room.side.saturating_sub(parent.front as usize + taken));
        let own = of.entries_in(width, side) * of.words() + header_words(width as u64) as usize;
        let free = self.room.words.saturating_sub(used.words + own + used.to_come);
        // A candidate that waits takes no more than the longest column, and its record.
        let each = of.entries_in(1, self.room.side) * of.words() + 2;
        most.min((free / each).saturating_sub(used.waiting))
    }

    /// Puts the blocks of roots into one, slots first.
    fn hand_on(&self, out: &mut [f64]) {
        out.fill(0.0);
        let (of, slots) = (self.of, self.node.slots as usize);
        let side = slots + (self.front.below.end - self.front.below.start) as usize;
        for slot in self.handed as usize..slots {
            out[of.at(slot, slot, side) * of.words()] = 1.0;
        }
        let mut first = 0;
        for block in &self.waiting {
            let left = first..first + block.left.len();
            first = left.end;
            let rows = of.analysis.below(block.supernode).iter();
            let below = rows.map(|row| self.row(*row) - self.front.columns.len() + slots);
            let targets: Vec<usize> = left.chain(below).collect();
            let elements = &self.desk.stack[block.begin..][..of.square(targets.len()) * of.words()];
            of.add_to_rows(elements, &targets, out, side);
        }
    }
}

const EMPTY: PivotRecord = PivotRecord {
    column: 0,
    row: 0,
    form: PivotForm::LEFT,
};

/// A supernode of a node of subtrees as its tile has it.
pub(super) struct SubtreeColumns<'a> {
    pub columns: PivotColumns<'a>,
    pub supernode: u32,
}

/// Calls `each` with the supernodes of a tile of a node of subtrees.
pub(super) fn each_supernode<'t>(
    analysis: &Analysis,
    front: &FrontNode,
    kind: PivotedKind,
    item: usize,
    mut tile: &'t [u8],
    mut each: impl FnMut(SubtreeColumns<'t>),
) {
    for supernode in front.supernodes.clone() {
        let (counts, _) = read(tile, 0);
        let (counts, records) = read(tile, counts.candidates as usize);
        let candidates = u64::from(counts.candidates);
        let side = candidates + analysis.supernodes[supernode as usize].below();
        let pivots = u64::from(counts.pivots);
        let lower = pivots * side - pivots * pivots.saturating_sub(1) / 2;
        let entries = match kind {
            PivotedKind::Unsymmetric => 2 * lower - pivots,
            _ => lower,
        };
        let (data, rest) = tile[8 * header_words(candidates) as usize..].split_at(entries as usize * item);
        tile = rest;
        let columns = PivotColumns {
            kind,
            pivots: pivots as usize,
            records,
            data,
        };
        each(SubtreeColumns { columns, supernode });
    }
}
