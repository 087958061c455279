//! Communities by labels that spread, and sets of vertices that are not neighbours.

use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::{Direction, GraphFile};

use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::bits::Bits;
use crate::graph::read::heading::Heading;
use crate::graph::read::memory::has_long_lists;
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// Bytes of memory for each vertex: labels, sets, and what changes of a half.
const LABELS_BYTES: u64 = 4 + 1 + 5;
/// And where a list is long, how often each label was met around its vertex.
const TALLY_BYTES: u64 = 4 + 1;

fn selection<'a>(file: &'a GraphFile, chosen: &'a Bits) -> ListSelection<'a> {
    ListSelection {
        file,
        direction: Direction::Out,
        chosen: VertexSet::Of(chosen),
        weights: None,
    }
}

/// A number that is drawn for a vertex in a round: the same in every run (SplitMix64).
pub(crate) fn drawn(vertex: Vertex, round: u32, seed: u64) -> u64 {
    let mut word = seed ^ u64::from(round) << 32 ^ u64::from(vertex);
    for factor in [0x9e37_79b9_7f4a_7c15_u64, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        word = (word ^ (word >> 31)).wrapping_mul(factor);
    }
    word ^ (word >> 29)
}

/// The label that most of the neighbours have; of several that as many have its own, else the lowest.
fn most(labels: &mut [Vertex], own: Vertex) -> Vertex {
    labels.sort_unstable();
    let runs = labels.chunk_by(|first, second| first == second);
    let most = runs.clone().map(<[Vertex]>::len).max().unwrap_or(0);
    let mut best = runs.filter(|run| run.len() == most).map(|run| run[0]);
    let first = best.next();
    match first == Some(own) || best.any(|label| label == own) {
        true => own,
        false => first.unwrap_or(own),
    }
}

/// How often labels were met around a vertex whose list comes in parts.
///
/// Invariant: `first` is the lowest label that was met `most` times, and no label was met more often. `met` has the lines of
/// `counts` that are not 0.
struct LabelTally {
    counts: Vec<u32>,
    met: Bits,
    most: u32,
    first: Vertex,
}

/// Labels of a line.
const LINE: Vertex = 16;

impl LabelTally {
    fn new(vertices: Vertex) -> LabelTally {
        LabelTally {
            counts: vec![0; vertices as usize],
            met: Bits::none(vertices.div_ceil(LINE) as usize),
            most: 0,
            first: 0,
        }
    }

    fn add(&mut self, labels: &[Vertex]) {
        for label in labels {
            let count = &mut self.counts[*label as usize];
            *count = count.saturating_add(1);
            self.met.insert(label / LINE);
            if *count > self.most || *count == self.most && *label < self.first {
                (self.most, self.first) = (*count, *label);
            }
        }
    }

    /// What `most` gives of all that was added; then nothing was.
    fn take(&mut self, own: Vertex) -> Vertex {
        let has_most = self.counts[own as usize] == self.most;
        let label = if has_most { own } else { self.first };
        for line in self.met.iter() {
            let begin = (line * LINE) as usize;
            let end = self.counts.len().min(begin + LINE as usize);
            self.counts[begin..end].fill(0);
        }
        self.met.clear();
        self.most = 0;
        label
    }
}

/// What was found at lists: new labels of vertices, or the labels around one whose list is long, and whether those are the
/// last.
#[derive(Default)]
struct Heard {
    changed: Vec<(Vertex, Vertex)>,
    part: Option<(Vertex, Vec<Vertex>, bool)>,
}

/// Labels of communities: each vertex takes the label that most of its neighbours have, half of the vertices in an
/// iteration, drawn anew, so that two neighbours do not exchange labels for ever (Raghavan, Albert, Kumara 2007). Gives the
/// labels, and the iterations where nothing changed in the end. I/O: half a read of the lists an iteration, or all of it
/// where vertices are small.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn spread(
    file: &GraphFile,
    iterations: u32,
    seed: u64,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<Vertex>, Option<u32>), EngineError> {
    let vertices = file.shape().vertices as Vertex;
    let mut labels: Vec<Vertex> = (0..vertices).collect();
    let mut chosen = Bits::none(vertices as usize);
    let mut tally = None;
    // A half that changes nothing says nothing of the other.
    let mut still = 0;
    for round in 0..iterations {
        let half = round / 2;
        chosen.clear();
        let is_in = |vertex: &Vertex| (drawn(*vertex, half, seed) & 1 == 1) == (round % 2 == 0);
        (0..vertices).filter(is_in).for_each(|vertex| chosen.insert(vertex));
        resources.iteration(chosen.count());
        let sweep = Sweep::in_parts(selection(file, &chosen), resources);
        let mut changed = Vec::with_capacity(chosen.count() as usize);
        sweep.whole(Heading::of(round)).run(
            resources,
            Default::default,
            |(scratch, around): &mut (ListScratch, Vec<Vertex>), lists| {
                let mut heard = Heard::default();
                lists.each(scratch, |list| {
                    around.clear();
                    around.extend(list.neighbours.iter().map(|neighbour| labels[*neighbour as usize]));
                    if let Some(part) = list.part {
                        heard.part = Some((list.vertex, std::mem::take(around), part.is_last));
                        return;
                    }
                    let own = labels[list.vertex as usize];
                    let label = most(around, own);
                    if label != own {
                        heard.changed.push((list.vertex, label));
                    }
                })?;
                Ok(heard)
            },
            |heard| {
                changed.extend(heard.changed);
                if let Some((vertex, around, is_last)) = heard.part {
                    let tally = tally.get_or_insert_with(|| LabelTally::new(vertices));
                    tally.add(&around);
                    let own = labels[vertex as usize];
                    let label = is_last.then(|| tally.take(own)).filter(|label| *label != own);
                    changed.extend(label.map(|label| (vertex, label)));
                }
                Ok(())
            },
            watch,
        )?;
        still = if changed.is_empty() { still + 1 } else { 0 };
        changed
            .iter()
            .for_each(|(vertex, label)| labels[*vertex as usize] = *label);
        if still >= 2 && round % 2 == 1 {
            return Ok((labels, Some(round + 1)));
        }
    }
    Ok((labels, None))
}

/// Bytes of memory that `independent` takes for each vertex: sets, and what is found of those that are left.
const INDEPENDENT_BYTES: u64 = 1 + 8;

/// What neighbours say of a vertex that is left: none is before it, one that is left is, one has joined.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stands {
    First,
    Waits,
    Out,
}

/// A set of vertices no two of which are neighbours, and to which none can be added: those join whose number is lower than
/// that of all neighbours that are left (Luby 1986, with numbers drawn once: Blelloch, Fineman, Shun 2012).
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn independent(
    file: &GraphFile,
    seed: u64,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Bits, EngineError> {
    let vertices = file.shape().vertices as usize;
    let (mut left, mut joined) = (Bits::all(vertices), Bits::none(vertices));
    let number = |vertex: Vertex| (drawn(vertex, 0, seed), vertex);
    // Those without neighbours have no lists.
    let index = &file.section(Direction::Out).index;
    for vertex in 0..vertices as Vertex {
        if index.bytes_of(vertex) == 0 {
            joined.insert(vertex);
            left.remove(vertex);
        }
    }
    for round in 0.. {
        if left.is_empty() {
            break;
        }
        resources.iteration(left.count());
        let sweep = Sweep::in_parts(selection(file, &left), resources);
        let mut found = Vec::with_capacity(left.count() as usize);
        sweep.whole(Heading::of(round)).collect(
            &mut found,
            resources,
            |list| {
                let mut others = list.neighbours.iter().filter(|other| **other != list.vertex);
                let stands = if others.clone().any(|other| joined.has(*other)) {
                    Stands::Out
                } else if others.any(|other| left.has(*other) && number(*other) < number(list.vertex)) {
                    Stands::Waits
                } else {
                    Stands::First
                };
                let is_told = stands != Stands::Waits || list.part.is_some();
                is_told.then_some((list.vertex, stands))
            },
            watch,
        )?;
        // Of a list in parts, the part that says most.
        found.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 = first.1.max(next.1);
            }
            same
        });
        for (vertex, stands) in found {
            if stands != Stands::Waits {
                left.remove(vertex);
            }
            if stands == Stands::First {
                joined.insert(vertex);
            }
        }
    }
    Ok(joined)
}
/// Communities of a stored graph by labels: see [`spread`].
pub fn label_propagation(
    graph: Arc<StoredGraph>,
    iterations: u32,
    seed: u64,
) -> impl LiveOperator<Output = (Vec<Vertex>, Option<u32>)> + Send {
    let most = graph
        .sweep_bytes(Direction::Out, false)
        .saturating_mul(iterations.into());
    let because = format!("the lists of half of the vertices, in each of {iterations} iterations at most");
    let bound = graph.bound(Some(most), &[Direction::Out], false, because);
    let tally = if has_long_lists(&graph.file) { TALLY_BYTES } else { 0 };
    let spreading = GraphAlgorithm::new(
        graph,
        "graph: labels",
        LABELS_BYTES + tally,
        move |graph, resources, watch| spread(&graph.file, iterations, seed, resources, watch),
    );
    spreading.bound(bound)
}

/// A maximal independent set of a stored graph: see [`independent`].
pub fn independent_set(graph: Arc<StoredGraph>, seed: u64) -> impl LiveOperator<Output = Vec<Vertex>> + Send {
    let bound = graph.bound(
        None,
        &[Direction::Out],
        false,
        "the lists of those that are left, each round",
    );
    let rounds = GraphAlgorithm::new(
        graph,
        "graph: independent set",
        INDEPENDENT_BYTES,
        move |graph, resources, watch| Ok(independent(&graph.file, seed, resources, watch)?.iter().collect()),
    );
    rounds.bound(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn labels_in_parts_are_counted_as_all_at_once(
            around in prop::collection::vec(prop::collection::vec(0u32..50, 1..60), 1..4),
            own in 0u32..50,
            parts in 1usize..20,
        ) {
            let mut tally = LabelTally::new(50);
            for mut labels in around {
                labels.chunks(parts).for_each(|part| tally.add(part));
                prop_assert_eq!(tally.take(own), most(&mut labels, own));
                prop_assert!(tally.counts.iter().all(|count| *count == 0));
            }
        }
    }
}
