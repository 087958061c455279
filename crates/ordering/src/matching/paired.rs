//! Graphs whose vertices are pairs of a graph's vertices, or single ones.

use super::columns::{NONE, STEPS_PER_VISIT};
use crate::graph::SymmetricGraph;
use crate::watch::{OrderingWatch, Patience, Stopped};

/// The graph in which both vertices of each pair are one.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedGraph {
    pub starts: Vec<u64>,
    pub neighbours: Vec<u32>,
    /// For each vertex the lesser and the greater vertex of its pair; the same one twice if alone.
    pub members: Vec<[u32; 2]>,
}

/// Makes pairs of vertices one: the neighbours of a pair are those of both. `partner` names the other vertex of a pair,
/// or the vertex itself.
///
/// Pairs are numbered by their lesser vertex. Takes at most [`compress_bytes`](crate::compress_bytes).
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If partners are not one for each vertex, or not partners of each other.
pub fn compress(
    graph: &SymmetricGraph<'_>,
    partner: &[u32],
    watch: &OrderingWatch<'_>,
) -> Result<PairedGraph, Stopped> {
    let patience = Patience::new(watch.stop);
    assert_eq!(partner.len(), graph.vertices(), "each vertex has a partner");
    let mut labels = vec![NONE; partner.len()];
    let lesser = |(vertex, &other): (usize, &u32)| vertex <= other as usize;
    let pairs = partner.iter().enumerate().filter(|&pair| lesser(pair)).count();
    let mut members = Vec::with_capacity(pairs);
    for (vertex, &other) in partner.iter().enumerate() {
        assert_eq!(
            partner[other as usize] as usize, vertex,
            "partners are partners of each other"
        );
        if lesser((vertex, &other)) {
            labels[vertex] = members.len() as u32;
            labels[other as usize] = members.len() as u32;
            members.push([vertex as u32, other]);
        }
    }
    let mut starts = Vec::with_capacity(pairs + 1);
    let mut neighbours: Vec<u32> = Vec::with_capacity(graph.neighbours.len());
    starts.push(0);
    for (label, &[one, other]) in members.iter().enumerate() {
        let start = neighbours.len();
        let lists = [one, other].map(|vertex| graph.neighbours_of(vertex as usize));
        let lists = &lists[..if one == other { 1 } else { 2 }];
        neighbours.extend(lists.iter().copied().flatten().map(|&vertex| labels[vertex as usize]));
        patience.work(STEPS_PER_VISIT * (neighbours.len() - start) + 1)?;
        neighbours[start..].sort_unstable();
        let mut end = start;
        for at in start..neighbours.len() {
            let neighbour = neighbours[at];
            let is_new = end == start || neighbours[end - 1] != neighbour;
            if is_new && neighbour as usize != label {
                neighbours[end] = neighbour;
                end += 1;
            }
        }
        neighbours.truncate(end);
        starts.push(end as u64);
    }
    Ok(PairedGraph {
        starts,
        neighbours,
        members,
    })
}

impl PairedGraph {
    /// The graph of the pairs, to be ordered.
    pub fn graph(&self) -> SymmetricGraph<'_> {
        SymmetricGraph {
            starts: &self.starts,
            neighbours: &self.neighbours,
        }
    }

    /// The order of all vertices for one of the pairs, with those of a pair beside each other, the lesser first:
    /// 4 bytes a vertex.
    pub fn expand(&self, order: &[u32]) -> Vec<u32> {
        let alone = self.members.iter().filter(|[one, other]| one == other).count();
        let mut expanded = Vec::with_capacity(2 * self.members.len() - alone);
        for &pair in order {
            let [one, other] = self.members[pair as usize];
            expanded.push(one);
            if other != one {
                expanded.push(other);
            }
        }
        expanded
    }
}
