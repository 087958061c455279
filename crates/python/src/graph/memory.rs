//! The memory of a call: what is known of vertices, what reading takes, and the page cache of the file.

use std::sync::Arc;

use outcore_engine::graph::{self, Frames, Resources};
use outcore_engine::run::Session;
use outcore_engine::EngineError;
use outcore_store::cache::CachedFile;
use outcore_store::{return_freed_memory, Direction};
use pyo3::prelude::*;

use super::graph::PyGraph;
use super::pages::CACHE_LEAST;
use super::run::{Begin, PyGraphRun};

/// Memory for what is read ahead and sent: so much at the least, and one of so many parts of what is left; the cache has the rest.
pub struct Reading {
    pub least: u64,
    pub part: u64,
}

impl From<u64> for Reading {
    fn from(least: u64) -> Reading {
        Reading { least, part: 4 }
    }
}

/// Memory for reading and sending: what is left of the session's beside what is known of vertices, within reason.
const READING_MAX: u64 = 256 << 20;

/// Bytes of a message at most, of those that are sent here.
const MESSAGE_BYTES_MOST: u64 = 24;

impl PyGraph {
    /// Memory for reading where neighbours are sent so many bytes: long lists in parts, without weights.
    pub fn in_parts(&self, message_bytes: u64) -> u64 {
        graph::least_memory_of_parts(&self.file, message_bytes, false)
    }

    /// The same with weights, if there are any.
    pub fn with_weights(&self, message_bytes: u64) -> u64 {
        graph::least_memory_of_parts(&self.file, message_bytes, true)
    }

    /// What is known of lists that are to be read: in two sweeps, of which one is within the other, or is chosen.
    pub fn plan_bytes(&self) -> u64 {
        2 * graph::portion_bytes(&self.file, graph::PORTION_PAGES)
    }

    /// What `degrees_of_weights` takes.
    pub fn weights_bytes(&self) -> u64 {
        let is_weighted = self.file.shape().weights.is_some();
        u64::from(is_weighted)
            * self
                .file
                .degrees_bytes(Direction::Out)
                .max(self.file.degrees_bytes(Direction::In))
    }

    /// Bytes for each vertex that the degrees of some directions take.
    pub fn degree_bytes(&self, directions: &[Direction]) -> u64 {
        let of = |direction: &Direction| self.file.degrees_bytes(*direction);
        directions.iter().map(of).sum::<u64>() / self.file.shape().vertices.max(1)
    }

    /// What a cache takes of so much memory.
    pub fn cache_bytes(&self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.file.file_bytes() / 8 * 9 + CACHE_LEAST);
        if bytes < CACHE_LEAST {
            0
        } else {
            bytes
        }
    }

    /// The file by way of a cache, where there is memory for one: it takes no more than all pages need. What it holds stays
    /// for the next call, until others in the session need its memory.
    pub fn cached(&self, session: &Arc<Session>, bytes: u64, is_turn: bool) -> Option<Arc<CachedFile>> {
        let bytes = self.cache_bytes(bytes);
        self.pages.of(session).sized(&self.file, session, bytes, is_turn)
    }

    /// The cache for lists that Python asks for, beside what is held: that which is there, if it is not smaller than a new one.
    pub fn cached_beside(&self, session: &Arc<Session>, is_turn: bool) -> Option<Arc<CachedFile>> {
        let wanted = session.spare() / 2;
        let pages = self.pages.of(session);
        let is_enough = |file: &Arc<CachedFile>| file.cache().bytes() as u64 >= self.cache_bytes(wanted);
        let there = pages.held().filter(is_enough);
        there
            .inspect(|_| pages.prefer(session))
            .or_else(|| self.cached(session, wanted, is_turn))
    }

    /// What is known of vertices, in so many bytes of each, and of their lists.
    pub fn state_bytes(&self, vertex_bytes: u64) -> u64 {
        self.file.shape().vertices * vertex_bytes + self.file.memory_bytes() + self.plan_bytes()
    }

    /// Runs `work` with memory for so many bytes a vertex, and for reading.
    pub fn with_memory<T: Send>(
        &self,
        py: Python<'_>,
        run: &PyGraphRun,
        operator: &'static str,
        vertex_bytes: u64,
        reading: impl Into<Reading>,
        work: impl FnOnce(&Resources<'_>, &mut graph::Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let state = self.state_bytes(vertex_bytes);
        let session = &run.session;
        let left = session.spare().saturating_sub(state);
        // What is read ahead and sent does with little; what has been read is asked for again.
        let most = READING_MAX.min(graph::most_memory(&self.file, MESSAGE_BYTES_MOST, true));
        let Reading { least, part } = reading.into();
        let memory = (left / part).clamp(least, most.max(least));
        let cache_bytes = left.saturating_sub(memory) / 8 * 7;
        run.begins(Begin {
            known: state,
            meanwhile: memory,
            cache: self.cache_bytes(cache_bytes),
        })?;
        run.watching(py, |watch| {
            let _held = session.set_aside(operator, state + memory)?;
            run.reserves(state + memory);
            let (frames, file) = (Frames::default(), self.cached(session, cache_bytes, true));
            let found = work(&run.resources(memory, &frames, file.as_deref()), watch);
            run.activity.end(file.as_deref());
            // What was sent and found in parts is nobody's now, and others count on it.
            return_freed_memory();
            found
        })
    }
}
