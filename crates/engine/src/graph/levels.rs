//! Breadth-first search.

use outcore_graph::Vertex;
use outcore_store::Direction;

use super::bits::Bits;
use super::frontier::Frontier;
use super::program::{Outbox, VertexProgram};
use super::wanted::List;

/// A vertex that was not met.
pub const UNMET: i32 = -1;

/// The distance of each vertex from where the search begins, in edges: what is met in an iteration is one farther away.
pub struct Levels<'a> {
    directions: &'a [Direction],
    /// Those that are as far away or farther are not asked for their neighbours.
    farthest: u32,
    /// Those that were met before the iteration: a bit of each stays in a core's cache, a number does not.
    met: Bits,
}

impl<'a> Levels<'a> {
    /// A search that begins with the active vertices, and goes no farther than so many edges.
    pub fn new(directions: &'a [Direction], farthest: u32, active: &Frontier) -> Levels<'a> {
        let mut met = Bits::none(active.vertices());
        active.add_to(&mut met);
        Levels {
            directions,
            farthest,
            met,
        }
    }
}

impl VertexProgram for Levels<'_> {
    type State = i32;
    type Message = ();

    fn directions(&self) -> &[Direction] {
        self.directions
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, iteration: u32, _: Vertex, _: &mut i32) -> bool {
        iteration < self.farthest
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[i32], outbox: &mut Outbox<()>) {
        for neighbour in list.neighbours {
            if !self.met.has(*neighbour) {
                outbox.send(*neighbour, ());
            }
        }
    }

    fn on_message(&self, iteration: u32, _: Vertex, level: &mut i32, (): ()) -> bool {
        let is_new = *level == UNMET;
        if is_new {
            *level = iteration as i32 + 1;
        }
        is_new
    }

    fn on_iteration_end(&mut self, _: u32, _: &mut [i32], active: &mut Frontier) {
        active.add_to(&mut self.met);
    }
}
