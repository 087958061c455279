mod support;
use outcore_ordering::{min_degree, Watch};
use support::*;
fn watch() -> Watch<'static> {
    Watch {
        threads: 1,
        stop: &|| false,
    }
}
#[test]
fn counts() {
    for graph in [grid(6, 3, false), grid(12, 2, true), with_copies(&grid(3, 3, true), 3)] {
        let order = min_degree(graph.graph(), &watch()).unwrap();
        let mut sorted = order.clone();
        sorted.sort();
        assert!(sorted.iter().enumerate().all(|(i, &v)| i == v as usize));
        let (a, b) = (fill(graph.graph(), &order), fill_naive(graph.graph(), &order));
        assert_eq!(a.nonzeros, b.nonzeros);
        assert_eq!(a.flops, b.flops);
    }
}
