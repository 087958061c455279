//! Sums for each vertex, that are added to in many threads and read meanwhile.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outcore_graph::Vertex;

/// A sum for each vertex, 0 at first.
pub(super) struct Sums(Vec<AtomicU64>);

impl Sums {
    pub fn new(vertices: usize) -> Sums {
        // Memory that is zero, and not there before it is written to.
        let zeros = vec![0u64; vertices];
        Sums(zeros.into_iter().map(AtomicU64::new).collect())
    }

    pub fn of(&self, vertex: Vertex) -> f64 {
        f64::from_bits(self.0[vertex as usize].load(Relaxed))
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
        self.0
            .into_iter()
            .map(|bits| f64::from_bits(bits.into_inner()))
            .collect()
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

/// The sum, which is 0 from then on.
pub(super) fn taken(sum: &mut AtomicU64) -> f64 {
    f64::from_bits(std::mem::take(sum.get_mut()))
}
