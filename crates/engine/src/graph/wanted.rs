//! What is read: whose lists, and the bytes of them.

use std::ops::Range;

use outcore_dtype::DType;
use outcore_graph::{Span, Vertex};
use outcore_kernels::cast_kernel;
use outcore_store::{AlignedBuffer, Direction, GraphFile, Part, PAGE};

use super::batch::{pages_of, Batch, Chosen, WeightIndex};
use super::means::Means;
use crate::EngineError;

/// Which lists a sweep reads.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub file: &'a GraphFile,
    pub direction: Direction,
    pub chosen: Chosen<'a>,
    pub weights: Option<WeightIndex<'a>>,
}

/// What a thread needs to look at lists.
#[derive(Default)]
pub struct Scratch {
    pub(super) neighbours: Vec<Vertex>,
    pub(super) weights: Vec<f64>,
}

/// A vertex and its neighbours, or some of them where a sweep gives long lists in parts.
pub struct List<'a> {
    pub vertex: Vertex,
    /// Ascending.
    pub neighbours: &'a [Vertex],
    /// One for each, where the sweep reads them.
    pub weights: &'a [f64],
}

impl Scratch {
    /// Takes the weights of a list from their bytes.
    pub(super) fn take_weights(&mut self, dtype: DType, bytes: &[u8]) {
        self.weights.clear();
        self.weights.resize(self.neighbours.len(), 0.0);
        cast_kernel(dtype, DType::F64)(bytes, bytemuck::cast_slice_mut(&mut self.weights));
    }
}

impl Wanted<'_> {
    pub(super) fn read(&self, batch: &Batch, frame: &mut [u8], means: &Means<'_>) -> Result<(), EngineError> {
        let (lists, weights) = frame.split_at_mut(batch.lists.pages as usize * PAGE);
        for (part, runs, area) in [
            (Part::Lists, &batch.lists, lists),
            (Part::Weights, &batch.weights, weights),
        ] {
            if means.cache.is_none() {
                means.activity.read(runs.pages * PAGE as u64);
            }
            let runs: Vec<_> = runs.placed().collect();
            self.file
                .read_pages(self.direction, part, &runs, area, means.cache, means.io)?;
        }
        Ok(())
    }

    /// Reads the pages of a span of a part; gives them, and where in them it lies.
    pub(super) fn read_span(
        &self,
        part: Part,
        span: Span,
        means: &Means<'_>,
    ) -> Result<(AlignedBuffer, Range<usize>), EngineError> {
        let pages = pages_of(span);
        let bytes = (pages.end - pages.start) * PAGE as u64;
        let begin = (span.offset - pages.start * PAGE as u64) as usize;
        let mut frame = means.frames.take(self.file.path(), bytes)?;
        means.activity.read(bytes);
        self.file
            .read_pages(self.direction, part, &[(pages, 0)], &mut frame, None, means.io)?;
        Ok((frame, begin..begin + span.bytes as usize))
    }
}
