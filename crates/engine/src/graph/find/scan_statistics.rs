//! The vertex around which there are the most edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::bits::Bits;
use crate::graph::read::heading::Heading;
use crate::graph::read::lists::Lists;
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// Bytes of memory for each vertex: bounds, marks or degrees, and sets.
const SCAN_BYTES: u64 = 8 + 8 + 1;
/// Vertices that are looked at together: a bit of a word each.
const TOGETHER: usize = 64;

/// Of a vertex, its edges and those between its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Densest {
    pub vertex: Vertex,
    pub edges: u64,
    /// Vertices whose edges were counted: the bounds of all others are lower.
    pub looked_at: u64,
}

struct NeighbourhoodScan<'a> {
    file: &'a GraphFile,
    resources: &'a Resources<'a>,
    /// The most edges that there can be around each vertex; nothing where they were counted.
    bounds: Vec<u64>,
    best: Option<(u64, Vertex)>,
}

impl NeighbourhoodScan<'_> {
    fn sweep<'a>(&'a self, chosen: VertexSet<'a>) -> Sweep<'a> {
        self.resources.iteration(chosen.count(self.file.shape().vertices));
        let selection = ListSelection {
            file: self.file,
            direction: Direction::Out,
            chosen,
            weights: None,
        };
        Sweep::in_parts(selection, self.resources)
    }

    /// What can be around a vertex by its degree alone: its own d edges, and those between all pairs of its neighbours.
    fn bound_by_degrees(&mut self, degrees: &ListIndex) {
        for (bound, (_, span)) in self.bounds.iter_mut().zip(degrees.spans(0..Vertex::MAX)) {
            let pairs = span.bytes.saturating_mul(span.bytes.saturating_sub(1)) / 2;
            *bound = span.bytes.saturating_add(pairs);
        }
    }

    /// Between the neighbours of a vertex v of d edges there are no more than ½ Σ min(d, degree u) - 1: lowers the bounds of
    /// those that may be better than the best, and takes away those of all others.
    fn bound_by_neighbours(&mut self, degrees: &ListIndex, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let mut chosen = Bits::none(self.bounds.len());
        self.open().for_each(|(vertex, _)| chosen.insert(vertex));
        self.bounds.fill(0);
        if chosen.is_empty() {
            return Ok(());
        }
        let mut of: Vec<u32> = Vec::with_capacity(degrees.len());
        of.extend(degrees.spans(0..Vertex::MAX).map(|(_, span)| span.bytes as u32));
        let degree = |vertex: Vertex| u64::from(of[vertex as usize]);
        let work = |scratch: &mut ListScratch, lists: &Lists<'_>| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                let here = list.others().count() as u64;
                // Of a long list, those that are not in this part count, and perhaps a loop.
                let own = list.part.map_or(here, |_| degree(list.vertex));
                let around = list.others().map(|other| own.min(degree(other)).saturating_sub(1));
                found.push((list.vertex, 2 * here + around.sum::<u64>()));
            })?;
            Ok(found)
        };
        let mut bounds = std::mem::take(&mut self.bounds);
        let take = |part: Vec<(Vertex, u64)>| {
            part.iter()
                .for_each(|(vertex, twice)| bounds[*vertex as usize] += *twice);
            Ok(())
        };
        let sweep = self.sweep(VertexSet::Of(&chosen));
        let swept = sweep
            .whole(Heading::Descending)
            .run(self.resources, ListScratch::default, work, take, watch);
        bounds.iter_mut().for_each(|twice| *twice /= 2);
        self.bounds = bounds;
        swept
    }

    /// Those that may have more edges than the best, or as many and a lower number, with their bounds.
    fn open(&self) -> impl Iterator<Item = (Vertex, u64)> + '_ {
        let (most, lowest) = self.best.unwrap_or((0, Vertex::MAX));
        let bounds = (0..).zip(&self.bounds).map(|(vertex, bound)| (vertex, *bound));
        bounds.filter(move |(vertex, bound)| *bound > 0 && (*bound, Reverse(*vertex)) > (most, Reverse(lowest)))
    }

    /// Those with the highest bounds.
    fn next(&self) -> Vec<Vertex> {
        // The lowest of those kept so far is the first to go.
        let mut kept = BinaryHeap::with_capacity(TOGETHER + 1);
        for (vertex, bound) in self.open() {
            kept.push(Reverse((bound, Reverse(vertex))));
            if kept.len() > TOGETHER {
                kept.pop();
            }
        }
        let mut vertices: Vec<Vertex> = kept.into_iter().map(|Reverse((_, Reverse(vertex)))| vertex).collect();
        vertices.sort_unstable();
        vertices
    }

    /// Marks the neighbours of some vertices, each with the bits of those they are neighbours of; the number of edges.
    fn mark(&self, some: &[Vertex], marks: &mut [u64], watch: &mut Watch<'_>) -> Result<Vec<u64>, EngineError> {
        let mut edges = vec![0; some.len()];
        let work = |scratch: &mut ListScratch, lists: &Lists<'_>| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                found.push((list.vertex, list.others().collect::<Vec<_>>()))
            })?;
            Ok(found)
        };
        let take = |part: Vec<(Vertex, Vec<Vertex>)>| {
            for (vertex, others) in part {
                let bit = some.binary_search(&vertex).expect("it was asked for");
                edges[bit] += others.len() as u64;
                others.iter().for_each(|other| marks[*other as usize] |= 1 << bit);
            }
            Ok(())
        };
        let sweep = self.sweep(VertexSet::Listed(some));
        sweep
            .whole(Heading::Ascending)
            .run(self.resources, ListScratch::default, work, take, watch)?;
        Ok(edges)
    }

    /// Adds the edges between vertices that are marked with the same bit.
    fn between(&self, marks: &[u64], edges: &mut [u64], watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let mut chosen = Bits::none(marks.len());
        let marked = (0..).zip(marks).filter(|(_, mark)| **mark != 0);
        marked.for_each(|(vertex, _)| chosen.insert(vertex));
        let work = |scratch: &mut ListScratch, lists: &Lists<'_>| {
            let mut counts = [0u64; TOGETHER];
            lists.each(scratch, |list| {
                let own = marks[list.vertex as usize];
                for other in list.others().filter(|other| *other > list.vertex) {
                    let mut both = own & marks[other as usize];
                    while both != 0 {
                        counts[both.trailing_zeros() as usize] += 1;
                        both &= both - 1;
                    }
                }
            })?;
            Ok(counts)
        };
        let take = |counts: [u64; TOGETHER]| {
            edges.iter_mut().zip(counts).for_each(|(edges, count)| *edges += count);
            Ok(())
        };
        let sweep = self.sweep(VertexSet::Of(&chosen));
        sweep
            .whole(Heading::Ascending)
            .run(self.resources, ListScratch::default, work, take, watch)
    }
}

/// The vertex with the most edges of its own and between its neighbours, of several the lowest; loops do not count. Those of
/// the highest degrees are looked at first; those whose bound by their degree is lower than what is found then are not read,
/// and those whose bound by the degrees of their neighbours is are not looked at (Wang et al., "Locality statistics for
/// anomaly detection in time series of graphs", 2013; FlashGraph prunes by degree alone). I/O: for each 64 vertices that are
/// looked at the lists of all their neighbours, and one read of those that the first 64 leave.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn scan(
    file: &GraphFile,
    degrees: &ListIndex,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Densest>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let mut scan = NeighbourhoodScan {
        file,
        resources,
        bounds: vec![0; vertices],
        best: None,
    };
    scan.bound_by_degrees(degrees);
    let mut looked_at = 0;
    let mut marks = vec![0; vertices];
    loop {
        let some = scan.next();
        if some.is_empty() {
            break;
        }
        looked_at += some.len() as u64;
        marks.fill(0);
        let mut edges = scan.mark(&some, &mut marks, watch)?;
        scan.between(&marks, &mut edges, watch)?;
        for (vertex, edges) in some.iter().zip(edges) {
            scan.bounds[*vertex as usize] = 0;
            let is_better = scan
                .best
                .is_none_or(|(most, lowest)| edges > most || edges == most && *vertex < lowest);
            if is_better {
                scan.best = Some((edges, *vertex));
            }
        }
        if looked_at == some.len() as u64 {
            drop(marks);
            scan.bound_by_neighbours(degrees, watch)?;
            marks = vec![0; vertices];
        }
    }
    // Where there are no edges but loops the first vertex has as many as any.
    let none = (vertices > 0).then_some((0, 0));
    let best = scan.best.filter(|(edges, _)| *edges > 0).or(none);
    Ok(best.map(|(edges, vertex)| Densest {
        vertex,
        edges,
        looked_at,
    }))
}

/// The densest neighbourhood of a stored graph: see [`scan`].
pub fn scan_statistics(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Option<Densest>> + Send {
    let because = "the lists around those whose degree leaves it open who has the most";
    let bound = graph.bound(None, &[Direction::Out], false, because);
    let (bytes, least) = (SCAN_BYTES + graph.degree_bytes(&[Direction::Out]), graph.in_parts(8));
    let search = GraphAlgorithm::new(graph, "graph: scan statistics", bytes, |graph, resources, watch| {
        let degrees = graph.degrees(Direction::Out, resources.io)?;
        scan(&graph.file, &degrees, resources, watch)
    });
    search.least(least).bound(bound)
}
