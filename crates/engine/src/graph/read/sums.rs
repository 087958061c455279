//! Sums for each vertex, that are added to in many threads and read meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outcore_coding::lists::Vertex;
use outcore_store::{large_vec, LargePages};

use crate::live::no_memory;
use crate::EngineError;

/// A sum for each vertex, 0 at first.
pub(crate) struct Sums(LargePages<AtomicU64>);

impl Sums {
    /// For the work on a file.
    pub fn new(path: &Path, vertices: usize) -> Result<Sums, EngineError> {
        LargePages::new(vertices).map(Sums).map_err(no_memory(path))
    }

    pub fn of(&self, vertex: Vertex) -> f64 {
        value_of(&self.0[vertex as usize])
    }

    /// No two threads may add for the same vertex at once: one sum would be lost. In a sweep the list of a vertex, or all its
    /// parts, are one thread's.
    pub fn add(&self, vertex: Vertex, more: f64) {
        self.0[vertex as usize].store((self.of(vertex) + more).to_bits(), Relaxed);
    }

    /// Puts another value in its place: as `add`, not from two threads at once.
    pub fn set(&self, vertex: Vertex, value: f64) {
        self.0[vertex as usize].store(value.to_bits(), Relaxed);
    }

    pub fn into_values(self) -> Vec<f64> {
        let mut values = large_vec(self.0.len());
        values.extend(self.0.iter().map(value_of));
        values
    }

    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(|bits| *bits.get_mut() = 0);
    }

    /// All, as states of a program.
    pub fn states_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.0
    }

    /// So many vertices at a time, whose sums [`taken`] gives.
    pub fn chunks_mut(&mut self, vertices: usize) -> std::slice::ChunksMut<'_, AtomicU64> {
        self.0.chunks_mut(vertices)
    }
}

pub(crate) fn value_of(sum: &AtomicU64) -> f64 {
    f64::from_bits(sum.load(Relaxed))
}

pub(crate) fn add_to(sum: &mut AtomicU64, more: f64) {
    *sum.get_mut() = (value_of(sum) + more).to_bits();
}

/// The sum, which is 0 from then on.
pub(crate) fn taken(sum: &mut AtomicU64) -> f64 {
    f64::from_bits(std::mem::take(sum.get_mut()))
}
