//! The stages of a sort: runs, then what they are cut by, then the merge.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Io, Source, PAGE};

use super::cut::{cut, BLOCKS_PER_RUN_MAX};
use super::form::{self, Form, Noted};
use super::merge::{self, Merge};
use super::segments::{Assumed, Partitioned, Segments};
use super::Records;
use crate::expr::staged::{Found, Keep, Next, Room, Staged, Stages};
use crate::expr::{Expr, Node, Op, SourceKey};
use crate::task::Grid;
use crate::{ops, EngineError};

/// Runs and partitions are this many elements long, or a multiple of it: whole tiles and whole pages of every type.
const UNIT: u64 = 1 << 16;
/// Bytes of the keys noted of all runs together, at most.
const NOTED_BYTES_MAX: u64 = 8 << 20;
/// Pieces that a task reads of each run are this long at least; shorter ones cost the disk more than their bytes.
const PIECE_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct SortBy {
    pub records: Records,
}

impl Staged for SortBy {
    fn name(&self) -> String {
        "sort".into()
    }

    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.records.order.descending())]
    }

    fn results(&self) -> &[Grid] {
        &self.records.columns
    }

    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Sorting {
            records: self.records.clone(),
            inputs: inputs.to_vec(),
            runs: None,
        }))
    }
}

/// A sort in progress.
struct Sorting {
    records: Records,
    inputs: Vec<Expr>,
    /// Elements of a run and of a block of it, once runs are needed.
    runs: Option<(u64, u64)>,
}

/// The largest number of elements, in units, whose tasks fit.
fn most(records: &Records, room: Room, workspace: impl Fn(u64) -> u64) -> u64 {
    let fits = |units: u64, at_once: u64| {
        let count = units * UNIT;
        let tiles = (at_once + 1) * 2 * count * records.record_bytes();
        tiles + at_once * workspace(count) <= room.memory
    };
    let largest = |at_once: u64| {
        let (mut low, mut high) = (0, room.memory / (UNIT * records.record_bytes()) + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle, at_once) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low * UNIT
    };
    let together = largest(room.threads as u64);
    // With as many partitions as runs, each task reads so many bytes of each run.
    let piece = together.saturating_mul(together) / records.length.max(1) * records.order.dtype().size() as u64;
    if piece >= PIECE_BYTES {
        together
    } else {
        largest(1).max(UNIT)
    }
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
            .map(|source| {
                let (shape, dtype) = (source.shape().to_vec(), source.dtype());
                Node::intern(
                    Op::Source(SourceKey(source.clone())),
                    vec![],
                    shape,
                    dtype,
                    vec![partition],
                )
            })
            .collect();
        let merge = Merge {
            records: self.records.clone(),
            partition,
            segments,
        };
        Ok(Next::Done(ops::algorithm(Arc::new(merge), &inputs)?))
    }

    fn begin_runs(&mut self, room: Room) -> Result<Next, EngineError> {
        let records = &self.records;
        let run = most(records, room, |count| form::workspace_bytes(records, count, true));
        let stride = stride(records.order.dtype(), records.length);
        self.runs = Some((run, stride));
        let form = Form::new(records.clone(), run, Some(stride));
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

    fn noted(&self, keys: &[u8]) -> Result<Noted, EngineError> {
        let (run, stride) = self.begun()?;
        Ok(Noted {
            order: self.records.order,
            length: self.records.length,
            run,
            stride,
            keys: Arc::new(keys.to_vec()),
        })
    }

    fn begun(&self) -> Result<(u64, u64), EngineError> {
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

impl Stages for Sorting {
    fn next(&mut self, found: &[Found], room: Room, io: &Io) -> Result<Next, EngineError> {
        let Some((Found::Fact(keys), columns)) = found.split_last() else {
            if self.in_one_run(room) || self.records.length <= UNIT {
                let form = Form::new(self.records.clone(), self.records.length.max(1), None);
                return Ok(Next::Done(ops::algorithm(Arc::new(form), &self.inputs)?));
            }
            return self.begin_runs(room);
        };
        let runs: Vec<Arc<dyn Source>> = columns
            .iter()
            .filter_map(|column| match column {
                Found::Stored(source) => Some(source.clone()),
                Found::Fact(_) => None,
            })
            .collect();
        let (run, _) = self.begun()?;
        let partition = self.partition(room);
        let noted = self.noted(keys)?;
        let partitions = self.records.length.div_ceil(partition);
        let ranks: Vec<u64> = (0..=partitions)
            .map(|at| (at * partition).min(self.records.length))
            .collect();
        let starts = cut(&noted, runs[0].as_ref(), &ranks, io)?;
        let segments = Arc::new(Segments { run, partition, starts });
        let inputs: Vec<Arc<dyn Source>> = runs
            .into_iter()
            .map(|runs| Arc::new(Partitioned::new(runs, segments.clone())) as Arc<dyn Source>)
            .collect();
        self.merge(&inputs, partition, Some(segments))
    }

    fn assume(&mut self, room: Room) -> Result<Next, EngineError> {
        let (run, _) = self.begun()?;
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
                    partition,
                    runs: self.records.length.div_ceil(run),
                    identity: format!("runs of {} to come: {place}, {run}, {partition}", input.id),
                }) as Arc<dyn Source>
            })
            .collect();
        self.merge(&inputs, partition, None)
    }

    fn lookup_bytes(&self) -> u64 {
        let Some((run, stride)) = self.runs else { return 0 };
        let runs = self.records.length.div_ceil(run);
        // Partitions are at least half as long as runs, unless memory has gone since.
        let cuts = 2 * runs;
        let block = stride * self.records.order.dtype().size() as u64;
        (cuts * runs * BLOCKS_PER_RUN_MAX * block).min(cuts * self.records.length * self.records.record_bytes())
    }
}
