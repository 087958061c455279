//! Strongly connected components.

use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::{Direction, GraphFile};

use super::label_propagation::drawn;
use crate::graph::program::run::{run, Delivery, Graph, Outbox, VertexProgram};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::selection::{List, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// The state of a vertex.
#[derive(Clone, Copy, Debug)]
struct ComponentState {
    /// A vertex of its component, once it is known.
    component: Vertex,
    /// The first vertex that leads to it among those that are left; in a trim, edges from others that are left.
    color: Vertex,
}

const UNKNOWN: Vertex = Vertex::MAX;

/// Takes away vertices that no edge leads to, and then those that none leads to any more: each is a component.
struct Trim {
    direction: [Direction; 1],
}

impl VertexProgram for Trim {
    type State = ComponentState;
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &self.direction
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, vertex: Vertex, state: &mut ComponentState) -> bool {
        state.component = vertex;
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[ComponentState], outbox: &mut Outbox<()>) {
        let others = list.neighbours.iter().filter(|other| **other != list.vertex);
        others.for_each(|other| outbox.send(*other, ()));
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut ComponentState, (): ()) -> bool {
        state.color = state.color.saturating_sub(1);
        state.color == 0 && state.component == UNKNOWN
    }
}

/// Which of two vertices comes first, in an order that has nothing to do with the edges: where it had, as along a chain, one
/// component would be found at a time.
fn is_before(first: Vertex, second: Vertex) -> bool {
    (drawn(first, 0, 0), first) < (drawn(second, 0, 0), second)
}

/// Spreads colors along the edges among the vertices that are left: with `FIRST` a color that comes before another's, else any
/// other color.
struct Spread<const FIRST: bool>;

impl<const FIRST: bool> Spread<FIRST> {
    fn replaces(color: Vertex, other: Vertex) -> bool {
        match FIRST {
            true => is_before(color, other),
            false => color != other,
        }
    }
}

impl<const FIRST: bool> VertexProgram for Spread<FIRST> {
    type State = ComponentState;
    type Message = Vertex;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, _: &mut ComponentState) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[ComponentState], outbox: &mut Outbox<Vertex>) {
        let color = states[list.vertex as usize].color;
        for other in list.neighbours {
            let state = states[*other as usize];
            if state.component == UNKNOWN && Self::replaces(color, state.color) {
                outbox.send(*other, color);
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut ComponentState, color: Vertex) -> bool {
        let is_new = Self::replaces(color, state.color);
        if is_new {
            state.color = color;
        }
        is_new
    }
}

/// Goes back from the first vertex of each color, among those of the color.
struct Back;

impl VertexProgram for Back {
    type State = ComponentState;
    type Message = Vertex;

    fn directions(&self) -> &[Direction] {
        &[Direction::In]
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, state: &mut ComponentState) -> bool {
        state.component = state.color;
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[ComponentState], outbox: &mut Outbox<Vertex>) {
        let color = states[list.vertex as usize].color;
        for other in list.neighbours {
            let state = states[*other as usize];
            if state.component == UNKNOWN && state.color == color {
                outbox.send(*other, color);
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut ComponentState, color: Vertex) -> bool {
        state.component == UNKNOWN && state.color == color
    }
}

/// Bytes of memory for each vertex.
const STRONG_BYTES: u64 = 8 + 4 + 1;

/// The lowest vertex of the strongly connected component of each vertex: what one edge leads into is trimmed both ways, then
/// what one vertex reaches and is reached from goes, which mostly is the largest component, then colors spread and are
/// followed back (Orzan 2004; Slota, Rajamanickam, Madduri, "BFS and coloring-based parallel
/// algorithms for strongly connected components", IPDPS 2014).
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn strong_components(
    file: &GraphFile,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vertex>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let never = ComponentState {
        component: UNKNOWN,
        color: 0,
    };
    let mut states = vec![never; vertices];
    let mut active = Frontier::none(vertices);
    let mut is_first = true;
    loop {
        for (along, against) in [(Direction::Out, Direction::In), (Direction::In, Direction::Out)] {
            count(file, against, &mut states, &mut active, resources, watch)?;
            choose(&states, &mut active, |_, state| state.color == 0);
            spread(
                file,
                &mut Trim { direction: [along] },
                &mut states,
                &mut active,
                resources,
                watch,
            )?;
        }
        states
            .iter_mut()
            .zip(0..)
            .for_each(|(state, vertex)| state.color = vertex);
        choose(&states, &mut active, |_, _| true);
        if active.is_empty() {
            return Ok(lowest(&mut states));
        }
        if std::mem::take(&mut is_first) {
            let most = most_joined(file, &states);
            states.iter_mut().for_each(|state| state.color = UNKNOWN);
            states[most as usize].color = most;
            active.clear();
            active.insert(most);
            spread(file, &mut Spread::<false>, &mut states, &mut active, resources, watch)?;
            active.insert(most);
            spread(file, &mut Back, &mut states, &mut active, resources, watch)?;
            continue;
        }
        spread(file, &mut Spread::<true>, &mut states, &mut active, resources, watch)?;
        choose(&states, &mut active, |vertex, state| state.color == vertex);
        spread(file, &mut Back, &mut states, &mut active, resources, watch)?;
    }
}

/// Runs a program from the active vertices on.
fn spread(
    file: &GraphFile,
    program: &mut impl VertexProgram<State = ComponentState>,
    states: &mut [ComponentState],
    active: &mut Frontier,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    let graph = Graph { file, degrees: None };
    run(&graph, program, states, active, Delivery::Synchronous, resources, watch).map(|_| ())
}

/// Of those that are left, the one with the longest lists both ways.
fn most_joined(file: &GraphFile, states: &[ComponentState]) -> Vertex {
    let [out, into] = [Direction::Out, Direction::In].map(|direction| &file.section(direction).index);
    let ways = |vertex: Vertex| u128::from(out.bytes_of(vertex)) * u128::from(into.bytes_of(vertex));
    let left = (0..).zip(states).filter(|(_, state)| state.component == UNKNOWN);
    left.max_by_key(|(vertex, _)| ways(*vertex))
        .map_or(0, |(vertex, _)| vertex)
}

/// Makes those active that are left and are wanted.
fn choose(states: &[ComponentState], active: &mut Frontier, is_wanted: impl Fn(Vertex, &ComponentState) -> bool) {
    active.clear();
    for (state, vertex) in states.iter().zip(0..) {
        if state.component == UNKNOWN && is_wanted(vertex, state) {
            active.insert(vertex);
        }
    }
    active.normalize();
}

/// The lowest vertex of the component of each.
fn lowest(states: &mut [ComponentState]) -> Vec<Vertex> {
    states.iter_mut().for_each(|state| state.color = UNKNOWN);
    for vertex in 0..states.len() {
        let named = &mut states[states[vertex].component as usize];
        named.color = named.color.min(vertex as Vertex);
    }
    let of = |state: &ComponentState| states[state.component as usize].color;
    states.iter().map(of).collect()
}

/// Counts, of every vertex that is left, the edges from others that are left.
fn count(
    file: &GraphFile,
    against: Direction,
    states: &mut [ComponentState],
    active: &mut Frontier,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    states.iter_mut().for_each(|state| state.color = 0);
    choose(states, active, |_, _| true);
    if active.is_empty() {
        return Ok(());
    }
    resources.iteration(active.count());
    let selection = ListSelection {
        file,
        direction: against,
        chosen: active.chosen(),
        weights: None,
    };
    let sweep = Sweep::in_parts(selection, resources);
    // Counts are not looked at while others are made: they may come in parts.
    for round in sweep.rounds(resources.memory / 4, Heading::Ascending) {
        let known = &*states;
        let of = |list: &List<'_>| {
            let others = list.neighbours.iter().filter(|other| **other != list.vertex);
            let left = others.filter(|other| known[**other as usize].component == UNKNOWN);
            Some((list.vertex, left.count() as u32))
        };
        let mut counts = vec![];
        round.collect(&mut counts, resources, of, watch)?;
        counts
            .iter()
            .for_each(|(vertex, count)| states[*vertex as usize].color += *count);
    }
    Ok(())
}

/// The strongly connected components of a stored graph: see [`strong_components`].
pub fn strong_components_of(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<Vertex>> + Send {
    let bound = graph.bound(None, graph.both(), false, "lists of what is left over, each time");
    let (name, least) = ("graph: strongly connected components", graph.in_parts(4));
    let search = GraphAlgorithm::new(graph, name, STRONG_BYTES, |graph, resources, watch| {
        strong_components(&graph.file, resources, watch)
    });
    search.least(least).bound(bound)
}
