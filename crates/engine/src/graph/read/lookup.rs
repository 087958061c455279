//! Lists as they are, for those who work on them elsewhere.

use std::ops::Range;
use std::sync::Arc;

use outcore_coding::lists::{Extent, ListIndex, Vertex};
use outcore_store::{Direction, GraphFile, Part, PAGE};

use super::algorithm::GraphAlgorithm;
use super::batch::{VertexSet, WeightIndex};
use super::heading::Heading;
use super::lists::Lists;
use super::memory::parts_round;
use super::selection::{ListScratch, ListSelection};
use super::stored::StoredGraph;
use super::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// Lists of vertices, one behind the other.
#[derive(Debug)]
pub struct NeighbourLists {
    /// Which of the vertices that were asked for.
    pub places: Range<usize>,
    /// Where the list of each begins, and where the last ends.
    pub begins: Vec<i64>,
    pub neighbours: Vec<Vertex>,
    /// One for each neighbour, if the graph has any.
    pub weights: Vec<f64>,
}

impl NeighbourLists {
    fn behind(place: usize) -> NeighbourLists {
        NeighbourLists {
            places: place..place,
            begins: vec![0],
            neighbours: vec![],
            weights: vec![],
        }
    }

    /// The lists of the vertices before a place end at a neighbour, if they do not before.
    fn end(&mut self, place: usize, neighbour: usize) {
        self.places.end = place;
        self.begins.resize(self.places.len() + 1, neighbour as i64);
    }

    /// How many neighbours the lists have.
    fn count(&self) -> usize {
        self.begins.last().map_or(0, |end| *end as usize)
    }
}

/// Lists that somebody asks for.
#[derive(Clone, Copy)]
pub struct ListRequest<'a> {
    pub file: &'a GraphFile,
    pub direction: Direction,
    /// Where weights are read: they tell where those lie.
    pub degrees: Option<&'a ListIndex>,
    /// Whose lists: they ascend.
    pub vertices: &'a [Vertex],
}

impl ListRequest<'_> {
    fn place(&self, vertex: Vertex) -> usize {
        self.vertices.partition_point(|other| *other < vertex)
    }

    /// Calls `take` with the lists, so many neighbours at a time or one list, by ascending vertices; the next ones are read
    /// meanwhile. With `in_parts`, long lists come in some calls, each with a part. I/O: the pages that hold them.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `take` and `watch` say.
    pub fn parts(
        &self,
        neighbours: usize,
        in_parts: bool,
        resources: &Resources<'_>,
        mut take: impl FnMut(NeighbourLists) -> Result<(), EngineError>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let selection = ListSelection {
            file: self.file,
            direction: self.direction,
            chosen: VertexSet::Listed(self.vertices),
            weights: WeightIndex::new(self.file, self.degrees),
        };
        let mut taken = 0;
        let mut each = |parts: Vec<NeighbourLists>| {
            parts.into_iter().try_for_each(|part| {
                if taken < part.places.start {
                    let mut before = NeighbourLists::behind(taken);
                    before.end(part.places.start, 0);
                    take(before)?;
                }
                taken = part.places.end;
                take(part)
            })
        };
        let (sweep, round_bytes) = match in_parts {
            true => (Sweep::in_parts(selection, resources), u64::MAX),
            false => (Sweep::new(selection, resources), parts_round(self.file)),
        };
        let sweep = sweep.one_way();
        for round in sweep.rounds(round_bytes, Heading::Ascending) {
            let cut = |scratch: &mut ListScratch, lists: &Lists<'_>| self.cut(neighbours, scratch, lists);
            round.run(resources, ListScratch::default, cut, &mut each, watch)?;
        }
        if taken < self.vertices.len() {
            let mut rest = NeighbourLists::behind(taken);
            rest.end(self.vertices.len(), 0);
            take(rest)?;
        }
        Ok(())
    }

    /// The lists of a batch in parts.
    fn cut(
        &self,
        neighbours: usize,
        scratch: &mut ListScratch,
        lists: &Lists<'_>,
    ) -> Result<Vec<NeighbourLists>, EngineError> {
        let range = lists.vertices();
        let (mut place, end) = (self.place(range.start), self.place(range.end));
        let mut parts = vec![];
        let mut part = NeighbourLists::behind(place);
        lists.append(scratch, neighbours, |scratch, vertex| {
            // Those without neighbours have no list.
            let behind = self.vertices[place..].iter().take_while(|other| **other < vertex);
            place += behind.count();
            let before = part.count();
            part.end(place, before);
            if before > 0 && scratch.neighbours.len() > neighbours {
                (part.neighbours, part.weights) = scratch.cut(before);
                parts.push(std::mem::replace(&mut part, NeighbourLists::behind(place)));
            }
            place += 1;
            part.end(place, scratch.neighbours.len());
        })?;
        part.end(end, part.count());
        (part.neighbours, part.weights) = scratch.cut(part.count());
        parts.push(part);
        Ok(parts)
    }

    /// All of the lists together. I/O: the pages that hold them.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `watch` says.
    pub fn whole(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<NeighbourLists, EngineError> {
        // Room for as many as the bytes can be, of which what is not used is never touched: what grows is there twice.
        let index = &self.file.section(self.direction).index;
        let most = VertexSet::Listed(self.vertices).list_bytes(index);
        let mut lists = NeighbourLists {
            places: 0..self.vertices.len(),
            begins: Vec::with_capacity(self.vertices.len() + 1),
            neighbours: Vec::with_capacity(most as usize),
            weights: Vec::with_capacity(if self.degrees.is_some() { most as usize } else { 0 }),
        };
        lists.begins.push(0);
        let take = |part: NeighbourLists| {
            let begin = lists.neighbours.len() as i64;
            lists.begins.extend(part.begins[1..].iter().map(|end| begin + end));
            lists.neighbours.extend(part.neighbours);
            lists.weights.extend(part.weights);
            Ok(())
        };
        self.parts(usize::MAX, false, resources, take, watch)?;
        lists.neighbours.shrink_to_fit();
        lists.weights.shrink_to_fit();
        Ok(lists)
    }
}

/// Bytes of memory for the loop of a vertex, in a list that has grown.
const LOOPS_BYTES: u64 = 8;

/// The vertices of edges that lead to where they come from, ascending. I/O: one read of the lists.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn loops(file: &GraphFile, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<Vec<Vertex>, EngineError> {
    let selection = ListSelection {
        file,
        direction: Direction::Out,
        chosen: VertexSet::All,
        weights: None,
    };
    let mut found = vec![];
    Sweep::in_parts(selection, resources).whole(Heading::Ascending).run(
        resources,
        ListScratch::default,
        |scratch, lists| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                let begin = list.neighbours.partition_point(|other| *other < list.vertex);
                let behind = list.neighbours[begin..].iter().copied();
                found.extend(behind.take_while(|other| *other == list.vertex));
            })?;
            Ok(found)
        },
        |part| {
            found.extend(part);
            Ok(())
        },
        watch,
    )?;
    Ok(found)
}

/// Pages of weights that are looked at, at most.
const SAMPLES: u64 = 64;

/// About the mean of the weights that are not below 0: that of some pages, as far from each other as can be; 0 where there
/// are none. I/O: those pages.
///
/// # Errors
/// The file cannot be read.
pub fn mean_weight(
    file: &GraphFile,
    direction: Direction,
    degrees: &ListIndex,
    resources: &Resources<'_>,
) -> Result<f64, EngineError> {
    let selection = ListSelection {
        file,
        direction,
        chosen: VertexSet::All,
        weights: WeightIndex::new(file, Some(degrees)),
    };
    let (Some(index), Some(dtype)) = (selection.weights, file.shape().weights) else {
        return Ok(1.0);
    };
    let (page, bytes) = (PAGE as u64, degrees.total_bytes() * index.item);
    let pages = bytes.div_ceil(page);
    let samples = SAMPLES.min(pages);
    let (mut sum, mut count) = (0.0, 0u64);
    let mut scratch = ListScratch::default();
    for sample in 0..samples {
        let offset = pages * sample / samples * page;
        let bytes = page.min(bytes - offset);
        let (frame, place) = selection.read_span(Part::Weights, Extent { offset, bytes }, resources)?;
        scratch.take_weights(dtype, &frame[place]);
        resources.frames.give(frame);
        for weight in scratch.weights.iter().filter(|weight| **weight >= 0.0) {
            (sum, count) = (sum + weight, count + 1);
        }
    }
    Ok(if count == 0 { 0.0 } else { sum / count as f64 })
}

/// The lowest weight, the highest, the sum of all, and whether one is not a number. I/O: one read of lists and weights.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn weights(
    file: &GraphFile,
    degrees: &ListIndex,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(f64, f64, f64, bool), EngineError> {
    let selection = ListSelection {
        file,
        direction: Direction::Out,
        chosen: VertexSet::All,
        weights: WeightIndex::new(file, Some(degrees)),
    };
    let (mut lowest, mut highest, mut sum, mut is_nan) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, false);
    Sweep::in_parts(selection, resources).whole(Heading::Ascending).run(
        resources,
        ListScratch::default,
        |scratch, lists| {
            let (mut lowest, mut highest, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
            lists.each(scratch, |list| {
                lowest = list.weights.iter().copied().fold(lowest, f64::min);
                highest = list.weights.iter().copied().fold(highest, f64::max);
                sum += list.weights.iter().sum::<f64>();
            })?;
            Ok((lowest, highest, sum))
        },
        |(least, most, part)| {
            (lowest, highest) = (lowest.min(least), highest.max(most));
            (sum, is_nan) = (sum + part, is_nan || part.is_nan());
            Ok(())
        },
        watch,
    )?;
    Ok((lowest, highest, sum, is_nan))
}

/// The loops of a stored graph: see [`loops`].
pub fn loops_of(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<Vertex>> + Send {
    let run =
        |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| loops(&graph.file, resources, watch);
    GraphAlgorithm::new(graph, "graph: loops", LOOPS_BYTES, run)
}

/// The weights of a stored graph: see [`weights`].
pub fn weights_of(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = (f64, f64, f64, bool)> + Send {
    let (bytes, least) = (graph.degree_bytes(&[Direction::Out]), graph.with_weights(0));
    let sweep = GraphAlgorithm::new(graph, "graph: weights", bytes, |graph, resources, watch| {
        let degrees = graph.degrees(Direction::Out, resources.io)?;
        weights(&graph.file, &degrees, resources, watch)
    });
    sweep.least(least)
}
