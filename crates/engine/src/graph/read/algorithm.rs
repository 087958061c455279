//! An algorithm over a graph: its memory for each vertex, its bound of I/O, its work.

use std::sync::Arc;

use super::memory::most_memory;
use super::stored::StoredGraph;
use crate::live::{CacheShare, IoBound, LiveMemory, LiveOperator, Paged, ReadingShare, Resources, Watch, READING_PART};
use crate::EngineError;

/// Bytes of a message at most, of those that algorithms send.
const MESSAGE_BYTES_MOST: u64 = 24;

/// Live work over a stored graph. It needs memory for each vertex, and for reading long lists in parts; its reads are not
/// bounded; unless it says more.
pub struct GraphAlgorithm<T, F> {
    graph: Arc<StoredGraph>,
    name: &'static str,
    vertex_bytes: u64,
    thread_bytes: fn(usize) -> u64,
    frugal_bytes: Option<u64>,
    least: u64,
    reading: ReadingShare,
    bound: IoBound,
    run: F,
    is_enough: fn(&T) -> bool,
}

impl<T, F> GraphAlgorithm<T, F>
where
    F: Fn(&StoredGraph, &Resources<'_>, &mut Watch<'_>) -> Result<T, EngineError>,
{
    /// `vertex_bytes` are all that is known of a vertex for the whole run.
    pub(crate) fn new(graph: Arc<StoredGraph>, name: &'static str, vertex_bytes: u64, run: F) -> GraphAlgorithm<T, F> {
        GraphAlgorithm {
            name,
            vertex_bytes,
            thread_bytes: |_| 0,
            frugal_bytes: None,
            least: graph.in_parts(0),
            reading: ReadingShare::Part(READING_PART),
            bound: graph.bound(None, &[], false, ""),
            run,
            is_enough: |_| true,
            graph,
        }
    }

    /// The least memory for reading and sending.
    pub(crate) fn least(self, least: u64) -> GraphAlgorithm<T, F> {
        GraphAlgorithm { least, ..self }
    }

    /// The part of the memory that reading has.
    pub(crate) fn part(self, part: u64) -> GraphAlgorithm<T, F> {
        let reading = ReadingShare::Part(part);
        GraphAlgorithm { reading, ..self }
    }

    /// More bytes for each vertex, by the number of threads.
    pub(crate) fn for_threads(self, thread_bytes: fn(usize) -> u64) -> GraphAlgorithm<T, F> {
        GraphAlgorithm { thread_bytes, ..self }
    }

    /// Fewer bytes for each vertex, which may be enough: see [`LiveMemory::frugal`].
    pub(crate) fn frugal(self, bytes: u64, is_enough: fn(&T) -> bool) -> GraphAlgorithm<T, F> {
        GraphAlgorithm {
            frugal_bytes: Some(bytes),
            is_enough,
            ..self
        }
    }

    pub(crate) fn bound(self, bound: IoBound) -> GraphAlgorithm<T, F> {
        GraphAlgorithm { bound, ..self }
    }
}

impl<T: Send, F> LiveOperator for GraphAlgorithm<T, F>
where
    F: Fn(&StoredGraph, &Resources<'_>, &mut Watch<'_>) -> Result<T, EngineError> + Sync,
{
    type Output = T;

    fn name(&self) -> &'static str {
        self.name
    }

    fn memory(&self, threads: usize) -> LiveMemory {
        let graph = &self.graph;
        LiveMemory {
            known: graph.state_bytes(self.vertex_bytes + (self.thread_bytes)(threads)),
            frugal: self.frugal_bytes.map(|bytes| graph.state_bytes(bytes)),
            least: self.least,
            most: most_memory(&graph.file, MESSAGE_BYTES_MOST, true),
            reading: self.reading,
            cache: CacheShare::Run,
        }
    }

    fn paged(&self) -> Option<&dyn Paged> {
        Some(&*self.graph)
    }

    fn bound(&self) -> IoBound {
        self.bound.clone()
    }

    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<T, EngineError> {
        (self.run)(&self.graph, resources, watch)
    }

    fn is_enough(&self, output: &T) -> bool {
        (self.is_enough)(output)
    }
}
