//! Runs seen across: a tile is what they hold of one partition or of one group of buckets, segment after segment.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Interval, Io, Layout, ReadCost, Region, Source, StoreError, PAGE};

use crate::expr::Expr;
use crate::{ops, EngineError};

/// The segments of every partition, or group.
#[derive(Debug)]
pub(super) struct Segments {
    /// Elements of a run.
    pub run: u64,
    /// For each partition and one more: where it begins in each run.
    pub starts: Vec<Vec<u64>>,
}

impl Segments {
    /// The segments of a partition that are not empty: first element in the runs' file, and how many.
    pub fn of(&self, partition: u64) -> impl Iterator<Item = Interval> + '_ {
        let from = &self.starts[partition as usize];
        let to = &self.starts[partition as usize + 1];
        let pairs = from.iter().zip(to).enumerate();
        pairs
            .map(|(run, (&from, &to))| Interval::new(run as u64 * self.run + from, to - from))
            .filter(|segment| !segment.is_empty())
    }

    /// The same as parts of the runs' file.
    pub fn regions(&self, partition: u64) -> impl Iterator<Item = Region> + '_ {
        self.of(partition).map(|segment| Region {
            start: vec![segment.start],
            shape: vec![segment.length],
        })
    }

    /// Elements of a partition.
    pub fn elements(&self, partition: u64) -> u64 {
        self.of(partition).map(|segment| segment.length).sum()
    }

    /// Where the segments of a partition end in it.
    pub fn ends(&self, partition: u64) -> Vec<usize> {
        let mut end = 0;
        let ends = self.of(partition).map(|segment| {
            end += segment.length as usize;
            end
        });
        ends.collect()
    }
}

/// A column of sorted runs, partition by partition.
#[derive(Debug)]
pub(super) struct Partitioned {
    runs: Arc<dyn Source>,
    segments: Arc<Segments>,
    /// Elements of a partition.
    partition: u64,
    identity: String,
}

impl Partitioned {
    pub fn new(runs: Arc<dyn Source>, segments: Arc<Segments>, partition: u64) -> Partitioned {
        let identity = format!("{} in partitions of {partition}", runs.identity());
        Partitioned {
            runs,
            segments,
            partition,
            identity,
        }
    }

    /// The parts of the runs' file that hold a tile.
    fn regions(&self, region: &Region) -> impl Iterator<Item = Region> + '_ {
        debug_assert_eq!(region.start[0] % self.partition, 0);
        self.segments.regions(region.start[0] / self.partition)
    }
}

impl Source for Partitioned {
    fn name(&self) -> String {
        "sorted runs".into()
    }
    fn shape(&self) -> &[u64] {
        self.runs.shape()
    }
    fn dtype(&self) -> DType {
        self.runs.dtype()
    }
    fn layout(&self) -> Layout {
        Layout::Chunks(vec![self.partition])
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.runs.check_unchanged()
    }
    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.runs.check_unwritten()
    }
    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        let item = self.dtype().size();
        let (mut total, mut at) = (ReadCost::default(), 0);
        for part in self.regions(region) {
            let cost = self.runs.cost(&part, io)?;
            total.read_bytes += cost.read_bytes;
            total.frame_bytes = total
                .frame_bytes
                .max(usize::next_multiple_of(at, PAGE) + cost.frame_bytes);
            total.workspace_bytes = total.workspace_bytes.max(cost.workspace_bytes);
            at += part.elements() as usize * item;
        }
        Ok(total)
    }
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let item = self.dtype().size();
        let mut at = 0;
        for part in self.regions(region) {
            // Reads start on a page; the segment then moves up to the one before it.
            let page = usize::next_multiple_of(at, PAGE);
            let offset = self.runs.read(&part, &mut frame[page..], io)?;
            let bytes = part.elements() as usize * item;
            frame.copy_within(page + offset..page + offset + bytes, at);
            at += bytes;
        }
        Ok(0)
    }
}

/// Partitions of runs that are not there yet, at the most that their reads can cost.
#[derive(Debug)]
pub(super) struct Assumed {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub tile: Vec<u64>,
    /// Elements of a tile on the average, where most are smaller than their place.
    pub filled: Option<u64>,
    pub runs: u64,
    pub identity: String,
}

impl Assumed {
    /// As large as a node and in its tiles.
    pub fn like(node: &Expr, identity: String) -> Assumed {
        Assumed {
            shape: node.shape.clone(),
            dtype: node.dtype,
            tile: node.tile.clone(),
            filled: None,
            runs: 1,
            identity,
        }
    }
}

impl Source for Assumed {
    fn name(&self) -> String {
        "sorted runs".into()
    }
    fn shape(&self) -> &[u64] {
        &self.shape
    }
    fn dtype(&self) -> DType {
        self.dtype
    }
    fn layout(&self) -> Layout {
        Layout::Chunks(self.tile.clone())
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        let elements = self.filled.unwrap_or(region.elements());
        // A segment shares its first and its last page with its neighbours.
        let segments = self.runs.min(elements);
        Ok(ReadCost {
            read_bytes: elements * self.dtype.size() as u64 + segments * 2 * PAGE as u64,
            frame_bytes: region.elements() as usize * self.dtype.size() + 3 * PAGE,
            workspace_bytes: 0,
        })
    }
    fn read(&self, _region: &Region, _frame: &mut [u8], _io: &Io) -> Result<usize, StoreError> {
        Err(StoreError::Invalid("sorted runs are read before they are made".into()))
    }
}

/// A node as large as another and in its tiles, of values that a run before would store: programs are planned over it,
/// and never run.
///
/// # Errors
/// None for nodes that there are.
pub fn foreseen(node: &Expr) -> Result<Expr, EngineError> {
    let identity = format!("values to come: {}", node.id);
    ops::source(Arc::new(Assumed::like(node, identity)))
}
