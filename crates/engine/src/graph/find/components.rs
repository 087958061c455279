//! Connected components, in one read of the edges.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::{large_vec, Direction, GraphFile, LargePages};

use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::heading::Heading;
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{no_memory, IoBound, LiveOperator, Resources, Watch};
use crate::EngineError;

/// Trees of vertices that are connected, each with its lowest vertex as the root
/// (union-find with splitting: Patwary, Blair, Manne, "Experiments on union-find algorithms", SEA 2010).
///
/// Invariant: the parent of a vertex is no higher than the vertex. A root only ever gets a lower parent, so that the roots in
/// the end are the lowest vertices of their components, whatever the order of the edges.
struct Forest {
    parents: LargePages<AtomicU32>,
}

impl Forest {
    fn root(&self, mut vertex: Vertex) -> Vertex {
        loop {
            let parent = self.parents[vertex as usize].load(Relaxed);
            if parent == vertex {
                return vertex;
            }
            let above = self.parents[parent as usize].load(Relaxed);
            if above != parent {
                // Another thread may have put it higher up: then that stays.
                let _ = self.parents[vertex as usize].compare_exchange_weak(parent, above, Relaxed, Relaxed);
            }
            vertex = parent;
        }
    }

    /// Gives what was the root of both.
    fn join(&self, first: Vertex, second: Vertex) -> Vertex {
        let (mut first, mut second) = (first, second);
        loop {
            (first, second) = (self.root(first), self.root(second));
            if first == second {
                return first;
            }
            let (low, high) = (first.min(second), first.max(second));
            let parent = &self.parents[high as usize];
            if parent.compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return low;
            }
        }
    }

    /// Joins a vertex with its neighbours, most of which are joined with it already: often their parent says so.
    fn join_all(&self, vertex: Vertex, neighbours: &[Vertex]) {
        let mut root = vertex;
        for neighbour in neighbours {
            if self.parents[*neighbour as usize].load(Relaxed) != root {
                root = self.join(root, *neighbour);
            }
        }
    }
}

/// Bytes of memory for each vertex.
const COMPONENTS_BYTES: u64 = 8;

/// The lowest vertex that each is connected with; directions of edges do not count. I/O: one read of the lists.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn components(
    file: &GraphFile,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vertex>, EngineError> {
    let vertices = file.shape().vertices as Vertex;
    let mut forest = Forest {
        parents: LargePages::new(vertices as usize).map_err(no_memory(file.path()))?,
    };
    let roots = forest.parents.iter_mut().zip(0..);
    roots.for_each(|(parent, vertex)| *parent.get_mut() = vertex);
    resources.iteration(u64::from(vertices));
    let selection = ListSelection {
        file,
        direction: Direction::Out,
        chosen: VertexSet::All,
        weights: None,
    };
    Sweep::in_parts(selection, resources).whole(Heading::Ascending).run(
        resources,
        ListScratch::default,
        |scratch, lists| lists.each(scratch, |list| forest.join_all(list.vertex, list.neighbours)),
        Ok,
        watch,
    )?;
    let mut lowest = large_vec(vertices as usize);
    lowest.extend((0..vertices).map(|vertex| forest.root(vertex)));
    Ok(lowest)
}

/// The components of a stored graph: see [`components`].
pub fn components_of(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<Vertex>> + Send {
    let most = graph.sweep_bytes(Direction::Out, false);
    let bound = graph.bound(
        Some(most),
        &[Direction::Out],
        false,
        "each list once, in order, as whole pages",
    );
    let bound = IoBound {
        cold: Some(bound.once),
        ..bound
    };
    let run = |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| {
        components(&graph.file, resources, watch)
    };
    GraphAlgorithm::new(graph, "graph: connected components", COMPONENTS_BYTES, run).bound(bound)
}
