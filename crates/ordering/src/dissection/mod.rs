//! Multilevel nested dissection.
//!
//! George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973): a separator is
//! eliminated after the parts that it separates, each of which is dissected in turn; leaves are ordered by minimum
//! degree.
//!
//! **Invariant.** An order depends on the graph alone: random numbers are seeded by the place in the recursion, and no
//! choice depends on threads or time.

mod coarsen;
mod components;
mod leaf;
mod queue;
mod refine;
mod separate;

use crate::graph::{SymmetricGraph, View, Weighted};
use crate::reduction::GraphReduction;
use crate::team::Team;
use crate::watch::{OrderingWatch, Patience, Stopped};
use components::Components;
use leaf::LeafOrder;
use refine::{Refiner, Separation, SEPARATOR};
use separate::Search;

/// Parts of so many vertices are leaves.
const LEAF: usize = 200;
/// Parts so deep in the dissection are leaves, however large: their separators separate nothing.
const DEPTH_MAX: u32 = 60;
/// Parts from this size on are worth a helper.
const HELPED: usize = 2000;
/// Room of graphs from this size on is not kept for later ones.
const RELEASED: usize = 20_000;

/// Orders a graph by multilevel nested dissection.
///
/// Returns the vertices in the order of elimination, those of more than `max(16, 10 sqrt(n))` neighbours last. The
/// order is the same for any number of threads. Time is about 10 us a vertex in three dimensions, 5 us in two, on one
/// thread.
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If the graph has 2^31 vertices or more.
pub fn dissect(graph: SymmetricGraph<'_>, watch: &OrderingWatch<'_>) -> Result<Vec<u32>, Stopped> {
    let patience = Patience::new(watch.stop);
    let Some(mut reduction) = GraphReduction::of(graph, &patience)? else {
        return dissect_whole(View::plain(graph), watch);
    };
    let reduced = reduction.reduced(graph);
    let order = dissect_whole(reduced.view(), watch)?;
    reduction.weights = reduced.vertex_weights;
    Ok(reduction.expand(&order))
}

fn dissect_whole(whole: View<'_>, watch: &OrderingWatch<'_>) -> Result<Vec<u32>, Stopped> {
    let team = Team::new(watch);
    let stop = || team.should_stop();
    let shared = Shared {
        whole,
        team: &team,
        stop: &stop,
    };
    let mut worker = Dissector::new(&shared);
    let components = Components::of(whole, LEAF, &worker.patience)?;
    let mut order = components.vertices;
    if let Some(numbers) = components.numbers {
        let (small, large) = order.split_at_mut(components.small);
        worker.leaves.order(whole, small, &worker.patience)?;
        worker.dissect_forest(&numbers, &components.sizes, large)?;
    } else {
        worker.dissect(None, &mut order, 1, 0)?;
    }
    Ok(order)
}

struct Shared<'a> {
    whole: View<'a>,
    team: &'a Team<'a>,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// One thread's room.
struct Dissector<'a> {
    shared: &'a Shared<'a>,
    patience: Patience<'a>,
    refiner: Refiner,
    leaves: LeafOrder,
}

impl<'a> Dissector<'a> {
    fn new(shared: &'a Shared<'a>) -> Dissector<'a> {
        let patience = Patience::new(shared.stop);
        Dissector {
            shared,
            patience,
            refiner: Refiner::default(),
            leaves: LeafOrder::new(),
        }
    }

    /// Does both, the second on a helper if the work is worth one and one is free.
    fn both(
        &mut self,
        is_large: bool,
        one: impl FnOnce(&mut Dissector<'a>) -> Result<(), Stopped>,
        other: impl FnOnce(&mut Dissector<'a>) -> Result<(), Stopped> + Send,
    ) -> Result<(), Stopped> {
        let shared = self.shared;
        if is_large && shared.team.take() {
            let [done, helped] = shared.team.fork(|| one(self), || other(&mut Dissector::new(shared)));
            return done.and(helped);
        }
        one(self)?;
        other(self)
    }

    /// Dissects components one beside the other: `sizes` of them in `vertices`, `numbers` of all vertices in theirs.
    fn dissect_forest(&mut self, numbers: &[u32], sizes: &[usize], vertices: &mut [u32]) -> Result<(), Stopped> {
        if sizes.len() <= 1 {
            if vertices.is_empty() {
                return Ok(());
            }
            let part = components::part(self.shared.whole, numbers, vertices, &self.patience)?;
            return self.dissect(Some(part), vertices, 1, 0);
        }
        let (left, right) = sizes.split_at(sizes.len() / 2);
        let (left_vertices, right_vertices) = vertices.split_at_mut(left.iter().sum());
        let is_large = left_vertices.len().min(right_vertices.len()) >= HELPED;
        self.both(
            is_large,
            |worker| worker.dissect_forest(numbers, left, left_vertices),
            |worker| worker.dissect_forest(numbers, right, right_vertices),
        )
    }

    /// Orders a part of the whole graph: `vertices` are its vertices, in the order of the part's numbers; no part is
    /// all.
    fn dissect(&mut self, part: Option<Weighted>, vertices: &mut [u32], seed: u64, depth: u32) -> Result<(), Stopped> {
        let Shared { whole, team, stop } = *self.shared;
        if vertices.len() <= LEAF || depth > DEPTH_MAX {
            drop(part);
            return self.leaves.order(whole, vertices, &self.patience);
        }
        let view = part.as_ref().map_or(whole, |part| part.view());
        let search = Search {
            team,
            stop,
            seed,
            depth,
        };
        let separation = search.separate(view, &mut self.refiner, &self.patience)?;
        if vertices.len() >= RELEASED {
            self.refiner.release();
        }
        let counts = count(&separation);
        // A separator of most vertices, or of none with all on one side, is none.
        if counts[2] * 2 > vertices.len() || counts[0].max(counts[1]) == vertices.len() {
            drop(part);
            return self.leaves.order(whole, vertices, &self.patience);
        }
        let [one, other] = split(view, &separation, counts, &self.patience)?;
        drop(part);
        arrange(&separation, vertices, counts);
        drop(separation);
        let (left, rest) = vertices.split_at_mut(counts[0]);
        let right = &mut rest[..counts[1]];
        self.both(
            left.len().min(right.len()) >= HELPED,
            |worker| worker.dissect(Some(one), left, seed * 2, depth + 1),
            |worker| worker.dissect(Some(other), right, seed * 2 + 1, depth + 1),
        )
    }
}

fn count(separation: &Separation) -> [usize; 3] {
    let mut counts = [0; 3];
    for &side in &separation.sides {
        counts[side as usize] += 1;
    }
    counts
}

/// Sorts the vertices by side, the separator last.
fn arrange(separation: &Separation, vertices: &mut [u32], counts: [usize; 3]) {
    let old = vertices.to_vec();
    let mut places = [0, counts[0], counts[0] + counts[1]];
    for (vertex, &side) in old.into_iter().zip(&separation.sides) {
        vertices[places[side as usize]] = vertex;
        places[side as usize] += 1;
    }
}

/// The graphs of both sides.
fn split(
    view: View<'_>,
    separation: &Separation,
    counts: [usize; 3],
    patience: &Patience<'_>,
) -> Result<[Weighted; 2], Stopped> {
    let mut numbers = vec![0; view.vertices()];
    let mut next = [0u32; 3];
    let mut directed = [0; 3];
    for (vertex, &side) in separation.sides.iter().enumerate() {
        numbers[vertex] = next[side as usize];
        next[side as usize] += 1;
        directed[side as usize] += view.degree(vertex);
    }
    let mut parts = [0, 1].map(|side| Weighted {
        starts: Vec::with_capacity(counts[side] + 1),
        neighbours: Vec::with_capacity(directed[side]),
        edge_weights: Vec::new(),
        vertex_weights: Vec::with_capacity(if view.vertex_weights.is_empty() {
            0
        } else {
            counts[side]
        }),
    });
    parts.iter_mut().for_each(|part| part.starts.push(0));
    for (vertex, &side) in separation
        .sides
        .iter()
        .enumerate()
        .filter(|(_, &side)| side != SEPARATOR)
    {
        let part = &mut parts[side as usize];
        let list = view.neighbours_of(vertex);
        patience.work(list.len() + 1)?;
        let kept = list
            .iter()
            .filter(|&&other| separation.sides[other as usize] != SEPARATOR);
        part.neighbours.extend(kept.map(|&other| numbers[other as usize]));
        part.starts.push(part.neighbours.len() as u64);
        if !view.vertex_weights.is_empty() {
            part.vertex_weights.push(view.vertex_weights[vertex]);
        }
    }
    Ok(parts)
}
