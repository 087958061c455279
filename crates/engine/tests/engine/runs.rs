//! Programs played: the forecast is the outcome, and the bits do not depend on how they were made.

use outcore_engine::place::Policy;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::Target;
use outcore_engine::EngineError;

use crate::support::{compute, factorization, made_value, product, session, stored, transposed};

#[test]
fn bits_do_not_depend_on_threads_memory_or_policy() {
    let (w, h) = factorization("bits", 40_000, 2);
    let expected = compute(
        &session(1 << 30, 1, Policy::NextUse, PlanOptions::ALL),
        &[w.clone(), h.clone()],
    );
    for policy in Policy::ALL {
        for (threads, pool_mib) in [(1, 40), (2, 48), (3, 64), (4, 96)] {
            let found = compute(
                &session(pool_mib << 20, threads, policy, PlanOptions::ALL),
                &[w.clone(), h.clone()],
            );
            assert_eq!(found, expected, "{}, {threads} threads, {pool_mib} MiB", policy.name());
        }
    }
}

#[test]
fn a_blocked_product_agrees_with_the_definition() {
    let (a, b) = (stored("run-A", &[1500, 1100]), stored("run-B", &[1300, 1100]));
    let found = compute(
        &session(96 << 20, 2, Policy::NextUse, PlanOptions::ALL),
        &[product(&a, &transposed(&b))],
    );
    for (row, column) in [(0, 0), (1499, 1299), (1024, 7), (3, 1024)] {
        let exact: f64 = (0..1100)
            .map(|k| made_value(row * 1100 + k) * made_value(column * 1100 + k))
            .sum();
        let value = found[0][(row * 1300 + column) as usize];
        assert!(
            (value - exact).abs() <= 1e-12 * exact,
            "[{row}, {column}]: {value} against {exact}"
        );
    }
}

#[test]
fn what_cannot_fit_is_refused_with_a_limit_that_works() {
    let (a, b) = (stored("fit-A", &[4096, 4096]), stored("fit-B", &[4096, 4096]));
    let output = [product(&a, &b)];
    let refused = session(8 << 20, 2, Policy::NextUse, PlanOptions::ALL).prepare(&output, &[Target::Memory]);
    let Err(EngineError::Memory {
        operator,
        need,
        available,
        smallest,
        ..
    }) = refused
    else {
        panic!("8 MiB hold no product of these");
    };
    assert_eq!(operator, "matmul");
    assert!(need > available);
    let enough = session(smallest, 2, Policy::NextUse, PlanOptions::ALL);
    assert!(
        enough.prepare(&output, &[Target::Memory]).is_ok(),
        "{smallest} bytes were said to be enough"
    );
}

#[test]
fn every_reservation_may_fail_and_nothing_leaks() {
    let (w, h) = factorization("reserve", 20_000, 1);
    let session = session(64 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let targets = [Target::Memory, Target::Memory];
    let mut failures = 0;
    for nth in 1.. {
        session.clear();
        let program = session.prepare(&[w.clone(), h.clone()], &targets).expect("fits");
        session.ledger().fail_at(Some(nth));
        let outcome = program.run(false, &mut |_| Ok(()));
        session.ledger().fail_at(None);
        match outcome {
            Ok(_) => break,
            Err(error) => {
                assert_eq!(error.code(), "memory", "{error}");
                failures += 1;
            }
        }
        session.clear();
        assert_eq!(session.ledger().used(), 0, "after the failure of reservation {nth}");
    }
    assert!(failures > 10, "only {failures} reservations");
}

#[test]
fn a_cancelled_run_ends_and_gives_everything_back() {
    let (w, _) = factorization("cancel", 200_000, 2);
    let session = session(64 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let program = session.prepare(&[w], &[Target::Memory]).expect("fits");
    let outcome = program.run(false, &mut |_| Err(EngineError::Cancelled));
    assert!(matches!(outcome, Err(EngineError::Cancelled)));
    session.clear();
    assert_eq!(session.ledger().used(), 0);
}
