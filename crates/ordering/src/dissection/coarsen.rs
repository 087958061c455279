//! Coarser graphs, in which one vertex stands for two.

use crate::graph::{View, Weighted};
use crate::random::Random;
use crate::watch::{Patience, Stopped};

const NONE: u32 = u32::MAX;
/// Two-hop matching starts if at least this share of the vertices found no neighbour, in percent.
const UNMATCHED_PERCENT: usize = 10;
/// Neighbours through which a vertex looks for a partner two hops away.
const HOPS_MAX: usize = 8;

/// A coarser graph, and for each vertex of the finer one the vertex that holds it.
pub(super) struct Level {
    pub(super) graph: Weighted,
    pub(super) map: Vec<u32>,
}

/// Halves a graph, as far as vertices of at most `weight_max` allow.
pub(super) fn coarsen(
    view: View<'_>,
    weight_max: u32,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<Level, Stopped> {
    let (mut partners, pairs) = match_neighbours(view, weight_max, random, patience)?;
    let left = view.vertices() - 2 * pairs;
    if left * 100 > view.vertices() * UNMATCHED_PERCENT {
        match_two_hops(view, weight_max, &mut partners, patience)?;
    }
    contract(view, partners, view.neighbours.len() - 2 * pairs, patience)
}

/// The order in which vertices look for partners: at random, those of few neighbours first, who have less choice.
///
/// Sorted heavy-edge matching: Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular
/// graphs", SIAM J. Sci. Comput. 20 (1998), section 3.1; sorted as in their report TR 95-035.
fn visiting_order(view: View<'_>, random: &mut Random) -> Vec<u32> {
    let vertices = view.vertices();
    let mut shuffled: Vec<u32> = (0..vertices as u32).collect();
    for at in (1..vertices).rev() {
        shuffled.swap(at, random.below(at + 1));
    }
    let degree_max = (view.neighbours.len() / vertices.max(1)).max(1) * 7 / 10 + 1;
    let mut places = vec![0u32; degree_max + 2];
    let key = |vertex: u32| view.degree(vertex as usize).min(degree_max);
    for &vertex in &shuffled {
        places[key(vertex) + 1] += 1;
    }
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    let mut order = vec![0; vertices];
    for &vertex in &shuffled {
        let place = &mut places[key(vertex)];
        order[*place as usize] = vertex;
        *place += 1;
    }
    order
}

/// Each vertex with the neighbour of its heaviest edge among those left; itself if none is left. And the number of pairs.
fn match_neighbours(
    view: View<'_>,
    weight_max: u32,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<(Vec<u32>, usize), Stopped> {
    let order = visiting_order(view, random);
    let mut partners = vec![NONE; view.vertices()];
    let mut pairs = 0;
    for vertex in order {
        if partners[vertex as usize] != NONE {
            continue;
        }
        let range = view.range(vertex as usize);
        patience.work(range.len())?;
        let weight = view.weight(vertex as usize);
        let mut best = vertex;
        let mut best_weight = 0;
        for at in range {
            let other = view.neighbours[at];
            let edge = if view.edge_weights.is_empty() {
                1
            } else {
                view.edge_weights[at]
            };
            if edge > best_weight
                && partners[other as usize] == NONE
                && weight + view.weight(other as usize) <= weight_max
            {
                best = other;
                best_weight = edge;
            }
        }
        if best != vertex {
            partners[vertex as usize] = best;
            partners[best as usize] = vertex;
            pairs += 1;
        }
    }
    for (vertex, partner) in partners.iter_mut().enumerate().filter(|(_, partner)| **partner == NONE) {
        *partner = vertex as u32;
    }
    Ok((partners, pairs))
}

/// Matches vertices left over that have a neighbour in common, and those without neighbours with each other
/// (LaSalle et al., "Improving graph partitioning for modern graphs and architectures", IA3 2015, section 3).
fn match_two_hops(
    view: View<'_>,
    weight_max: u32,
    partners: &mut [u32],
    patience: &Patience<'_>,
) -> Result<(), Stopped> {
    let mut waiting = vec![NONE; view.vertices()];
    let mut alone = NONE;
    for vertex in 0..view.vertices() {
        if partners[vertex] != vertex as u32 {
            continue;
        }
        let list = view.neighbours_of(vertex);
        patience.work(list.len().min(HOPS_MAX) + 1)?;
        let mut offer = |place: &mut u32| {
            let other = *place;
            if other == NONE || partners[other as usize] != other {
                *place = vertex as u32;
                return false;
            }
            if view.weight(vertex) + view.weight(other as usize) > weight_max {
                return false;
            }
            partners[vertex] = other;
            partners[other as usize] = vertex as u32;
            true
        };
        if list.is_empty() {
            offer(&mut alone);
        }
        for &through in list.iter().take(HOPS_MAX) {
            if offer(&mut waiting[through as usize]) {
                break;
            }
        }
    }
    Ok(())
}

/// The graph of the pairs, numbered by the first vertex of each.
fn contract(
    view: View<'_>,
    partners: Vec<u32>,
    directed_max: usize,
    patience: &Patience<'_>,
) -> Result<Level, Stopped> {
    let mut map = vec![0; view.vertices()];
    let mut vertices = 0;
    for (vertex, &partner) in partners.iter().enumerate() {
        if partner as usize >= vertex {
            map[vertex] = vertices;
            map[partner as usize] = vertices;
            vertices += 1;
        }
    }
    let vertices = vertices as usize;
    let mut graph = Weighted {
        starts: Vec::with_capacity(vertices + 1),
        neighbours: Vec::with_capacity(directed_max),
        edge_weights: Vec::with_capacity(directed_max),
        vertex_weights: Vec::with_capacity(vertices),
    };
    graph.starts.push(0);
    // For each coarse vertex its place in the row being made, from 1; all 0 between rows.
    let mut places = vec![0u32; vertices];
    for (vertex, &partner) in partners.iter().enumerate() {
        if (partner as usize) < vertex {
            continue;
        }
        let row = graph.neighbours.len();
        let mut weight = view.weight(vertex);
        append(view, vertex, &map, &mut places, row, &mut graph);
        if partner as usize != vertex {
            weight += view.weight(partner as usize);
            append(view, partner as usize, &map, &mut places, row, &mut graph);
        }
        for &other in &graph.neighbours[row..] {
            places[other as usize] = 0;
        }
        patience.work(2 * (graph.neighbours.len() - row) + 2)?;
        graph.starts.push(graph.neighbours.len() as u64);
        graph.vertex_weights.push(weight);
    }
    graph.neighbours.shrink_to_fit();
    graph.edge_weights.shrink_to_fit();
    Ok(Level { graph, map })
}

/// Adds a vertex's edges to the row that starts at `row`.
#[inline]
fn append(view: View<'_>, vertex: usize, map: &[u32], places: &mut [u32], row: usize, graph: &mut Weighted) {
    let own = map[vertex];
    for at in view.range(vertex) {
        let other = map[view.neighbours[at] as usize];
        if other == own {
            continue;
        }
        let edge = if view.edge_weights.is_empty() {
            1
        } else {
            view.edge_weights[at]
        };
        let place = &mut places[other as usize];
        if *place == 0 {
            graph.neighbours.push(other);
            graph.edge_weights.push(edge);
            *place = (graph.neighbours.len() - row) as u32;
        } else {
            graph.edge_weights[row + *place as usize - 1] += edge;
        }
    }
}
