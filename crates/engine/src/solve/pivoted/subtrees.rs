//! Subtrees that one task eliminates with pivoting. A candidate that is left goes to the parent's front, as far as there is
//! room; what the roots leave goes to the slots of the node.
//!
//! The tile of the factor has for each supernode counts and records of its candidates, whose numbers are those of columns in
//! the node, then the columns of L from the diagonal down, each followed by its row of U where the matrix is not symmetric.

use outcore_kernels::{CandidateSides, PivotColumns, PivotForm, PivotRecord, PivotedKind};

use super::super::factorize::FrontPlaces;
use super::super::fronts::FrontNode;
use super::super::supernodes::{triangle, Supernode};
use super::super::Analysis;
use super::blocks::{in_slot, read, record_bytes, write, PivotCounts};
use super::fronts::{PivotedCut, PivotedNode, SubtreeRoom};
use super::tasks::PivotedFactorization;
use crate::task::Bound;
use crate::EngineError;

/// Words of the counts and records of so many candidates.
pub(super) fn header_words(candidates: u64) -> u64 {
    record_bytes(candidates as usize) as u64 / 8
}

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

/// What subtrees have used of their room.
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
        let words = self.words();
        let places = FrontPlaces::new(&self.analysis, front);
        let own = |row: u32| places.of(row).unwrap_or(0) as usize;
        let desk = self.desk(front, room, workspace);
        let supernodes = &self.analysis.supernodes;
        let (factor, contribution) = bound.writes.split_first_mut().expect("a tile of the factor");
        let mut entries = self.scatter(front, &bound.reads, desk.owners, factor)?;
        let least = |one: &Supernode| {
            let entries = self.entries_in(one.pivots as usize, one.front as usize) * words;
            entries + header_words(u64::from(one.pivots)) as usize
        };
        let mut used = RoomUsed {
            words: 0,
            to_come: supernodes[front.supernodes.start as usize..front.supernodes.end as usize]
                .iter()
                .map(least)
                .sum(),
            waiting: 0,
            more: 0,
        };
        // Candidates that roots have left.
        let mut handed = 0;
        let mut waiting: Vec<WaitingBlock> = vec![];
        let mut to_parent = vec![0u32; front.supernodes.len()];
        for number in front.supernodes.clone() {
            let one = &supernodes[number as usize];
            used.to_come -= least(one);
            let begin = waiting.partition_point(|block| supernodes[block.supernode as usize].parent != number);
            let children = waiting.split_off(begin);
            let below = self.analysis.below(number);
            let own_pivots = one.pivots as usize;
            let first = one.first - front.columns.start;
            let mut candidates: Vec<[u32; 2]> = (first..first + one.pivots).map(|column| [column; 2]).collect();
            for child in &children {
                candidates.extend(&child.left);
                used.more -= self.square(child.left.len() + child.below) - self.square(child.below);
            }
            used.waiting -= candidates.len() - own_pivots;
            let width = candidates.len();
            let side = width + below.len();
            let data = &mut desk.front[..side * side * words];
            data.fill(0.0);
            for place in 0..own_pivots {
                desk.places[first as usize + place] = place as u32;
            }
            for (place, &row) in below.iter().enumerate() {
                desk.places[own(row)] = (width + place) as u32;
            }
            let own_entries = bytemuck::cast_slice::<u8, f64>(&factor[entries..]);
            entries += 8 * self.begin_front(one, own_entries, data, [side, width]);
            let mut next = own_pivots;
            for child in &children {
                let left = next..next + child.left.len();
                next = left.end;
                let rows = self.analysis.below(child.supernode);
                let below = rows.iter().map(|row| desk.places[own(*row)] as usize);
                let targets: Vec<usize> = left.chain(below).collect();
                let block = &desk.stack[child.begin..][..self.square(targets.len()) * words];
                self.add_square(block, &targets, data, side);
            }
            let most = self.most_left(node, room, one, &used, (handed, &to_parent), (front, side, width));
            let before = handed;
            let mut records = vec![EMPTY; width];
            let sides = CandidateSides {
                height: side,
                width,
                lead: side,
            };
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
            let item = self.item();
            let columns = &mut bytes[..side * width * item];
            let pivots = self
                .panel
                .eliminate_candidates(sides, self.rule, most, columns, &mut records);
            self.panel
                .subtract_from_rest(side, pivots, self.kind(), &records, bytes, desk.rest);
            for record in &mut records {
                record.column = candidates[record.column as usize][0];
                record.row = candidates[record.row as usize][1];
            }
            let left = &mut records[pivots..];
            if one.parent >= front.supernodes.end {
                for record in &mut *left {
                    record.form = in_slot(handed);
                    handed += 1;
                }
            } else {
                to_parent[(one.parent - front.supernodes.start) as usize] += left.len() as u32;
                used.waiting += left.len();
            }
            let left: Vec<[u32; 2]> = left.iter().map(|record| [record.column, record.row]).collect();
            let counts = PivotCounts {
                pivots: pivots as u32,
                before,
                after: handed,
                candidates: width as u32,
            };
            used.words += self.put_columns(
                counts,
                &records,
                &desk.front[..side * side * words],
                side,
                &mut factor[used.words * 8..],
            );
            let rest = side - pivots;
            if rest > 0 {
                let begin = waiting.last().map_or(0, |block| {
                    block.begin + self.square(block.left.len() + block.below) * words
                });
                let out = &mut desk.stack[begin..][..self.square(rest) * words];
                used.more += self.square(rest) - self.square(below.len());
                self.copy_rest(&desk.front[..side * side * words], side, pivots, out);
                waiting.push(WaitingBlock {
                    supernode: number,
                    begin,
                    left,
                    below: below.len(),
                });
            }
        }
        factor[used.words * 8..].fill(0);
        let Some(out) = contribution.first_mut() else {
            return Ok(());
        };
        let out: &mut [f64] = bytemuck::cast_slice_mut(out);
        out.fill(0.0);
        let slots = node.slots as usize;
        let sides = slots + (front.below.end - front.below.start) as usize;
        for slot in handed as usize..slots {
            out[self.at(slot, slot, sides) * words] = 1.0;
        }
        let mut first = 0;
        for block in waiting {
            let rows = self.analysis.below(block.supernode);
            let left = first..first + block.left.len();
            first = left.end;
            let below = rows.iter().map(|row| own(*row) - front.columns.len() + slots);
            let targets: Vec<usize> = left.chain(below).collect();
            let block = &desk.stack[block.begin..][..self.square(targets.len()) * words];
            self.add_to_rows(block, &targets, out, sides);
        }
        Ok(())
    }

    /// Where an element of a contribution block of so many rows is.
    fn at(&self, row: usize, column: usize, side: usize) -> usize {
        match self.is_symmetric() {
            true => row * (row + 1) / 2 + column,
            false => row * side + column,
        }
    }

    /// Candidates that a supernode may leave, so that the rest has room whatever comes.
    fn most_left(
        &self,
        node: &PivotedNode,
        room: SubtreeRoom,
        one: &Supernode,
        used: &RoomUsed,
        (handed, to_parent): (u32, &[u32]),
        (front, side, width): (&FrontNode, usize, usize),
    ) -> usize {
        let below = side - width;
        let mut most = width;
        while most > 0 && used.more + self.square(most + below) - self.square(below) > room.more {
            most -= 1;
        }
        if one.parent >= front.supernodes.end {
            return most.min((node.slots - handed) as usize);
        }
        let parent = &self.analysis.supernodes[one.parent as usize];
        let taken = to_parent[(one.parent - front.supernodes.start) as usize] as usize;
        most = most.min(room.side.saturating_sub(parent.front as usize + taken));
        let words = self.words();
        let own = self.entries_in(width, side) * words + header_words(width as u64) as usize;
        let free = room.words.saturating_sub(used.words + own + used.to_come);
        // A candidate that waits takes no more than the longest column, and its record.
        let each = self.entries_in(1, room.side) * words + 2;
        most.min((free / each).saturating_sub(used.waiting))
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
        let lines = &front.columns;
        let of_rows = self.rows.tiles(lines).count();
        let columns = u64::from(first)..u64::MAX;
        let is_symmetric = self.is_symmetric();
        self.rows
            .for_each(lines, columns.clone(), &reads[..of_rows], |line, other, value| {
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
        if let Some(of_columns) = &self.columns {
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

    /// Adds a contribution block, column by column, to a front.
    fn add_square(&self, block: &[f64], targets: &[usize], data: &mut [f64], side: usize) {
        let words = self.words();
        let mut at = 0;
        for (column, &target) in targets.iter().enumerate() {
            let rows = if self.is_symmetric() {
                &targets[column..]
            } else {
                targets
            };
            for &row in rows {
                // The lower triangle counts; of candidates that were left, rows below may lie before them.
                let is_turned = self.is_symmetric() && row < target;
                let (row, column) = if is_turned { (target, row) } else { (row, target) };
                let to = (column * side + row) * words;
                let from = &block[at..at + words];
                data[to] += from[0];
                if let [_, imaginary] = from {
                    let is_conjugate = is_turned && self.kind() == PivotedKind::Hermitian;
                    data[to + 1] += if is_conjugate { -imaginary } else { *imaginary };
                }
                at += words;
            }
        }
    }

    /// As [`PivotedFactorization::add_square`], to a tile of a contribution block.
    fn add_to_rows(&self, block: &[f64], targets: &[usize], out: &mut [f64], side: usize) {
        let words = self.words();
        let mut at = 0;
        for (column, &target) in targets.iter().enumerate() {
            let rows = if self.is_symmetric() {
                &targets[column..]
            } else {
                targets
            };
            for &row in rows {
                let to = self.at(row, target, side) * words;
                let from = &block[at..at + words];
                out[to..to + words]
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to += from);
                at += words;
            }
        }
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
