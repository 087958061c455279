//! Core numbers.

use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::Direction;

use crate::graph::program::run::{run_stored, Outbox, VertexProgram};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::bits::Bits;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::selection::List;
use crate::graph::read::stored::StoredGraph;
use crate::live::{LiveOperator, Resources, Watch};

/// Bytes of memory for each vertex: its state, of which the result is a part, and sets.
const CORES_BYTES: u64 = 12 + 1;

/// The state of a vertex: its neighbours that are left, and its core once it has gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreState {
    pub degree: u32,
    pub core: u32,
    gone: bool,
}

impl CoreState {
    pub fn new(degree: u32) -> CoreState {
        CoreState {
            degree,
            ..CoreState::default()
        }
    }
}

/// Cores by peeling: those with no more than k neighbours go, and take an edge from each neighbour, until none is left
/// (Batagelj, Zaveršnik 2003).
pub struct Peeling {
    pub directions: Vec<Direction>,
    core: u32,
    left: Bits,
}

impl Peeling {
    /// The program, and those that go first.
    pub fn new(directions: &[Direction], states: &[CoreState]) -> (Peeling, Frontier) {
        let mut program = Peeling {
            directions: directions.to_vec(),
            core: 0,
            left: Bits::all(states.len()),
        };
        let mut active = Frontier::none(states.len());
        program.go_on(states, &mut active);
        (program, active)
    }

    /// Where none goes, the next core begins with those that have the fewest neighbours.
    fn go_on(&mut self, states: &[CoreState], active: &mut Frontier) {
        if active.is_empty() {
            let fewest = self.left.iter().map(|vertex| states[vertex as usize].degree).min();
            self.core = self.core.max(fewest.unwrap_or(0));
            let going = self
                .left
                .iter()
                .filter(|vertex| states[*vertex as usize].degree <= self.core);
            going.for_each(|vertex| active.insert(vertex));
        }
        active.each(|vertex| self.left.remove(vertex));
    }
}

impl VertexProgram for Peeling {
    type State = CoreState;
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, state: &mut CoreState) -> bool {
        (state.core, state.gone) = (self.core, true);
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[CoreState], outbox: &mut Outbox<()>) {
        for neighbour in list.neighbours {
            // Those that go now or have gone do not count edges any more.
            if self.left.has(*neighbour) {
                outbox.send(*neighbour, ());
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut CoreState, (): ()) -> bool {
        // A file that is not what it was made as may take more than there are.
        state.degree = state.degree.saturating_sub(1);
        !state.gone && state.degree == self.core
    }

    fn on_iteration_end(&mut self, _: u32, states: &mut [CoreState], active: &mut Frontier) {
        self.go_on(states, active);
    }
}

/// The core that each vertex of a stored graph is in.
pub fn core_numbers(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<u32>> + Send {
    let bound = graph.bound(
        Some(graph.each_bytes(graph.both(), false)),
        graph.both(),
        false,
        "each list once, as whole pages",
    );
    let bytes = CORES_BYTES + graph.degree_bytes(graph.both());
    let run = |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| {
        let mut states = vec![CoreState::new(0); graph.vertices()];
        for direction in graph.both() {
            let degrees = graph.degrees(*direction, resources.io)?;
            for (vertex, span) in degrees.spans(0..Vertex::MAX) {
                states[vertex as usize].degree += span.bytes as u32;
            }
        }
        let (mut program, mut active) = Peeling::new(graph.both(), &states);
        run_stored(graph, &mut program, &mut states, &mut active, resources, watch)?;
        Ok(states.into_iter().map(|state| state.core).collect())
    };
    GraphAlgorithm::new(graph, "graph: cores", bytes, run).bound(bound)
}
