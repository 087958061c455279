//! Multilevel nested dissection.

mod coarsen;
mod leaf;
mod queue;
mod refine;
mod separate;

use crate::graph::{Graph, View, Weighted};
use crate::random::{mix, Random};
use crate::reduction::Reduction;
use crate::watch::{Patience, Stopped, Watch};
use leaf::LeafOrder;
use refine::{Refiner, Separation, SEPARATOR};

/// Parts of so many vertices are leaves.
const LEAF: usize = 200;
/// Parts so deep in the dissection are leaves, however large: their separators separate nothing.
const DEPTH_MAX: u32 = 60;

/// Orders a graph by multilevel nested dissection.
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If the graph has 2^31 vertices or more.
pub fn dissect(graph: Graph<'_>, watch: &Watch<'_>) -> Result<Vec<u32>, Stopped> {
    let patience = Patience::new(watch.stop);
    let Some(reduction) = Reduction::of(graph, &patience)? else {
        return dissect_whole(View::plain(graph), watch);
    };
    let reduced = reduction.reduced(graph);
    let order = dissect_whole(reduced.view(), watch)?;
    drop(reduced);
    Ok(reduction.expand(&order))
}

fn dissect_whole(whole: View<'_>, watch: &Watch<'_>) -> Result<Vec<u32>, Stopped> {
    let mut order: Vec<u32> = (0..whole.vertices() as u32).collect();
    let patience = Patience::new(watch.stop);
    let mut worker = Worker {
        whole,
        patience,
        refiner: Refiner::default(),
        leaves: LeafOrder::new(),
    };
    worker.dissect(None, &mut order, 1, 0)?;
    Ok(order)
}

struct Worker<'a> {
    whole: View<'a>,
    patience: Patience<'a>,
    refiner: Refiner,
    leaves: LeafOrder,
}

impl Worker<'_> {
    /// Orders a part of the whole graph: `vertices` are its vertices, in the order of the part's numbers; no part is all.
    fn dissect(&mut self, part: Option<Weighted>, vertices: &mut [u32], seed: u64, depth: u32) -> Result<(), Stopped> {
        let view = part.as_ref().map_or(self.whole, |part| part.view());
        if view.vertices() <= LEAF || depth > DEPTH_MAX {
            drop(part);
            return self.leaves.order(self.whole, vertices, &self.patience);
        }
        let mut random = Random::new(mix(seed));
        let separation = separate::separate(view, &mut random, &mut self.refiner, &self.patience)?;
        let counts = count(&separation);
        if counts[0].max(counts[1]) == 0 || counts[2] * 2 > view.vertices() || counts[0].min(counts[1]) + counts[2] == 0
        {
            drop(part);
            return self.leaves.order(self.whole, vertices, &self.patience);
        }
        let [one, other] = split(view, &separation, counts);
        drop(part);
        arrange(&separation, vertices, counts);
        let (left, rest) = vertices.split_at_mut(counts[0]);
        let right = &mut rest[..counts[1]];
        self.dissect(Some(one), left, seed * 2, depth + 1)?;
        self.dissect(Some(other), right, seed * 2 + 1, depth + 1)
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
fn split(view: View<'_>, separation: &Separation, counts: [usize; 3]) -> [Weighted; 2] {
    let mut numbers = vec![0; view.vertices()];
    let mut next = [0u32; 3];
    let mut directed = [0; 3];
    for (vertex, &side) in separation.sides.iter().enumerate() {
        numbers[vertex] = next[side as usize];
        next[side as usize] += 1;
        directed[side as usize] += view.degree(vertex);
    }
    let make = |side: u8| {
        let at = side as usize;
        let mut part = Weighted {
            starts: Vec::with_capacity(counts[at] + 1),
            neighbours: Vec::with_capacity(directed[at]),
            ..Weighted::default()
        };
        part.starts.push(0);
        for (vertex, _) in separation.sides.iter().enumerate().filter(|(_, of)| **of == side) {
            let list = view.neighbours_of(vertex).iter();
            let kept = list.filter(|&&other| separation.sides[other as usize] != SEPARATOR);
            part.neighbours.extend(kept.map(|&other| numbers[other as usize]));
            part.starts.push(part.neighbours.len() as u64);
            if !view.vertex_weights.is_empty() {
                part.vertex_weights.push(view.vertex_weights[vertex]);
            }
        }
        part
    };
    [make(0), make(1)]
}
