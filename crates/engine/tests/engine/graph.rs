//! Graphs: every algorithm against a plain loop, with any number of threads and as little memory as it takes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

use outcore_coding::lists::ListIndex;
use outcore_dtype::DType;
use outcore_engine::graph::{
    self, Activity, Bits, Chosen, Delivery, Frames, Frontier, Graph, Heading, List, Outbox, Paths, Requests, Resources,
    Search, Strength, Sweep, VertexProgram, Wanted,
};
use outcore_engine::EngineError;
use outcore_store::{Direction, Faults, GraphFile, GraphShape, GraphWriter, Io};
use proptest::prelude::*;

mod programs;

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
        (1, 64 << 20, graph::PORTION_PAGES),
        (2, 64 << 20, graph::PORTION_PAGES),
        (8, least, 1 + pages / 6),
        (1, least / 16, 1 + pages / 16),
    ];
    let found = ways.map(|(threads, memory, portion_pages)| {
        work(&Resources {
            memory,
            portion_pages,
            threads,
            io_threads: 2,
            io,
            frames: &frames,
            cache: None,
            activity: &Activity::default(),
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

fn the_means(io: &Io) -> Resources<'_> {
    Resources {
        memory: 64 << 20,
        portion_pages: graph::PORTION_PAGES,
        threads: 2,
        io_threads: 2,
        io,
        frames: Box::leak(Box::default()),
        cache: None,
        activity: Box::leak(Box::default()),
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
    let search = Search {
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

#[test]
fn levels_are_those_of_a_queue() {
    for made in shapes() {
        for (directions, both) in [(&OUT[..], false), (&[Direction::Out, Direction::In][..], true)] {
            let found = the_same(&made, &Io::direct(), |resources| {
                levels(&made, 0, directions, resources).unwrap()
            });
            assert_eq!(found, expected_levels(&made, 0, both));
        }
    }
}

#[test]
fn lists_in_which_a_search_finds_nothing_are_not_read_again() {
    let made = made(3000, &skewed(3000, 12000), true);
    let expected = expected_levels(&made, 0, false);
    // The second is not memory enough to keep them.
    for (memory, is_enough) in [(64 << 20, true), (64, false)] {
        let activity = Activity::default();
        let io = Io::direct();
        let resources = Resources {
            memory,
            activity: &activity,
            ..the_means(&io)
        };
        assert_eq!(levels(&made, 0, &OUT, &resources).unwrap(), expected);
        activity.end(None);
        let rows = activity.rows();
        let turned = rows.iter().position(|row| row.lists != row.active).unwrap();
        let behind: u64 = rows[turned + 1..].iter().map(|row| row.read_bytes).sum();
        assert!(turned + 2 < rows.len() && rows[turned].read_bytes > 0, "{rows:?}");
        assert_eq!(behind == 0, is_enough, "{rows:?}");
    }
}

#[test]
fn components_are_named_by_their_lowest_vertex() {
    for made in shapes() {
        let found = the_same(&made, &Io::direct(), |resources| {
            graph::components(&made.file, resources, &mut go).unwrap()
        });
        let mut expected: Vec<u32> = (0..made.vertices as u32).collect();
        for _ in 0..made.vertices {
            let before = expected.clone();
            for (from, to) in &made.edges {
                let low = expected[*from as usize].min(expected[*to as usize]);
                (expected[*from as usize], expected[*to as usize]) = (low, low);
            }
            if expected == before {
                break;
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn strong_components_reach_each_other() {
    for made in shapes()
        .into_iter()
        .filter(|made| made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let found = the_same(&made, &io, |resources| {
            graph::strong_components(&made.file, resources, &mut go).unwrap()
        });
        for (vertex, lowest) in found.iter().enumerate() {
            assert!(*lowest as usize <= vertex && found[*lowest as usize] == *lowest);
        }
        let means_frames = Frames::default();
        let resources = Resources {
            memory: 64 << 20,
            portion_pages: graph::PORTION_PAGES,
            threads: 1,
            io_threads: 1,
            io: &io,
            frames: &means_frames,
            cache: None,
            activity: &Activity::default(),
        };
        let mut near = vec![];
        for vertex in (0..made.vertices as u32).step_by(7) {
            near.push((vertex, levels(&made, vertex, &OUT, &resources).unwrap()));
        }
        for (vertex, reached) in &near {
            for (other, back) in &near {
                let both = reached[*other as usize] != graph::UNMET && back[*vertex as usize] != graph::UNMET;
                assert_eq!(
                    found[*vertex as usize] == found[*other as usize],
                    both,
                    "{vertex} and {other}"
                );
            }
        }
    }
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

#[test]
fn distances_are_the_shortest() {
    for made in shapes() {
        let io = Io::direct();
        let degrees = [Direction::Out, Direction::In].map(|direction| made.file.degrees(direction, &io).unwrap());
        let mut expected = vec![f64::INFINITY; made.vertices];
        expected[0] = 0.0;
        for _ in 0..made.vertices {
            let before = expected.clone();
            for (from, to) in &made.edges {
                let new = expected[*from as usize] + weight(*from, *to);
                expected[*to as usize] = expected[*to as usize].min(new);
            }
            if expected == before {
                break;
            }
        }
        for step in [0.1, 3.0, 1e9] {
            let found = the_same(&made, &io, |resources| {
                distances(&made, (&degrees[0], &degrees[1]), 0, step, resources)
            });
            assert_eq!(found, expected);
        }
    }
}

/// δ of every vertex, by the definition: of the shortest paths from the source to each other, the part through it.
fn plain_between(made: &Made, source: u32) -> Vec<f64> {
    let levels = expected_levels(made, source, false);
    let next =
        |(from, to): &&(u32, u32)| levels[*from as usize] >= 0 && levels[*to as usize] == levels[*from as usize] + 1;
    let mut by_level: Vec<_> = made.edges.iter().filter(next).copied().collect();
    by_level.sort_by_key(|(from, _)| levels[*from as usize]);
    let mut paths = vec![0.0; made.vertices];
    paths[source as usize] = 1.0;
    by_level
        .iter()
        .for_each(|(from, to)| paths[*to as usize] += paths[*from as usize]);
    let mut sums = vec![0.0; made.vertices];
    for (from, to) in by_level.iter().rev() {
        sums[*from as usize] += paths[*from as usize] / paths[*to as usize] * (1.0 + sums[*to as usize]);
    }
    sums[source as usize] = 0.0;
    sums
}

#[test]
fn betweenness_is_that_of_its_definition_in_either_memory() {
    let io = Io::direct();
    for made in shapes() {
        if made.vertices == 0 {
            continue;
        }
        let sources = [0, made.vertices as u32 / 2, 0];
        let mut expected = vec![0.0; made.vertices];
        for source in sources {
            let of = plain_between(&made, source);
            expected.iter_mut().zip(of).for_each(|(sum, more)| *sum += more);
        }
        let any = graph::BETWEENNESS_BYTES[0];
        let found = the_same(&made, &io, |resources| {
            graph::betweenness(&made.file, &sources, any, resources, &mut go)
                .unwrap()
                .unwrap()
        });
        for (vertex, (sum, right)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (sum - right).abs() <= 1e-9 * right.max(1.0),
                "{vertex}: {sum} and {right}"
            );
        }
        let few = graph::betweenness(
            &made.file,
            &sources,
            graph::BETWEENNESS_BYTES[1],
            &the_means(&io),
            &mut go,
        );
        assert!(few.unwrap().is_none_or(|few| few == found));
    }
}

#[test]
fn little_memory_is_enough_for_some_fifty_levels_and_not_for_a_thousand() {
    let io = Io::direct();
    let [any, few] = graph::BETWEENNESS_BYTES;
    // Those of a level lie as far apart as can be.
    for (levels, is_enough) in [(2, true), (10, true), (50, true), (1000, false)] {
        let n = 4000u32;
        let edges: Vec<(u32, u32)> = (0..n)
            .map(|vertex| (vertex, vertex + 1))
            .filter(|(_, to)| to % levels != 0)
            .collect();
        let roots = (1..n / levels).map(|path| (0, path * levels));
        let made = made(n as usize, &edges.into_iter().chain(roots).collect::<Vec<_>>(), true);
        let between = |bytes| graph::betweenness(&made.file, &[0], bytes, &the_means(&io), &mut go).unwrap();
        let found = between(any).unwrap();
        assert_eq!(found[1], f64::from(levels.saturating_sub(2)));
        assert_eq!(between(few), is_enough.then_some(found), "{levels} levels");
    }
}

#[test]
fn triangles_are_those_of_three_loops() {
    for made in shapes()
        .into_iter()
        .filter(|made| !made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let degrees = made.file.degrees(Direction::Out, &io).unwrap();
        let edges: BTreeSet<(u32, u32)> = made.edges.iter().copied().collect();
        let mut expected = vec![0u64; made.vertices];
        for (first, second) in edges.iter().filter(|(first, second)| first < second) {
            for third in second + 1..made.vertices as u32 {
                if edges.contains(&(*first, third)) && edges.contains(&(*second, third)) {
                    [*first, *second, third]
                        .iter()
                        .for_each(|vertex| expected[*vertex as usize] += 1);
                }
            }
        }
        for block in [1 << 12, 64 << 20] {
            let (all, each) = the_same(&made, &io, |resources| {
                graph::triangles(&made.file, &degrees, true, block, resources, &mut go).unwrap()
            });
            assert_eq!((all, &each), (expected.iter().sum::<u64>() / 3, &expected));
            let (again, none) = the_same(&made, &io, |resources| {
                graph::triangles(&made.file, &degrees, false, block, resources, &mut go).unwrap()
            });
            assert_eq!((again, none), (all, vec![]));
        }
    }
}

#[test]
fn the_most_edges_are_around_one_vertex() {
    for made in shapes()
        .into_iter()
        .filter(|made| !made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let degrees = made.file.degrees(Direction::Out, &io).unwrap();
        let (_, triangles) = the_same(&made, &io, |resources| {
            graph::triangles(&made.file, &degrees, true, 1 << 20, resources, &mut go).unwrap()
        });
        let mut around = triangles;
        let plain = made.edges.iter().filter(|(from, to)| from != to);
        plain.for_each(|(from, _)| around[*from as usize] += 1);
        let most = around.iter().max().copied().unwrap();
        let lowest = around.iter().position(|edges| *edges == most).unwrap() as u32;
        let found = the_same(&made, &io, |resources| {
            graph::scan(&made.file, &degrees, resources, &mut go).unwrap()
        });
        let found = found.unwrap();
        assert_eq!((found.vertex, found.edges), (lowest, most));
        assert!(found.looked_at <= made.vertices as u64);
    }
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
            memory: 32 << 10,
            portion_pages: graph::PORTION_PAGES,
            threads: 2,
            io_threads: 2,
            io: &io,
            frames: &frames,
            cache: None,
            activity: &Activity::default(),
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
        memory: 32 << 10,
        portion_pages: graph::PORTION_PAGES,
        threads: 2,
        io_threads: 2,
        io: &io,
        frames: &frames,
        cache: None,
        activity: &Activity::default(),
    };
    let mut watch = || Err(EngineError::Cancelled);
    let ended = graph::components(&made.file, &resources, &mut watch);
    assert!(matches!(ended, Err(EngineError::Cancelled)));
}

/// Graphs of communities that do not fit are stored, and are the same.
#[test]
fn communities_are_the_same_in_whatever_memory() {
    let mut times_stored = 0;
    for made in shapes().into_iter().filter(|made| !made.file.shape().directed) {
        let io = Io::direct();
        let folder = tempfile::tempdir().unwrap();
        let what = graph::Louvain {
            resolution: 1.0,
            seed: 5,
            threshold: 1e-7,
            exponent: 0,
        };
        let stored = std::cell::Cell::new(0);
        let with = |bytes, resources: &Resources<'_>| {
            let mut path = || {
                stored.set(stored.get() + 1);
                Ok(folder.path().join(format!("{}.ocg", stored.get())))
            };
            let mut coarse = graph::Coarse { bytes, path: &mut path };
            let resources = Resources {
                memory: 64 << 20,
                ..*resources
            };
            graph::louvain(&made.file, None, &what, &mut coarse, &resources, &mut go)
        };
        let kept = the_same(&made, &io, |resources| with(1 << 20, resources).unwrap());
        assert_eq!(stored.get(), 0);
        assert!((0..).zip(&kept.0).all(|(vertex, label): (u32, _)| *label <= vertex));
        // Too little for a row of the first graph of communities is said; a bit more is enough.
        let least = (16..24).find_map(|power| match with(1 << power, &the_means(&io)) {
            Ok(found) => Some((power, found)),
            Err(EngineError::Memory { .. }) => None,
            Err(error) => panic!("{error}"),
        });
        assert_eq!(least.unwrap().1, kept);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files stay");
        times_stored += stored.get();
    }
    assert!(times_stored > 0, "no memory was too little");
}

/// Vertices without edges are gone through once to find that, and once to merge the others.
#[test]
fn graphs_of_communities_hold_no_vertex_without_edges() {
    let ring: Vec<(u32, u32)> = (0..100)
        .map(|place| (place * 30 + 7, (place + 1) % 100 * 30 + 7))
        .collect();
    let made = made(3000, &ring, false);
    let io = Io::direct();
    let resources = the_means(&io);
    let what = graph::Louvain {
        resolution: 1.0,
        seed: 0,
        threshold: 1e-7,
        exponent: 0,
    };
    let mut path = || unreachable!("there is room");
    let mut coarse = graph::Coarse {
        bytes: 1 << 20,
        path: &mut path,
    };
    let (labels, modularity) = graph::louvain(&made.file, None, &what, &mut coarse, &resources, &mut go).unwrap();
    resources.activity.end(None);
    let active: Vec<u64> = resources.activity.rows().iter().map(|row| row.active).collect();
    assert_eq!(active.iter().filter(|active| **active == 3000).count(), 2, "{active:?}");
    assert!(active.len() > 5, "{active:?}");
    assert!(
        active.iter().all(|active| *active == 3000 || *active <= 100),
        "{active:?}"
    );
    assert!((0..).zip(&labels).all(|(vertex, label)| if vertex % 30 == 7 {
        *label <= vertex && label % 30 == 7
    } else {
        *label == vertex
    }));
    let parts: BTreeSet<&u32> = labels.iter().filter(|label| **label % 30 == 7).collect();
    assert!(
        (5..=25).contains(&parts.len()) && modularity > 0.75,
        "{parts:?} {modularity}"
    );
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

const HUB: u32 = 70_000;

/// A vertex with a million neighbours, whose list is of more bytes than a batch.
fn star() -> Made {
    let vertices = 1 << 20;
    written(vertices, 2 * (u64::from(vertices) - 1), |vertex| match vertex {
        HUB => (0..vertices).filter(|other| *other != HUB).collect(),
        _ => vec![HUB],
    })
}

/// Counts how often it is given a part of the list of the hub.
struct Calls {
    in_parts: bool,
    calls: AtomicU32,
}

impl VertexProgram for Calls {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn takes_parts(&self) -> bool {
        self.in_parts
    }

    fn run(&self, iteration: u32, _: u32, _: &mut u32) -> bool {
        iteration < 2
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[u32], outbox: &mut Outbox<u32>) {
        if list.vertex == HUB {
            self.calls.fetch_add(1, Relaxed);
        }
        list.neighbours
            .iter()
            .for_each(|other| outbox.send(*other, list.vertex));
    }

    fn on_message(&self, _: u32, _: u32, last: &mut u32, from: u32) -> bool {
        *last = last.wrapping_mul(31).wrapping_add(from);
        true
    }
}

#[test]
fn long_lists_come_in_parts_to_who_takes_them() {
    let made = star();
    assert!(graph::least_memory_of_parts(&made.file, 8, true) < graph::least_memory(&made.file, 8));
    let both = [false, true].map(|in_parts| {
        the_same(&made, &Io::direct(), |resources| {
            let calls = AtomicU32::new(0);
            let mut program = Calls { in_parts, calls };
            let mut states = vec![0; made.vertices];
            let mut active = Frontier::none(made.vertices);
            (0..made.vertices as u32).for_each(|vertex| active.insert(vertex));
            graph::run(
                &plain(&made),
                &mut program,
                &mut states,
                &mut active,
                Delivery::Synchronous,
                resources,
                &mut go,
            )
            .unwrap();
            assert_eq!(program.calls.into_inner(), if in_parts { 8 } else { 2 });
            states
        })
    });
    assert_eq!(both[0], both[1]);
    // The lowest sender is the first in an iteration, and the last in the next.
    let others = || (0..made.vertices as u32).filter(|other| *other != HUB);
    let heard = |last: u32, from: u32| last.wrapping_mul(31).wrapping_add(from);
    let expected = others().rev().fold(others().fold(0, heard), heard);
    assert_eq!(both[0][HUB as usize], expected);
    assert_eq!(both[0][3], heard(HUB, HUB));
}

#[test]
fn algorithms_take_long_lists_in_parts() {
    let made = star();
    let io = Io::direct();
    let leaves = made.vertices - 1;
    let is_hub = |vertex: usize| vertex == HUB as usize;
    let found = the_same(&made, &io, |resources| levels(&made, 5, &OUT, resources).unwrap());
    let distance = |vertex: usize| match vertex {
        5 => 0,
        vertex if is_hub(vertex) => 1,
        _ => 2,
    };
    assert!(found
        .iter()
        .enumerate()
        .all(|(vertex, level)| *level == distance(vertex)));
    let degrees = made.file.degrees(Direction::Out, &io).unwrap();
    let paths = the_same(&made, &io, |resources| {
        distances(&made, (&degrees, &degrees), HUB, 1e9, resources)
    });
    for (vertex, distance) in (0..).zip(&paths) {
        let direct = if vertex == HUB {
            0.0
        } else {
            weight(vertex.min(HUB), vertex.max(HUB))
        };
        assert_eq!(*distance, direct, "{vertex}");
    }
    let together = the_same(&made, &io, |resources| {
        graph::components(&made.file, resources, &mut go).unwrap()
    });
    assert!(together.iter().all(|lowest| *lowest == 0));
    let between = the_same(&made, &io, |resources| {
        graph::betweenness(&made.file, &[5], graph::BETWEENNESS_BYTES[0], resources, &mut go)
            .unwrap()
            .unwrap()
    });
    assert!((0..)
        .zip(&between)
        .all(|(vertex, sum)| *sum == if is_hub(vertex) { (leaves - 1) as f64 } else { 0.0 }));
    let what = graph::Ranking {
        damping: 0.85,
        tolerance: 1e-15,
        iterations: 500,
        teleport: None,
        dangling: None,
        start: None,
    };
    let strength = Strength::Degrees(&degrees);
    let (ranks, _) = the_same(&made, &io, |resources| {
        graph::ranks(&made.file, &strength, None, &what, resources, &mut go).unwrap()
    });
    // h = (1 - d) / n + d n' l, l = (1 - d) / n + d h / n', where n' are the leaves.
    let base = 0.15 / made.vertices as f64;
    let hub = (base + 0.85 * leaves as f64 * base) / (1.0 - 0.85 * 0.85);
    let leaf = base + 0.85 * hub / leaves as f64;
    for (vertex, rank) in ranks.iter().enumerate() {
        let expected = if is_hub(vertex) { hub } else { leaf };
        assert!((rank / expected - 1.0).abs() < 1e-9, "{vertex}: {rank} and {expected}");
    }
    let asked = [3, HUB, HUB + 1];
    let (begins, neighbours, weights) = the_same(&made, &io, |resources| {
        let asked = graph::Asked {
            file: &made.file,
            direction: Direction::Out,
            degrees: Some(&degrees),
            vertices: &asked,
        };
        let found = asked.whole(resources, &mut go).unwrap();
        (found.begins, found.neighbours, found.weights)
    });
    assert_eq!(begins, [0, 1, 1 + leaves as i64, 2 + leaves as i64]);
    assert!(neighbours[1..=leaves]
        .iter()
        .copied()
        .eq((0..made.vertices as u32).filter(|other| *other != HUB)));
    let of_hub = neighbours[1..=leaves].iter().zip(&weights[1..=leaves]);
    assert!({ of_hub }.all(|(other, found)| *found == weight(HUB.min(*other), HUB.max(*other))));
}

const HUBS: [u32; 2] = [9, (1 << 21) - 4];

/// Two vertices that are neighbours of each other, each of all of its half, a million. With `pairs` vertices 2k and 2k + 1 are
/// neighbours, too: so each pair makes a triangle with the hub, but the hub's own.
fn two_hubs(pairs: bool) -> Made {
    let (half, all) = (1u32 << 20, 1u32 << 21);
    let [low, high] = HUBS;
    let own = u64::from(pairs) * u64::from(half - 2);
    written(all, 2 * (2 * u64::from(half - 1) + 1 + own), |vertex| {
        let hub = if vertex < half { low } else { high };
        if vertex == low {
            (0..half).filter(|other| *other != low).chain([high]).collect()
        } else if vertex == high {
            let above = (half..all).filter(|other| *other != high);
            [low].into_iter().chain(above).collect()
        } else {
            let mut around = vec![hub];
            around.extend((pairs && vertex ^ 1 != hub).then_some(vertex ^ 1));
            around.sort_unstable();
            around
        }
    })
}

fn neighbours_of(made: &Made, vertex: u32) -> Vec<u32> {
    let asked = graph::Asked {
        file: &made.file,
        direction: Direction::Out,
        degrees: None,
        vertices: &[vertex],
    };
    asked.whole(&the_means(&Io::direct()), &mut go).unwrap().neighbours
}

#[test]
fn counts_of_long_lists_are_those_of_a_formula() {
    let made = two_hubs(true);
    let io = Io::direct();
    let degrees = made.file.degrees(Direction::Out, &io).unwrap();
    let half = 1u64 << 20;
    let is_hub = |vertex: u32| HUBS.contains(&vertex);
    // In blocks that cut the lists of the hubs, and in one.
    for block in [1 << 20, 64 << 20] {
        let (all, each) = the_same(&made, &io, |resources| {
            graph::triangles(&made.file, &degrees, true, block, resources, &mut go).unwrap()
        });
        assert_eq!(all, half - 2);
        let of = |vertex: u32| match (is_hub(vertex), is_hub(vertex ^ 1)) {
            (true, _) => (half - 2) / 2,
            (_, true) => 0,
            _ => 1,
        };
        assert!((0..).zip(&each).all(|(vertex, found)| *found == of(vertex)));
    }
    let close = the_same(&made, &io, |resources| {
        graph::clustering(&made.file, &degrees, 64 << 20, resources, &mut go).unwrap()
    });
    for (vertex, found) in (0..).zip(&close) {
        let expected = match (is_hub(vertex), is_hub(vertex ^ 1)) {
            (true, _) => (half - 2) as f64 / (half as f64 * (half - 1) as f64),
            (_, true) => 0.0,
            _ => 1.0,
        };
        assert_eq!(*found, expected, "{vertex}");
    }
    let densest = the_same(&made, &io, |resources| {
        graph::scan(&made.file, &degrees, resources, &mut go).unwrap()
    });
    let densest = densest.unwrap();
    assert_eq!((densest.vertex, densest.edges), (HUBS[0], half + (half - 2) / 2));
    assert_eq!(densest.looked_at, 64, "the degrees of all others are too low");
    let loops = the_same(&made, &io, |resources| {
        graph::loops(&made.file, resources, &mut go).unwrap()
    });
    assert!(loops.is_empty());
}

#[test]
fn what_neighbours_say_is_heard_from_all_parts_of_a_list() {
    let made = two_hubs(true);
    let io = Io::direct();
    let around = HUBS.map(|hub| neighbours_of(&made, hub));
    let hub_of = |vertex: u32| usize::from(vertex >= 1 << 20);
    for seed in [1, 2] {
        let chosen = the_same(&made, &io, |resources| {
            graph::independent(&made.file, seed, resources, &mut go).unwrap()
        });
        for (hub, around) in HUBS.iter().zip(&around) {
            assert_eq!(chosen.has(*hub), !around.iter().any(|other| chosen.has(*other)));
        }
        for vertex in (0..1 << 21).filter(|vertex| !HUBS.contains(vertex)) {
            let [hub, pair] = [HUBS[hub_of(vertex)], vertex ^ 1];
            let is_by_one = chosen.has(hub) || pair != hub && chosen.has(pair);
            assert_eq!(chosen.has(vertex), !is_by_one, "{vertex}");
        }
        let (labels, done) = the_same(&made, &io, |resources| {
            graph::spread(&made.file, 100, seed, resources, &mut go).unwrap()
        });
        assert!(done.is_some(), "labels go on changing");
        // In the end each has a label that no other is more frequent than around it.
        for (hub, around) in HUBS.iter().zip(&around) {
            let mut counts = std::collections::HashMap::<u32, u32>::new();
            for other in around {
                *counts.entry(labels[*other as usize]).or_default() += 1;
            }
            assert_eq!(counts.get(&labels[*hub as usize]), counts.values().max());
        }
        for vertex in (0..1 << 21).filter(|vertex| !HUBS.contains(vertex)) {
            let own = labels[vertex as usize];
            assert!([HUBS[hub_of(vertex)], vertex ^ 1]
                .map(|other| labels[other as usize])
                .contains(&own));
        }
    }
    // Communities of a graph of two stars: what moves the hubs comes from all of their lists.
    let made = two_hubs(false);
    let folder = tempfile::tempdir().unwrap();
    let what = graph::Louvain {
        resolution: 1.0,
        seed: 3,
        threshold: 1e-7,
        exponent: 0,
    };
    let (labels, modularity) = the_same(&made, &io, |resources| {
        let mut path = || Ok(folder.path().join("c.ocg"));
        let mut coarse = graph::Coarse {
            bytes: 1 << 20,
            path: &mut path,
        };
        graph::louvain(&made.file, None, &what, &mut coarse, resources, &mut go).unwrap()
    });
    assert!((0..).zip(&labels).all(|(vertex, label)| *label == (vertex >> 20) << 20));
    let edges = f64::from((1 << 21) - 1);
    assert!(
        (modularity - ((edges - 1.0) / edges - 0.5)).abs() < 1e-9,
        "{modularity}"
    );
}

/// The lowest vertex that is known to be connected, which neighbours are told of.
struct Lowest;

impl VertexProgram for Lowest {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, _: &mut u32) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[u32], outbox: &mut Outbox<u32>) {
        let own = states[list.vertex as usize];
        let higher = list.neighbours.iter().filter(|other| states[**other as usize] > own);
        higher.for_each(|other| outbox.send(*other, own));
    }

    fn on_message(&self, _: u32, _: u32, state: &mut u32, lowest: u32) -> bool {
        let is_lower = lowest < *state;
        *state = lowest.min(*state);
        is_lower
    }
}

/// The distance from where it begins, told to neighbours.
struct Farther;

impl VertexProgram for Farther {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, _: &mut u32) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[u32], outbox: &mut Outbox<u32>) {
        let next = states[list.vertex as usize] + 1;
        let farther = list.neighbours.iter().filter(|other| states[**other as usize] > next);
        farther.for_each(|other| outbox.send(*other, next));
    }

    fn on_message(&self, _: u32, _: u32, state: &mut u32, distance: u32) -> bool {
        let is_nearer = distance < *state;
        *state = distance.min(*state);
        is_nearer
    }
}

#[test]
fn asynchronous_runs_end_where_synchronous_ones_do_and_no_later() {
    // A tree whose numbers are those of a heap, of several batches.
    let vertices = (1u32 << 20) - 1;
    let made = written(vertices, 2 * (u64::from(vertices) - 1), |vertex| {
        let above = vertex.checked_sub(1).map(|below| below / 2);
        let around = [above, Some(2 * vertex + 1), Some(2 * vertex + 2)];
        around.into_iter().flatten().filter(|other| *other < vertices).collect()
    });
    let io = Io::direct();
    fn ran<P: VertexProgram<State = u32>>(
        made: &Made,
        mut program: P,
        states: &[u32],
        begin: impl Iterator<Item = u32>,
        mode: Delivery,
        resources: &Resources<'_>,
    ) -> (Vec<u32>, u32) {
        let mut states = states.to_vec();
        let mut active = Frontier::none(made.vertices);
        begin.for_each(|vertex| active.insert(vertex));
        let iterations = graph::run(
            &plain(made),
            &mut program,
            &mut states,
            &mut active,
            mode,
            resources,
            &mut go,
        )
        .unwrap();
        (states, iterations)
    }
    let names: Vec<u32> = (0..vertices).collect();
    let mut far = vec![u32::MAX; vertices as usize];
    far[0] = 0;
    for threads in [1, 2, 8] {
        // All messages of an iteration fit.
        let resources = Resources {
            memory: 1 << 30,
            threads,
            ..the_means(&io)
        };
        let labels = |mode| ran(&made, Lowest, &names, 0..vertices, mode, &resources);
        let (found, iterations) = labels(Delivery::Synchronous);
        assert_eq!(iterations, 20);
        assert!(found.iter().all(|lowest| *lowest == 0));
        let (at_once, sooner) = labels(Delivery::Asynchronous);
        resources.activity.end(None);
        assert_eq!(at_once, found);
        assert!(
            sooner <= iterations,
            "{sooner} and {iterations} iterations of {threads} threads"
        );
        let lists = resources
            .activity
            .rows()
            .iter()
            .map(|row| row.lists)
            .collect::<Vec<_>>();
        let (each, rest) = lists.split_at(iterations as usize);
        let asked = [each, rest].map(|lists| lists.iter().sum::<u64>());
        // Eight threads have all lists under way at once.
        assert!(
            asked[1] < asked[0] || threads == 8 && asked[1] == asked[0],
            "{asked:?} of {threads} threads"
        );
        let search = |mode| ran(&made, Farther, &far, std::iter::once(0), mode, &resources);
        let (found, iterations) = search(Delivery::Synchronous);
        assert!((0..)
            .zip(&found)
            .all(|(vertex, level): (u32, _)| *level == (vertex + 1).ilog2()));
        let (at_once, sooner) = search(Delivery::Asynchronous);
        assert_eq!(at_once, found);
        assert!(sooner <= iterations);
    }
}

/// Panics at one place.
struct Panics(&'static str);

impl Panics {
    fn at(&self, place: &str) -> bool {
        assert_ne!(self.0, place);
        true
    }
}

impl VertexProgram for Panics {
    type State = ();
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, (): &mut ()) -> bool {
        self.at("run")
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[()], outbox: &mut Outbox<()>) {
        self.at("on_edges");
        list.neighbours.iter().for_each(|other| outbox.send(*other, ()));
    }

    fn on_message(&self, _: u32, _: u32, (): &mut (), (): ()) -> bool {
        self.at("on_message")
    }

    fn on_iteration_end(&mut self, iteration: u32, _: &mut [()], active: &mut Frontier) {
        self.at("on_iteration_end");
        if iteration == 1 {
            active.clear();
        }
    }
}

#[test]
fn a_program_that_panics_ends_in_an_error_wherever_it_does() {
    let io = Io::direct();
    // Of one batch and of several, so few vertices that the caller works on them and so many that threads do.
    let few = made(40, &[(0, 1), (3, 2)], true);
    let many = written(1 << 20, 1 << 20, |vertex| vec![vertex ^ 1]);
    for (made, threads) in [(&few, 1), (&few, 2), (&many, 1), (&many, 3)] {
        for place in ["run", "on_edges", "on_message", "on_iteration_end", "nowhere"] {
            let resources = Resources {
                threads,
                ..the_means(&io)
            };
            let mut active = Frontier::none(made.vertices);
            (0..made.vertices as u32).for_each(|vertex| active.insert(vertex));
            let mut states = vec![(); made.vertices];
            let ran = graph::run(
                &plain(made),
                &mut Panics(place),
                &mut states,
                &mut active,
                Delivery::Synchronous,
                &resources,
                &mut go,
            );
            match ran {
                Ok(iterations) => assert_eq!((place, iterations), ("nowhere", 2)),
                Err(EngineError::Internal(text)) => {
                    assert_ne!(place, "nowhere", "{text}");
                    assert!(text.starts_with("a vertex program panicked: "), "{text}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
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
        let resources = Resources { memory: 1 << memory, portion_pages: 1 << (memory - 12), threads: 2, io_threads: 2, io: &io, frames: &frames, cache: None, activity: &Activity::default() };
        let wanted = Wanted {
            file: &made.file,
            direction: Direction::In,
            chosen: Chosen::Of(&bits),
            weights: Some(graph::WeightIndex { degrees: &degrees, item: 8 }),
        };
        let mut found = vec![];
        let sweep = Sweep::new(wanted, &resources);
        for round in sweep.rounds(1 << 14, heading) {
            let work = |scratch: &mut graph::Scratch, lists: &graph::Lists<'_>| {
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
            round.run(&resources, graph::Scratch::default, work, take, &mut go).unwrap();
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
