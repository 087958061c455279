//! Lists that vertices ask for beside their own.

use std::sync::{Mutex, PoisonError};

use outcore_coding::lists::Vertex;

use crate::graph::read::frontier::Frontier;

/// Vertices whose lists were asked for; none before the first is.
pub(crate) type Requested = Mutex<Option<Frontier>>;

/// Requests that one thread makes before it adds them to those of all.
const TOGETHER: usize = 1 << 10;

/// The set of vertices whose lists other vertices ask for.
pub struct Requests<'a> {
    all: &'a Requested,
    vertices: usize,
    /// Those that are not in the set yet.
    some: Vec<Vertex>,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(all: &'a Requested, vertices: usize) -> Requests<'a> {
        Requests {
            all,
            vertices,
            some: vec![],
        }
    }

    /// Asks for the lists of a vertex.
    ///
    /// # Panics
    /// There is no such vertex.
    pub fn add(&mut self, vertex: Vertex) {
        assert!(
            (vertex as usize) < self.vertices,
            "{vertex} is no vertex; there are {}",
            self.vertices
        );
        self.some.push(vertex);
        if self.some.len() == TOGETHER {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(|| Frontier::none(self.vertices));
        self.some.drain(..).for_each(|vertex| all.insert(vertex));
    }
}

impl Drop for Requests<'_> {
    fn drop(&mut self) {
        if !self.some.is_empty() {
            self.hand_over();
        }
    }
}
