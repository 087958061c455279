//! One band of columns a task.

use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};
use std::sync::Arc;

use outcore_kernels::sort::{
    count_less, gather_items, nan_key, sort_index, sort_index_workspace_bytes, sort_keys, sort_workspace_bytes,
    KeyOrder,
};

use super::kind::ColumnKind;
use crate::task::costs::PER_KEY;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// Columns that are brought into a row each at once.
const TOGETHER: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct WholeColumns {
    kind: ColumnKind,
    order: KeyOrder,
    x: Grid,
    has_codes: bool,
    results: Vec<Grid>,
}

/// The parts of a task's workspace, which follow each other at places that suit every type.
struct WorkspaceParts<'a> {
    /// `TOGETHER` columns, each a row.
    columns: &'a mut [u8],
    /// The same of positions.
    places: &'a mut [u8],
    /// One column by itself.
    column: &'a mut [u8],
    /// Positions, `u32`, and where groups end among them, `u64`.
    index: &'a mut [u8],
    ends: &'a mut [u8],
    spare: &'a mut [u8],
}

impl WholeColumns {
    pub(super) fn new(kind: ColumnKind, order: KeyOrder, x: Grid, has_codes: bool) -> WholeColumns {
        WholeColumns {
            results: kind.results(&x),
            kind,
            order,
            x,
            has_codes,
        }
    }

    fn rows(&self) -> usize {
        self.x.shape[0] as usize
    }

    /// Tiles side by side: bands.
    fn bands(&self) -> u64 {
        self.x.counts()[1..].iter().product()
    }

    fn row_tiles(&self) -> u64 {
        self.x.counts()[0]
    }

    /// Bytes of the parts of the workspace, in the order of `Space`.
    fn parts(&self) -> [usize; 6] {
        let (rows, item) = (self.rows(), self.x.dtype.size());
        let together = TOGETHER.min(self.x.tile[1..].iter().product::<u64>() as usize);
        let lane = rows * item;
        let [places, column, index, ends, spare] = match &self.kind {
            ColumnKind::Sorted | ColumnKind::Quantiles(_) => [0, 0, 0, 0, sort_workspace_bytes(self.order, rows)],
            ColumnKind::Positions => {
                let spare = sort_index_workspace_bytes(self.order, rows);
                [together * rows * 8, 0, rows * 4, 0, spare]
            }
            ColumnKind::Middles { groups, .. } => {
                let ends = (*groups as usize + 1) * 8;
                [0, lane, rows * 4, ends, sort_workspace_bytes(self.order, rows)]
            }
        };
        [together * lane, places, column, index, ends, spare].map(|bytes| bytes.next_multiple_of(64))
    }

    fn space<'a>(&self, mut workspace: &'a mut [u8]) -> WorkspaceParts<'a> {
        let mut next = |bytes: usize| {
            let (part, rest) = std::mem::take(&mut workspace).split_at_mut(bytes);
            workspace = rest;
            part
        };
        let [columns, places, column, index, ends, spare] = self.parts().map(&mut next);
        WorkspaceParts {
            columns,
            places,
            column,
            index,
            ends,
            spare,
        }
    }

    /// Memory of a whole task: its tiles and its workspace.
    pub(super) fn task_bytes(&self) -> u64 {
        let columns = self.x.tile[1..].iter().product::<u64>().max(1);
        let read = self.x.shape[0] * columns * self.x.dtype.size() as u64;
        let made = self.results.iter().map(|grid| {
            let rows = if grid.shape.len() == self.x.shape.len() {
                grid.shape[0]
            } else {
                1
            };
            rows * columns * grid.dtype.size() as u64
        });
        let codes = if self.has_codes { 8 * self.x.shape[0] } else { 0 };
        read + made.sum::<u64>() + codes + self.parts().iter().sum::<usize>() as u64
    }
}

impl Algorithm for WholeColumns {
    fn name(&self) -> String {
        self.kind.name().into()
    }
    fn key(&self) -> Vec<u8> {
        self.kind.key(self.order)
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        match self.x.shape.contains(&0) {
            true => vec![],
            false => vec![Arc::new(self.clone())],
        }
    }
}

impl Work for WholeColumns {
    fn label(&self) -> String {
        self.kind.name().into()
    }

    fn tasks(&self) -> u64 {
        self.bands()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let bands = self.bands();
        (0..self.row_tiles()).for_each(|tile| each(0, tile * bands + task, Access::Read));
        if self.has_codes {
            each(1, 0, Access::Read);
        }
        let first = 1 + usize::from(self.has_codes);
        for (result, grid) in self.results.iter().enumerate() {
            let tiles = grid.tiles() / bands;
            (0..tiles).for_each(|tile| each(first + result, tile * bands + task, Access::Create));
        }
    }

    fn workspace_bytes(&self, _task: u64) -> u64 {
        self.parts().iter().sum::<usize>() as u64
    }

    fn operations(&self) -> f64 {
        PER_KEY * self.x.shape.iter().product::<u64>() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let mut space = self.space(workspace);
        let width: u64 = self.x.region(task)[1..].iter().map(|along| along.length).product();
        let (width, rows, item) = (width as usize, self.rows(), self.x.dtype.size());
        let reads = match self.has_codes {
            true => {
                let (codes, reads) = tiles.reads.split_last().ok_or_else(missing)?;
                self.group(codes, &mut space);
                reads
            }
            false => &tiles.reads[..],
        };
        for first in (0..width).step_by(TOGETHER) {
            let columns = (width - first).min(TOGETHER);
            let lanes = &mut space.columns[..columns * rows * item];
            across(item, reads, width, first, rows, lanes);
            match &self.kind {
                ColumnKind::Sorted => {
                    let sorted = lanes.chunks_exact_mut(rows * item);
                    sorted.for_each(|lane| sort_keys(self.order, lane, space.spare));
                    back(item, lanes, width, first, rows, &mut tiles.writes);
                }
                ColumnKind::Positions => {
                    let index = &mut space.index[..rows * 4];
                    let places = &mut space.places[..columns * rows * 8];
                    for (lane, places) in lanes
                        .chunks_exact_mut(rows * item)
                        .zip(places.chunks_exact_mut(rows * 8))
                    {
                        sort_index(self.order, lane, index, space.spare);
                        widen(index, places);
                    }
                    back(8, places, width, first, rows, &mut tiles.writes);
                }
                ColumnKind::Quantiles(fractions) => {
                    for (column, lane) in (first..).zip(lanes.chunks_exact_mut(rows * item)) {
                        sort_keys(self.order, lane, space.spare);
                        self.pick(fractions, lane, column, width, &mut tiles.writes)?;
                    }
                }
                ColumnKind::Middles { omit, .. } => {
                    for (column, lane) in (first..).zip(lanes.chunks_exact(rows * item)) {
                        let parts = (&mut *space.column, &*space.index, &*space.ends, &mut *space.spare);
                        self.middles(*omit, lane, parts, (column, width), &mut tiles.writes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl WholeColumns {
    /// Elements of a sorted column that are not NaN.
    fn numbers(&self, sorted: &[u8]) -> usize {
        match nan_key(self.x.dtype) {
            Some(nan) => count_less(self.order, sorted, &nan),
            None => sorted.len() / self.x.dtype.size(),
        }
    }

    fn pick(
        &self,
        fractions: &[f64],
        sorted: &[u8],
        column: usize,
        width: usize,
        writes: &mut [&mut [u8]],
    ) -> Result<(), EngineError> {
        let [low, high, between, counts] = writes else {
            return Err(missing());
        };
        let (item, numbers) = (self.x.dtype.size(), self.numbers(sorted));
        counts[column * 8..][..8].copy_from_slice(&(numbers as i64).to_ne_bytes());
        let last = numbers.saturating_sub(1);
        for (row, fraction) in fractions.iter().enumerate() {
            // Without numbers the first is a NaN.
            let place = fraction * last as f64;
            let first = (place.floor() as usize).min(last);
            let at = row * width + column;
            for (rank, side) in [(first, &mut *low), (usize::min(first + 1, last), &mut *high)] {
                side[at * item..][..item].copy_from_slice(&sorted[rank * item..][..item]);
            }
            between[at * 8..][..8].copy_from_slice(&(place - first as f64).to_ne_bytes());
        }
        Ok(())
    }

    /// Brings positions into the order of their groups, and notes where those end.
    fn group(&self, codes: &[u8], space: &mut WorkspaceParts<'_>) {
        let ColumnKind::Middles { groups, .. } = self.kind else {
            return;
        };
        let ends: &mut [u64] = bytemuck::cast_slice_mut(&mut space.ends[..(groups as usize + 1) * 8]);
        ends.fill(0);
        let codes: &[i64] = bytemuck::cast_slice(codes);
        let known = |code: &i64| usize::try_from(*code).ok().filter(|&code| code < groups as usize);
        codes.iter().filter_map(known).for_each(|code| ends[code + 1] += 1);
        for group in 0..groups as usize {
            ends[group + 1] += ends[group];
        }
        let index: &mut [u32] = bytemuck::cast_slice_mut(&mut space.index[..codes.len() * 4]);
        index.fill(0);
        // Each begins where the one before it ends; afterwards it stands at its own end.
        for (row, code) in codes.iter().enumerate() {
            if let Some(code) = known(code) {
                index[ends[code] as usize] = row as u32;
                ends[code] += 1;
            }
        }
    }

    fn middles(
        &self,
        omit: bool,
        lane: &[u8],
        (column, index, ends, spare): (&mut [u8], &[u8], &[u8], &mut [u8]),
        (place, width): (usize, usize),
        writes: &mut [&mut [u8]],
    ) -> Result<(), EngineError> {
        let [low, high] = writes else {
            return Err(missing());
        };
        let item = self.x.dtype.size();
        let column = &mut column[..lane.len()];
        gather_items(item, &index[..lane.len() / item * 4], lane, column);
        let nothing = nan_key(self.x.dtype).unwrap_or_else(|| vec![0; item]);
        let groups = self.results[0].shape[0] as usize;
        let ends: &[u64] = bytemuck::cast_slice(&ends[..groups * 8]);
        let mut start = 0;
        for (group, &end) in ends.iter().enumerate() {
            let of_group = &mut column[start * item..end as usize * item];
            sort_keys(self.order, of_group, spare);
            let (count, numbers) = (end as usize - start, self.numbers(of_group));
            let at = (group * width + place) * item;
            let ranks = [numbers.saturating_sub(1) / 2, numbers / 2];
            for (rank, side) in ranks.into_iter().zip([&mut *low, &mut *high]) {
                let is_nothing = numbers == 0 || numbers < count && !omit;
                let value = if is_nothing {
                    &nothing
                } else {
                    &of_group[rank * item..][..item]
                };
                side[at..][..item].copy_from_slice(value);
            }
            start = end as usize;
        }
        Ok(())
    }
}

/// Some columns of tiles one above the other, as rows.
fn across(item: usize, tiles: &[&[u8]], width: usize, first: usize, rows: usize, lanes: &mut [u8]) {
    let (columns, mut at) = (lanes.len() / (rows * item), 0);
    for tile in tiles {
        let count = tile.len() / (width * item);
        let (from, to) = ([1, width as isize], [rows as isize, 1]);
        copy_strided(
            item,
            &[columns, count],
            StridedBytes::new(tile, first, &from),
            StridedBytesMut::new(lanes, at, &to),
        );
        at += count;
    }
}

/// Rows as columns of tiles one above the other.
fn back(item: usize, lanes: &[u8], width: usize, first: usize, rows: usize, tiles: &mut [&mut [u8]]) {
    let (columns, mut at) = (lanes.len() / (rows * item), 0);
    for tile in tiles {
        let count = tile.len() / (width * item);
        let (from, to) = ([1, rows as isize], [width as isize, 1]);
        copy_strided(
            item,
            &[count, columns],
            StridedBytes::new(lanes, at, &from),
            StridedBytesMut::new(tile, first, &to),
        );
        at += count;
    }
}

/// Positions of 32 bits as int64.
fn widen(index: &[u8], places: &mut [u8]) {
    let (index, _) = index.as_chunks::<4>();
    for (place, at) in places.chunks_exact_mut(8).zip(index) {
        place.copy_from_slice(&i64::from(u32::from_ne_bytes(*at)).to_ne_bytes());
    }
}

fn missing() -> EngineError {
    EngineError::Internal("columns are worked on without their tiles".into())
}
