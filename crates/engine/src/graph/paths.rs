//! Shortest paths along weighted edges.

use std::sync::{Mutex, PoisonError};

use outcore_graph::Vertex;
use outcore_store::Direction;

use super::frontier::Frontier;
use super::program::{Outbox, VertexProgram};
use super::wanted::List;

/// Distances by steps: of the vertices that have come nearer, those within a bound tell their neighbours; where there are
/// none, the bound goes on by `step` from the nearest (Meyer, Sanders, "Δ-stepping", J. Algorithms 2003). The state of a
/// vertex is its distance, infinite before it is reached. One that comes nearer while its list is worked on tells the later
/// neighbours that at once, and all of them again: where it ends is the same.
pub struct Distances {
    pub directions: Vec<Direction>,
    pub step: f64,
    bound: f64,
    /// Those that have come nearer and told nobody.
    waiting: Frontier,
    /// A weight that was met and is none of a path: below 0, or no number.
    wrong: Mutex<Option<f64>>,
}

impl Distances {
    pub fn new(directions: &[Direction], step: f64, vertices: usize) -> Distances {
        Distances {
            directions: directions.to_vec(),
            step,
            bound: step,
            waiting: Frontier::none(vertices),
            wrong: Mutex::default(),
        }
    }

    /// Once it ran: the weight that ended it, where one is below 0 or no number. No distance is right then.
    pub fn wrong(self) -> Option<f64> {
        self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lowest weight of a list that is none of a path, the first of all of what is no number.
    fn refuse(&self, weights: &[f64]) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let those = weights.iter().copied().filter(|weight| !is_right(*weight));
        *wrong = wrong
            .into_iter()
            .chain(those)
            .reduce(|one, other| match one.is_nan() || one <= other {
                true => one,
                false => other,
            });
    }
}

fn is_right(weight: f64) -> bool {
    weight >= 0.0
}

impl VertexProgram for Distances {
    type State = f64;
    type Message = f64;

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn wants_weights(&self) -> bool {
        true
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, _: &mut f64) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[f64], outbox: &mut Outbox<f64>) {
        if !list
            .weights
            .iter()
            .fold(true, |right, weight| right & is_right(*weight))
        {
            return self.refuse(list.weights);
        }
        let from = states[list.vertex as usize];
        for (neighbour, weight) in list.neighbours.iter().zip(list.weights) {
            if from + weight < states[*neighbour as usize] {
                outbox.send(*neighbour, from + weight);
            }
        }
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut f64, distance: f64) -> bool {
        let is_nearer = distance < *state;
        if is_nearer {
            *state = distance;
        }
        is_nearer
    }

    fn on_iteration_end(&mut self, _: u32, states: &mut [f64], active: &mut Frontier) {
        if self.wrong.get_mut().is_ok_and(|wrong| wrong.is_some()) {
            return active.clear();
        }
        active.each(|vertex| self.waiting.insert(vertex));
        let mut nearest = f64::INFINITY;
        let distance = |vertex: Vertex| states[vertex as usize];
        self.waiting.each(|vertex| nearest = nearest.min(distance(vertex)));
        if nearest > self.bound {
            self.bound = nearest + self.step;
        }
        active.clear();
        self.waiting.retain(|vertex| {
            let waits = distance(vertex) > self.bound;
            if !waits {
                active.insert(vertex);
            }
            waits
        });
        self.waiting.settle();
    }
}
