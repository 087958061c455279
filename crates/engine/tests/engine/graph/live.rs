//! Live work in a session: forecasts, refusals, counters, page caches.

use std::io::Write;
use std::path::Path;

use outcore_engine::graph::{betweenness_of, components_of, triangles_of, PartsOfLists, StoredGraph, WholeLists};
use outcore_engine::live::{forecast, CacheShare, LiveMemory, LiveOperator, LiveRun, Paged};
use outcore_engine::place::Policy;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{Session, SessionOptions};
use outcore_store::io::Mode;
use outcore_store::AlignedBuffer;

use super::*;
use crate::support::session;

const MIB: u64 = 1 << 20;

fn with_pool(bytes: u64) -> Arc<Session> {
    let options = session(bytes, 2, Policy::NextUse, PlanOptions::default())
        .options()
        .clone();
    let options = SessionOptions {
        direct_io: true,
        ..options
    };
    Arc::new(Session::new(options).unwrap())
}

fn stored(made: &Made) -> Arc<StoredGraph> {
    Arc::new(StoredGraph::open(made.file.path(), &Io::direct()).unwrap())
}

/// Runs in a pool of so many bytes, and holds the forecast against what was reserved.
fn ran<O: LiveOperator>(operator: &O, pool_bytes: u64) -> Result<O::Output, EngineError> {
    let session = with_pool(pool_bytes);
    let before = session.io().counters();
    let told = forecast(&session, operator);
    assert_eq!(session.io().counters(), before, "a forecast reads nothing");
    let run = LiveRun::new(session.clone());
    let found = run.work(operator, &mut || {
        // Nothing is reserved while it waits for its turn among all runs of the process, other tests' too.
        let used = session.ledger().used() as u64;
        assert!(used == 0 || used >= told.shares.reserved());
        Ok(())
    })?;
    assert_eq!(run.reserved_bytes(), told.shares.reserved());
    assert!(told.bound.most.is_none_or(|most| run.bytes_read() <= most));
    assert_eq!(
        session.ledger().used(),
        session.ledger().page_bytes(),
        "all but pages is given back"
    );
    Ok(found)
}

/// The least that an operator is known to do with.
fn least<O: LiveOperator>(operator: &O) -> u64 {
    let LiveMemory { known, least, .. } = operator.memory(2);
    known + least
}

/// The same where there is no room for all that it could know.
fn frugal_least(operator: &impl LiveOperator) -> u64 {
    let LiveMemory { frugal, least, .. } = operator.memory(2);
    frugal.unwrap() + least
}

#[test]
fn a_run_reserves_what_was_forecast() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let graph = stored(&made);
    let components = components_of(graph.clone());
    let triangles = triangles_of(graph, true);
    let found = [0, 12 * MIB, 1 << 30].map(|more| {
        (
            ran(&components, least(&components) + more).unwrap(),
            ran(&triangles, least(&triangles) + more).unwrap(),
        )
    });
    assert!(found.iter().all(|each| *each == found[0]));
}

#[test]
fn a_refusal_says_the_need_and_a_limit_that_does() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let graph = stored(&made);
    let components = components_of(graph);
    let need_bytes = least(&components);
    match ran(&components, need_bytes - 1) {
        Err(EngineError::Memory {
            operator,
            need,
            available,
            smallest,
            ..
        }) => {
            assert_eq!((operator.as_str(), need), ("graph: connected components", need_bytes));
            assert_eq!(available, need_bytes - 1);
            assert!(smallest >= need_bytes, "{smallest}");
        }
        other => panic!("{other:?}"),
    }
    ran(&components, need_bytes).unwrap();
}

#[test]
fn a_search_of_many_levels_begins_again_with_room_for_them() {
    let path: Vec<(u32, u32)> = (1..3000).map(|vertex| (vertex - 1, vertex)).collect();
    let (short, long) = (made(3000, &skewed(3000, 30_000), false), made(3000, &path, false));
    let (few_levels, many_levels) = (stored(&short), stored(&long));
    let (few, many) = (
        betweenness_of(few_levels, vec![0, 5]),
        betweenness_of(many_levels, vec![0, 5]),
    );
    let sums = ran(&few, frugal_least(&few)).unwrap();
    assert!(sums.is_some() && sums == ran(&few, 1 << 30).unwrap());
    match ran(&many, frugal_least(&many)) {
        Err(EngineError::Memory { need, .. }) => assert_eq!(need, least(&many)),
        other => panic!("{other:?}"),
    }
    assert!(ran(&many, least(&many)).unwrap().is_some());
}

fn read(io: &Io, path: &Path) {
    let file = io.open(path, Mode::Read).unwrap();
    let mut buffer = AlignedBuffer::new(4096).unwrap();
    io.read(&file, &mut buffer, 0, 4096).unwrap();
}

#[test]
fn a_run_counts_its_own_reads_beside_those_of_others() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let mut other = tempfile::NamedTempFile::new().unwrap();
    other.write_all(&[1; 4096]).unwrap();
    let counted = [false, true].map(|is_beside| {
        let (session, graph) = (with_pool(1 << 30), stored(&made));
        let run = LiveRun::new(session.clone());
        let triangles = triangles_of(graph, false);
        let mut reads = 0;
        run.work(&triangles, &mut || {
            if is_beside {
                read(session.io(), other.path());
                reads += 1;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(reads > 0, is_beside);
        assert_eq!(session.io().counters().bytes_read, run.bytes_read() + 4096 * reads);
        run.bytes_read()
    });
    assert!(counted[0] == counted[1] && counted[0] > 0, "{counted:?}");
}

#[test]
fn pages_stay_for_the_next_run_and_a_run_within_counts_for_the_outer() {
    let made = made(3000, &skewed(3000, 30_000), false);
    let graph = stored(&made);
    let session = with_pool(1 << 30);
    let outer = LiveRun::new(session.clone());
    let vertices: Vec<u32> = (0..3000).collect();
    let asked = WholeLists {
        graph: &graph,
        direction: Direction::Out,
        vertices: &vertices,
    };
    let inner = LiveRun::within(&outer);
    let lists = inner.work(&asked, &mut go).unwrap();
    assert!(outer.bytes_read() > 0 && outer.bytes_read() == inner.bytes_read());
    assert!(session.ledger().page_bytes() > 0);
    // By way of the cache nothing is read again, and whoever is called may compute in the memory that is left.
    let count = AtomicU32::new(0);
    let parts = PartsOfLists {
        graph: &graph,
        direction: Direction::Out,
        vertices: &vertices,
        neighbours: 100,
        in_parts: true,
        with_weights: false,
        take: std::sync::Mutex::new(|part: graph::NeighbourLists| {
            count.fetch_add(part.neighbours.len() as u32, Relaxed);
            assert!(session.spare() > 512 * MIB);
            Ok(())
        }),
    };
    assert_eq!(parts.memory(2).cache, CacheShare::Beside);
    let again = LiveRun::new(session.clone());
    again.work(&parts, &mut go).unwrap();
    assert_eq!(
        (again.bytes_read(), count.into_inner()),
        (0, lists.neighbours.len() as u32)
    );
}

#[test]
fn pages_are_those_of_the_session() {
    let made = made(300, &skewed(300, 3_000), false);
    let graph = stored(&made);
    let (one, other) = (with_pool(1 << 30), with_pool(1 << 30));
    let file = graph.by_cache(&one, 8 * MIB, CacheShare::Run).unwrap();
    assert!(Arc::ptr_eq(
        &file,
        &graph.by_cache(&one, 8 * MIB, CacheShare::Beside).unwrap()
    ));
    assert!(!Arc::ptr_eq(
        &file,
        &graph.by_cache(&other, 8 * MIB, CacheShare::Run).unwrap()
    ));
    assert!(graph.by_cache(&one, 0, CacheShare::Run).is_none());
}

#[test]
fn what_is_held_for_an_iteration_grows_and_goes() {
    let session = with_pool(1 << 30);
    let run = LiveRun::new(session.clone());
    run.hold("graph: states", 100 * MIB).unwrap();
    run.hold_meanwhile(80 * MIB).unwrap();
    assert_eq!(session.ledger().used() as u64, 190 * MIB);
    run.hold_meanwhile(85 * MIB).unwrap();
    assert_eq!(session.ledger().used() as u64, 190 * MIB);
    run.hold_meanwhile(160 * MIB).unwrap();
    assert_eq!(session.ledger().used() as u64, 280 * MIB);
    assert!(!run.hold_spared("graph: messages", 200 * MIB) && run.hold_spared("graph: messages", 50 * MIB));
    assert!(run.hold("graph: states", 1 << 30).is_err());
    run.release();
    assert_eq!(session.ledger().used(), 0);
}

/// The bytes for each vertex that an operator states, with two threads.
fn vertex_bytes(graph: &StoredGraph, operator: &impl LiveOperator) -> u64 {
    (operator.memory(2).known - graph.state_bytes(0)) / graph.vertices() as u64
}

/// The numbers in the second cell of the row of a function, in the table of memory.
fn numbers_of(name: &str) -> Vec<u64> {
    let page = include_str!("../../../../../docs/graphs.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| `{name}")));
    let row = row.unwrap_or_else(|| panic!("no row of {name}"));
    let numbers = row
        .split('|')
        .nth(2)
        .unwrap()
        .split(|sign: char| !sign.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

const RANKING: graph::Ranking<'_> = graph::Ranking {
    damping: 0.85,
    tolerance: 0.0,
    iterations: 1,
    teleport: None,
    dangling: None,
    start: None,
};
const LOUVAIN: graph::Louvain = graph::Louvain {
    resolution: 1.0,
    seed: 0,
    threshold: 0.0,
    exponent: 0,
};

#[test]
fn the_table_of_memory_is_what_algorithms_state() {
    let [directed, undirected] = [true, false].map(|directed| stored(&made(3000, &skewed(3000, 9_000), directed)));
    let both = directed.both();
    macro_rules! bytes {
        ($graph:expr, $make:path $(, $argument:expr)*) => {
            vertex_bytes(&$graph, &$make($graph.clone() $(, $argument)*))
        };
    }
    let stated = [
        ("bfs`", vec![bytes!(directed, graph::levels, vec![0], both, 9, 1)]),
        (
            "shortest_paths`",
            vec![
                bytes!(directed, graph::distances, vec![0], None, &OUT),
                bytes!(directed, graph::distances, vec![0], None, both),
            ],
        ),
        ("connected_components`", vec![bytes!(directed, components_of)]),
        (
            "strongly_connected_components`",
            vec![bytes!(directed, graph::strong_components_of)],
        ),
        (
            "core_number`",
            vec![
                bytes!(undirected, graph::core_numbers),
                bytes!(directed, graph::core_numbers),
            ],
        ),
        ("topological_sort`", vec![bytes!(directed, graph::topological_order)]),
        (
            "pagerank` with",
            vec![bytes!(directed, graph::page_rank, RANKING, false, Some(1.0))],
        ),
        (
            "pagerank` |",
            vec![bytes!(directed, graph::page_rank, RANKING, false, None)],
        ),
        (
            "betweenness_centrality`",
            vec![bytes!(directed, betweenness_of, vec![0])],
        ),
        (
            "triangles`",
            vec![
                bytes!(undirected, triangles_of, false),
                bytes!(undirected, triangles_of, true),
            ],
        ),
        ("scan_statistics`", vec![bytes!(undirected, graph::scan_statistics)]),
        (
            "label_propagation`",
            vec![bytes!(undirected, graph::label_propagation, 1, 0)],
        ),
        (
            "louvain_communities`",
            vec![bytes!(undirected, graph::louvain_communities, LOUVAIN)],
        ),
        (
            "maximal_independent_set`",
            vec![bytes!(undirected, graph::independent_set, 0)],
        ),
        ("number_of_edges`", vec![bytes!(undirected, graph::loops_of)]),
    ];
    for (name, bytes) in stated {
        let numbers = numbers_of(name);
        assert!(
            bytes.iter().all(|bytes| numbers.contains(bytes)),
            "{name}: {bytes:?}, not {numbers:?}"
        );
    }
}
