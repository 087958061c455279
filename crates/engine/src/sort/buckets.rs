//! Buckets of runs become parts of the sorted sequence: so many at a time as are sorted by one task.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Interval, Io, Layout, ReadCost, Region, Source, StoreError, PAGE};

use super::form::{self, Elements};
use super::segments::Segments;
use super::Records;
use crate::task::costs::PER_KEY;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

/// How many elements each run has of each bucket.
pub(super) struct Counts {
    /// Elements of a run.
    pub run: u64,
    pub buckets: usize,
    /// Run after run.
    pub counts: Vec<i64>,
}

impl Counts {
    /// Reads what was noted.
    pub fn new(run: u64, buckets: u64, noted: &[u8]) -> Counts {
        let counts = noted.chunks_exact(size_of::<i64>());
        Counts {
            run,
            buckets: buckets as usize,
            counts: counts.map(bytemuck::pod_read_unaligned).collect(),
        }
    }

    /// Whether these are counts of runs of so many elements together.
    pub fn fill(&self, length: u64) -> bool {
        let filled = |(at, counts): (usize, &[i64])| {
            let left = length.saturating_sub((at as u64).saturating_mul(self.run));
            let sum = counts
                .iter()
                .try_fold(0u64, |sum, count| sum.checked_add(u64::try_from(*count).ok()?));
            sum == Some(left.min(self.run))
        };
        let runs = length.div_ceil(self.run.max(1)).checked_mul(self.buckets as u64);
        runs == Some(self.counts.len() as u64) && self.counts.chunks_exact(self.buckets).enumerate().all(filled)
    }

    fn of(&self, bucket: usize) -> impl Iterator<Item = u64> + '_ {
        let runs = self.counts.chunks_exact(self.buckets);
        runs.map(move |counts| counts[bucket].max(0) as u64)
    }

    /// Joins buckets into groups of `wanted` elements or fewer. A bucket of equal elements may be cut anywhere; another that
    /// is larger is a group of its own, and where it has more than `most` elements, there are no groups.
    pub fn groups(&self, wanted: u64, most: u64) -> Option<Segments> {
        let runs = self.counts.len() / self.buckets.max(1);
        let mut at = vec![0; runs];
        let mut starts = vec![at.clone()];
        let mut filled = 0;
        for bucket in 0..self.buckets {
            let mut left: Vec<u64> = self.of(bucket).collect();
            let mut total: u64 = left.iter().sum();
            let is_equal = bucket % 2 == 1;
            if total > most && !is_equal {
                return None;
            }
            let mut close = |at: &[u64], filled: &mut u64| {
                if *filled > 0 {
                    starts.push(at.to_vec());
                    *filled = 0;
                }
            };
            if filled + total > wanted && !is_equal {
                close(&at, &mut filled);
            }
            while filled + total > wanted && is_equal {
                let taken = wanted.saturating_sub(filled);
                take(&mut left, &mut at, taken);
                (filled, total) = (filled + taken, total - taken);
                close(&at, &mut filled);
            }
            take(&mut left, &mut at, total);
            filled += total;
        }
        if filled > 0 {
            starts.push(at);
        }
        Some(Segments { run: self.run, starts })
    }
}

/// Moves `count` elements from `left` to `at`, those of earlier runs first.
fn take(left: &mut [u64], at: &mut [u64], mut count: u64) {
    for (left, at) in left.iter_mut().zip(at) {
        let taken = count.min(*left);
        *left -= taken;
        *at += taken;
        count -= taken;
    }
}

/// The segments of a group as they lie in its tile: each on pages of its own, as in the file, so that nothing is moved.
pub(super) fn places(
    segments: &Segments,
    group: u64,
    item: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut page = 0;
    segments.of(group).map(move |segment| {
        let begin = page + (segment.start as usize * item) % PAGE;
        let end = begin + segment.length as usize * item;
        page = end.next_multiple_of(PAGE);
        begin..end
    })
}

/// A column of runs, group by group: a tile is the front of a row, and holds the group's segments at their `places`.
#[derive(Debug)]
pub(super) struct Grouped {
    runs: Arc<dyn Source>,
    segments: Arc<Segments>,
    shape: [u64; 2],
    listed: Arc<[u64]>,
    identity: String,
}

impl Grouped {
    pub fn new(runs: Arc<dyn Source>, segments: Arc<Segments>) -> Grouped {
        let (groups, item) = (segments.starts.len() as u64 - 1, runs.dtype().size());
        let ends = (0..groups).map(|group| {
            places(&segments, group, item)
                .last()
                .map_or(0, |place| place.end as u64)
        });
        let listed: Arc<[u64]> = ends.collect();
        let largest = listed.iter().copied().max().unwrap_or(0);
        let shape = [groups, largest.div_ceil(item as u64).max(1)];
        let identity = format!("{} in {} groups of {}", runs.identity(), shape[0], shape[1]);
        Grouped {
            runs,
            segments,
            shape,
            listed,
            identity,
        }
    }

    fn parts(&self, region: &Region) -> impl Iterator<Item = (Region, std::ops::Range<usize>)> + '_ {
        let group = region.start[0];
        let places = places(&self.segments, group, self.dtype().size());
        self.segments.regions(group).zip(places)
    }
}

impl Source for Grouped {
    fn name(&self) -> String {
        "buckets of runs".into()
    }
    fn shape(&self) -> &[u64] {
        &self.shape
    }
    fn dtype(&self) -> DType {
        self.runs.dtype()
    }
    fn layout(&self) -> Layout {
        Layout::Chunks(vec![1, self.shape[1]])
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn listed(&self) -> Option<Arc<[u64]>> {
        Some(self.listed.clone())
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.runs.check_unchanged()
    }
    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.runs.check_unwritten()
    }
    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        let mut total = ReadCost {
            frame_bytes: self.listed[region.start[0] as usize] as usize,
            ..ReadCost::default()
        };
        for (part, place) in self.parts(region) {
            let cost = self.runs.cost(&part, io)?;
            total.read_bytes += cost.read_bytes;
            total.frame_bytes = total.frame_bytes.max(page_of(&place) + cost.frame_bytes);
            total.workspace_bytes = total.workspace_bytes.max(cost.workspace_bytes);
        }
        Ok(total)
    }
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        for (part, place) in self.parts(region) {
            let page = page_of(&place);
            let offset = page + self.runs.read(&part, &mut frame[page..], io)?;
            if offset != place.start {
                frame.copy_within(offset..offset + place.len(), place.start);
            }
        }
        Ok(0)
    }
}

fn page_of(place: &std::ops::Range<usize>) -> usize {
    place.start / PAGE * PAGE
}

/// Sorts groups of buckets, one task each.
#[derive(Clone, Debug)]
pub(super) struct SortGroups {
    records: Records,
    /// Elements before each group, and all.
    ranks: Arc<Vec<u64>>,
    /// Where they lie, once it is known.
    segments: Option<Arc<Segments>>,
    /// The groups in the order of tasks, and where each of them is in it.
    sequence: Arc<Vec<u64>>,
    turns: Arc<Vec<u64>>,
}

impl SortGroups {
    pub fn new(records: Records, ranks: Vec<u64>, segments: Option<Arc<Segments>>, threads: usize) -> SortGroups {
        let groups = ranks.len() as u64 - 1;
        let sequence = match records.length / groups.max(1) >= 2 * records.columns[0].tile[0] {
            true => apart(groups, threads as u64),
            false => (0..groups).collect(),
        };
        let mut turns = vec![0; sequence.len()];
        for (turn, &group) in sequence.iter().enumerate() {
            turns[group as usize] = turn as u64;
        }
        SortGroups {
            records,
            ranks: Arc::new(ranks),
            segments,
            sequence: Arc::new(sequence),
            turns: Arc::new(turns),
        }
    }

    fn range(&self, task: u64) -> Interval {
        let group = self.sequence[task as usize] as usize;
        Interval::between(self.ranks[group], self.ranks[group + 1])
    }

    /// Whether no earlier task writes to the tile of a result.
    fn creates(&self, task: u64, grid: &Grid, tile: u64) -> bool {
        let (start, end) = (tile * grid.tile[0], (tile + 1) * grid.tile[0]);
        let first = self.ranks.partition_point(|&rank| rank <= start) - 1;
        let behind = self.ranks.partition_point(|&rank| rank < end).min(self.turns.len());
        self.turns[first..behind].iter().all(|&turn| turn >= task)
    }

    /// Tiles that a task writes to.
    fn written(&self, task: u64) -> std::ops::Range<u64> {
        self.range(task).tiles(self.records.columns[0].tile[0])
    }
}

/// Neighbours share a tile of the result, and one waits for the other. So every second group comes first, as far ahead of
/// those between them as keeps all threads busy; further ahead, more tiles would wait to be completed. Where groups are
/// smaller than tiles even that were too many.
fn apart(groups: u64, threads: u64) -> Vec<u64> {
    let ahead = 2 * (threads - 1).max(1);
    let mut between = (1..groups).step_by(2);
    let mut order = Vec::with_capacity(groups as usize);
    for group in (0..groups).step_by(2) {
        order.push(group);
        if group >= ahead {
            order.extend(between.next());
        }
    }
    order.extend(between);
    order
}

impl Alone for SortGroups {
    fn key(&self) -> Vec<u8> {
        // Where groups lie is said by the inputs' identities.
        let direction = u64::from(self.records.order.descending());
        let numbers = [direction, u64::from(self.segments.is_some())];
        let all = numbers.iter().chain(self.ranks.iter());
        all.flat_map(|number| number.to_le_bytes()).collect()
    }

    fn results(&self) -> &[Grid] {
        &self.records.columns
    }
}

impl Work for SortGroups {
    fn label(&self) -> String {
        "sort buckets".into()
    }

    fn tasks(&self) -> u64 {
        self.sequence.len() as u64
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let columns = self.records.columns.len();
        (0..columns).for_each(|column| each(column, self.sequence[task as usize], Access::Read));
        for (column, grid) in self.records.columns.iter().enumerate() {
            for tile in self.written(task) {
                let access = if self.creates(task, grid, tile) {
                    Access::Create
                } else {
                    Access::Update
                };
                each(columns + column, tile, access);
            }
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let count = self.range(task).length;
        form::workspace_bytes(&self.records, count, self.written(task).count() <= 1)
    }

    fn operations(&self) -> f64 {
        PER_KEY * self.records.length as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let Some(segments) = &self.segments else {
            return Err(EngineError::Internal("buckets that are not known are sorted".into()));
        };
        let (group, range) = (self.sequence[task as usize], self.range(task));
        let columns = self.records.columns.iter().zip(&tiles.reads);
        let parts = columns.map(|(column, tile)| {
            let places = places(segments, group, column.dtype.size());
            places.map(|place| &tile[place]).collect()
        });
        let per_column = tiles.writes.len() / self.records.columns.len();
        let written = tiles.writes.chunks_mut(per_column.max(1)).zip(&self.records.columns);
        let mut elements = Elements {
            records: &self.records,
            count: range.length as usize,
            parts: parts.collect(),
            places: written.map(|(tiles, grid)| cut_down(grid, range, tiles)).collect(),
        };
        elements.sort(workspace);
        Ok(())
    }
}

/// The parts of tiles that a range of elements goes to.
fn cut_down<'a>(grid: &Grid, range: Interval, tiles: &'a mut [&mut [u8]]) -> Vec<&'a mut [u8]> {
    let item = grid.dtype.size();
    range
        .tiles(grid.tile[0])
        .zip(tiles)
        .map(|(tile, bytes)| {
            let begin = tile * grid.tile[0];
            let from = range.start.saturating_sub(begin) as usize * item;
            let to = ((range.end() - begin) as usize * item).min(bytes.len());
            &mut bytes[from..to]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(runs: &[&[i64]]) -> Counts {
        Counts {
            run: 100,
            buckets: runs[0].len(),
            counts: runs.concat(),
        }
    }

    #[test]
    fn groups_are_of_whole_buckets_unless_all_is_equal() {
        let all = counts(&[&[3, 20, 2, 0], &[1, 5, 4, 0]]);
        let groups = all.groups(10, 20).unwrap();
        let lengths: Vec<u64> = (0..groups.starts.len() as u64 - 1)
            .map(|group| groups.elements(group))
            .collect();
        assert_eq!(lengths, [10, 10, 9, 6]);
        let apart = counts(&[&[3, 0, 15, 2], &[1, 0, 4, 0]]).groups(10, 20).unwrap();
        assert_eq!(
            (0..3).map(|group| apart.elements(group)).collect::<Vec<_>>(),
            [4, 19, 2]
        );
        assert_eq!(
            groups.of(0).collect::<Vec<_>>(),
            [Interval::new(0, 9), Interval::new(100, 1)]
        );
        assert_eq!(
            groups.of(2).collect::<Vec<_>>(),
            [Interval::new(19, 4), Interval::new(101, 5)]
        );
        assert!(counts(&[&[11, 0], &[0, 0]]).groups(5, 10).is_none());
    }

    #[test]
    fn every_group_has_one_turn_and_neighbours_are_apart() {
        for groups in 0..40 {
            let mut order = apart(groups, 3);
            assert!(order
                .windows(2)
                .all(|pair| groups < 5 || pair[0].abs_diff(pair[1]) > 1 || pair[1] % 2 == 1));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..groups));
        }
    }
}
