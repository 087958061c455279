//! Topological order.

use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::Direction;

use crate::graph::program::run::{run_stored, Outbox, VertexProgram};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::selection::List;
use crate::graph::read::stored::StoredGraph;
use crate::live::{LiveOperator, Resources, Watch};

/// Bytes of memory for each vertex: its state and the longest way to it, sets, and the result.
const GENERATIONS_BYTES: u64 = 12 + 8 + 1;

/// The state of a vertex: edges to it from vertices without a place, and its place.
#[derive(Clone, Copy, Debug)]
pub struct GenerationState {
    pub edges: u32,
    /// The longest way to it; nothing where it lies on or behind a circle.
    pub generation: Option<u32>,
}

/// Generations: those without an edge to them are the first, and go; then those without an edge to them are the second
/// (Kahn, "Topological sorting of large networks", CACM 1962).
pub struct Generations;

impl VertexProgram for Generations {
    type State = GenerationState;
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, iteration: u32, _: Vertex, state: &mut GenerationState) -> bool {
        state.generation = Some(iteration);
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[GenerationState], outbox: &mut Outbox<()>) {
        outbox.multicast(list.neighbours, ());
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut GenerationState, (): ()) -> bool {
        let left = state.edges.checked_sub(1);
        state.edges = left.unwrap_or(0);
        left == Some(0)
    }
}

/// The longest way to each vertex of a stored graph, in edges; -1 for those on or behind a circle.
pub fn topological_order(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<i64>> + Send {
    let bound = graph.bound(
        Some(graph.each_bytes(graph.both(), false)),
        graph.both(),
        false,
        "each list once, as whole pages",
    );
    let bytes = GENERATIONS_BYTES + graph.degree_bytes(&[Direction::In]);
    let run = |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| {
        let (vertices, degrees) = (graph.vertices(), graph.degrees(Direction::In, resources.io)?);
        let mut active = Frontier::none(vertices);
        let mut states = Vec::with_capacity(vertices);
        for (vertex, span) in degrees.spans(0..Vertex::MAX) {
            states.push(GenerationState {
                edges: span.bytes as u32,
                generation: None,
            });
            if span.bytes == 0 {
                active.insert(vertex);
            }
        }
        run_stored(graph, &mut Generations, &mut states, &mut active, resources, watch)?;
        let generations = states.into_iter().map(|state| state.generation.map_or(-1, i64::from));
        Ok(generations.collect())
    };
    GraphAlgorithm::new(graph, "graph: topological order", bytes, run).bound(bound)
}
