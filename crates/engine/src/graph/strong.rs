//! Strongly connected components.

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::bits::Bits;
use super::program::{run, Graph, Outbox, VertexProgram};
use super::sweep::{List, Means, Watch};
use crate::EngineError;

/// What is known of a vertex.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The lowest vertex of its component, once it is known.
    component: Vertex,
    /// The lowest vertex that leads to it among those that are left; in a trim, edges from others that are left.
    color: Vertex,
}

const UNKNOWN: Vertex = Vertex::MAX;

/// Takes away vertices that no edge leads to, and then those that none leads to any more: each is a component.
struct Trim {
    direction: [Direction; 1],
}

impl VertexProgram for Trim {
    type State = State;
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &self.direction
    }

    fn run(&self, _: u32, vertex: Vertex, state: &mut State) -> bool {
        state.component = vertex;
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[State], outbox: &mut Outbox<()>) {
        let others = list.neighbours.iter().filter(|other| **other != list.vertex);
        others.for_each(|other| outbox.send(*other, ()));
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut State, (): ()) -> bool {
        state.color = state.color.saturating_sub(1);
        state.color == 0 && state.component == UNKNOWN
    }
}

/// Spreads the lowest number along the edges among those that are left.
struct Color;

impl VertexProgram for Color {
    type State = State;
    type Message = Vertex;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn run(&self, _: u32, _: Vertex, _: &mut State) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[State], outbox: &mut Outbox<Vertex>) {
        let color = states[list.vertex as usize].color;
        for other in list.neighbours {
            let state = states[*other as usize];
            if state.component == UNKNOWN && color < state.color {
                outbox.send(*other, color);
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut State, color: Vertex) -> bool {
        let is_lower = color < state.color;
        if is_lower {
            state.color = color;
        }
        is_lower
    }
}

/// Goes back from the lowest vertex of each color, among those of the color.
struct Back;

impl VertexProgram for Back {
    type State = State;
    type Message = Vertex;

    fn directions(&self) -> &[Direction] {
        &[Direction::In]
    }

    fn run(&self, _: u32, _: Vertex, state: &mut State) -> bool {
        state.component = state.color;
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[State], outbox: &mut Outbox<Vertex>) {
        let color = states[list.vertex as usize].color;
        for other in list.neighbours {
            let state = states[*other as usize];
            if state.component == UNKNOWN && state.color == color {
                outbox.send(*other, color);
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut State, color: Vertex) -> bool {
        state.component == UNKNOWN && state.color == color
    }
}

/// Bytes of memory for each vertex.
pub const STRONG_BYTES: u64 = 8 + 1;

/// A vertex of each strongly connected component, for every vertex: what one edge leads into is trimmed both ways, then
/// colors spread and are followed back (Orzan 2004; Slota, Rajamanickam, Madduri, "BFS and coloring-based parallel
/// algorithms for strongly connected components", IPDPS 2014).
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn strong_components(
    file: &GraphFile,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vertex>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let never = State {
        component: UNKNOWN,
        color: 0,
    };
    let mut states = vec![never; vertices];
    let mut active = Bits::none(vertices);
    let none: &[ListIndex] = &[];
    let graph = Graph { file, degrees: none };
    loop {
        for (along, against) in [(Direction::Out, Direction::In), (Direction::In, Direction::Out)] {
            begin_trim(file, against, &mut states, &mut active, means, watch)?;
            let mut trim = Trim { direction: [along] };
            run(&graph, &mut trim, &mut states, &mut active, means, &mut |_| {}, watch)?;
        }
        for (vertex, state) in states.iter_mut().enumerate() {
            if state.component == UNKNOWN {
                state.color = vertex as Vertex;
                active.insert(vertex as Vertex);
            }
        }
        if active.is_empty() {
            return Ok(states.into_iter().map(|state| state.component).collect());
        }
        run(&graph, &mut Color, &mut states, &mut active, means, &mut |_| {}, watch)?;
        for (vertex, state) in states.iter().enumerate() {
            if state.component == UNKNOWN && state.color == vertex as Vertex {
                active.insert(vertex as Vertex);
            }
        }
        run(&graph, &mut Back, &mut states, &mut active, means, &mut |_| {}, watch)?;
    }
}

/// Counts, of every vertex that is left, the edges from others that are left, and chooses those without any.
fn begin_trim(
    file: &GraphFile,
    against: Direction,
    states: &mut [State],
    active: &mut Bits,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    use super::batch::Chosen;
    use super::sweep::{Scratch, Sweep, Wanted};
    for (vertex, state) in states.iter_mut().enumerate() {
        if state.component == UNKNOWN {
            state.color = 0;
            active.insert(vertex as Vertex);
        }
    }
    let wanted = Wanted {
        file,
        direction: against,
        chosen: Chosen::Of(active),
        weights: None,
    };
    let mut counts: Vec<(Vertex, u32)> = vec![];
    let known = &*states;
    Sweep::new(wanted, means).whole().run(
        means,
        Scratch::default,
        |scratch, lists| {
            let mut found = vec![];
            lists.each(scratch, |list| {
                let others = list.neighbours.iter().filter(|other| **other != list.vertex);
                let left = others.filter(|other| known[**other as usize].component == UNKNOWN);
                found.push((list.vertex, left.count() as u32));
            })?;
            Ok(found)
        },
        |part| {
            counts.extend(part);
            Ok(())
        },
        watch,
    )?;
    for (vertex, count) in counts {
        states[vertex as usize].color = count;
        if count > 0 {
            active.remove(vertex);
        }
    }
    Ok(())
}
