//! Lists and degrees of a stored graph, for those who work on them elsewhere: live work that is asked for piece by piece.

use std::sync::{Arc, Mutex, PoisonError};

use outcore_coding::lists::Vertex;
use outcore_store::Direction;

use super::lookup::{ListRequest, NeighbourLists};
use super::memory::{for_parts, least_memory};
use super::stored::StoredGraph;
use crate::live::{CacheShare, LiveMemory, LiveOperator, Paged, ReadingShare, Resources, Watch};
use crate::EngineError;

/// Memory that is of no other size, with a page cache beside it.
fn exactly(known: u64, reading: u64, cache: CacheShare) -> LiveMemory {
    LiveMemory {
        known,
        frugal: None,
        least: reading,
        most: reading,
        reading: ReadingShare::Part(1),
        cache,
    }
}

/// The number of neighbours of each vertex in a direction.
pub struct Degrees {
    pub graph: Arc<StoredGraph>,
    pub direction: Direction,
}

impl LiveOperator for Degrees {
    type Output = Vec<u64>;

    fn name(&self) -> &'static str {
        "graph: degrees"
    }

    fn memory(&self, _: usize) -> LiveMemory {
        let file = &self.graph.file;
        let known = 8 * file.shape().vertices + file.degrees_bytes(self.direction);
        exactly(known, 0, CacheShare::Nothing)
    }

    fn run(&self, resources: &Resources<'_>, _: &mut Watch<'_>) -> Result<Vec<u64>, EngineError> {
        let degrees = self.graph.degrees(self.direction, resources.io)?;
        Ok(degrees.spans(0..Vertex::MAX).map(|(_, span)| span.bytes).collect())
    }

    fn freed_bytes(&self) -> u64 {
        0
    }
}

/// The lists of some vertices, which ascend, together: see [`ListRequest::whole`].
pub struct WholeLists<'a> {
    pub graph: &'a StoredGraph,
    pub direction: Direction,
    pub vertices: &'a [Vertex],
}

impl WholeLists<'_> {
    fn list_bytes(&self) -> u64 {
        let index = &self.graph.file.section(self.direction).index;
        self.vertices.iter().map(|vertex| index.bytes_of(*vertex)).sum()
    }
}

impl LiveOperator for WholeLists<'_> {
    type Output = NeighbourLists;

    fn name(&self) -> &'static str {
        "graph: lists"
    }

    fn memory(&self, _: usize) -> LiveMemory {
        // Neighbours and weights, and as much while they are put together.
        let lists = 24 * self.list_bytes() + 16 * self.vertices.len() as u64;
        let beside = self.graph.weights_bytes() + self.graph.plan_bytes();
        exactly(lists + beside, least_memory(&self.graph.file, 0), CacheShare::Half)
    }

    fn paged(&self) -> Option<&dyn Paged> {
        Some(self.graph)
    }

    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<NeighbourLists, EngineError> {
        let degrees = self.graph.degrees_of_weights(self.direction, true, resources.io)?;
        let asked = ListRequest {
            file: &self.graph.file,
            direction: self.direction,
            degrees: degrees.as_deref(),
            vertices: self.vertices,
        };
        asked.whole(resources, watch)
    }

    fn freed_bytes(&self) -> u64 {
        self.list_bytes()
    }
}

/// The same some at a time, for `take`, which may compute: see [`ListRequest::parts`].
pub struct PartsOfLists<'a, F> {
    pub graph: &'a StoredGraph,
    pub direction: Direction,
    pub vertices: &'a [Vertex],
    /// About so many neighbours at a time.
    pub neighbours: usize,
    pub in_parts: bool,
    /// Whether weights are read, where there are any.
    pub with_weights: bool,
    pub take: Mutex<F>,
}

impl<F: FnMut(NeighbourLists) -> Result<(), EngineError> + Send> LiveOperator for PartsOfLists<'_, F> {
    type Output = ();

    fn name(&self) -> &'static str {
        "graph: lists"
    }

    fn memory(&self, threads: usize) -> LiveMemory {
        let parts = for_parts(&self.graph.file, self.in_parts, threads);
        let weights = u64::from(self.with_weights) * self.graph.weights_bytes();
        exactly(parts.beside + weights, parts.reading, CacheShare::Beside)
    }

    fn paged(&self) -> Option<&dyn Paged> {
        Some(self.graph)
    }

    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let resources = Resources {
            threads: for_parts(&self.graph.file, self.in_parts, resources.threads).threads,
            ..*resources
        };
        let (is_weighed, io) = (self.with_weights, resources.io);
        let degrees = self.graph.degrees_of_weights(self.direction, is_weighed, io)?;
        let asked = ListRequest {
            file: &self.graph.file,
            direction: self.direction,
            degrees: degrees.as_deref(),
            vertices: self.vertices,
        };
        let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
        asked.parts(self.neighbours, self.in_parts, &resources, &mut *take, watch)
    }

    fn freed_bytes(&self) -> u64 {
        0
    }
}
