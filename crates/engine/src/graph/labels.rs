//! Communities by labels that spread, and sets of vertices that are not neighbours.

use outcore_graph::Vertex;
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::bits::Bits;
use super::means::{Means, Watch};
use super::sweep::{Heading, Sweep};
use super::wanted::Wanted;
use crate::EngineError;

/// Bytes of memory for each vertex: labels, sets, and what changes.
pub const LABELS_BYTES: u64 = 4 + 1 + 16;

fn wanted<'a>(file: &'a GraphFile, chosen: &'a Bits) -> Wanted<'a> {
    Wanted {
        file,
        direction: Direction::Out,
        chosen: Chosen::Of(chosen),
        weights: None,
    }
}

/// A number that is drawn for a vertex in a round: the same in every run (SplitMix64).
pub(super) fn drawn(vertex: Vertex, round: u32, seed: u64) -> u64 {
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
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<Vertex>, Option<u32>), EngineError> {
    let vertices = file.shape().vertices as Vertex;
    let mut labels: Vec<Vertex> = (0..vertices).collect();
    let mut chosen = Bits::none(vertices as usize);
    // A half that changes nothing says nothing of the other.
    let mut still = 0;
    for round in 0..iterations {
        let half = round / 2;
        chosen.clear();
        let is_in = |vertex: &Vertex| (drawn(*vertex, half, seed) & 1 == 1) == (round % 2 == 0);
        (0..vertices).filter(is_in).for_each(|vertex| chosen.insert(vertex));
        means.iteration(chosen.count());
        let sweep = Sweep::new(wanted(file, &chosen), means);
        let changed = sweep.whole(Heading::of(round)).collect(
            means,
            Vec::new,
            |around, list| {
                around.clear();
                around.extend(list.neighbours.iter().map(|neighbour| labels[*neighbour as usize]));
                let own = labels[list.vertex as usize];
                let label = most(around, own);
                (label != own).then_some((list.vertex, label))
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

/// A set of vertices no two of which are neighbours, and to which none can be added: those join whose number is lower than
/// that of all neighbours that are left (Luby 1986, with numbers drawn once: Blelloch, Fineman, Shun 2012).
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn independent(file: &GraphFile, seed: u64, means: &Means<'_>, watch: &mut Watch<'_>) -> Result<Bits, EngineError> {
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
        means.iteration(left.count());
        let sweep = Sweep::new(wanted(file, &left), means);
        let found = sweep.whole(Heading::of(round)).collect(
            means,
            || (),
            |(), list| {
                let mut others = list.neighbours.iter().filter(|other| **other != list.vertex);
                if others.clone().any(|other| joined.has(*other)) {
                    return Some((list.vertex, false));
                }
                let is_first = others.all(|other| !left.has(*other) || number(list.vertex) < number(*other));
                is_first.then_some((list.vertex, true))
            },
            watch,
        )?;
        for (vertex, joins) in found {
            left.remove(vertex);
            if joins {
                joined.insert(vertex);
            }
        }
    }
    Ok(joined)
}
