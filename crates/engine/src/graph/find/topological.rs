//! Topological order.

use outcore_coding::lists::Vertex;
use outcore_store::Direction;

use crate::graph::program::run::{Outbox, VertexProgram};
use crate::graph::read::selection::List;

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
