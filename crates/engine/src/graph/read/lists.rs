//! Lists that have been read, decoded for the work on them.

use std::ops::Range;

use outcore_coding::lists::{decode, has_any, Extent, Vertex};
use outcore_coding::Malformed;
use outcore_store::PAGE;

use super::batch::{spans, ListBatch, WeightIndex};
use super::selection::{List, ListScratch, ListSelection};
use crate::EngineError;

/// Lists that have been read: those of a batch, or a part of a long one.
pub struct Lists<'a>(pub(crate) ListSource<'a>);

pub(crate) enum ListSource<'a> {
    Batch(BatchLists<'a>),
    Part(List<'a>),
}

/// A batch, and the bytes that were read of it: its lists, and its weights behind them.
#[derive(Clone, Copy)]
pub(crate) struct BatchLists<'a> {
    selection: &'a ListSelection<'a>,
    batch: &'a ListBatch,
    frame: &'a [u8],
}

impl<'a> Lists<'a> {
    pub(crate) fn of(selection: &'a ListSelection<'a>, batch: &'a ListBatch, frame: &'a [u8]) -> Lists<'a> {
        Lists(ListSource::Batch(BatchLists {
            selection,
            batch,
            frame,
        }))
    }

    /// Vertices of the batch, or the one of the list; vertices of all batches follow on each other.
    pub fn vertices(&self) -> Range<Vertex> {
        match &self.0 {
            ListSource::Batch(lists) => lists.batch.vertices.clone(),
            ListSource::Part(list) => list.vertex..list.vertex + 1,
        }
    }

    /// Calls `each` with every list that has neighbours, by ascending vertices.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn each(&self, scratch: &mut ListScratch, mut each: impl FnMut(&List<'_>)) -> Result<(), EngineError> {
        let whole = match &self.0 {
            ListSource::Batch(whole) => *whole,
            ListSource::Part(list) => {
                each(list);
                return Ok(());
            }
        };
        let BatchLists {
            selection,
            batch,
            frame,
        } = whole;
        let (_, weights) = frame.split_at(batch.lists.pages as usize * PAGE);
        let (vertices, dtype) = (selection.file.shape().vertices, selection.file.shape().weights);
        let mut weight_run = 0;
        whole.each_encoded(selection.weights, |vertex, bytes, span| {
            scratch.neighbours.clear();
            decode(vertex, bytes, vertices, &mut scratch.neighbours)?;
            scratch.weights.clear();
            if let (Some(index), Some(dtype)) = (selection.weights, dtype) {
                if span.bytes != scratch.neighbours.len() as u64 * index.item {
                    return Err(OTHER_DEGREE);
                }
                scratch.take_weights(dtype, &weights[batch.weights.place(span, &mut weight_run)]);
            }
            each(&List {
                vertex,
                neighbours: &scratch.neighbours,
                weights: &scratch.weights,
                part: None,
            });
            Ok(())
        })
    }

    /// Puts the lists into `scratch`, by ascending vertices, one behind the other, and calls `each` with the vertex of each when it is
    /// there, but for empty lists. Memory is taken for so many neighbours, or all, at once.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn append(
        &self,
        scratch: &mut ListScratch,
        neighbours: usize,
        mut each: impl FnMut(&mut ListScratch, Vertex),
    ) -> Result<(), EngineError> {
        scratch.neighbours.clear();
        scratch.weights.clear();
        let whole = match &self.0 {
            ListSource::Batch(whole) => *whole,
            ListSource::Part(list) => {
                scratch.neighbours.extend_from_slice(list.neighbours);
                scratch.weights.extend_from_slice(list.weights);
                each(scratch, list.vertex);
                return Ok(());
            }
        };
        let BatchLists {
            selection,
            batch,
            frame,
        } = whole;
        let most = batch.most_neighbours(selection.weights).min(neighbours as u64) as usize;
        let (_, weights) = frame.split_at(batch.lists.pages as usize * PAGE);
        let (vertices, dtype) = (selection.file.shape().vertices, selection.file.shape().weights);
        let mut weight_run = 0;
        whole.each_encoded(selection.weights, |vertex, bytes, span| {
            let before = scratch.neighbours.len();
            scratch.neighbours.reserve(if before == 0 { most } else { 0 });
            decode(vertex, bytes, vertices, &mut scratch.neighbours)?;
            if let (Some(index), Some(dtype)) = (selection.weights, dtype) {
                if span.bytes != (scratch.neighbours.len() - before) as u64 * index.item {
                    return Err(OTHER_DEGREE);
                }
                scratch.append_weights(dtype, &weights[batch.weights.place(span, &mut weight_run)]);
            }
            each(scratch, vertex);
            Ok(())
        })
    }

    /// Calls `some` with lists, by ascending vertices, one behind the other: where the list of each vertex ends, and the
    /// neighbours, so many together or little more. What is read at each can then be asked for at once.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn together(
        &self,
        scratch: &mut ListScratch,
        neighbours: usize,
        mut some: impl FnMut(&[(Vertex, usize)], &[Vertex]),
    ) -> Result<(), EngineError> {
        let whole = match &self.0 {
            ListSource::Batch(whole) => *whole,
            ListSource::Part(list) => {
                some(&[(list.vertex, list.neighbours.len())], list.neighbours);
                return Ok(());
            }
        };
        let vertices = whole.selection.file.shape().vertices;
        let ListScratch {
            neighbours: all, ends, ..
        } = scratch;
        all.clear();
        ends.clear();
        whole.each_encoded(None, |vertex, bytes, _| {
            decode(vertex, bytes, vertices, all)?;
            ends.push((vertex, all.len()));
            if all.len() >= neighbours {
                some(ends, all);
                all.clear();
                ends.clear();
            }
            Ok(())
        })?;
        some(ends, all);
        Ok(())
    }

    /// Calls `each` with every vertex, ascending, and whether it has one of some neighbours; of a long list with every part.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn each_with(
        &self,
        is: impl Fn(Vertex) -> bool,
        mut each: impl FnMut(Vertex, Looked<'_>),
    ) -> Result<(), EngineError> {
        let whole = match &self.0 {
            ListSource::Batch(whole) => *whole,
            ListSource::Part(list) => {
                match list.neighbours.iter().any(|neighbour| is(*neighbour)) {
                    true => each(list.vertex, Looked::Has),
                    false => each(list.vertex, Looked::HasNotInPart),
                }
                return Ok(());
            }
        };
        let vertices = whole.selection.file.shape().vertices;
        whole.each_encoded(None, |vertex, bytes, _| {
            match has_any(vertex, bytes, vertices, &is)? {
                true => each(vertex, Looked::Has),
                false => each(vertex, Looked::HasNot(bytes)),
            }
            Ok(())
        })
    }
}

/// The outcome of looking through a list.
pub enum Looked<'a> {
    Has,
    /// Nothing, in the bytes of the whole list.
    HasNot(&'a [u8]),
    HasNotInPart,
}

const OTHER_DEGREE: Malformed = Malformed("a list with more or fewer neighbours than its degree");

impl BatchLists<'_> {
    /// Calls `each` with the bytes of every list, by ascending vertices, and the extent of its weights.
    fn each_encoded(
        &self,
        weights: Option<WeightIndex<'_>>,
        mut each: impl FnMut(Vertex, &[u8], Extent) -> Result<(), Malformed>,
    ) -> Result<(), EngineError> {
        let BatchLists {
            selection,
            batch,
            frame,
        } = self;
        let section = selection.file.section(selection.direction);
        let (mut run, mut outcome) = (0, Ok(()));
        spans(
            section,
            weights,
            selection.chosen,
            batch.vertices.clone(),
            |vertex, extents| {
                if outcome.is_ok() {
                    let list = &frame[batch.lists.place(extents.list, &mut run)];
                    outcome = each(vertex, list, extents.weights);
                }
            },
        );
        outcome.map_err(|Malformed(what)| EngineError::Store(selection.file.malformed(what)))
    }
}
