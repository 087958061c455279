//! What is read: whose lists, and the bytes of them.

use std::ops::Range;

use outcore_coding::lists::{Extent, Vertex};
use outcore_dtype::DType;
use outcore_kernels::cast_kernel;
use outcore_store::{AlignedBuffer, Caching, Direction, GraphFile, Part, PlacedRun, PAGE};

use super::batch::{pages_of, ListBatch, VertexSet, WeightIndex};
use crate::live::Resources;
use crate::EngineError;

/// The lists that a sweep reads.
#[derive(Clone, Copy)]
pub struct ListSelection<'a> {
    pub file: &'a GraphFile,
    pub direction: Direction,
    pub chosen: VertexSet<'a>,
    pub weights: Option<WeightIndex<'a>>,
}

/// The buffers in which a thread decodes lists.
#[derive(Default)]
pub struct ListScratch {
    pub(crate) neighbours: Vec<Vertex>,
    pub(crate) weights: Vec<f64>,
    /// Of lists that are one behind the other, whose they are and where they end.
    pub(crate) ends: Vec<(Vertex, usize)>,
}

/// A vertex and its neighbours, or some of them where a sweep gives long lists in parts.
pub struct List<'a> {
    pub vertex: Vertex,
    /// Ascending.
    pub neighbours: &'a [Vertex],
    /// One for each, where the sweep reads them.
    pub weights: &'a [f64],
    /// Of a long list, which part it is; the others follow each other.
    pub part: Option<PartOfList>,
}

/// A part of a long list.
#[derive(Clone, Copy, Debug)]
pub struct PartOfList {
    /// The last neighbour of the part before.
    pub before: Option<Vertex>,
    pub is_last: bool,
}

impl List<'_> {
    /// Whether no more of the list comes.
    pub fn is_end(&self) -> bool {
        self.part.is_none_or(|part| part.is_last)
    }

    /// The neighbours without those that the part before ended with.
    pub(crate) fn unrepeated(&self) -> &[Vertex] {
        let before = self.part.and_then(|part| part.before);
        let repeated = self.neighbours.iter().take_while(|other| Some(**other) == before);
        &self.neighbours[repeated.count()..]
    }

    /// Neighbours but the vertex itself, each once.
    pub(crate) fn others(&self) -> impl Iterator<Item = Vertex> + '_ {
        let neighbours = self.unrepeated();
        let before = std::iter::once(None).chain(neighbours.iter().map(Some));
        let new = neighbours
            .iter()
            .zip(before)
            .filter(|(this, before)| Some(*this) != *before);
        new.map(|(this, _)| *this).filter(|other| *other != self.vertex)
    }
}

impl ListScratch {
    /// Takes weights from their bytes.
    pub(crate) fn take_weights(&mut self, dtype: DType, bytes: &[u8]) {
        self.weights.clear();
        self.append_weights(dtype, bytes);
    }

    /// Takes weights behind those that are there.
    pub(crate) fn append_weights(&mut self, dtype: DType, bytes: &[u8]) {
        let before = self.weights.len();
        self.weights.resize(before + bytes.len() / dtype.size(), 0.0);
        let new = &mut self.weights[before..];
        cast_kernel(dtype, DType::F64)(bytes, bytemuck::cast_slice_mut(new));
    }

    /// Gives the first so many neighbours and their weights away; the others stay.
    pub(crate) fn cut(&mut self, neighbours: usize) -> (Vec<Vertex>, Vec<f64>) {
        let weights = neighbours.min(self.weights.len());
        (cut(&mut self.neighbours, neighbours), cut(&mut self.weights, weights))
    }
}

/// The first so many of some values; the others stay, with room for as many as there was.
fn cut<T: Copy>(values: &mut Vec<T>, count: usize) -> Vec<T> {
    let mut rest = vec![];
    if count < values.len() {
        rest.reserve(values.capacity());
        rest.extend_from_slice(&values[count..]);
        values.truncate(count);
    }
    std::mem::replace(values, rest)
}

impl ListSelection<'_> {
    /// The pages of a batch: those of lists, then those of weights. By way of the cache where `caching`, which says whether it keeps
    /// what it has not.
    pub(crate) fn read(
        &self,
        batch: &ListBatch,
        caching: Option<bool>,
        resources: &Resources<'_>,
    ) -> Result<AlignedBuffer, EngineError> {
        let frame = resources.frames.take(self.file.path(), batch.bytes())?;
        let cache = resources.cache.zip(caching);
        if cache.is_none() {
            resources.activity.read(batch.bytes());
        }
        let lists = batch.lists.placed(Part::Lists, 0);
        let weights = batch.weights.placed(Part::Weights, batch.lists.pages as usize * PAGE);
        let runs: Vec<PlacedRun> = lists.chain(weights).collect();
        let cache = cache.map(|(file, keeps)| Caching { file, keeps });
        Ok(self
            .file
            .read_pages(self.direction, &runs, frame, cache, resources.io)?)
    }

    /// Reads the pages of a span of a part; gives them, and where in them it lies.
    pub(crate) fn read_span(
        &self,
        part: Part,
        span: Extent,
        resources: &Resources<'_>,
    ) -> Result<(AlignedBuffer, Range<usize>), EngineError> {
        let pages = pages_of(span);
        let bytes = (pages.end - pages.start) * PAGE as u64;
        let begin = (span.offset - pages.start * PAGE as u64) as usize;
        let frame = resources.frames.take(self.file.path(), bytes)?;
        resources.activity.read(bytes);
        let run = PlacedRun { part, pages, place: 0 };
        let frame = self
            .file
            .read_pages(self.direction, &[run], frame, None, resources.io)?;
        Ok((frame, begin..begin + span.bytes as usize))
    }
}
