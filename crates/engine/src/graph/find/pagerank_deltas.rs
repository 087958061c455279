//! PageRank by what changes: vertices tell their neighbours what their rank has gained, and only those that have gained much.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::pagerank::{gather, incoming, ranks, Ranking, RANKS_BYTES};
use super::strength::{Strength, SHARED, STRENGTH_BYTES};
use crate::graph::program::run::{run, Delivery, Graph, Outbox, VertexProgram};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::selection::List;
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sums::{taken, Sums};
use crate::live::{each_part, IoBound, LiveOperator, Resources, Watch};
use crate::EngineError;

/// How ranks are found.
#[derive(Clone, Copy, Debug)]
pub struct Deltas<'a> {
    /// The part of a rank that goes along edges.
    pub damping: f64,
    /// What a rank must have gained, in all that nobody was told of, to be told of; ranks then add up to 1 or less.
    pub threshold: f64,
    pub iterations: u32,
    /// Of each vertex, what it has of the rank that does not go along edges; it sums to 1. Equal parts unless given.
    pub teleport: Option<&'a [f64]>,
}

/// Bytes of memory for each vertex: its rank, what it has gained, what it gives along an edge, and sets.
const DELTAS_BYTES: u64 = 24 + 1;

/// All lists are read in order where those of the vertices that have gained much are more than one in so many bytes of them:
/// what is gathered goes by no messages.
const FEW: u64 = 4;

/// Tells of gains.
struct Telling<'a> {
    what: &'a Deltas<'a>,
    strength: &'a Strength<'a>,
    ranks: &'a Sums,
    shares: &'a Sums,
    /// Those that are active next.
    next: Frontier,
    weighed: bool,
}

impl Telling<'_> {
    /// Adds to a rank what it has gained; what it gives along an edge for that, if there is one.
    fn add_gain(&self, vertex: Vertex, gain: &mut AtomicU64) -> Option<f64> {
        let gain = taken(gain);
        self.ranks.add(vertex, gain);
        let strength = self.strength.of(vertex);
        (strength != 0.0).then(|| self.what.damping * gain / strength)
    }

    /// The same for all active vertices; the others give nothing.
    fn add_gains(&self, active: &Frontier, gains: &mut Sums, threads: usize) {
        let parts = gains.chunks_mut(SHARED).enumerate();
        each_part(parts, threads, |(part, gains)| {
            for (vertex, gain) in ((part * SHARED) as Vertex..).zip(gains) {
                let gives = active.has(vertex).then(|| self.add_gain(vertex, gain)).flatten();
                self.shares.set(vertex, gives.unwrap_or(0.0));
            }
        });
    }
}

impl VertexProgram for Telling<'_> {
    /// The gain of a rank: a number's bits.
    type State = AtomicU64;
    type Message = f64;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn wants_weights(&self) -> bool {
        self.weighed
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, vertex: Vertex, gain: &mut AtomicU64) -> bool {
        let gives = self.add_gain(vertex, gain);
        self.shares.set(vertex, gives.unwrap_or(0.0));
        gives.is_some()
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[AtomicU64], outbox: &mut Outbox<f64>) {
        let gives = self.shares.of(list.vertex);
        let along = |weight: &f64| gives * self.strength.scaled(list.vertex, *weight);
        for (place, neighbour) in list.neighbours.iter().enumerate() {
            outbox.send(*neighbour, list.weights.get(place).map_or(gives, along));
        }
    }

    fn on_message(&self, _: u32, _: Vertex, gain: &mut AtomicU64, more: f64) -> bool {
        let all = f64::from_bits(*gain.get_mut()) + more;
        *gain.get_mut() = all.to_bits();
        all > self.what.threshold
    }

    fn on_iteration_end(&mut self, _: u32, _: &mut [AtomicU64], active: &mut Frontier) {
        // The next iteration may go another way.
        std::mem::swap(active, &mut self.next);
        active.clear();
    }
}

/// Ranks and the iterations they took, or nothing where those were not enough. The rank that goes along edges begins with the
/// part of each vertex, and each tells its neighbours of what it has gained once that is more than the threshold (Zhang, Gao,
/// Gao, Wang, "Accelerate large-scale iterative computation through asynchronous accumulative updates", 2012; FlashGraph,
/// section 4). What vertices without edges have is lost, and ranks are made to sum to 1 in the end: that is as if it were spread
/// as `teleport`. An iteration reads the lists of those that have gained much, or where these are most, in order, all lists of
/// those that edges come from. `degrees` are those of both directions, where weights count.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn ranks_by_deltas(
    file: &GraphFile,
    strength: &Strength<'_>,
    degrees: Option<(&ListIndex, &ListIndex)>,
    what: &Deltas<'_>,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, Option<u32>), EngineError> {
    let vertices = strength.len();
    let even = (1.0 - what.damping) / vertices as f64;
    let part = |vertex: usize| {
        what.teleport
            .map_or(even, |shares| (1.0 - what.damping) * shares[vertex])
    };
    let new = || Sums::new(file.path(), vertices);
    let mut gains = new()?;
    (0..vertices).for_each(|vertex| gains.set(vertex as Vertex, part(vertex)));
    let (ranks, shares) = (new()?, new()?);
    let mut active = Frontier::none(vertices);
    choose(&mut gains, what.threshold, &mut active, resources.threads);
    let sweep = incoming(file, degrees.map(|(_, into)| into), resources);
    let graph = Graph { file, degrees };
    let mut telling = Telling {
        what,
        strength,
        ranks: &ranks,
        shares: &shares,
        next: Frontier::none(vertices),
        weighed: degrees.is_some(),
    };
    let (outgoing, all) = (
        &file.section(Direction::Out).index,
        file.section(Direction::In).index.total_bytes(),
    );
    let mut number = 0;
    while !active.is_empty() && number < what.iterations {
        number += 1;
        active.normalize();
        if FEW * active.chosen().list_bytes(outgoing) <= all {
            let states = gains.states_mut();
            run(
                &graph,
                &mut telling,
                states,
                &mut active,
                Delivery::Synchronous,
                resources,
                watch,
            )?;
            std::mem::swap(&mut active, &mut telling.next);
            continue;
        }
        resources.iteration(active.count());
        telling.add_gains(&active, &mut gains, resources.threads);
        gather(
            &sweep,
            Heading::of(number),
            strength,
            |vertex| shares.of(vertex),
            &gains,
            resources,
            watch,
        )?;
        choose(&mut gains, what.threshold, &mut active, resources.threads);
    }
    let is_done = active.is_empty();
    drop(telling);
    let total = add_rest(&ranks, &mut gains, resources.threads);
    drop((gains, shares));
    let mut ranks = ranks.into_values();
    ranks.iter_mut().for_each(|rank| *rank /= total);
    Ok((ranks, is_done.then_some(number)))
}

/// Adds to ranks the gains that nobody was told of; gives the sum of all ranks.
fn add_rest(ranks: &Sums, gains: &mut Sums, threads: usize) -> f64 {
    let mut totals = vec![0.0; gains.states_mut().len().div_ceil(SHARED)];
    let parts = gains.chunks_mut(SHARED).enumerate();
    each_part(parts.zip(&mut totals), threads, |((part, gains), total)| {
        for (vertex, gain) in ((part * SHARED) as Vertex..).zip(gains) {
            ranks.add(vertex, taken(gain));
            *total += ranks.of(vertex);
        }
    });
    totals.iter().sum()
}

/// Those that have gained more than the threshold.
fn choose(gains: &mut Sums, threshold: f64, active: &mut Frontier, threads: usize) {
    let parts = gains.chunks_mut(SHARED).zip(active.words_mut().chunks_mut(SHARED / 64));
    each_part(parts, threads, |(gains, words)| {
        for (gains, word) in gains.chunks_mut(64).zip(words) {
            let bits = gains.iter_mut().enumerate().map(|(bit, gain)| {
                let is_much = f64::from_bits(*gain.get_mut()) > threshold;
                u64::from(is_much) << bit
            });
            *word = bits.fold(0, |word, bit| word | bit);
        }
    });
    active.normalize();
}

/// Ranks of the vertices of a stored graph, by weights if they are to count: see [`ranks`]; with a threshold those of
/// [`ranks_by_deltas`].
pub fn page_rank<'a>(
    graph: Arc<StoredGraph>,
    how: Ranking<'a>,
    weighted: bool,
    threshold: Option<f64>,
) -> impl LiveOperator<Output = (Vec<f64>, Option<u32>)> + Send + 'a {
    let bound = rank_bound(&graph, how.iterations, weighted, threshold.is_some());
    let weights = u64::from(weighted) * (STRENGTH_BYTES + graph.degree_bytes(&[Direction::In]));
    let bytes = threshold.map_or(RANKS_BYTES, |_| DELTAS_BYTES) + graph.degree_bytes(&[Direction::Out]) + weights;
    let messages = threshold.map_or(0, |_| size_of::<f64>() as u64);
    let least = match weighted {
        true => graph.with_weights(messages),
        false => graph.in_parts(messages),
    };
    let run = move |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| {
        let degrees = graph.degrees(Direction::Out, resources.io)?;
        let into = graph.degrees_of_weights(Direction::In, weighted, resources.io)?;
        let strength = match weighted {
            true => Strength::of_weights(&graph.file, &degrees, resources, watch)?,
            false => Strength::Degrees(&degrees),
        };
        let Some(threshold) = threshold else {
            return ranks(&graph.file, &strength, into.as_deref(), &how, resources, watch);
        };
        let deltas = Deltas {
            damping: how.damping,
            threshold,
            iterations: how.iterations,
            teleport: how.teleport,
        };
        let both = into.as_deref().map(|into| (&*degrees, into));
        ranks_by_deltas(&graph.file, &strength, both, &deltas, resources, watch)
    };
    GraphAlgorithm::new(graph, "graph: pagerank", bytes, run)
        .least(least)
        .bound(bound)
}

fn rank_bound(graph: &StoredGraph, iterations: u32, weighted: bool, by_deltas: bool) -> IoBound {
    let incoming = graph.sweep_bytes(Direction::In, weighted);
    let (once, text) = match by_deltas {
        true => {
            let gained = graph.each_bytes(&[Direction::Out], weighted);
            (incoming.max(gained), "these, or the lists of those that gained")
        }
        false => (incoming, "the lists that lead to each vertex"),
    };
    let directions = if weighted || by_deltas {
        graph.both()
    } else {
        &[Direction::In]
    };
    let strengths = u64::from(weighted) * graph.sweep_bytes(Direction::Out, true);
    let most = once.saturating_mul(iterations.into()).saturating_add(strengths);
    let because = format!("{text}, in each of {iterations} iterations at most");
    let bound = graph.bound(Some(most), directions, weighted, because);
    let is_sweep = !weighted && !by_deltas;
    IoBound {
        cold: is_sweep.then(|| bound.once + graph.degrees_to_read(Direction::Out)),
        ..bound
    }
}
