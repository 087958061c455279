//! Lists that are too long to be held whole: read, decoded and worked on in parts.

use std::ops::Range;

use outcore_coding::lists::{Extent, ListParts, Vertex, HEAD_BYTES};
use outcore_coding::Malformed;
use outcore_store::{AlignedBuffer, Part};

use super::batch::PART_NEIGHBOURS;
use super::selection::{ListScratch, ListSelection, PartOfList};
use crate::live::Resources;
use crate::EngineError;

/// A list that is read part by part.
pub(crate) struct LongList {
    pub vertex: Vertex,
    span: Extent,
    parts: ListParts,
    /// The last neighbour of the part that was read last, and of the one before it.
    last: Option<Vertex>,
    before: Option<Vertex>,
}

impl LongList {
    /// Reads how many neighbours there are.
    pub fn open(
        selection: &ListSelection<'_>,
        vertex: Vertex,
        resources: &Resources<'_>,
    ) -> Result<LongList, EngineError> {
        let span = selection.file.section(selection.direction).index.span(vertex);
        let begin = Extent {
            bytes: span.bytes.min(HEAD_BYTES as u64),
            ..span
        };
        let (frame, place) = selection.read_span(Part::Lists, begin, resources)?;
        let parts = ListParts::new(vertex, &frame[place], span.bytes, selection.file.shape().vertices);
        resources.frames.give(frame);
        let parts = parts.map_err(|error| malformed(selection, error))?;
        if let Some(index) = selection.weights {
            let weights = index.span(vertex);
            if weights.bytes != parts.count() as u64 * index.item {
                let differs = Malformed("a list with more or fewer neighbours than its degree");
                return Err(malformed(selection, differs));
            }
        }
        Ok(LongList {
            vertex,
            span,
            parts,
            last: None,
            before: None,
        })
    }

    /// Which part was read last.
    pub fn part(&self) -> PartOfList {
        PartOfList {
            before: self.before,
            is_last: self.parts.done() == self.parts.count(),
        }
    }

    /// Puts the next part into `scratch`; false behind the last.
    pub fn next(
        &mut self,
        selection: &ListSelection<'_>,
        scratch: &mut ListScratch,
        resources: &Resources<'_>,
    ) -> Result<bool, EngineError> {
        let done = self.parts.done();
        let neighbours = PART_NEIGHBOURS.min(self.parts.count() - done);
        if neighbours == 0 {
            return Ok(false);
        }
        let codes = self.read(selection, self.parts.codes(neighbours), resources)?;
        let gaps = self.parts.gaps(neighbours, &codes.0[codes.1.clone()]);
        let gaps = self.read(selection, gaps.map_err(|error| malformed(selection, error))?, resources)?;
        let decoded = self
            .parts
            .decode(neighbours, &codes.0[codes.1], &gaps.0[gaps.1], &mut scratch.neighbours);
        decoded.map_err(|error| malformed(selection, error))?;
        (self.before, self.last) = (self.last, scratch.neighbours.last().copied());
        resources.frames.give(codes.0);
        resources.frames.give(gaps.0);
        if let (Some(index), Some(dtype)) = (selection.weights, selection.file.shape().weights) {
            let span = Extent {
                offset: index.span(self.vertex).offset + done as u64 * index.item,
                bytes: neighbours as u64 * index.item,
            };
            let (frame, place) = selection.read_span(Part::Weights, span, resources)?;
            scratch.take_weights(dtype, &frame[place]);
            resources.frames.give(frame);
        }
        Ok(true)
    }

    fn read(
        &self,
        selection: &ListSelection<'_>,
        within: Extent,
        resources: &Resources<'_>,
    ) -> Result<(AlignedBuffer, Range<usize>), EngineError> {
        let offset = self.span.offset + within.offset;
        selection.read_span(Part::Lists, Extent { offset, ..within }, resources)
    }
}

fn malformed(selection: &ListSelection<'_>, Malformed(what): Malformed) -> EngineError {
    EngineError::Store(selection.file.malformed(what))
}
