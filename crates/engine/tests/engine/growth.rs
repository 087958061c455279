//! What is held as tiles, level by level, and how planning's own work grows with the program.

use std::fmt::Write as _;

use outcore_engine::expr::Expr;
use outcore_engine::ops;
use outcore_engine::plan::partition::{partition, Partition};
use outcore_engine::plan::PlanOptions;
use outcore_kernels::{Binary, Finish, Reduce, Unary};

use crate::support::{apply, descent, factorization, product, stored, transposed};

/// One line per root in evaluation order: level, kind, what it computes and over what.
fn roots(outputs: &[Expr], options: PlanOptions) -> String {
    let Partition { roots, order, .. } = partition(outputs, &options);
    let mut text = String::new();
    for root in order.iter().filter_map(|node| roots.get(&node.id)) {
        let (label, shape) = (root.node.label(), &root.domain.shape);
        writeln!(text, "{} {:?} {label} over {shape:?}", root.level, root.kind).expect("strings grow");
    }
    text
}

#[test]
fn values_that_several_passes_need_are_held() {
    let (w, h) = factorization("held", 1 << 20, 2);
    insta::assert_snapshot!(roots(&[w, h], PlanOptions::ALL), @r"
    0 Map divide over [1048576]
    0 Contraction matmul over [1048576]
    0 Contraction matmul over [1048576]
    1 Map divide over []
    2 Map divide over [1048576]
    2 Contraction matmul over [1048576]
    2 Contraction matmul over [1048576]
    3 Map divide over []
    ");
}

#[test]
fn without_merged_scans_every_root_is_a_pass_and_shared_values_are_held() {
    let x = stored("unmerged-X", &[1 << 20, 100]);
    let y = stored("unmerged-Y", &[1 << 20, 100]);
    let shared = ops::unary(Unary::Sqrt, &apply(Binary::Multiply, &x, &y)).expect("a root");
    let sum = ops::reduce(Reduce::Sum, Finish::Value, &shared, &[0]).expect("a sum");
    let most = ops::reduce(Reduce::Max, Finish::Value, &shared, &[0]).expect("a maximum");
    let options = PlanOptions {
        merge_scans: false,
        ..PlanOptions::ALL
    };
    insta::assert_snapshot!(roots(&[sum, most], options), @r"
    0 Map sqrt over [1048576]
    1 Reduce sum over [1048576]
    1 Reduce max over [1048576]
    ");
}

#[test]
fn views_and_assemblies_over_materialized_values_are_read_piece_by_piece() {
    let x = stored("pieces-X", &[1 << 20, 100]);
    let total = ops::reduce(Reduce::Sum, Finish::Value, &x, &[0]).expect("a sum");
    let row = ops::expand_dims(&total, &[0]).expect("an axis");
    let both = ops::concat(&[row.clone(), row], 0).expect("equal shapes");
    let gram = product(&both, &transposed(&both));
    let flat = ops::reshape(&apply(Binary::Add, &x, &total), &[100 << 20]).expect("as many elements");
    insta::assert_snapshot!(roots(&[gram, flat], PlanOptions::ALL), @r"
    0 Reduce sum over [1048576]
    1 Map matmul over []
    1 Map add over [104857600]
    ");
}

#[test]
fn partitioning_visits_grow_with_the_iterations_and_not_their_square() {
    let visits = |iterations| {
        let (w, h) = factorization("grows", 1 << 20, iterations);
        partition(&[w, h], &PlanOptions::ALL).visits
    };
    let (few, many) = (visits(100), visits(200));
    assert!(2 * many <= 5 * few, "{few} visits became {many}");
}

#[test]
fn sweeps_that_hold_their_state_are_partitioned_in_linear_time() {
    let visits = |iterations| partition(&[descent("line", 1 << 20, iterations)], &PlanOptions::ALL).visits;
    let (few, many) = (visits(100), visits(200));
    assert!(many <= 2 * few + 10, "{few} visits became {many}");
}
