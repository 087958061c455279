//! What a worker's workspace holds: the values of one block that are alive together.

use outcore_dtype::{DType, Scalar};
use outcore_engine::expr::Expr;
use outcore_engine::ops;
use outcore_engine::place::Policy;
use outcore_engine::plan::{plan, PlanOptions};
use outcore_kernels::{Binary, Finish, Reduce};

use crate::support::{apply, compute, product, session, stored, transposed};

/// Sums of `count` different expressions of one array.
fn sums(x: &Expr, count: usize) -> Vec<Expr> {
    (0..count)
        .map(|index| {
            let factor = ops::constant(Scalar::Float(1.0 + index as f64), DType::F64).expect("a constant");
            let square = apply(Binary::Multiply, x, x);
            let scaled = apply(Binary::Multiply, &square, &factor);
            ops::reduce(Reduce::Sum, Finish::Value, &scaled, &[0]).expect("a sum")
        })
        .collect()
}

/// Bytes of all slots of the one pass that computes `outputs`.
fn slot_bytes(outputs: &[Expr]) -> usize {
    let made = plan(outputs, PlanOptions::ALL).expect("a plan");
    assert_eq!(made.producers.len(), 1, "one scan");
    made.pass(0).expect("one scan").slots.iter().sum()
}

#[test]
fn many_reductions_over_one_scan_need_the_workspace_of_a_few() {
    let x = stored("workspace-many", &[1 << 20, 100]);
    let (two, many) = (slot_bytes(&sums(&x, 2)), slot_bytes(&sums(&x, 300)));
    assert_eq!(many, two);
}

#[test]
fn roots_that_take_their_operands_at_once_give_the_same_bits() {
    let x = stored("workspace-bits", &[30_000, 20]);
    let mut outputs = sums(&x, 20);
    let tall = apply(Binary::Add, &x, &outputs[3]);
    outputs.push(product(&transposed(&tall), &x));
    outputs.push(apply(Binary::Multiply, &x, &x));
    outputs.push(tall);
    let session = session(64 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let together = compute(&session, &outputs);
    for (output, value) in outputs.iter().zip(&together) {
        let alone = compute(&session, std::slice::from_ref(output));
        assert_eq!(&alone[0], value, "{}", output.label());
    }
}
