//! The stages of a sort: runs, then what they are cut by, then the merge; or a sample, then runs cut into buckets by it,
//! then the buckets sorted.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::{Splitters, SPLITTERS_MAX};
use outcore_store::{Io, Layout, Source, PAGE};

use super::buckets::{Counts, Grouped, SortGroups};
use super::cut::{cut, BLOCKS_PER_RUN_MAX};
use super::form::{self, Form, RunNotes, Within};
use super::merge::{self, Merge};
use super::records::Method;
use super::segments::{Assumed, Partitioned, Segments};
use super::Records;
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::{Expr, Node, Op, SourceKey};
use crate::ops::Blocks;
use crate::task::{Grid, Recipe};
use crate::{ops, EngineError};

/// Runs and partitions are this many elements long, or a multiple of it: whole tiles and whole pages of every type.
pub(super) const UNIT: u64 = 1 << 16;
/// Bytes of the keys noted of all runs together, at most.
const NOTED_BYTES_MAX: u64 = 8 << 20;
/// Pieces that a task reads of each run are this long at least; shorter ones cost the disk more than their bytes.
const PIECE_BYTES: u64 = 64 << 10;
/// Pages of keys that are looked at to find out how they are distributed, at least and at most, and at most one of so
/// many.
const SAMPLE_PAGES_MIN: u64 = 32;
const SAMPLE_PAGES_MAX: u64 = 1024;
const SAMPLE_SHARE: u64 = 64;
/// Tasks at work, read for and written of beside the threads' own, while keys are distributed.
const AT_ONCE_MIN: u64 = 3;
const AT_ONCE_MAX: u64 = 6;
/// One in so many bytes of the keys may be read twice, since it lies in a page that two groups share: more tasks at once
/// make smaller groups, which share more.
const ENDS_SHARE: u64 = 28;

#[derive(Debug)]
pub(super) struct SortBy {
    pub records: Records,
    /// Nothing: by distribution where that moves no more bytes than merging.
    pub method: Option<Method>,
}

impl Staged for SortBy {
    fn name(&self) -> String {
        "sort".into()
    }

    fn key(&self) -> Vec<u8> {
        let method = match self.method {
            None => 0,
            Some(Method::Merge) => 1,
            Some(Method::Distribution) => 2,
        };
        vec![u8::from(self.records.order.descending()), method]
    }

    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new("sort by").flag(self.records.order.descending());
        Some(recipe.text(self.method.map_or("any", Method::name)))
    }

    fn results(&self) -> &[Grid] {
        &self.records.columns
    }

    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Sorting {
            records: self.records.clone(),
            method: self.method,
            inputs: inputs.to_vec(),
            begun: None,
            spreading: None,
            runs: None,
        }))
    }
}

/// A sort in progress.
struct Sorting {
    records: Records,
    method: Option<Method>,
    inputs: Vec<Expr>,
    /// The room in which a sample was asked for: it decides how runs are cut, also where the sort is gone on with in
    /// another.
    begun: Option<Room>,
    /// How keys are distributed, once they are.
    spreading: Option<Spreading>,
    /// Once runs are sorted.
    runs: Option<RunLengths>,
}

/// Lengths in elements.
#[derive(Clone, Copy)]
struct RunLengths {
    run: u64,
    /// From one noted key of a run to the next.
    stride: u64,
}

/// How keys are distributed.
#[derive(Clone, Copy)]
struct Spreading {
    /// Elements of a run.
    run: u64,
    /// Elements that a task sorts, at most.
    group: u64,
    splitters: usize,
}

impl Spreading {
    fn buckets(&self) -> u64 {
        Splitters::buckets(self.splitters) as u64
    }
}

/// Stored columns of a stage as sources.
fn stored(columns: &[StageResult]) -> Vec<Arc<dyn Source>> {
    let columns = columns.iter().filter_map(|column| match column {
        StageResult::Stored(source) => Some(source.clone()),
        StageResult::Fact(_) => None,
    });
    columns.collect()
}

/// A source as a node cut into some tiles.
fn source_node(source: &Arc<dyn Source>, tile: Vec<u64>) -> Expr {
    let (shape, dtype) = (source.shape().to_vec(), source.dtype());
    Node::intern(Op::Source(SourceKey(source.clone())), vec![], shape, dtype, tile)
}

/// The largest number of elements, in units, of which `bytes` says at most `memory`.
pub(super) fn largest(memory: u64, bytes: impl Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, memory / UNIT + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if bytes(middle * UNIT) <= memory {
            low = middle;
        } else {
            high = middle;
        }
    }
    low * UNIT
}

/// The largest number of elements, in units, whose tasks fit.
fn most(records: &Records, room: Room, workspace: impl Fn(u64) -> u64) -> u64 {
    let at_most = |at_once: u64| {
        largest(room.memory, |count| {
            (at_once + 1) * 2 * count * records.record_bytes() + at_once * workspace(count)
        })
    };
    let together = at_most(room.threads as u64);
    // With as many partitions as runs, each task reads so many bytes of each run.
    let piece = together.saturating_mul(together) / records.length.max(1) * records.order.dtype().size() as u64;
    if piece >= PIECE_BYTES {
        together
    } else {
        at_most(1).max(UNIT)
    }
}

/// Pages of the keys, evenly apart; nothing where there is no whole page.
///
/// # Errors
/// Keys that are not one column.
pub fn sample(keys: &Expr) -> Result<Option<Expr>, EngineError> {
    let rows = PAGE as u64 / keys.dtype.size() as u64;
    let pages = keys.elements() / rows;
    if pages == 0 {
        return Ok(None);
    }
    let wanted = (pages / SAMPLE_SHARE)
        .clamp(SAMPLE_PAGES_MIN, SAMPLE_PAGES_MAX)
        .min(pages);
    // Odd, so that no period of a power of two shows the same pages again and again.
    let step = (pages / wanted).max(1).next_multiple_of(2) - 1;
    ops::blocks(keys, Blocks { rows, step }).map(Some)
}

impl Sorting {
    fn in_one_run(&self, room: Room) -> bool {
        let count = self.records.length;
        let tiles = 2 * count * self.records.record_bytes();
        // Nothing else runs beside it, but tiles of what comes before and after pass through.
        tiles + form::workspace_bytes(&self.records, count, false) <= room.memory - room.memory / 8
            && count <= u64::from(u32::MAX)
    }

    fn partition(&self, room: Room) -> u64 {
        let tile = self.records.columns[0].tile[0];
        let most = most(&self.records, room, |count| {
            merge::workspace_bytes(&self.records, count)
        });
        (most / tile * tile).clamp(tile, self.records.length.next_multiple_of(tile))
    }

    fn merge(
        &self,
        inputs: &[Arc<dyn Source>],
        partition: u64,
        segments: Option<Arc<Segments>>,
    ) -> Result<Next, EngineError> {
        let inputs: Vec<Expr> = inputs
            .iter()
            .map(|source| source_node(source, vec![partition]))
            .collect();
        let merge = Merge {
            records: self.records.clone(),
            partition,
            segments,
        };
        Ok(Next::Done(ops::algorithm(Arc::new(merge), &inputs)?))
    }

    /// Memory of a task that sorts `count` elements of buckets.
    fn sorting_bytes(&self, count: u64) -> u64 {
        2 * count * self.records.record_bytes() + form::workspace_bytes(&self.records, count, false)
    }

    /// How the keys would be distributed; nothing where that is not possible, or costs more than merging.
    fn spreading(&self, room: Room) -> Option<Spreading> {
        let records = &self.records;
        let item = records.order.dtype().size() as u64;
        let stored = matches!(&self.inputs[0].op, Op::Source(key) if !matches!(key.0.layout(), Layout::Chunks(_)));
        let pages = records.length / (PAGE as u64 / item);
        // Where it is asked for, it may also cost more than merging.
        let asked = self.method == Some(Method::Distribution);
        let cheap = pages >= SAMPLE_PAGES_MIN * SAMPLE_SHARE / 2;
        if self.method == Some(Method::Merge) || !stored || pages == 0 || !(asked || cheap) {
            return None;
        }
        let sorting = |count: u64| self.sorting_bytes(count);
        let spreading = |count: u64| 2 * count * records.record_bytes() + form::spread_bytes(records, count);
        // A bucket may be larger than the sample makes it: groups of several are as large as they were meant to be.
        let bucket = records.length / (SPLITTERS_MAX as u64 + 1);
        let cut = |at_once: u64| {
            let wanted = largest(room.memory / at_once, sorting);
            let group = wanted.max(bucket + bucket / 2).next_multiple_of(UNIT);
            (largest(room.memory / at_once, spreading), group)
        };
        // The pages at the ends of what runs have of groups are read twice.
        let is_wasteful = |run: u64, group: u64| {
            let whole = (group / bucket.max(1)).max(1) * bucket.max(1);
            let segments = records.length.div_ceil(run.max(1)) * records.length.div_ceil(whole.min(group));
            segments * PAGE as u64 > records.length * item / ENDS_SHARE
        };
        // While some tasks compute, others are read and written: as many as that leaves.
        let threads = room.threads as u64;
        let mut cuts = (AT_ONCE_MIN..=AT_ONCE_MAX).rev().map(|beside| cut(threads + beside));
        let (run, group) = cuts
            .find(|&(run, group)| !is_wasteful(run, group))
            .unwrap_or_else(|| cut(threads + AT_ONCE_MAX));
        let groups = records.length.div_ceil(group);
        let fits = room.threads as u64 * sorting(group) <= room.memory && group <= u64::from(u32::MAX);
        let piece = run.saturating_mul(item) / groups.max(1);
        (fits && run >= UNIT && (asked || piece >= PIECE_BYTES)).then_some(Spreading {
            run,
            group,
            splitters: SPLITTERS_MAX.min(4 * groups as usize),
        })
    }

    fn begin_sample(&mut self, room: Room) -> Result<Next, EngineError> {
        self.begun = Some(room);
        Ok(Next::Stage {
            label: "sample keys".into(),
            awaits: "splitters that cut the keys evenly".into(),
            outputs: sample(&self.inputs[0])?
                .into_iter()
                .map(|pages| (pages, Keep::Fact))
                .collect(),
        })
    }

    /// Runs cut into buckets by a sample; without one where this is only planned.
    fn begin_spread(&mut self, sample: Option<&[u8]>, room: Room) -> Result<Next, EngineError> {
        let memory = self.begun.map_or(room.memory, |begun| begun.memory.min(room.memory));
        let Some(spreading) = self.spreading(Room { memory, ..room }) else {
            return self.begin_runs(room);
        };
        (self.spreading, self.runs) = (Some(spreading), None);
        let records = &self.records;
        let splitters = sample.map(|sample| Splitters::of_sample(records.order, sample, spreading.splitters));
        let within = Within::Spread {
            splitters: splitters.map(Arc::new),
            buckets: spreading.buckets(),
        };
        let form = Form::new(records.clone(), spreading.run, within);
        let mut columns = ops::algorithm(Arc::new(form), &self.inputs)?;
        // The counts go first: that tells what was found from what sorted runs leave.
        let counts = columns.pop().map(|counts| (counts, Keep::Fact));
        let runs = records.length.div_ceil(spreading.run);
        Ok(Next::Stage {
            label: format!("cut {runs} runs into buckets"),
            awaits: "how many elements each bucket has in each run".into(),
            outputs: counts
                .into_iter()
                .chain(columns.into_iter().map(|column| (column, Keep::Stored)))
                .collect(),
        })
    }

    /// Sorts the buckets; the runs instead, where one of them is much larger than the sample made it.
    fn sort_groups(&mut self, counts: &[u8], columns: &[StageResult], room: Room) -> Result<Next, EngineError> {
        let spreading = self
            .spreading
            .ok_or_else(|| EngineError::Internal("buckets of a sort that was not begun".into()))?;
        let counts = Counts::new(spreading.run, spreading.buckets(), counts);
        // Alone in memory, with the tiles at both its ends.
        let ends: u64 = self.records.columns.iter().map(|column| 2 * column.bytes(0)).sum();
        let most = largest(room.memory.saturating_sub(ends), |count| self.sorting_bytes(count));
        let Some(segments) = counts.groups(spreading.group, most.max(spreading.group)) else {
            return self.begin_runs(room);
        };
        let segments = Arc::new(segments);
        let groups = segments.starts.len() - 1;
        let mut rank = 0;
        let ranks = (0..groups as u64).map(|group| {
            rank += segments.elements(group);
            rank
        });
        let ranks = std::iter::once(0).chain(ranks).collect();
        let inputs: Vec<Expr> = stored(columns)
            .into_iter()
            .map(|runs| {
                let grouped = Grouped::new(runs, segments.clone());
                let tile = vec![1, grouped.shape()[1]];
                source_node(&(Arc::new(grouped) as Arc<dyn Source>), tile)
            })
            .collect();
        let sort = SortGroups::new(self.records.clone(), ranks, Some(segments), room.threads);
        Ok(Next::Done(ops::algorithm(Arc::new(sort), &inputs)?))
    }

    /// As `sort_groups`, with groups that are as full as they can be.
    fn assume_groups(&self, spreading: Spreading, room: Room) -> Result<Next, EngineError> {
        let length = self.records.length;
        let runs = length.div_ceil(spreading.run);
        // Any two neighbours are together larger than one may be.
        let groups = 2 * (length / spreading.group) + 1;
        let inputs: Vec<Expr> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(place, input)| {
                let item = input.dtype.size() as u64;
                let width = spreading.group + runs * 2 * PAGE as u64 / item;
                let tile = vec![1, width];
                let assumed = Assumed {
                    shape: vec![groups, width],
                    dtype: input.dtype,
                    tile: tile.clone(),
                    filled: Some(length.div_ceil(groups)),
                    runs,
                    identity: format!("buckets of {} to come: {place}, {runs}, {groups}", input.id),
                };
                source_node(&(Arc::new(assumed) as Arc<dyn Source>), tile)
            })
            .collect();
        let ranks = (0..=groups).map(|group| length * group / groups).collect();
        let sort = SortGroups::new(self.records.clone(), ranks, None, room.threads);
        Ok(Next::Done(ops::algorithm(Arc::new(sort), &inputs)?))
    }

    fn begin_runs(&mut self, room: Room) -> Result<Next, EngineError> {
        let records = &self.records;
        let run = most(records, room, |count| form::workspace_bytes(records, count, true));
        let stride = stride(records.order.dtype(), records.length);
        (self.spreading, self.runs) = (None, Some(RunLengths { run, stride }));
        let form = Form::new(records.clone(), run, Within::Sorted { stride });
        let outputs = ops::algorithm(Arc::new(form), &self.inputs)?;
        let columns = records.columns.len();
        let keep = |place: usize| if place < columns { Keep::Stored } else { Keep::Fact };
        Ok(Next::Stage {
            label: format!("sort {} runs", records.length.div_ceil(run)),
            awaits: "where partitions of equal length begin in each run".into(),
            outputs: outputs
                .into_iter()
                .enumerate()
                .map(|(place, node)| (node, keep(place)))
                .collect(),
        })
    }

    fn noted(&self, keys: &[u8]) -> Result<RunNotes, EngineError> {
        let RunLengths { run, stride } = self.sorted()?;
        Ok(RunNotes {
            order: self.records.order,
            length: self.records.length,
            run,
            stride,
            keys: Arc::new(keys.to_vec()),
        })
    }

    fn sorted(&self) -> Result<RunLengths, EngineError> {
        self.runs
            .ok_or_else(|| EngineError::Internal("a sort goes on that was not begun".into()))
    }
}

/// Elements between noted keys: a page, or several where that would be too many keys.
fn stride(dtype: DType, length: u64) -> u64 {
    let item = dtype.size() as u64;
    let mut stride = PAGE as u64 / item;
    while length / stride * item > NOTED_BYTES_MAX && stride < UNIT {
        stride *= 2;
    }
    stride
}

impl Sorting {
    fn start(&mut self, room: Room) -> Result<Next, EngineError> {
        if self.in_one_run(room) || self.records.length <= UNIT {
            let form = Form::new(self.records.clone(), self.records.length.max(1), Within::Whole);
            return Ok(Next::Done(ops::algorithm(Arc::new(form), &self.inputs)?));
        }
        match self.spreading(room) {
            Some(_) => self.begin_sample(room),
            None => self.begin_runs(room),
        }
    }

    fn merge_runs(&self, keys: &[u8], columns: &[StageResult], room: Room, io: &Io) -> Result<Next, EngineError> {
        let runs = stored(columns);
        let run = self.sorted()?.run;
        let partition = self.partition(room);
        let noted = self.noted(keys)?;
        let partitions = self.records.length.div_ceil(partition);
        let ranks: Vec<u64> = (0..=partitions)
            .map(|at| (at * partition).min(self.records.length))
            .collect();
        let starts = cut(&noted, runs[0].as_ref(), &ranks, io)?;
        let segments = Arc::new(Segments { run, starts });
        let inputs: Vec<Arc<dyn Source>> = runs
            .into_iter()
            .map(|runs| Arc::new(Partitioned::new(runs, segments.clone(), partition)) as Arc<dyn Source>)
            .collect();
        self.merge(&inputs, partition, Some(segments))
    }

    fn assume_runs(&self, room: Room) -> Result<Next, EngineError> {
        let run = self.sorted()?.run;
        let partition = self.partition(room);
        let inputs: Vec<Arc<dyn Source>> = self
            .records
            .columns
            .iter()
            .zip(&self.inputs)
            .enumerate()
            .map(|(place, (column, input))| {
                Arc::new(Assumed {
                    shape: column.shape.clone(),
                    dtype: column.dtype,
                    tile: vec![partition],
                    filled: None,
                    runs: self.records.length.div_ceil(run),
                    identity: format!("runs of {} to come: {place}, {run}, {partition}", input.id),
                }) as Arc<dyn Source>
            })
            .collect();
        self.merge(&inputs, partition, None)
    }
}

impl Stages for Sorting {
    fn next(&mut self, results: &[StageResult], room: Room, io: &Io) -> Result<Next, EngineError> {
        match results {
            [] => self.start(room),
            [StageResult::Fact(sample)] => self.begin_spread(Some(sample), room),
            [StageResult::Fact(counts), columns @ ..] => self.sort_groups(counts, columns, room),
            [columns @ .., StageResult::Fact(keys)] => self.merge_runs(keys, columns, room, io),
            _ => Err(EngineError::Internal("a sort found what it did not ask for".into())),
        }
    }

    fn assume(&mut self, after: usize, room: Room) -> Result<Next, EngineError> {
        if self.begun.is_some() && after == 1 {
            return self.begin_spread(None, room);
        }
        match self.spreading {
            Some(spreading) => self.assume_groups(spreading, room),
            None => self.assume_runs(room),
        }
    }

    fn lookup_bytes(&self) -> u64 {
        let Some(RunLengths { run, stride }) = self.runs else {
            return 0;
        };
        let runs = self.records.length.div_ceil(run);
        // Partitions are at least half as long as runs, unless memory has gone since.
        let cuts = 2 * runs;
        let block = stride * self.records.order.dtype().size() as u64;
        (cuts * runs * BLOCKS_PER_RUN_MAX * block).min(cuts * self.records.length * self.records.record_bytes())
    }
}
