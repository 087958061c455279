//! Lists that are too long to be held whole: read, decoded and worked on in parts.

use std::ops::Range;

use outcore_coding::lists::{Extent, ListParts, Vertex, HEAD_BYTES};
use outcore_coding::Malformed;
use outcore_store::{AlignedBuffer, Part};

use super::batch::PART_NEIGHBOURS;
use super::resources::Resources;
use super::wanted::{PartOfList, Scratch, SweepLists};
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
    pub fn open(wanted: &SweepLists<'_>, vertex: Vertex, resources: &Resources<'_>) -> Result<LongList, EngineError> {
        let span = wanted.file.section(wanted.direction).index.span(vertex);
        let begin = Extent {
            bytes: span.bytes.min(HEAD_BYTES as u64),
            ..span
        };
        let (frame, place) = wanted.read_span(Part::Lists, begin, resources)?;
        let parts = ListParts::new(vertex, &frame[place], span.bytes, wanted.file.shape().vertices);
        resources.frames.give(frame);
        let parts = parts.map_err(|error| malformed(wanted, error))?;
        if let Some(index) = wanted.weights {
            let weights = index.span(vertex);
            if weights.bytes != parts.count() as u64 * index.item {
                let differs = Malformed("a list with more or fewer neighbours than its degree");
                return Err(malformed(wanted, differs));
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
        wanted: &SweepLists<'_>,
        scratch: &mut Scratch,
        resources: &Resources<'_>,
    ) -> Result<bool, EngineError> {
        let done = self.parts.done();
        let neighbours = PART_NEIGHBOURS.min(self.parts.count() - done);
        if neighbours == 0 {
            return Ok(false);
        }
        let codes = self.read(wanted, self.parts.codes(neighbours), resources)?;
        let gaps = self.parts.gaps(neighbours, &codes.0[codes.1.clone()]);
        let gaps = self.read(wanted, gaps.map_err(|error| malformed(wanted, error))?, resources)?;
        let decoded = self
            .parts
            .decode(neighbours, &codes.0[codes.1], &gaps.0[gaps.1], &mut scratch.neighbours);
        decoded.map_err(|error| malformed(wanted, error))?;
        (self.before, self.last) = (self.last, scratch.neighbours.last().copied());
        resources.frames.give(codes.0);
        resources.frames.give(gaps.0);
        if let (Some(index), Some(dtype)) = (wanted.weights, wanted.file.shape().weights) {
            let span = Extent {
                offset: index.span(self.vertex).offset + done as u64 * index.item,
                bytes: neighbours as u64 * index.item,
            };
            let (frame, place) = wanted.read_span(Part::Weights, span, resources)?;
            scratch.take_weights(dtype, &frame[place]);
            resources.frames.give(frame);
        }
        Ok(true)
    }

    fn read(
        &self,
        wanted: &SweepLists<'_>,
        within: Extent,
        resources: &Resources<'_>,
    ) -> Result<(AlignedBuffer, Range<usize>), EngineError> {
        let offset = self.span.offset + within.offset;
        wanted.read_span(Part::Lists, Extent { offset, ..within }, resources)
    }
}

fn malformed(wanted: &SweepLists<'_>, Malformed(what): Malformed) -> EngineError {
    EngineError::Store(wanted.file.malformed(what))
}
