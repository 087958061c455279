//! The bytes forecast are never exceeded: every allocation of this process is counted.

mod support;

use outcore_ordering::{
    compress, compress_bytes, dissect, dissect_bytes, match_entries, matching_bytes, min_degree, min_degree_bytes,
    symmetric_matching, symmetric_matching_bytes, OrderingWatch,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::columns::{random_columns, OwnedColumns};
use support::Owned;

struct Counting;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = CURRENT.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged; counters are all that is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        System.alloc_zeroed(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        System.dealloc(pointer, layout);
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        add(size);
        System.realloc(pointer, layout, size)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn peak_of<T>(work: impl FnOnce() -> T) -> u64 {
    let before = CURRENT.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    drop(result);
    peak as u64
}

fn check(name: &str, graph: &Owned) {
    let (vertices, directed) = (graph.vertices() as u64, graph.neighbours.len() as u64);
    let each = |bytes: u64| bytes as f64 / vertices.max(1) as f64;
    let watch = |threads| OrderingWatch {
        threads,
        stop: &|| false,
    };
    let peak = peak_of(|| min_degree(graph.graph(), &watch(1)).expect("is not stopped"));
    let bound = min_degree_bytes(vertices, directed);
    println!(
        "{name:14} degree     {:7.1} of {:7.1} bytes a vertex",
        each(peak),
        each(bound)
    );
    assert!(peak <= bound, "{name}: min_degree took {peak} of {bound} bytes");
    for threads in [1, 2, 8] {
        let peak = peak_of(|| dissect(graph.graph(), &watch(threads)).expect("is not stopped"));
        let bound = dissect_bytes(vertices, directed, threads);
        println!(
            "{name:14} dissect t{threads} {:7.1} of {:7.1} bytes a vertex",
            each(peak),
            each(bound)
        );
        assert!(
            peak <= bound,
            "{name}: dissect on {threads} threads took {peak} of {bound} bytes"
        );
    }
}

fn hold(name: &str, peak: u64, bound: u64) {
    println!("{name:14} {peak:10} of {bound:10} bytes");
    assert!(peak <= bound, "{name} took {peak} of {bound} bytes");
}

fn check_matching(name: &str, matrix: &OwnedColumns) {
    let watch = OrderingWatch {
        threads: 1,
        stop: &|| false,
    };
    let peak = peak_of(|| match_entries(matrix.columns(), &watch).expect("is not stopped"));
    let entries = matrix.indices.len() as u64;
    hold(
        name,
        peak,
        matching_bytes(matrix.rows.into(), matrix.width() as u64, entries),
    );
}

fn cycle(vertices: u32) -> Owned {
    let edges: Vec<_> = (0..vertices).map(|at| (at, (at + 1) % vertices)).collect();
    Owned::of_edges(vertices as usize, &edges)
}

/// A graph as a matrix without diagonal, and its pairs.
fn check_pairs(graph: &Owned) {
    let watch = OrderingWatch {
        threads: 1,
        stop: &|| false,
    };
    let matrix = OwnedColumns::of_graph(graph, |one, other| f64::from(1 + (one + other) % 5));
    let (vertices, directed) = (graph.vertices() as u64, graph.neighbours.len() as u64);
    let matching = || symmetric_matching(matrix.columns(), &watch).expect("is not stopped");
    let peak = peak_of(matching);
    hold("symmetric", peak, symmetric_matching_bytes(vertices, directed));
    let partner = matching().partner;
    let peak = peak_of(|| compress(&graph.graph(), &partner, &watch).expect("is not stopped"));
    hold("compress", peak, compress_bytes(vertices, directed));
}

#[test]
fn no_call_takes_more_than_forecast() {
    check("empty", &Owned::of_edges(0, &[]));
    check("no edges", &Owned::of_edges(300_000, &[]));
    check("grid 7 points", &support::grid(45, 3, false));
    check("grid 27", &support::grid(24, 3, true));
    check("grid 5", &support::grid(300, 2, false));
    check("elastic", &support::with_copies(&support::grid(14, 3, true), 3));
    check("path", &support::path(200_000));
    check("star", &support::star(200_000));
    check("complete", &support::complete(700));
    check("bipartite", &support::bipartite(600, 600));
    check("random", &support::random(60_000, 180_000));
    check("power law", &support::power_law(100_000, 3));
    check("components", &support::repeated(&support::grid(20, 2, false), 200));
    check_matching("nothing", &OwnedColumns::of_lists(0, Vec::new()));
    check_matching(
        "no entries",
        &OwnedColumns::of_lists(300_000, vec![Vec::new(); 300_000]),
    );
    check_matching("random", &random_columns(100_000, 5, |number| f64::from(number) + 1.0));
    check_matching(
        "tall",
        &OwnedColumns::of_fn(20_000, 10, |row, column| (row % 7 + column) as f64),
    );
    check_matching(
        "wide",
        &OwnedColumns::of_fn(10, 20_000, |row, column| (row + column % 7) as f64),
    );
    check_matching(
        "dense",
        &OwnedColumns::of_fn(400, 400, |row, column| (row * column % 101) as f64),
    );
    for graph in [
        support::path(200_000),
        support::path(200_001),
        support::star(200_000),
        support::repeated(&cycle(9), 10_000),
        cycle(100_000),
        support::kkt(20),
        support::power_law(50_000, 3),
    ] {
        check_pairs(&graph);
    }
}
