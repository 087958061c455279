//! A stored graph: its file, its degrees once they were looked up, its pages in each session, and the costs of reading it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::cache::{CachedFile, PageCache};
use outcore_store::{Direction, GraphFile, Io, Part, StoreError, PAGE};

use super::memory::{least_memory_of_parts, portion_bytes};
use crate::live::{IoBound, Paged, PagesOfSessions, PORTION_PAGES};
use crate::EngineError;

const BOTH: [Direction; 2] = [Direction::Out, Direction::In];
/// Pages between wanted ones are read too where that is faster: one of so many wanted ones at most, and some.
const BRIDGED_PART: u64 = 4;
const BRIDGED_PAGES: u64 = 8;
/// Pages of weights that are sampled.
const SAMPLED_PAGES: u64 = 64;

pub struct StoredGraph {
    pub file: Arc<GraphFile>,
    /// Of each direction, once it was asked for.
    degrees: [OnceLock<Arc<ListIndex>>; 2],
    pages: PagesOfSessions,
}

impl StoredGraph {
    /// Opens a stored graph.
    ///
    /// # Errors
    /// The file cannot be read, or is no graph.
    pub fn open(path: &Path, io: &Io) -> Result<StoredGraph, EngineError> {
        Ok(StoredGraph {
            file: GraphFile::open(path, io)?,
            degrees: Default::default(),
            pages: PagesOfSessions::default(),
        })
    }

    pub fn vertices(&self) -> usize {
        self.file.shape().vertices as usize
    }

    pub fn is_weighted(&self) -> bool {
        self.file.shape().weights.is_some()
    }

    /// Both directions of lists: those of an undirected graph are one.
    pub fn both(&self) -> &'static [Direction] {
        &BOTH[..1 + usize::from(self.file.shape().directed)]
    }

    /// The numbers of neighbours of a direction: read once.
    ///
    /// # Errors
    /// They cannot be read, or are not what was written.
    pub fn degrees(&self, direction: Direction, io: &Io) -> Result<Arc<ListIndex>, EngineError> {
        let known = self.known_degrees(direction);
        if let Some(found) = known.get() {
            return Ok(found.clone());
        }
        let found = Arc::new(self.file.degrees(direction, io)?);
        Ok(known.get_or_init(|| found).clone())
    }

    fn known_degrees(&self, direction: Direction) -> &OnceLock<Arc<ListIndex>> {
        match direction {
            Direction::In if self.file.shape().directed => &self.degrees[1],
            _ => &self.degrees[0],
        }
    }

    /// The degrees by which weights are found, where there are any and they are wanted.
    ///
    /// # Errors
    /// As `degrees`.
    pub fn degrees_of_weights(
        &self,
        direction: Direction,
        is_wanted: bool,
        io: &Io,
    ) -> Result<Option<Arc<ListIndex>>, EngineError> {
        let is_wanted = is_wanted && self.is_weighted();
        is_wanted.then(|| self.degrees(direction, io)).transpose()
    }

    /// Bytes of memory of `degrees_of_weights`.
    pub fn weights_bytes(&self) -> u64 {
        let of = |direction: &Direction| self.file.degrees_bytes(*direction);
        u64::from(self.is_weighted()) * BOTH.iter().map(of).max().unwrap_or(0)
    }

    /// Bytes for each vertex that the degrees of some directions take.
    pub fn degree_bytes(&self, directions: &[Direction]) -> u64 {
        let of = |direction: &Direction| self.file.degrees_bytes(*direction);
        directions.iter().map(of).sum::<u64>() / self.file.shape().vertices.max(1)
    }

    /// The least memory for reading where neighbours are sent so many bytes: long lists in parts, without weights.
    pub fn in_parts(&self, message_bytes: u64) -> u64 {
        least_memory_of_parts(&self.file, message_bytes, false)
    }

    /// The same with weights, if there are any.
    pub fn with_weights(&self, message_bytes: u64) -> u64 {
        least_memory_of_parts(&self.file, message_bytes, true)
    }

    /// Bytes known of lists that are to be read: in two sweeps, of which one is within the other, or is chosen.
    pub fn plan_bytes(&self) -> u64 {
        2 * portion_bytes(&self.file, PORTION_PAGES)
    }

    /// Bytes known of vertices, so many of each, and of their lists.
    pub fn state_bytes(&self, vertex_bytes: u64) -> u64 {
        self.file.shape().vertices * vertex_bytes + self.file.memory_bytes() + self.plan_bytes()
    }

    /// The vertex from a vertex on before which there are so many bytes of lists.
    pub fn vertex_after(&self, vertex: Vertex, bytes: u64, direction: Direction) -> Vertex {
        let index = &self.file.section(direction).index;
        index.vertex_at(index.span(vertex).offset.saturating_add(bytes))
    }

    /// Pages of lists of a direction, and of weights where they are read.
    fn list_pages(&self, direction: Direction, is_weighed: bool) -> u64 {
        let section = self.file.section(direction);
        let weights = u64::from(is_weighed && self.is_weighted()) * section.part(Part::Weights).1;
        section.part(Part::Lists).1 + weights
    }

    /// The most that is read of all or some lists, in order: batches meet in a page, parts of long lists in some.
    pub fn sweep_bytes(&self, direction: Direction, is_weighed: bool) -> u64 {
        bridged(self.list_pages(direction, is_weighed))
    }

    /// The most that is read where each list of some directions is read once, in whatever order: each in pages of its own.
    pub fn each_bytes(&self, directions: &[Direction], is_weighed: bool) -> u64 {
        let parts = 1 + u64::from(is_weighed && self.is_weighted());
        let of = |direction: &Direction| {
            bridged(self.list_pages(*direction, is_weighed) + parts * self.file.shape().vertices)
        };
        directions.iter().map(of).sum()
    }

    /// Bytes that `degrees` reads, where they were not read before.
    pub fn degrees_to_read(&self, direction: Direction) -> u64 {
        match self.known_degrees(direction).get() {
            Some(_) => 0,
            None => self.file.degrees_read_bytes(direction),
        }
    }

    /// A bound: the most that is read of lists, if that is bounded; the directions that are read, and whether weights are; why.
    pub fn bound(
        &self,
        most: Option<u64>,
        directions: &[Direction],
        is_weighed: bool,
        because: impl Into<String>,
    ) -> IoBound {
        let (shape, page) = (self.file.shape(), PAGE as u64);
        // Numbers of neighbours, and weights that are sampled.
        let degrees = 2 * (shape.vertices + shape.edges / 16 + 2 * page) + SAMPLED_PAGES * page;
        let pages = directions
            .iter()
            .map(|direction| self.list_pages(*direction, is_weighed));
        IoBound {
            most: most.map(|most| most.saturating_add(degrees)),
            once: pages.sum::<u64>() * page,
            cold: None,
            because: because.into(),
        }
    }
}

fn bridged(pages: u64) -> u64 {
    (pages + pages / BRIDGED_PART + BRIDGED_PAGES) * PAGE as u64
}

impl Paged for StoredGraph {
    fn pages(&self) -> &PagesOfSessions {
        &self.pages
    }

    fn pages_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    fn open_in(&self, cache: &Arc<PageCache>) -> Result<CachedFile, StoreError> {
        self.file.open_in(cache)
    }
}
