//! PageRank.

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::means::{each_part, Means, Watch};
use super::sums::{taken, Sums};
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
    /// Adds for each vertex what its neighbours give.
    fn add(&mut self, lists: &Lists<'_>, given: &[f64], sums: &Sums) -> Result<(), EngineError> {
        let values = &mut self.values;
        lists.together(&mut self.scratch, TOGETHER, |ends, neighbours| {
            values.clear();
            values.extend(neighbours.iter().map(|vertex| given[*vertex as usize]));
            let mut begin = 0;
            for (vertex, end) in ends {
                let of = std::mem::replace(&mut begin, *end)..*end;
                sums.add(*vertex, sum(&values[of]));
            }
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
    // What each vertex gives along an edge; those without edges keep their rank, which is lost to them together.
    let mut given = vec![0.0; vertices];
    let mut sums = Sums::new(vertices);
    let (mut lost, _) = share(degrees, &mut given, &mut sums, means.threads, |_| 1.0 / vertices as f64);
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
        means.iteration(vertices as u64);
        sweep.whole(Heading::of(number)).run(
            means,
            Adding::default,
            |adding, lists| adding.add(lists, &given, &sums),
            Ok,
            watch,
        )?;
        let base = (1.0 - what.damping + what.damping * lost) / vertices as f64;
        let change;
        (lost, change) = share(degrees, &mut given, &mut sums, means.threads, |sum| {
            what.damping * sum + base
        });
        if change < what.tolerance * vertices as f64 {
            done = Some(number);
            break;
        }
    }
    drop(sums);
    let parts = given.chunks_mut(SHARED).enumerate();
    each_part(parts, means.threads, |(part, given)| {
        for (given, degree) in given.iter_mut().zip(some_degrees(degrees, part)) {
            *given *= degree.max(1) as f64;
        }
    });
    Ok((given, done))
}

/// Vertices whose ranks one thread finds at a time. Sums over all are sums of theirs, in order.
const SHARED: usize = 1 << 16;

fn some_degrees(degrees: &ListIndex, part: usize) -> impl Iterator<Item = u64> + '_ {
    let begin = (part * SHARED) as Vertex;
    let spans = degrees.spans(begin..begin.saturating_add(SHARED as Vertex));
    spans.map(|(_, span)| span.bytes)
}

/// Ranks by what was added up, which is taken; what each vertex gives for it along an edge. The sum of the ranks of those
/// without edges, and of how much ranks have changed.
fn share(
    degrees: &ListIndex,
    given: &mut [f64],
    sums: &mut Sums,
    threads: usize,
    rank: impl Fn(f64) -> f64 + Sync,
) -> (f64, f64) {
    let mut found = vec![(0.0, 0.0); given.len().div_ceil(SHARED)];
    let parts = given.chunks_mut(SHARED).zip(sums.chunks_mut(SHARED)).zip(&mut found);
    each_part(parts.enumerate(), threads, |(part, ((given, sums), found))| {
        let (mut lost, mut change) = (0.0, 0.0);
        for ((given, sum), edges) in given.iter_mut().zip(sums).zip(some_degrees(degrees, part)) {
            let degree = edges.max(1) as f64;
            let rank = rank(taken(sum));
            change += (rank - *given * degree).abs();
            *given = rank / degree;
            lost += if edges == 0 { rank } else { 0.0 };
        }
        *found = (lost, change);
    });
    let add = |(lost, change), (more_lost, more_change): &(f64, f64)| (lost + more_lost, change + more_change);
    found.iter().fold((0.0, 0.0), add)
}
