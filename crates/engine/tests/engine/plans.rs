//! What the planner makes of whole programs, with each rewrite on and off.

use outcore_engine::expr::Expr;
use outcore_engine::plan::{plan, Plan, PlanOptions};
use outcore_kernels::{Binary, Finish, Reduce};

use crate::support::{apply, descent, factorization, product, stored, transposed};

/// One line per pass: what it computes, over what, from what.
fn describe(plan: &Plan) -> String {
    plan.passes()
        .map(|pass| {
            let domain: Vec<String> = pass
                .domain
                .shape
                .iter()
                .zip(&pass.domain.tile)
                .map(|(length, tile)| format!("{length}/{tile}"))
                .collect();
            let place = if domain.is_empty() {
                "once".into()
            } else {
                domain.join(" × ")
            };
            let kinds: Vec<String> = pass
                .roots
                .iter()
                .map(|root| format!("{} ({:?})", root.node.label(), root.kind))
                .collect();
            format!("{place}: {}\n", kinds.join(", "))
        })
        .collect()
}

fn planned(outputs: &[Expr], options: PlanOptions) -> String {
    describe(&plan(outputs, options).expect("a plan"))
}

#[test]
fn one_scan_of_x_serves_an_iteration_of_the_factorization() {
    let (w, h) = factorization("scan", 1 << 20, 2);
    insta::assert_snapshot!(planned(&[w, h], PlanOptions::ALL), @r"
    once: matmul (Map)
    1048576/4096: divide (Map), matmul (Contraction), matmul (Contraction)
    once: divide (Map), matmul (Map)
    1048576/4096: divide (Map), matmul (Contraction), matmul (Contraction)
    once: divide (Map)
    ");
}

#[test]
fn without_reassociation_the_tall_temporary_is_fused_away_or_kept() {
    let (w, _) = factorization("assoc", 1 << 20, 1);
    let options = PlanOptions {
        reassociate: false,
        ..PlanOptions::ALL
    };
    insta::assert_snapshot!(planned(std::slice::from_ref(&w), options), @"1048576/4096: divide (Map)");
    let apart = PlanOptions {
        fuse_products: false,
        merge_scans: false,
        ..options
    };
    insta::assert_snapshot!(planned(&[w], apart), @r"
    1048576/4096: matmul (Map)
    1048576/4096: matmul (Map)
    1048576/4096: matmul (Map)
    1048576/4096: divide (Map)
    ");
}

#[test]
fn reassociation_says_what_it_changed() {
    let (w, _) = factorization("log", 1 << 20, 1);
    let made = plan(&[w], PlanOptions::ALL).expect("a plan");
    assert_eq!(made.rewrites, ["reassociate: ([1048576×10] @ ([10×100] @ [100×10]))"]);
}

#[test]
fn a_gradient_step_is_one_sweep() {
    let w = descent("sweep", 1 << 20, 2);
    insta::assert_snapshot!(planned(&[w], PlanOptions::ALL), @r"
    1048576/4096: matmul (Contraction)
    once: subtract (Map)
    1048576/4096: matmul (Contraction)
    once: subtract (Map)
    ");
}

#[test]
fn reductions_of_one_array_share_its_scan() {
    let x = stored("share", &[1 << 20, 100]);
    let sum = outcore_engine::ops::reduce(Reduce::Sum, Finish::Value, &x, &[0]).expect("a sum");
    let most = outcore_engine::ops::reduce(Reduce::Max, Finish::Value, &x, &[0, 1]).expect("a maximum");
    insta::assert_snapshot!(planned(&[sum.clone(), most.clone()], PlanOptions::ALL), @"1048576/4096: sum (Reduce), max (Reduce)");
    let apart = PlanOptions {
        merge_scans: false,
        ..PlanOptions::ALL
    };
    insta::assert_snapshot!(planned(&[sum, most], apart), @r"
    1048576/4096: sum (Reduce)
    1048576/4096: max (Reduce)
    ");
}

#[test]
fn both_sides_of_a_large_product_read_one_temporary() {
    let (a, b) = (stored("left", &[8192, 8192]), stored("right", &[8192, 8192]));
    let sum = apply(Binary::Add, &a, &b);
    insta::assert_snapshot!(planned(&[product(&sum, &transposed(&sum))], PlanOptions::ALL), @r"
    8192/1024 × 8192/1024: add (Map)
    8192/1024 × 8192/1024 × 8192/1024: matmul (Blocked)
    ");
}

#[test]
fn equal_expressions_are_one_node() {
    let x = stored("equal", &[1000, 10]);
    assert_eq!(transposed(&x).id, transposed(&x).id);
    assert_eq!(transposed(&transposed(&x)).id, x.id);
    assert_eq!(apply(Binary::Add, &x, &x).id, apply(Binary::Add, &x, &x).id);
    assert_ne!(apply(Binary::Add, &x, &x).id, apply(Binary::Multiply, &x, &x).id);
}

#[test]
fn errors_name_both_sides() {
    let (x, y) = (stored("x43", &[4, 3]), stored("y43", &[4, 3]));
    let error = outcore_engine::ops::matmul(&x, &y)
        .expect_err("they do not fit")
        .to_string();
    assert_eq!(error, "matmul: (4, 3) @ (4, 3): inner dimensions 3 and 4 differ");
}
