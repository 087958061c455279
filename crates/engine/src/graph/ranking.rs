//! PageRank.

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::means::{Means, Watch};
use super::sweep::{Heading, Lists, Sweep};
use super::wanted::{Scratch, Wanted};
use crate::EngineError;

/// How ranks are found.
#[derive(Clone, Copy, Debug)]
pub struct Ranking {
    /// The part of a rank that goes along edges.
    pub damping: f64,
    /// Ranks that change by less than this together, divided by the vertices, are done.
    pub tolerance: f64,
    pub iterations: u32,
}

/// Bytes of memory for each vertex.
pub const RANKS_BYTES: u64 = 16;

/// Neighbours that are looked up together: most of what they give is in no cache of the processor, and the reads of all are
/// under way at once.
const TOGETHER: usize = 1024;

/// What a thread needs to add up.
#[derive(Default)]
struct Adding {
    scratch: Scratch,
    values: Vec<f64>,
}

impl Adding {
    /// The sums of what the neighbours of each vertex give.
    fn sums(&mut self, lists: &Lists<'_>, given: &[f64]) -> Result<Vec<(Vertex, f64)>, EngineError> {
        let mut sums = vec![];
        let values = &mut self.values;
        lists.together(&mut self.scratch, TOGETHER, |ends, neighbours| {
            values.clear();
            values.extend(neighbours.iter().map(|vertex| given[*vertex as usize]));
            let mut begin = 0;
            sums.extend(ends.iter().map(|(vertex, end)| {
                let of = std::mem::replace(&mut begin, *end)..*end;
                (*vertex, sum(&values[of]))
            }));
        })?;
        Ok(sums)
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

/// Ranks and the iterations they took: r = d (Σ r_u / deg u over those that lead here + dangling / n) + (1 - d) / n
/// (Page, Brin, Motwani, Winograd 1999). Each iteration reads the lists of those that edges come from once. Sums are in an
/// order that follows from the list, so they are the same at every number of threads.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn ranks(
    file: &GraphFile,
    degrees: &ListIndex,
    what: &Ranking,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, Option<u32>), EngineError> {
    let vertices = degrees.len();
    let degrees = || degrees.spans(0..vertices as Vertex).map(|(_, span)| span.bytes);
    // What each vertex gives along an edge; those without edges keep their rank, which is lost to them together.
    let mut given: Vec<f64> = Vec::with_capacity(vertices);
    given.extend(degrees().map(|degree| 1.0 / vertices as f64 / degree.max(1) as f64));
    let mut lost: f64 = degrees()
        .filter(|degree| *degree == 0)
        .map(|_| 1.0 / vertices as f64)
        .sum();
    let mut next = vec![0.0; vertices];
    let sweep = Sweep::in_parts(
        Wanted {
            file,
            direction: Direction::In,
            chosen: Chosen::All,
            weights: None,
        },
        means,
    );
    let mut done = None;
    for number in 1..=what.iterations {
        next.fill(0.0);
        means.iteration(vertices as u64);
        sweep.whole(Heading::of(number)).run(
            means,
            Adding::default,
            |adding, lists| adding.sums(lists, &given),
            |sums| {
                sums.iter().for_each(|(vertex, sum)| next[*vertex as usize] += *sum);
                Ok(())
            },
            watch,
        )?;
        let base = (1.0 - what.damping + what.damping * lost) / vertices as f64;
        let mut change = 0.0;
        lost = 0.0;
        for ((next, given), edges) in next.iter_mut().zip(&given).zip(degrees()) {
            let degree = edges.max(1) as f64;
            let rank = what.damping * *next + base;
            change += (rank - given * degree).abs();
            *next = rank / degree;
            lost += if edges == 0 { *next } else { 0.0 };
        }
        std::mem::swap(&mut given, &mut next);
        if change < what.tolerance * vertices as f64 {
            done = Some(number);
            break;
        }
    }
    drop(next);
    given
        .iter_mut()
        .zip(degrees())
        .for_each(|(given, degree)| *given *= degree.max(1) as f64);
    Ok((given, done))
}
