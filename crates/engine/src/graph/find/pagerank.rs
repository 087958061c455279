//! PageRank.

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile, LargePages};

use super::strength::{Strength, SHARED};
use crate::graph::read::batch::{VertexSet, WeightIndex};
use crate::graph::read::heading::Heading;
use crate::graph::read::lists::Lists;
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::sums::{taken, Sums};
use crate::graph::read::sweep::Sweep;
use crate::live::{each_part, no_memory, Resources, Watch};
use crate::EngineError;

/// How ranks are found.
#[derive(Clone, Copy, Debug)]
pub struct Ranking<'a> {
    /// The part of a rank that goes along edges.
    pub damping: f64,
    /// Ranks that change by less than this together, divided by the vertices, are done.
    pub tolerance: f64,
    pub iterations: u32,
    /// Of each vertex, what it has of the rank that does not go along edges, and of the rank of vertices without edges: both
    /// sum to 1. Equal parts unless given.
    pub teleport: Option<&'a [f64]>,
    pub dangling: Option<&'a [f64]>,
    /// The ranks at first, whose sum is 1; equal ones unless given.
    pub start: Option<&'a [f64]>,
}

/// Bytes of memory for each vertex.
pub(crate) const RANKS_BYTES: u64 = 16;

/// Neighbours that are looked up together: most of what they give is in no cache of the processor, and the reads of all are
/// under way at once.
const TOGETHER: usize = 1024;

/// The buffers in which a thread adds up.
#[derive(Default)]
struct Adding {
    scratch: ListScratch,
    values: Vec<f64>,
}

impl Adding {
    /// Adds for each vertex what its neighbours give.
    fn add(&mut self, lists: &Lists<'_>, given: impl Fn(Vertex) -> f64 + Copy, sums: &Sums) -> Result<(), EngineError> {
        let values = &mut self.values;
        lists.together(&mut self.scratch, TOGETHER, |ends, neighbours| {
            values.clear();
            // `move`: a copy that is in registers. The fewer instructions, the more reads are under way.
            values.extend(neighbours.iter().map(move |vertex| given(*vertex)));
            let mut begin = 0;
            for (vertex, end) in ends {
                let of = std::mem::replace(&mut begin, *end)..*end;
                sums.add(*vertex, sum(&values[of]));
            }
        })
    }

    /// The same by the weights of the edges, from which `given` finds what a neighbour gives along an edge.
    fn add_weighed(
        &mut self,
        lists: &Lists<'_>,
        given: impl Fn(Vertex, f64) -> f64,
        sums: &Sums,
    ) -> Result<(), EngineError> {
        let values = &mut self.values;
        lists.each(&mut self.scratch, |list| {
            let edges = list.neighbours.iter().zip(list.weights);
            values.clear();
            values.extend(edges.map(|(vertex, weight)| given(*vertex, *weight)));
            sums.add(list.vertex, sum(values));
        })
    }
}

/// Four sums do not wait for each other.
fn sum(values: &[f64]) -> f64 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for four in fours {
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum += value;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value;
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Adds up for each vertex what those give from which edges lead to it, in the order of its list. I/O: one read of those lists.
pub(crate) fn gather(
    sweep: &Sweep<'_>,
    heading: Heading,
    strength: &Strength<'_>,
    given: impl Fn(Vertex) -> f64 + Sync + Copy,
    sums: &Sums,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    let is_weighed = sweep.is_weighed();
    let weighed = |vertex, weight| given(vertex) * weight;
    let scaled = |vertex, weight| given(vertex) * strength.scaled(vertex, weight);
    let work = |adding: &mut Adding, lists: &Lists<'_>| match strength {
        _ if !is_weighed => adding.add(lists, given, sums),
        Strength::Wide(_) => adding.add_weighed(lists, scaled, sums),
        _ => adding.add_weighed(lists, weighed, sums),
    };
    sweep.whole(heading).run(resources, Adding::default, work, Ok, watch)
}

/// The sweep over all lists of those that edges come from; with the degrees of that direction, over weights too.
pub(crate) fn incoming<'a>(
    file: &'a GraphFile,
    degrees: Option<&'a ListIndex>,
    resources: &Resources<'a>,
) -> Sweep<'a> {
    let selection = ListSelection {
        file,
        direction: Direction::In,
        chosen: VertexSet::All,
        weights: WeightIndex::new(file, degrees),
    };
    Sweep::in_parts(selection, resources)
}

/// Ranks and the iterations they took: r = d (Σ w_uv r_u / s_u over those that lead here + dangling q) + (1 - d) p, where s_u is
/// the strength of u, and dangling the rank of those without one (Page, Brin, Motwani, Winograd 1999). `degrees` are those of
/// the lists that edges come from, where weights count. Each iteration reads those lists once. Sums are in an order that
/// follows from the list, so they are the same at every number of threads.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn ranks(
    file: &GraphFile,
    strength: &Strength<'_>,
    degrees: Option<&ListIndex>,
    what: &Ranking<'_>,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, Option<u32>), EngineError> {
    let vertices = strength.len();
    let even = 1.0 / vertices as f64;
    let part = |given: Option<&[f64]>, vertex: usize| given.map_or(even, |given| given[vertex]);
    // What each vertex gives along an edge; those without edges keep their rank, which is lost to them together.
    let given: &mut [f64] = &mut LargePages::new(vertices).map_err(no_memory(file.path()))?;
    let mut sums = Sums::new(file.path(), vertices)?;
    let start = |vertex, _| part(what.start, vertex);
    let (mut lost, _) = share(strength, given, &mut sums, resources.threads, start);
    let sweep = incoming(file, degrees, resources);
    let mut done = None;
    for number in 1..=what.iterations {
        resources.iteration(vertices as u64);
        let now = &*given;
        let of = |vertex: Vertex| now[vertex as usize];
        gather(&sweep, Heading::of(number), strength, of, &sums, resources, watch)?;
        let (along, beside) = (what.damping * lost, 1.0 - what.damping);
        let base = match (what.teleport, what.dangling) {
            (None, None) => Some((beside + along) / vertices as f64),
            _ => None,
        };
        let change;
        (lost, change) = share(strength, given, &mut sums, resources.threads, |vertex, sum| {
            let own = || along * part(what.dangling.or(what.teleport), vertex) + beside * part(what.teleport, vertex);
            what.damping * sum + base.unwrap_or_else(own)
        });
        if change < what.tolerance * vertices as f64 {
            done = Some(number);
            break;
        }
    }
    drop(sums);
    let mut ranks = vec![0.0; vertices];
    let parts = ranks.chunks_mut(SHARED).zip(given.chunks(SHARED)).enumerate();
    each_part(parts, resources.threads, |(part, (ranks, given))| {
        for ((rank, given), strength) in ranks.iter_mut().zip(given).zip(&*strength.some(part)) {
            *rank = given * if *strength == 0.0 { 1.0 } else { *strength };
        }
    });
    Ok((ranks, done))
}

/// Ranks by what was added up, which is taken; what each vertex gives for it along an edge. The sum of the ranks of those
/// without edges, and of how much ranks have changed.
fn share(
    strength: &Strength<'_>,
    given: &mut [f64],
    sums: &mut Sums,
    threads: usize,
    rank: impl Fn(usize, f64) -> f64 + Sync,
) -> (f64, f64) {
    let mut totals = vec![(0.0, 0.0); given.len().div_ceil(SHARED)];
    let parts = given.chunks_mut(SHARED).zip(sums.chunks_mut(SHARED)).zip(&mut totals);
    each_part(parts.enumerate(), threads, |(part, ((given, sums), totals))| {
        let (mut lost, mut change) = (0.0, 0.0);
        let strengths = strength.some(part);
        let all = given.iter_mut().zip(sums).zip(&*strengths);
        for (vertex, ((given, sum), strength)) in (part * SHARED..).zip(all) {
            let is_dangling = *strength == 0.0;
            let divisor = if is_dangling { 1.0 } else { *strength };
            let rank = rank(vertex, taken(sum));
            change += (rank - *given * divisor).abs();
            *given = rank / divisor;
            lost += if is_dangling { rank } else { 0.0 };
        }
        *totals = (lost, change);
    });
    let add = |(lost, change), (more_lost, more_change): &(f64, f64)| (lost + more_lost, change + more_change);
    totals.iter().fold((0.0, 0.0), add)
}
