//! The vertex around which there are the most edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::bits::Bits;
use super::means::{Means, Watch};
use super::sweep::{Heading, Lists, Sweep};
use super::wanted::{List, Scratch, Wanted};
use crate::EngineError;

/// Bytes of memory for each vertex: bounds, marks, sets, and what waits to be taken.
pub const SCAN_BYTES: u64 = 8 + 8 + 1;
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

/// Neighbours but the vertex itself, each once.
fn others<'a>(list: &'a List<'_>) -> impl Iterator<Item = Vertex> + 'a {
    let before = std::iter::once(None).chain(list.neighbours.iter().map(Some));
    let new = list
        .neighbours
        .iter()
        .zip(before)
        .filter(|(this, before)| Some(*this) != *before);
    new.map(|(this, _)| *this).filter(|other| *other != list.vertex)
}

struct Scan<'a> {
    file: &'a GraphFile,
    means: &'a Means<'a>,
    /// The most edges that there can be around each vertex; nothing where they were counted.
    bounds: Vec<u64>,
    best: Option<(u64, Vertex)>,
}

impl Scan<'_> {
    fn sweep<'a>(&'a self, chosen: Chosen<'a>) -> Sweep<'a> {
        self.means.iteration(chosen.count(self.file.shape().vertices));
        let wanted = Wanted {
            file: self.file,
            direction: Direction::Out,
            chosen,
            weights: None,
        };
        Sweep::new(wanted, self.means)
    }

    /// A vertex v has its own d edges, and between its neighbours no more than ½ Σ min(d, degree u - 1).
    fn bound(&mut self, degrees: &ListIndex, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let degrees: Vec<u32> = degrees
            .spans(0..Vertex::MAX)
            .map(|(_, span)| span.bytes as u32)
            .collect();
        let work = |scratch: &mut Scratch, lists: &Lists<'_>| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                let own = others(list).count() as u64;
                let around = others(list).map(|other| own.min(u64::from(degrees[other as usize])).saturating_sub(1));
                found.push((list.vertex, own + around.sum::<u64>() / 2));
            })?;
            Ok(found)
        };
        let mut bounds = std::mem::take(&mut self.bounds);
        let take = |part: Vec<(Vertex, u64)>| {
            part.iter()
                .for_each(|(vertex, bound)| bounds[*vertex as usize] = *bound);
            Ok(())
        };
        let swept =
            self.sweep(Chosen::All)
                .whole(Heading::Ascending)
                .run(self.means, Scratch::default, work, take, watch);
        self.bounds = bounds;
        swept
    }

    /// Those with the highest bounds that may have more edges than the best, or as many and a lower number.
    fn next(&self) -> Vec<Vertex> {
        let (most, lowest) = self.best.unwrap_or((0, Vertex::MAX));
        // The lowest of those kept so far is the first to go.
        let mut kept = BinaryHeap::with_capacity(TOGETHER + 1);
        for (vertex, bound) in (0..).zip(&self.bounds).filter(|(_, bound)| **bound > 0) {
            if *bound > most || *bound == most && vertex < lowest {
                kept.push(Reverse((*bound, Reverse(vertex))));
                if kept.len() > TOGETHER {
                    kept.pop();
                }
            }
        }
        let mut vertices: Vec<Vertex> = kept.into_iter().map(|Reverse((_, Reverse(vertex)))| vertex).collect();
        vertices.sort_unstable();
        vertices
    }

    /// Marks the neighbours of some vertices, each with the bits of those they are neighbours of; the number of edges.
    fn mark(&self, some: &[Vertex], marks: &mut [u64], watch: &mut Watch<'_>) -> Result<Vec<u64>, EngineError> {
        let mut edges = vec![0; some.len()];
        let work = |scratch: &mut Scratch, lists: &Lists<'_>| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                found.push((list.vertex, others(list).collect::<Vec<_>>()))
            })?;
            Ok(found)
        };
        let take = |part: Vec<(Vertex, Vec<Vertex>)>| {
            for (vertex, others) in part {
                let bit = some.binary_search(&vertex).expect("it was asked for");
                edges[bit] = others.len() as u64;
                others.iter().for_each(|other| marks[*other as usize] |= 1 << bit);
            }
            Ok(())
        };
        let sweep = self.sweep(Chosen::Listed(some));
        sweep
            .whole(Heading::Ascending)
            .run(self.means, Scratch::default, work, take, watch)?;
        Ok(edges)
    }

    /// Adds the edges between vertices that are marked with the same bit.
    fn between(&self, marks: &[u64], edges: &mut [u64], watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let mut chosen = Bits::none(marks.len());
        let marked = (0..).zip(marks).filter(|(_, mark)| **mark != 0);
        marked.for_each(|(vertex, _)| chosen.insert(vertex));
        let work = |scratch: &mut Scratch, lists: &Lists<'_>| {
            let mut counts = [0u64; TOGETHER];
            lists.each(scratch, |list| {
                let own = marks[list.vertex as usize];
                for other in others(list).filter(|other| *other > list.vertex) {
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
        let sweep = self.sweep(Chosen::Of(&chosen));
        sweep
            .whole(Heading::Ascending)
            .run(self.means, Scratch::default, work, take, watch)
    }
}

/// The vertex with the most edges of its own and between its neighbours, of several the lowest; loops do not count. Those
/// whose bound is lower than what was found are not looked at (Wang et al., "Locality statistics for anomaly detection in
/// time series of graphs", 2013; FlashGraph prunes by degree alone). I/O: one read of the lists, and for each 64 vertices
/// that are looked at the lists of all their neighbours.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn scan(
    file: &GraphFile,
    degrees: &ListIndex,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Densest>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let mut scan = Scan {
        file,
        means,
        bounds: vec![0; vertices],
        best: None,
    };
    scan.bound(degrees, watch)?;
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
    }
    // Where there are no edges the first vertex has as many as any.
    let none = (vertices > 0).then_some((0, 0));
    Ok(scan.best.or(none).map(|(edges, vertex)| Densest {
        vertex,
        edges,
        looked_at,
    }))
}
