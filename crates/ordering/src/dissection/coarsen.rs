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
pub(super) struct CoarseLevel {
    pub(super) graph: Weighted,
    pub(super) map: Vec<u32>,
}

/// The share of coarser graphs, so that their memory is bounded whatever the graph. Coarser meshes take two thirds of
/// it.
#[derive(Clone)]
pub(super) struct Budget {
    vertices: usize,
    directed: usize,
}

impl Budget {
    /// All coarser graphs have at most 11/4 of the edges of the finest, and 3/2 of its vertices.
    pub(super) fn of(view: View<'_>) -> Budget {
        let spare = 1 << 10;
        Budget {
            vertices: view.vertices() * 3 / 2 + spare,
            directed: view.neighbours.len() * 11 / 4 + spare,
        }
    }

    /// The rest, for one of so many tries on a coarse graph at a time, if that is enough for it.
    pub(super) fn of_one(&self, tries: usize, coarse: View<'_>) -> Option<Budget> {
        let budget = Budget {
            vertices: self.vertices / tries,
            directed: self.directed / tries,
        };
        (coarse.vertices() <= budget.vertices && coarse.neighbours.len() <= budget.directed).then_some(budget)
    }
}

/// Halves a graph, as far as vertices of at most `weight_max` allow; None if the budget is spent.
pub(super) fn coarsen(
    view: View<'_>,
    weight_max: u32,
    budget: &mut Budget,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<Option<CoarseLevel>, Stopped> {
    let (mut partners, mut pairs) = match_neighbours(view, weight_max, random, patience)?;
    let directed_max = view.neighbours.len() - 2 * pairs;
    let left = view.vertices() - 2 * pairs;
    if left * 100 > view.vertices() * UNMATCHED_PERCENT {
        pairs += match_two_hops(view, weight_max, &mut partners, patience)?;
    }
    let vertices = view.vertices() - pairs;
    if vertices > budget.vertices || directed_max > budget.directed {
        return Ok(None);
    }
    let level = contract(view, partners, vertices, directed_max, patience)?;
    budget.vertices -= vertices;
    budget.directed -= level.graph.neighbours.len();
    Ok(Some(level))
}

/// Vertices look for partners in windows of the vertices' order, those of few neighbours first, who have less choice.
const WINDOW: usize = 96;

/// Calls `visit` with all vertices: window after window, in each by degree, and at random among equals.
///
/// Sorted heavy-edge matching (Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular
/// graphs", SIAM J. Sci. Comput. 20 (1998), section 3.1) sorts all vertices; windows keep to the cache what lies
/// together.
fn visit_windows(
    view: View<'_>,
    random: &mut Random,
    mut visit: impl FnMut(usize) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let degree_max = (view.neighbours.len() / view.vertices().max(1)) * 7 / 10 + 1;
    let mut window = [0u64; WINDOW];
    let mut start = 0;
    while start < view.vertices() {
        let size = WINDOW.min(view.vertices() - start);
        for (at, key) in window[..size].iter_mut().enumerate() {
            let degree = view.degree(start + at).min(degree_max) as u64;
            *key = degree << 32 | (random.next() & 0xff_ffff) << 8 | at as u64;
        }
        window[..size].sort_unstable();
        for &key in &window[..size] {
            visit(start + (key & 0xff) as usize)?;
        }
        start += size;
    }
    Ok(())
}

/// Each vertex with the neighbour of its heaviest edge among those left; itself if none is left. And the number of
/// pairs.
fn match_neighbours(
    view: View<'_>,
    weight_max: u32,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<(Vec<u32>, usize), Stopped> {
    let mut partners = vec![NONE; view.vertices()];
    let mut pairs = 0;
    visit_windows(view, random, |vertex| {
        if partners[vertex] != NONE {
            return Ok(());
        }
        let range = view.range(vertex);
        patience.work(range.len())?;
        let room = weight_max.saturating_sub(view.weight(vertex));
        let mut best = NONE;
        let list = &view.neighbours[range.clone()];
        let fits = |other: u32| partners[other as usize] == NONE && view.weight(other as usize) <= room;
        if view.edge_weights.is_empty() {
            best = list.iter().copied().find(|&other| fits(other)).unwrap_or(NONE);
        } else {
            let mut best_weight = 0;
            for (&other, &edge) in list.iter().zip(&view.edge_weights[range]) {
                if edge > best_weight && fits(other) {
                    best = other;
                    best_weight = edge;
                }
            }
        }
        if best != NONE {
            partners[vertex] = best;
            partners[best as usize] = vertex as u32;
            pairs += 1;
        }
        Ok(())
    })?;
    for (vertex, partner) in partners.iter_mut().enumerate().filter(|(_, partner)| **partner == NONE) {
        *partner = vertex as u32;
    }
    Ok((partners, pairs))
}

/// Matches vertices left over that have a neighbour in common, and those without neighbours with each other
/// ; returns how many pairs
/// (LaSalle et al., "Improving graph partitioning for modern graphs and architectures", IA3 2015, section 3).
fn match_two_hops(
    view: View<'_>,
    weight_max: u32,
    partners: &mut [u32],
    patience: &Patience<'_>,
) -> Result<usize, Stopped> {
    let mut pairs = 0;
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
        let is_matched = if list.is_empty() {
            offer(&mut alone)
        } else {
            list.iter()
                .take(HOPS_MAX)
                .any(|&through| offer(&mut waiting[through as usize]))
        };
        pairs += usize::from(is_matched);
    }
    Ok(pairs)
}

/// The graph of the pairs, numbered by the first vertex of each.
fn contract(
    view: View<'_>,
    partners: Vec<u32>,
    vertices: usize,
    directed_max: usize,
    patience: &Patience<'_>,
) -> Result<CoarseLevel, Stopped> {
    let mut map = vec![0; view.vertices()];
    let mut next = 0;
    for (vertex, &partner) in partners.iter().enumerate() {
        if partner as usize >= vertex {
            map[vertex] = next;
            map[partner as usize] = next;
            next += 1;
        }
    }
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
    Ok(CoarseLevel { graph, map })
}

/// Adds a vertex's edges to the row that starts at `row`.
#[inline]
fn append(view: View<'_>, vertex: usize, map: &[u32], places: &mut [u32], row: usize, graph: &mut Weighted) {
    let own = map[vertex];
    let range = view.range(vertex);
    let list = &view.neighbours[range.clone()];
    let mut add = |other: u32, edge: u16| {
        let other = map[other as usize];
        if other == own {
            return;
        }
        let place = &mut places[other as usize];
        if *place == 0 {
            graph.neighbours.push(other);
            graph.edge_weights.push(edge);
            *place = (graph.neighbours.len() - row) as u32;
        } else {
            let weight = &mut graph.edge_weights[row + *place as usize - 1];
            *weight = weight.saturating_add(edge);
        }
    };
    if view.edge_weights.is_empty() {
        list.iter().for_each(|&other| add(other, 1));
    } else {
        list.iter()
            .zip(&view.edge_weights[range])
            .for_each(|(&other, &edge)| add(other, edge));
    }
}
