//! An array of a rectilinear chunk grid: of boxes in which chunks have one shape, each read as an array of chunks.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::edges::EdgeRun;
use super::files::{ZarrFiles, ZarrManifest};
use crate::array::region::{copy_lattice, Lattice};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::chunked::chain::CodecChain;
use crate::chunked::manifest::ChunkGrid;
use crate::chunked::source::ChunkArray;
use crate::memory::workspace::WorkBuffer;
use crate::{Io, Region, StoreError};

/// The array, whose boxes are made when a region needs them: its memory grows with the runs of its axes alone.
#[derive(Debug)]
pub(super) struct RectilinearArray {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub fill: Vec<u8>,
    pub chain: CodecChain,
    pub axes: Vec<Vec<EdgeRun>>,
    /// The largest chunks, or the chunks within shards.
    pub unit: Vec<u64>,
    pub files: Arc<ZarrFiles>,
}

/// The part of a region in one box.
struct BoxPart {
    array: ChunkArray<ZarrManifest>,
    /// In the box.
    region: Region,
    /// Where the part begins in the region.
    origin: Vec<u64>,
}

impl RectilinearArray {
    fn chunks(&self, runs: &[&EdgeRun]) -> ChunkArray<ZarrManifest> {
        let of = |number: fn(&EdgeRun) -> u64| runs.iter().map(|run| number(run)).collect::<Vec<u64>>();
        let cell = of(|run| run.edge);
        let unit = self.files.unit(&cell);
        ChunkArray {
            manifest: ZarrManifest::new(self.files.clone(), of(|run| run.first), &cell),
            grid: ChunkGrid {
                shape: of(|run| run.end - run.start),
                dtype: self.dtype,
                cell,
                unit,
                fill: self.fill.clone(),
                chain: self.chain.clone(),
                is_cut: false,
            },
        }
    }

    /// The parts of a region, in C order of their boxes.
    fn parts<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = BoxPart> + 'a {
        let axes = self.axes.iter().zip(&region.start).zip(&region.shape);
        let touched: Vec<&[EdgeRun]> = axes
            .map(|((runs, &start), &length)| {
                let from = runs.partition_point(|run| run.end <= start);
                let to = runs.partition_point(|run| run.start < start + length);
                &runs[from..to.max(from)]
            })
            .collect();
        let count: usize = touched.iter().map(|runs| runs.len()).product();
        let count = if region.is_empty() { 0 } else { count };
        (0..count).map(move |mut number| {
            let mut runs: Vec<&EdgeRun> = vec![];
            for along in touched.iter().rev() {
                runs.push(&along[number % along.len()]);
                number /= along.len();
            }
            runs.reverse();
            let (mut start, mut shape, mut origin) = (vec![], vec![], vec![]);
            for (axis, run) in runs.iter().enumerate() {
                let (first, length) = (region.start[axis], region.shape[axis]);
                let (begin, end) = (run.start.max(first), run.end.min(first + length));
                start.push(begin - run.start);
                shape.push(end - begin);
                origin.push(begin - first);
            }
            BoxPart {
                array: self.chunks(&runs),
                region: Region::new(start, shape),
                origin,
            }
        })
    }

    /// The one part of a region, where it lies in one box.
    fn sole(&self, region: &Region) -> Option<BoxPart> {
        let mut parts = self.parts(region);
        let first = parts.next()?;
        parts.next().is_none().then_some(first)
    }
}

impl Source for RectilinearArray {
    fn name(&self) -> String {
        self.files.dir.display().to_string()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(self.unit.clone())
    }

    fn identity(&self) -> &str {
        &self.files.identity
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.files.dir)
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.files.check(|stamp| stamp)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.files.check(Stamp::written)
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        region.check_in(&self.shape, &self.name())?;
        self.parts(region)
            .try_for_each(|part| part.array.check_region(&part.region))
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        region.check_in(&self.shape, &self.name())?;
        if let Some(part) = self.sole(region) {
            return part.array.cost(&part.region, io);
        }
        let mut whole = ReadCost {
            frame_bytes: region.elements() as usize * self.dtype.size(),
            ..ReadCost::default()
        };
        for part in self.parts(region) {
            let cost = part.array.cost(&part.region, io)?;
            let frame = cost.frame_bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
            whole.read_bytes += cost.read_bytes;
            whole.workspace_bytes = whole.workspace_bytes.max(frame.saturating_add(cost.workspace_bytes));
        }
        Ok(whole)
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        region.check_in(&self.shape, &self.name())?;
        if let Some(part) = self.sole(region) {
            return part.array.read(&part.region, frame, io);
        }
        let item = self.dtype.size();
        for part in self.parts(region) {
            let bytes = part.array.cost(&part.region, io)?.frame_bytes;
            let mut own = WorkBuffer::default();
            let own = own
                .bytes(bytes)
                .map_err(|cause| StoreError::io(&self.files.dir, 0, "map memory", cause))?;
            let offset = part.array.read(&part.region, own, io)?;
            let zeros = vec![0; self.shape.len()];
            let from = Lattice::of_box(&part.region.shape, &zeros);
            let to = Lattice::of_box(&region.shape, &part.origin);
            copy_lattice(&own[offset..], &from, frame, &to, &part.region.shape, item);
        }
        Ok(0)
    }
}
