//! Communities of the highest modularity, level by level.

use std::cell::RefCell;
use std::sync::Arc;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::coarse::{add_up, weighted, Coarse, EdgeSource, Merging, ABSENT};
use super::label_propagation::drawn;
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::bits::Bits;
use crate::graph::read::selection::List;
use crate::graph::read::stored::StoredGraph;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// How communities are found.
#[derive(Clone, Copy, Debug)]
pub struct Louvain {
    /// Above 1 communities are smaller, below larger.
    pub resolution: f64,
    /// Which of several communities that are as good a vertex goes to.
    pub seed: u64,
    /// A level, or a sweep, that adds no more than this to the modularity is the last.
    pub threshold: f64,
    /// The power of two by which weights are multiplied, so that their sums are numbers: communities depend on the ratios of
    /// weights alone.
    pub exponent: i32,
}

/// Bytes of memory for each vertex: its community in the graph and in a level, sums and totals of communities, sets, where
/// the list of a community begins in memory or the indexes of a file, the communities around a vertex.
const LOUVAIN_BYTES: u64 = 4 + 4 + 8 + 8 + 1 + 4 + 4;
/// Sweeps of a level at most: a file whose weights differ both ways might never come to an end.
const SWEEPS: usize = 100;
/// The part of a strength that a move has to be better by: what rounding leaves is no reason.
const BETTER: f64 = 1e-12;

/// The communities of a level: of each vertex, and the strengths of their vertices together.
struct Moving<'a> {
    what: &'a Louvain,
    labels: Vec<Vertex>,
    totals: Vec<f64>,
    /// What is known so far of the vertex whose list is under way: its strength, that to each community, and which those are.
    strength: f64,
    sums: Vec<f64>,
    around: Vec<Vertex>,
    /// Its neighbours, where the list comes in parts.
    met: Bits,
    /// The strengths of all vertices: twice the weight of all edges.
    total: f64,
}

impl Moving<'_> {
    /// Moves a vertex to where it adds most, once all of its list was there: Δ = w(v, c) - γ k_v K_c / 2m. What that adds to
    /// the modularity is 2 Δ / 2m.
    fn place(&mut self, list: &List<'_>) -> Option<f64> {
        let own = self.labels[list.vertex as usize];
        for (other, weight) in weighted(list) {
            self.strength += if other == list.vertex { 2.0 * weight } else { weight };
        }
        add_up(list, &self.labels, &mut self.sums, &mut self.around, |other, weight| {
            if other == list.vertex {
                0.0
            } else {
                weight
            }
        });
        if list.part.is_some() {
            list.neighbours.iter().for_each(|other| self.met.insert(*other));
        }
        if !list.is_end() {
            return None;
        }
        let strength = std::mem::take(&mut self.strength);
        let share = self.what.resolution * strength / self.total;
        let gain = |label: Vertex, total: f64| self.sums[label as usize].max(0.0) - share * total;
        let stays = gain(own, self.totals[own as usize] - strength);
        let mut best = (stays + BETTER * strength, own);
        for label in &self.around {
            let gained = gain(*label, self.totals[*label as usize]);
            let is_first = |than: Vertex| drawn(*label, 0, self.what.seed) < drawn(than, 0, self.what.seed);
            if *label != own && (gained > best.0 || gained == best.0 && best.1 != own && is_first(best.1)) {
                best = (gained, *label);
            }
        }
        for label in self.around.drain(..) {
            self.sums[label as usize] = ABSENT;
        }
        let (gained, label) = best;
        (label != own).then(|| {
            self.totals[own as usize] -= strength;
            self.totals[label as usize] += strength;
            self.labels[list.vertex as usize] = label;
            2.0 * (gained - stays) / self.total
        })
    }

    /// Moves vertices in their order, those of `linked` in the first sweep, then those with a neighbour that has left them
    /// (Ozaki, Tezuka, Inaba 2016), until a sweep adds little. Gives what all add to the modularity.
    fn run(
        &mut self,
        linked: &Bits,
        source: &EdgeSource<'_>,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<f64, EngineError> {
        let (mut chosen, mut next) = (linked.clone(), Bits::none(self.labels.len()));
        let mut all = 0.0;
        for _ in 0..SWEEPS {
            let mut added = 0.0;
            let place = |list: &List<'_>| {
                if let Some(gained) = self.place(list) {
                    added += gained;
                    let label = self.labels[list.vertex as usize];
                    let tell = |other: Vertex| {
                        // Those behind in the sweep see the move when it is their turn.
                        let is_over = other < list.vertex || !chosen.has(other);
                        if is_over && self.labels[other as usize] != label {
                            next.insert(other);
                        }
                    };
                    match list.part {
                        None => list.neighbours.iter().copied().for_each(tell),
                        Some(_) => self.met.iter().for_each(tell),
                    }
                }
                if list.part.is_some_and(|part| part.is_last) {
                    self.met.clear();
                }
            };
            source.each(VertexSet::Of(&chosen), place, resources, watch)?;
            all += added;
            if added <= self.what.threshold || next.is_empty() {
                break;
            }
            std::mem::swap(&mut chosen, &mut next);
            next.clear();
        }
        Ok(all)
    }
}

/// The strength of each vertex, its loop counted twice, and the weight of all loops.
fn strengths(
    source: &EdgeSource<'_>,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, f64), EngineError> {
    let (mut found, mut loops) = (vec![0.0; source.vertices()], 0.0);
    let add = |list: &List<'_>| {
        for (other, weight) in weighted(list) {
            let is_loop = other == list.vertex;
            found[list.vertex as usize] += if is_loop { 2.0 * weight } else { weight };
            loops += if is_loop { weight } else { 0.0 };
        }
    };
    source.each(VertexSet::All, add, resources, watch)?;
    Ok((found, loops))
}

/// The community of a vertex without strength: it stays alone, and a smaller graph is not to hold it.
const ALONE: Vertex = Vertex::MAX;

/// Numbers communities by their lowest vertices of `linked`, those that have strength; how many there are. A vertex without
/// strength never moves, so one that no other has joined is alone for ever.
fn number(labels: &mut [Vertex], linked: &Bits) -> usize {
    let mut names = vec![ALONE; labels.len()];
    let mut next = 0;
    for vertex in linked.iter() {
        let name = &mut names[labels[vertex as usize] as usize];
        if *name == ALONE {
            *name = next;
            next += 1;
        }
    }
    labels.iter_mut().for_each(|label| *label = names[*label as usize]);
    next as usize
}

/// Communities by the method of Louvain: vertices move to where they add most to the modularity
/// Q = Σ (W_c / m - γ (K_c / 2m)²), then the communities are vertices of a smaller graph, until little is added (Blondel,
/// Guillaume, Lambiotte, Lefebvre 2008). Weights are not negative, edges have no direction. Vertices move one after the
/// other, by their numbers, so the result is the same at every number of threads; lists are read and decoded by all of them.
/// Gives the lowest vertex of the community of each, and the modularity. I/O: some reads of the lists, the later ones of
/// those that may move.
///
/// # Errors
/// The file cannot be read, or is not what it says; no room for the neighbours of a community; what `watch` says.
pub fn louvain(
    file: &GraphFile,
    degrees: Option<&ListIndex>,
    what: &Louvain,
    coarse: &mut Coarse<'_>,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<Vertex>, f64), EngineError> {
    let mut source = EdgeSource::Given(file, degrees, what.exponent);
    let mut found: Vec<Vertex> = (0..file.shape().vertices as Vertex).collect();
    let modularity = loop {
        let (totals, loops) = strengths(&source, resources, watch)?;
        let total: f64 = totals.iter().sum();
        if total <= 0.0 {
            break 0.0;
        }
        let squares: f64 = totals.iter().map(|strength| (strength / total).powi(2)).sum();
        let alone = 2.0 * loops / total - what.resolution * squares;
        let vertices = totals.len();
        let mut linked = Bits::none(vertices);
        (0..)
            .zip(&totals)
            .filter(|(_, strength)| **strength > 0.0)
            .for_each(|(vertex, _)| linked.insert(vertex));
        let mut moving = Moving {
            what,
            labels: (0..vertices as Vertex).collect(),
            totals,
            strength: 0.0,
            sums: vec![ABSENT; vertices],
            around: vec![],
            met: Bits::none(vertices),
            total,
        };
        let added = moving.run(&linked, &source, resources, watch)?;
        let Moving {
            mut labels,
            mut sums,
            totals,
            ..
        } = moving;
        drop(totals);
        let communities = number(&mut labels, &linked);
        let goes_on = |vertex: &&mut Vertex| **vertex != ALONE;
        found
            .iter_mut()
            .filter(goes_on)
            .for_each(|vertex| *vertex = labels[*vertex as usize]);
        if communities as u64 == linked.count() || added <= what.threshold {
            break alone + added;
        }
        sums.truncate(communities);
        let merging = Merging {
            source: &source,
            labels: &labels,
            communities,
            sums: &RefCell::new(sums),
        };
        source = merging.merged(coarse, resources, watch)?;
    };
    name_by_lowest(&mut found);
    Ok((found, modularity))
}

/// Calls each community by its lowest vertex.
fn name_by_lowest(labels: &mut [Vertex]) {
    let mut lowest = vec![Vertex::MAX; labels.len()];
    for (label, vertex) in labels.iter_mut().zip(0..) {
        if *label == ALONE {
            *label = vertex;
            continue;
        }
        let name = &mut lowest[*label as usize];
        *name = (*name).min(vertex);
        *label = *name;
    }
}
/// A part of the memory for reading, of which smaller graphs have the rest.
const READ_PART: u64 = 2;

/// The communities of a stored graph: see [`louvain`].
pub fn louvain_communities(
    graph: Arc<StoredGraph>,
    how: Louvain,
) -> impl LiveOperator<Output = (Vec<Vertex>, f64)> + Send {
    let because = "a read of the lists an iteration, and of smaller graphs made of them";
    let bound = graph.bound(None, &[Direction::Out], false, because);
    let degrees = u64::from(graph.is_weighted()) * graph.degree_bytes(&[Direction::Out]);
    let (bytes, least) = (LOUVAIN_BYTES + degrees, READ_PART * graph.with_weights(8));
    let moves = GraphAlgorithm::new(graph, "graph: communities", bytes, move |graph, resources, watch| {
        let degrees = graph.degrees_of_weights(Direction::Out, true, resources.io)?;
        // Lists take eight bytes for a neighbour; the rest is for graphs of communities.
        let memory = resources.memory / READ_PART;
        let mut coarse = Coarse {
            bytes: resources.memory - memory,
            path: &mut || (resources.scratch)(),
        };
        let resources = Resources { memory, ..*resources };
        louvain(&graph.file, degrees.as_deref(), &how, &mut coarse, &resources, watch)
    });
    moves.least(least).bound(bound)
}
