//! Vertices that an ordering leaves out: dense rows, which go last, and vertices that others stand for.
//!
//! A vertex of more than `max(16, 10 sqrt(n))` neighbours is dense (Amestoy, Davis, Duff, "Algorithm 837: AMD", ACM
//! TOMS 30 (2004), section 3.2). Vertices of equal closed neighbourhoods are ordered as one (Ashcraft, "Compressed
//! graphs and the minimum degree algorithm", SIAM J. Sci. Comput. 16 (1995)).

use crate::graph::{SymmetricGraph, Weighted};
use crate::random::mix;
use crate::watch::{Patience, Stopped};

/// The label of a dense vertex.
const DENSE: u32 = u32::MAX;
/// Marks the label of a vertex that another stands for.
const MEMBER: u32 = 1 << 31;
/// Compressed graphs pay if they have at most this share of the vertices, in percent.
const COMPRESSED_PERCENT: usize = 85;

/// A smaller graph for a given one.
pub(crate) struct GraphReduction {
    /// For each vertex: `DENSE`, or the vertex of the smaller graph that holds it, with `MEMBER` unless it stands for
    /// it.
    labels: Vec<u32>,
    /// For each vertex of the smaller graph: the number of vertices that it holds.
    pub(crate) weights: Vec<u32>,
    /// Number of neighbours in the smaller graph.
    pub(crate) directed: usize,
    dense: usize,
}

fn degree_max(vertices: usize) -> usize {
    ((10.0 * (vertices as f64).sqrt()) as usize).max(16)
}

impl GraphReduction {
    /// None if the graph has no dense row and is hardly compressed.
    pub(crate) fn of(graph: SymmetricGraph<'_>, patience: &Patience<'_>) -> Result<Option<GraphReduction>, Stopped> {
        let vertices = graph.vertices();
        assert!(vertices < MEMBER as usize, "an ordering takes fewer than 2^31 vertices");
        let degree_max = degree_max(vertices);
        let is_dense = |vertex: usize| graph.neighbours_of(vertex).len() > degree_max;
        let dense = (0..vertices).filter(|&vertex| is_dense(vertex)).count();
        let mut labels = representatives(graph, &is_dense, patience)?;
        let stand = |labels: &[u32]| (0..vertices).filter(|&vertex| labels[vertex] == vertex as u32).count();
        let mut kept = stand(&labels);
        if kept * 100 > (vertices - dense) * COMPRESSED_PERCENT {
            if dense == 0 {
                return Ok(None);
            }
            for (vertex, label) in labels.iter_mut().enumerate().filter(|(_, label)| **label != DENSE) {
                *label = vertex as u32;
            }
            kept = vertices - dense;
        }
        let mut weights = Vec::with_capacity(kept);
        for vertex in 0..vertices {
            let first = labels[vertex];
            if first == vertex as u32 {
                labels[vertex] = weights.len() as u32;
                weights.push(1);
            } else if first != DENSE {
                // Representatives come before their members, so that theirs is a label by now.
                let label = labels[first as usize];
                labels[vertex] = label | MEMBER;
                weights[label as usize] += 1;
            }
        }
        let mut reduction = GraphReduction {
            labels,
            weights,
            directed: 0,
            dense,
        };
        reduction.directed = reduction
            .kept()
            .map(|vertex| reduction.neighbours_of(graph, vertex).count())
            .sum();
        Ok(Some(reduction))
    }

    /// Number of vertices of the smaller graph.
    pub(crate) fn vertices(&self) -> usize {
        self.weights.len()
    }

    /// The vertices that stand for those of the smaller graph, in their order.
    pub(crate) fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.labels.len()).filter(|&vertex| self.labels[vertex] & MEMBER == 0)
    }

    /// Neighbours, in the smaller graph, of what a kept vertex stands for.
    pub(crate) fn neighbours_of<'a>(
        &'a self,
        graph: SymmetricGraph<'a>,
        vertex: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        graph
            .neighbours_of(vertex)
            .iter()
            .map(|&other| self.labels[other as usize])
            .filter(|&label| label & MEMBER == 0)
    }

    /// The smaller graph, which holds the weights until they come back for `expand`.
    pub(crate) fn reduced(&mut self, graph: SymmetricGraph<'_>) -> Weighted {
        let mut starts = Vec::with_capacity(self.vertices() + 1);
        let mut neighbours = Vec::with_capacity(self.directed);
        starts.push(0);
        for vertex in self.kept() {
            neighbours.extend(self.neighbours_of(graph, vertex));
            starts.push(neighbours.len() as u64);
        }
        Weighted {
            starts,
            neighbours,
            edge_weights: Vec::new(),
            vertex_weights: std::mem::take(&mut self.weights),
        }
    }

    /// The order of the whole graph for one of the smaller graph: dense vertices last.
    pub(crate) fn expand(mut self, order: &[u32]) -> Vec<u32> {
        let mut place = 0;
        for &vertex in order {
            let weight = std::mem::replace(&mut self.weights[vertex as usize], place);
            place += weight;
        }
        let mut expanded = vec![0; self.labels.len()];
        for (vertex, &label) in self.labels.iter().enumerate() {
            let next = if label == DENSE {
                &mut place
            } else {
                &mut self.weights[(label & !MEMBER) as usize]
            };
            expanded[*next as usize] = vertex as u32;
            *next += 1;
        }
        debug_assert_eq!(
            place as usize,
            self.labels.len(),
            "{} dense vertices are last",
            self.dense
        );
        expanded
    }
}

/// For each vertex the first of equal closed neighbourhood, or `DENSE`.
fn representatives(
    graph: SymmetricGraph<'_>,
    is_dense: &dyn Fn(usize) -> bool,
    patience: &Patience<'_>,
) -> Result<Vec<u32>, Stopped> {
    let vertices = graph.vertices();
    let mut hashes = Vec::with_capacity(vertices);
    for vertex in 0..vertices {
        let list = graph.neighbours_of(vertex);
        patience.work(list.len())?;
        hashes.push(list.iter().fold(mix(vertex as u64) as u32, |hash, &other| {
            hash.wrapping_add(mix(u64::from(other)) as u32)
        }));
    }
    let mut firsts: Vec<u32> = (0..vertices as u32).collect();
    for vertex in 0..vertices {
        if is_dense(vertex) {
            firsts[vertex] = DENSE;
            continue;
        }
        if firsts[vertex] != vertex as u32 {
            continue;
        }
        let list = graph.neighbours_of(vertex);
        patience.work(list.len())?;
        // Equal closed neighbourhoods hold each other: only neighbours can be equal.
        for &other in &list[list.partition_point(|&other| (other as usize) < vertex)..] {
            let is_candidate = hashes[other as usize] == hashes[vertex] && firsts[other as usize] == other;
            if is_candidate && has_equal_neighbourhood(graph, vertex, other as usize) {
                patience.work(list.len())?;
                firsts[other as usize] = vertex as u32;
            }
        }
    }
    Ok(firsts)
}

/// Whether two neighbours have all others in common.
fn has_equal_neighbourhood(graph: SymmetricGraph<'_>, one: usize, other: usize) -> bool {
    let (list, other_list) = (graph.neighbours_of(one), graph.neighbours_of(other));
    let without_other = list.iter().filter(|&&at| at as usize != other);
    let without_one = other_list.iter().filter(|&&at| at as usize != one);
    list.len() == other_list.len() && without_one.eq(without_other)
}
