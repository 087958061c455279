//! Elements cut into buckets by their keys, for those who sort group after group of them as they use them.

use std::ops::Range;
use std::sync::Arc;

use outcore_kernels::sort::{Splitters, SPLITTERS_MAX};
use outcore_store::{AlignedBuffer, Io, Region, Source, StoreError, PAGE};

use super::buckets::{places, Counts, Grouped};
use super::external::{largest, UNIT};
use super::form::{self, Elements, Form, Within};
use super::segments::Segments;
use super::Records;
use crate::expr::staged::Room;
use crate::expr::Expr;
use crate::{ops, EngineError};

/// Tasks that are read for, computed and written of at once beside the threads' own: many where memory has room for runs
/// that are long all the same.
const AT_ONCE: Range<u64> = 1..7;

/// Bytes of keys that a run has of a bucket: shorter pieces cost the disk more than their bytes.
const PIECE_BYTES: u64 = 128 << 10;

/// How elements are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// Elements of a run.
    pub run: u64,
    /// Splitters that buckets lie between, at most.
    pub splitters: usize,
}

/// How keys and their values are cut into groups of about `wanted` elements, and never more than `most`; nothing where
/// there is no room for that.
///
/// # Errors
/// As [`super::sort_by`].
pub fn parting(
    keys: &Expr,
    values: &[Expr],
    wanted: u64,
    most: u64,
    room: Room,
) -> Result<Option<Parting>, EngineError> {
    let records = Records::of(keys, values, false)?;
    let splitters = (2 * records.length).div_ceil(wanted.max(1)).min(SPLITTERS_MAX as u64);
    // A bucket may be larger than the sample makes it.
    let bucket = records.length / (splitters + 1);
    // Elements come to a task, go from it, and are read and made for the next one.
    let bytes = |count: u64| 3 * count * records.record_bytes() + form::spread_bytes(&records, count);
    let run_of = |beside: u64| largest(room.memory / (room.threads as u64 + beside), bytes);
    // What a run has of a bucket is read in one piece; longer runs than that asks for would only take memory.
    let item = records.order.dtype().size() as u64;
    let long = (PIECE_BYTES / item * (splitters + 1)).next_multiple_of(UNIT);
    let runs = || AT_ONCE.rev().map(run_of);
    let run = runs()
        .find(|run| *run >= long)
        .or_else(|| runs().rfind(|run| *run >= UNIT));
    let most_of_all = long.min(records.length.next_multiple_of(UNIT));
    Ok(run.filter(|_| bucket + bucket / 2 <= most).map(|run| Parting {
        run: run.min(most_of_all),
        splitters: splitters as usize,
    }))
}

/// Keys and values in runs of buckets, and how many elements each bucket has in each run.
///
/// # Errors
/// As [`super::sort_by`].
pub fn part(keys: &Expr, values: &[Expr], sample: &[u8], parting: Parting) -> Result<Vec<Expr>, EngineError> {
    let records = Records::of(keys, values, false)?;
    let splitters = Splitters::of_sample(records.order, sample, parting.splitters);
    let within = Within::Spread {
        splitters: Some(Arc::new(splitters)),
        buckets: Splitters::buckets(parting.splitters) as u64,
    };
    let inputs: Vec<Expr> = std::iter::once(keys).chain(values).cloned().collect();
    ops::algorithm(Arc::new(Form::new(records, parting.run, within)), &inputs)
}

/// Stored elements in groups, each of which is sorted when it is read: none has a key below those of the one before.
pub struct Parts {
    records: Records,
    segments: Arc<Segments>,
    columns: Vec<Grouped>,
    /// Elements before each group, and all.
    ranks: Vec<u64>,
}

/// Memory to read and sort a group in.
#[derive(Default)]
pub struct GroupSpace {
    frames: Vec<Option<AlignedBuffer>>,
    sorted: Vec<Option<AlignedBuffer>>,
    workspace: Option<AlignedBuffer>,
}

impl Parts {
    /// What [`part`] has made, in groups of `wanted` elements or fewer, or of more if a bucket has so many, up to `most`;
    /// nothing where one has more.
    ///
    /// # Errors
    /// Columns or counts that are not of one length.
    pub fn of_runs(
        columns: &[Expr],
        counts: &[u8],
        parting: Parting,
        wanted: u64,
        most: u64,
    ) -> Result<Option<Parts>, EngineError> {
        let buckets = Splitters::buckets(parting.splitters) as u64;
        let counts = Counts::new(parting.run, buckets, counts);
        let length = columns.first().map_or(0, |keys| keys.elements());
        if !counts.fill(length) {
            return Err(EngineError::Shape(
                "sort: counts of buckets are of other elements".into(),
            ));
        }
        counts
            .groups(wanted, most)
            .map(|segments| Parts::new(columns, segments))
            .transpose()
    }

    /// Stored elements in order, or so few that they are one group: `wanted` of them at a time.
    ///
    /// # Errors
    /// Columns that are not of one length.
    pub fn of_sorted(columns: &[Expr], wanted: u64) -> Result<Parts, EngineError> {
        let run = columns.first().map_or(0, |keys| keys.elements());
        let groups = run.div_ceil(wanted.max(1));
        let starts = (0..=groups).map(|group| vec![(group * wanted).min(run)]).collect();
        Parts::new(columns, Segments { run, starts })
    }

    fn new(columns: &[Expr], segments: Segments) -> Result<Parts, EngineError> {
        let (keys, values) = columns
            .split_first()
            .ok_or_else(|| EngineError::Shape("sort: no columns".into()))?;
        let records = Records::of(keys, values, false)?;
        let segments = Arc::new(segments);
        let stored = columns.iter().map(|column| match &column.op {
            crate::expr::Op::Source(key) => Ok(Grouped::new(key.0.clone(), segments.clone())),
            _ => Err(EngineError::Argument(format!("sort: {} is not stored", column.label()))),
        });
        let groups = 0..segments.starts.len() - 1;
        let ranks = groups.scan(0, |rank, group| {
            *rank += segments.elements(group as u64);
            Some(*rank)
        });
        Ok(Parts {
            ranks: std::iter::once(0).chain(ranks).collect(),
            columns: stored.collect::<Result<_, _>>()?,
            records,
            segments,
        })
    }

    pub fn groups(&self) -> u64 {
        self.segments.starts.len() as u64 - 1
    }

    /// Elements of a group.
    pub fn elements(&self, group: u64) -> u64 {
        self.ranks[group as usize + 1] - self.ranks[group as usize]
    }

    /// Elements before a group; of the number of groups, all.
    pub fn before(&self, group: u64) -> u64 {
        self.ranks[group as usize]
    }

    /// Bytes of [`GroupSpace`] that groups take.
    pub fn space_bytes(&self) -> u64 {
        let most = (0..self.groups()).map(|group| self.elements(group)).max().unwrap_or(0);
        let runs = self.segments.starts[0].len() as u64;
        space_bytes(&self.records, most, runs)
    }

    /// The columns of a group, sorted by the first.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn read<'a>(&self, group: u64, space: &'a mut GroupSpace, io: &Io) -> Result<Vec<&'a [u8]>, EngineError> {
        let count = self.elements(group);
        space.frames.resize_with(self.columns.len(), || None);
        space.sorted.resize_with(self.columns.len(), || None);
        let region = |column: &Grouped| Region::new(vec![group, 0], vec![1, column.shape()[1]]);
        for (column, frame) in self.columns.iter().zip(&mut space.frames) {
            let bytes = column.cost(&region(column), io)?.frame_bytes;
            column.read(&region(column), room(frame, bytes)?, io)?;
        }
        let items = || self.records.items();
        for (item, sorted) in items().zip(&mut space.sorted) {
            room(sorted, count as usize * item)?;
        }
        let parts = items().zip(&space.frames).map(|(item, frame)| {
            let frame = frame.as_deref().unwrap_or(&[]);
            places(&self.segments, group, item).map(|place| &frame[place]).collect()
        });
        let sorted = items().zip(&mut space.sorted);
        let sorted =
            sorted.map(|(item, sorted)| &mut sorted.as_deref_mut().unwrap_or(&mut [])[..count as usize * item]);
        let mut elements = Elements {
            records: &self.records,
            count: count as usize,
            parts: parts.collect(),
            places: sorted.map(|place| vec![place]).collect(),
        };
        let bytes = form::workspace_bytes(&self.records, count, true) as usize;
        elements.sort(&mut room(&mut space.workspace, bytes)?[..bytes]);
        let sorted = items().zip(&space.sorted);
        Ok(sorted
            .map(|(item, sorted)| &sorted.as_deref().unwrap_or(&[])[..count as usize * item])
            .collect())
    }
}

/// Bytes of [`GroupSpace`] for `count` elements of columns in `runs` runs.
fn space_bytes(records: &Records, count: u64, runs: u64) -> u64 {
    // Each segment begins on a page of its own and may end on another.
    let pages = (2 * runs + 2) * PAGE as u64 * records.columns.len() as u64;
    2 * count * records.record_bytes() + form::workspace_bytes(records, count, true) + 2 * pages
}

/// As [`Parts::space_bytes`], for `count` elements of keys and values before these are stored.
///
/// # Errors
/// As [`super::sort_by`].
pub fn group_bytes(keys: &Expr, values: &[Expr], count: u64) -> Result<u64, EngineError> {
    Ok(space_bytes(&Records::of(keys, values, false)?, count, 0))
}

/// A buffer of so many bytes or more; the one there is, where that is long enough.
fn room(buffer: &mut Option<AlignedBuffer>, bytes: usize) -> Result<&mut [u8], StoreError> {
    if buffer.as_ref().is_none_or(|buffer| buffer.len() < bytes) {
        *buffer = None;
        let made = AlignedBuffer::new(bytes.next_multiple_of(PAGE).max(PAGE));
        *buffer = Some(made.map_err(|cause| StoreError::Invalid(format!("sort: no memory for a group: {cause}")))?);
    }
    Ok(buffer.as_deref_mut().unwrap_or(&mut []))
}
