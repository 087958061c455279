//! Where each run is cut so that the parts before the cuts are exactly the first `rank` elements in the order of
//! (key, run, position).
//!
//! The keys noted of every run bound how many of its elements precede a key to within one block; the block is read where
//! that leaves a doubt. From the noted key nearest to the rank, at most a few blocks of each run are walked to the rank
//! itself, element by element. Equal keys are counted, not walked.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;

use outcore_kernels::sort::{compare, count_less, count_less_equal, sort_keys, sort_workspace_bytes, KeyOrder};
use outcore_store::{AlignedBuffer, Io, Region, Source, StoreError, PAGE};

use super::form::RunNotes;
use crate::{cancel, EngineError};

/// Threads that look up blocks: each read is small, so several are under way.
const READERS: usize = 8;
/// Blocks of each run that are read for one cut at most.
pub(super) const BLOCKS_PER_RUN_MAX: u64 = 7;

/// The cuts of all runs at each of `ranks`.
///
/// # Errors
/// What reading the runs reports.
pub(super) fn cut(noted: &RunNotes, runs: &dyn Source, ranks: &[u64], io: &Io) -> Result<Vec<Vec<u64>>, EngineError> {
    let keys = sorted_keys(noted);
    let next = AtomicUsize::new(0);
    let cuts: Mutex<Vec<Option<Vec<u64>>>> = Mutex::new(vec![None; ranks.len()]);
    let failed: Mutex<Option<StoreError>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..READERS.min(ranks.len()) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Relaxed);
                let stop = failed.lock().is_ok_and(|failed| failed.is_some());
                let Some(&rank) = ranks.get(at).filter(|_| !stop) else {
                    return;
                };
                let mut cutter = PartitionSearch {
                    noted,
                    runs,
                    io,
                    blocks: HashMap::new(),
                };
                match cutter.cut(&keys, rank) {
                    Ok(cut) => {
                        if let Ok(mut cuts) = cuts.lock() {
                            cuts[at] = Some(cut);
                        }
                    }
                    Err(error) => {
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_default() {
        return Err(error.into());
    }
    let cuts = cuts.into_inner().unwrap_or_default();
    let all: Option<Vec<Vec<u64>>> = cuts.into_iter().collect();
    all.ok_or_else(|| EngineError::Internal("a cut of sorted runs was not found".into()))
}

/// All noted keys, in order.
fn sorted_keys(noted: &RunNotes) -> Vec<u8> {
    let mut keys: Vec<u8> = Vec::new();
    for run in 0..noted.runs() {
        keys.extend_from_slice(noted.of_run(run));
    }
    // Words, so that keys of any type are aligned.
    let item = noted.order.dtype().size();
    let count = keys.len() / item;
    let mut aligned = vec![0u64; keys.len().div_ceil(8)];
    let mut space = vec![0u64; sort_workspace_bytes(noted.order, count).div_ceil(8)];
    let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut aligned)[..count * item];
    bytes.copy_from_slice(&keys);
    sort_keys(noted.order, bytes, bytemuck::cast_slice_mut(&mut space));
    bytes.to_vec()
}

/// An element of a run.
struct Element {
    order: KeyOrder,
    key: Vec<u8>,
    run: usize,
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.order, &self.key, &other.key).then(self.run.cmp(&other.run))
    }
}

struct PartitionSearch<'a> {
    noted: &'a RunNotes,
    runs: &'a dyn Source,
    io: &'a Io,
    blocks: HashMap<(usize, u64), Vec<u8>>,
}

impl PartitionSearch<'_> {
    fn item(&self) -> usize {
        self.noted.order.dtype().size()
    }

    fn block(&mut self, run: usize, block: u64) -> Result<&[u8], StoreError> {
        let (noted, item) = (self.noted, self.item());
        if !self.blocks.contains_key(&(run, block)) {
            let start = block * noted.stride;
            let region = Region {
                start: vec![run as u64 * noted.run + start],
                shape: vec![noted.stride.min(noted.run_length(run) - start)],
            };
            let cost = self.runs.cost(&region, self.io)?;
            let no_memory = |cause| StoreError::Invalid(format!("sorted runs: no memory for a block: {cause}"));
            let mut frame = AlignedBuffer::new(cost.frame_bytes.next_multiple_of(PAGE)).map_err(no_memory)?;
            let offset = self.runs.read(&region, &mut frame, self.io)?;
            let bytes = region.elements() as usize * item;
            self.blocks.insert((run, block), frame[offset..offset + bytes].to_vec());
        }
        Ok(&self.blocks[&(run, block)])
    }

    fn element(&mut self, run: usize, at: u64) -> Result<Element, StoreError> {
        let (order, item, stride) = (self.noted.order, self.item(), self.noted.stride);
        let within = (at % stride) as usize * item;
        let key = self.block(run, at / stride)?[within..within + item].to_vec();
        Ok(Element { order, key, run })
    }

    /// How many elements of a run may come before `key`.
    fn bracket(&self, run: usize, key: &[u8], or_equal: bool) -> RangeInclusive<u64> {
        let noted = self.noted;
        let count = if or_equal { count_less_equal } else { count_less };
        let before = count(noted.order, noted.of_run(run), key) as u64;
        let length = noted.run_length(run);
        if before == 0 {
            return 0..=0;
        }
        if count(noted.order, noted.last(run), key) == 1 {
            return length..=length;
        }
        (before - 1) * noted.stride + 1..=(before * noted.stride).min(length)
    }

    fn exact(&mut self, run: usize, key: &[u8], or_equal: bool) -> Result<u64, StoreError> {
        let (least, most) = self.bracket(run, key, or_equal).into_inner();
        if least == most {
            return Ok(least);
        }
        let order = self.noted.order;
        let count = if or_equal { count_less_equal } else { count_less };
        let block = (least - 1) / self.noted.stride;
        let inside = count(order, self.block(run, block)?, key) as u64;
        Ok(block * self.noted.stride + inside)
    }

    /// Elements of every run before `key`.
    fn ranks(&mut self, key: &[u8], or_equal: bool) -> Result<Vec<u64>, StoreError> {
        (0..self.noted.runs())
            .map(|run| self.exact(run, key, or_equal))
            .collect()
    }

    /// Twice the middle of what the rank of `key` may be.
    fn middle(&self, key: &[u8]) -> u64 {
        let brackets = (0..self.noted.runs()).map(|run| self.bracket(run, key, false));
        brackets.map(|bracket| bracket.start() + bracket.end()).sum()
    }

    fn cut(&mut self, keys: &[u8], rank: u64) -> Result<Vec<u64>, StoreError> {
        let runs = self.noted.runs();
        if rank == 0 {
            return Ok(vec![0; runs]);
        }
        if rank == self.noted.length {
            return Ok((0..runs).map(|run| self.noted.run_length(run)).collect());
        }
        // The greatest noted key whose rank is judged to be no more.
        let item = self.item();
        let (mut low, mut high) = (0, keys.len() / item);
        while high - low > 1 {
            cancel::check();
            let middle = low + (high - low) / 2;
            if self.middle(&keys[middle * item..][..item]) <= 2 * rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        let key = keys[low * item..][..item].to_vec();
        let before = self.ranks(&key, false)?;
        let total: u64 = before.iter().sum();
        if total > rank {
            return self.walk_back(before, total - rank);
        }
        let near = 2 * self.noted.stride * runs as u64;
        if rank - total <= near {
            return self.walk_on(before, rank - total);
        }
        // Far more elements than blocks leave in doubt: most of them equal the key.
        let behind = self.ranks(&key, true)?;
        let total_behind: u64 = behind.iter().sum();
        if rank >= total_behind {
            return self.walk_on(behind, rank - total_behind);
        }
        // Equal keys go in the order of the runs.
        let mut left = rank - total;
        let cuts = before.iter().zip(&behind).map(|(&from, &to)| {
            let taken = left.min(to - from);
            left -= taken;
            from + taken
        });
        Ok(cuts.collect())
    }

    /// Takes the next `count` elements in order.
    fn walk_on(&mut self, mut cuts: Vec<u64>, count: u64) -> Result<Vec<u64>, StoreError> {
        let mut heap = BinaryHeap::new();
        if count == 0 {
            return Ok(cuts);
        }
        for (run, &cut) in cuts.iter().enumerate() {
            if cut < self.noted.run_length(run) {
                heap.push(Reverse(self.element(run, cut)?));
            }
        }
        for _ in 0..count {
            let Some(Reverse(least)) = heap.pop() else { break };
            cuts[least.run] += 1;
            if cuts[least.run] < self.noted.run_length(least.run) {
                heap.push(Reverse(self.element(least.run, cuts[least.run])?));
            }
        }
        Ok(cuts)
    }

    /// Gives back the last `count` elements in order.
    fn walk_back(&mut self, mut cuts: Vec<u64>, count: u64) -> Result<Vec<u64>, StoreError> {
        let mut heap = BinaryHeap::new();
        for (run, &cut) in cuts.iter().enumerate() {
            if cut > 0 {
                heap.push(self.element(run, cut - 1)?);
            }
        }
        for _ in 0..count {
            let Some(greatest) = heap.pop() else { break };
            cuts[greatest.run] -= 1;
            if cuts[greatest.run] > 0 {
                heap.push(self.element(greatest.run, cuts[greatest.run] - 1)?);
            }
        }
        Ok(cuts)
    }
}
