//! Graphs: every algorithm against a plain loop, with any number of threads and as little memory as it takes.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

use outcore_coding::lists::ListIndex;
use outcore_dtype::DType;
use outcore_engine::graph::{
    self, Bits, BreadthFirst, Delivery, Frontier, Graph, Heading, List, ListSelection, Outbox, Paths, Requests,
    Strength, Sweep, VertexProgram, VertexSet,
};
use outcore_engine::live::{Activity, Frames, Resources, PORTION_PAGES};
use outcore_engine::EngineError;
use outcore_store::{Direction, Faults, GraphFile, GraphShape, GraphWriter, Io};
use proptest::prelude::*;

mod delivery;
mod live;
mod long_lists;
mod parts;
mod programs;
mod search;

const OUT: [Direction; 1] = [Direction::Out];

/// Edges by source, then target.
struct Made {
    _folder: tempfile::TempDir,
    file: Arc<GraphFile>,
    vertices: usize,
    edges: Vec<(u32, u32)>,
}

fn weight(from: u32, to: u32) -> f64 {
    f64::from((from * 7 + to * 13) % 10) + 0.5
}

fn made(vertices: usize, edges: &[(u32, u32)], directed: bool) -> Made {
    let mut both: BTreeSet<(u32, u32)> = edges.iter().copied().collect();
    if !directed {
        both.extend(edges.iter().map(|(from, to)| (*to, *from)));
    }
    let edges: Vec<(u32, u32)> = both.into_iter().collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.ocg");
    let shape = GraphShape {
        vertices: vertices as u64,
        edges: edges.len() as u64,
        directed,
        weights: Some(DType::F64),
    };
    let io = Io::direct();
    let mut writer = GraphWriter::create(&path, shape, false, &io).unwrap();
    for turned in [false, true] {
        if turned && !directed {
            break;
        }
        for vertex in 0..vertices as u32 {
            let of = edges
                .iter()
                .filter(|(from, to)| if turned { *to } else { *from } == vertex);
            let list: Vec<u32> = of.clone().map(|(from, to)| if turned { *from } else { *to }).collect();
            let weights: Vec<u8> = of.flat_map(|(from, to)| weight(*from, *to).to_le_bytes()).collect();
            writer.push(&list, &weights, &io).unwrap();
        }
    }
    writer.finish(None, &io).unwrap();
    Made {
        file: GraphFile::open(&path, &io).unwrap(),
        _folder: folder,
        vertices,
        edges,
    }
}

/// R-MAT-like edges: many at the low numbers.
fn skewed(vertices: u32, count: u32) -> Vec<(u32, u32)> {
    let mut word = 12345u64;
    let mut draw = || {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let unit = (word >> 40) as f64 / (1u64 << 24) as f64;
        (unit * unit * unit * f64::from(vertices)) as u32
    };
    (0..count).map(|_| (draw(), draw())).collect()
}

/// Runs with several threads and memories; all results must be one.
fn the_same<T: PartialEq + std::fmt::Debug>(made: &Made, io: &Io, work: impl Fn(&Resources<'_>) -> T) -> T {
    let least = graph::least_memory(&made.file, 8);
    let frames = Frames::default();
    // In the last two, a part of the pages is looked up at a time.
    let pages = made.file.file_bytes() / 4096;
    let ways = [
        (1, 64 << 20, PORTION_PAGES),
        (2, 64 << 20, PORTION_PAGES),
        (8, least, 1 + pages / 6),
        (1, least / 16, 1 + pages / 16),
    ];
    let found = ways.map(|(threads, memory, portion_pages)| {
        work(&Resources {
            known: 0,
            memory,
            portion_pages,
            threads,
            io_threads: 2,
            io,
            frames: &frames,
            cache: None,
            activity: &Activity::default(),
            memory_limit: 0,
            grow: &|_| Ok(()),
            scratch: &no_scratch,
        })
    });
    let [first, others @ ..] = found;
    for (way, other) in ["two threads", "little memory", "less than a batch"]
        .iter()
        .zip(&others)
    {
        assert_eq!(*other, first, "{way}");
    }
    first
}

fn no_scratch() -> Result<PathBuf, EngineError> {
    Err(EngineError::Internal("no scratch".into()))
}

fn the_means(io: &Io) -> Resources<'_> {
    Resources {
        known: 0,
        memory: 64 << 20,
        portion_pages: PORTION_PAGES,
        threads: 2,
        io_threads: 2,
        io,
        frames: Box::leak(Box::default()),
        cache: None,
        activity: Box::leak(Box::default()),
        memory_limit: 0,
        grow: &|_| Ok(()),
        scratch: &no_scratch,
    }
}

fn go() -> Result<(), EngineError> {
    Ok(())
}

fn plain<'a>(made: &'a Made) -> Graph<'a> {
    Graph {
        file: &made.file,
        degrees: None,
    }
}

fn levels(
    made: &Made,
    source: u32,
    directions: &[Direction],
    resources: &Resources<'_>,
) -> Result<Vec<i32>, EngineError> {
    let search = BreadthFirst {
        file: &made.file,
        directions,
        farthest: u32::MAX,
    };
    search.levels(&[source], resources, &mut go)
}

fn expected_levels(made: &Made, source: u32, both: bool) -> Vec<i32> {
    let mut found = vec![graph::UNMET; made.vertices];
    found[source as usize] = 0;
    let mut queue = VecDeque::from([source]);
    while let Some(vertex) = queue.pop_front() {
        for (from, to) in &made.edges {
            for (from, to) in [(from, to), (to, from)].iter().take(1 + usize::from(both)) {
                if **from == vertex && found[**to as usize] == graph::UNMET {
                    found[**to as usize] = found[vertex as usize] + 1;
                    queue.push_back(**to);
                }
            }
        }
    }
    found
}

fn shapes() -> Vec<Made> {
    let path: Vec<(u32, u32)> = (0..199).map(|vertex| (vertex, vertex + 1)).collect();
    let star: Vec<(u32, u32)> = (1..300).map(|vertex| (0, vertex)).collect();
    let complete: Vec<(u32, u32)> = (0..30).flat_map(|from| (0..30).map(move |to| (from, to))).collect();
    let mut all = vec![];
    for directed in [false, true] {
        all.push(made(200, &path, directed));
        all.push(made(300, &star, directed));
        all.push(made(30, &complete, directed));
        all.push(made(1, &[], directed));
        all.push(made(5, &[(3, 3), (1, 4)], directed));
        all.push(made(500, &skewed(500, 3000), directed));
        // A hub whose list is large, among vertices that lie far apart.
        all.push(made(
            3000,
            &skewed(3000, 4000)
                .into_iter()
                .chain((0..3000).map(|to| (77, to)))
                .collect::<Vec<_>>(),
            directed,
        ));
    }
    all
}

fn distances(
    made: &Made,
    degrees: (&ListIndex, &ListIndex),
    source: u32,
    step: f64,
    resources: &Resources<'_>,
) -> Vec<f64> {
    let graph = Graph {
        file: &made.file,
        degrees: Some(degrees),
    };
    let paths = Paths {
        graph: &graph,
        directions: &OUT,
        step,
    };
    let (found, wrong) = paths.distances(&[source], resources, &mut go).unwrap();
    assert_eq!(wrong, None);
    found
}

/// r = d (Σ w r_u / s_u + dangling q) + (1 - d) p, step by step.
fn plain_ranks(made: &Made, is_weighted: bool, what: &graph::Ranking<'_>) -> Vec<f64> {
    let n = made.vertices;
    let even = vec![1.0 / n as f64; n];
    let (teleport, start) = (what.teleport.unwrap_or(&even), what.start.unwrap_or(&even));
    let dangling = what.dangling.unwrap_or(teleport);
    let weigh = |from, to| if is_weighted { weight(from, to) } else { 1.0 };
    let mut strengths = vec![0.0; n];
    made.edges
        .iter()
        .for_each(|(from, to)| strengths[*from as usize] += weigh(*from, *to));
    let mut ranks = start.to_vec();
    for _ in 0..what.iterations {
        let lost: f64 = (0..n)
            .filter(|vertex| strengths[*vertex] == 0.0)
            .map(|vertex| ranks[vertex])
            .sum();
        let mut next: Vec<f64> = (0..n)
            .map(|vertex| what.damping * lost * dangling[vertex] + (1.0 - what.damping) * teleport[vertex])
            .collect();
        for (from, to) in &made.edges {
            let part = ranks[*from as usize] * weigh(*from, *to) / strengths[*from as usize];
            next[*to as usize] += what.damping * part;
        }
        ranks = next;
    }
    ranks
}

#[test]
fn ranks_go_by_weights_and_by_what_is_given() {
    let made = made(700, &skewed(700, 3_000), true);
    let io = Io::direct();
    let [out, into] = [Direction::Out, Direction::In].map(|direction| made.file.degrees(direction, &io).unwrap());
    let given = |first: usize| {
        let sum: usize = (0..700).map(|vertex| (vertex + first) % 7).sum();
        (0..700)
            .map(|vertex| ((vertex + first) % 7) as f64 / sum as f64)
            .collect::<Vec<_>>()
    };
    let (teleport, dangling, start) = (given(0), given(2), given(5));
    for is_weighted in [false, true] {
        let strength = || match is_weighted {
            true => Strength::of_weights(&made.file, &out, &the_means(&io), &mut go).unwrap(),
            false => Strength::Degrees(&out),
        };
        for (iterations, is_given) in [(3, false), (3, true), (40, true)] {
            let [teleport, dangling, start] =
                [&teleport, &dangling, &start].map(|given| is_given.then_some(&given[..]));
            let what = graph::Ranking {
                damping: 0.85,
                tolerance: 0.0,
                iterations,
                teleport,
                dangling,
                start,
            };
            let (found, done) = the_same(&made, &io, |resources| {
                let degrees = is_weighted.then_some(&into);
                graph::ranks(&made.file, &strength(), degrees, &what, resources, &mut go).unwrap()
            });
            assert_eq!(done, None);
            let expected = plain_ranks(&made, is_weighted, &what);
            assert!(found
                .iter()
                .zip(&expected)
                .all(|(found, expected)| (found - expected).abs() < 1e-15));
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // By what changes: with a small threshold the same ranks, to what the threshold leaves.
        for (threshold, teleport) in [(1e-9, None), (1e-12, Some(&teleport[..]))] {
            let what = graph::Deltas {
                damping: 0.85,
                threshold,
                iterations: 500,
                teleport,
            };
            let (found, done) = the_same(&made, &io, |resources| {
                let degrees = is_weighted.then_some((&out, &into));
                graph::ranks_by_deltas(&made.file, &strength(), degrees, &what, resources, &mut go).unwrap()
            });
            assert!(done.unwrap() > 3);
            let expected = plain_ranks(
                &made,
                is_weighted,
                &graph::Ranking {
                    damping: 0.85,
                    tolerance: 0.0,
                    iterations: 200,
                    teleport,
                    dangling: None,
                    start: None,
                },
            );
            let apart: f64 = found
                .iter()
                .zip(&expected)
                .map(|(found, expected)| (found - expected).abs())
                .sum();
            assert!(apart < 700.0 * threshold * 0.85 / 0.15, "{apart}");
        }
    }
}

#[test]
fn a_read_that_fails_ends_a_run_with_its_name() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let frames = Frames::default();
    let mut failed = 0;
    for nth in 1..40 {
        let io = Io::direct();
        io.set_faults(Some(Faults {
            fail_read_at: Some(nth),
            ..Faults::default()
        }));
        // Few pages a batch, so that there are many reads.
        let resources = Resources {
            known: 0,
            memory: 32 << 10,
            portion_pages: PORTION_PAGES,
            threads: 2,
            io_threads: 2,
            io: &io,
            frames: &frames,
            cache: None,
            activity: &Activity::default(),
            memory_limit: 0,
            grow: &|_| Ok(()),
            scratch: &no_scratch,
        };
        match graph::components(&made.file, &resources, &mut go) {
            Ok(_) => {}
            Err(EngineError::Store(error)) => {
                assert!(error.to_string().contains("g.ocg: cannot read at byte"), "{error}");
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed > 5, "{failed} of 39 reads");
}

#[test]
fn whoever_watches_ends_a_run() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let (io, frames) = (Io::direct(), Frames::default());
    let resources = Resources {
        known: 0,
        memory: 32 << 10,
        portion_pages: PORTION_PAGES,
        threads: 2,
        io_threads: 2,
        io: &io,
        frames: &frames,
        cache: None,
        activity: &Activity::default(),
        memory_limit: 0,
        grow: &|_| Ok(()),
        scratch: &no_scratch,
    };
    let mut watch = || Err(EngineError::Cancelled);
    let ended = graph::components(&made.file, &resources, &mut watch);
    assert!(matches!(ended, Err(EngineError::Cancelled)));
}

/// Lists that are given one by one: graphs for which `made` takes too long. Weights are those of the ends.
fn written(vertices: u32, edges: u64, list: impl Fn(u32) -> Vec<u32>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.ocg");
    let shape = GraphShape {
        vertices: vertices.into(),
        edges,
        directed: false,
        weights: Some(DType::F64),
    };
    let io = Io::direct();
    let mut writer = GraphWriter::create(&path, shape, false, &io).unwrap();
    for vertex in 0..vertices {
        let list = list(vertex);
        let weights = list
            .iter()
            .flat_map(|other| weight(vertex.min(*other), vertex.max(*other)).to_le_bytes());
        writer.push(&list, &weights.collect::<Vec<_>>(), &io).unwrap();
    }
    writer.finish(None, &io).unwrap();
    Made {
        file: GraphFile::open(&path, &io).unwrap(),
        _folder: folder,
        vertices: vertices as usize,
        edges: vec![],
    }
}

fn neighbours_of(made: &Made, vertex: u32) -> Vec<u32> {
    let asked = graph::ListRequest {
        file: &made.file,
        direction: Direction::Out,
        degrees: None,
        vertices: &[vertex],
    };
    asked.whole(&the_means(&Io::direct()), &mut go).unwrap().neighbours
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// A sweep of some vertices reads the pages of their lists and few more, and gives those lists.
    #[test]
    fn a_sweep_gives_the_lists_it_is_asked_for(chosen in prop::collection::btree_set(0u32..3000, 0..200), memory in 12u32..26, descends: bool) {
        let heading = if descends { Heading::Descending } else { Heading::Ascending };
        let made = made(3000, &skewed(3000, 20_000), true);
        let io = Io::direct();
        let degrees = made.file.degrees(Direction::In, &io).unwrap();
        let mut bits = Bits::none(3000);
        chosen.iter().for_each(|vertex| bits.insert(*vertex));
        let frames = Frames::default();
        let resources = Resources { known: 0, memory: 1 << memory, portion_pages: 1 << (memory - 12), threads: 2, io_threads: 2, io: &io, frames: &frames, cache: None, activity: &Activity::default(), memory_limit: 0, grow: &|_| Ok(()), scratch: &no_scratch };
        let selection = ListSelection {
            file: &made.file,
            direction: Direction::In,
            chosen: VertexSet::Of(&bits),
            weights: Some(graph::WeightIndex { degrees: &degrees, item: 8 }),
        };
        let mut found = vec![];
        let sweep = Sweep::new(selection, &resources);
        for round in sweep.rounds(1 << 14, heading) {
            let work = |scratch: &mut graph::ListScratch, lists: &graph::Lists<'_>| {
                let mut part = vec![];
                lists.each(scratch, |list| {
                    for (from, weight) in list.neighbours.iter().zip(list.weights) {
                        part.push((list.vertex, *from, *weight));
                    }
                })?;
                Ok(part)
            };
            let take = |part: Vec<_>| {
                found.extend(part);
                Ok(())
            };
            round.run(&resources, graph::ListScratch::default, work, take, &mut go).unwrap();
        }
        let mut expected: Vec<(u32, u32, f64)> = made.edges.iter()
            .filter(|(_, to)| chosen.contains(to))
            .map(|(from, to)| (*to, *from, weight(*from, *to)))
            .collect();
        expected.sort_by(|first, second| first.partial_cmp(second).unwrap());
        if descends {
            // Batches do, within which vertices ascend.
            found.sort_by(|first, second| first.partial_cmp(second).unwrap());
        }
        prop_assert_eq!(found, expected);
    }
}
