//! Programs played: the forecast is the outcome, and the bits do not depend on how they were made.

use std::collections::HashSet;
use std::sync::Mutex;

use outcore_engine::place::{Instruction, Policy};
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{
    PlayableRun, Played, Player, PreparedProgram, ProgressReport, Target, ThreadPlayer, TraceLevel,
};
use outcore_engine::schedule::Role;
use outcore_engine::{ops, EngineError};
use outcore_kernels::{Binary, Finish, Reduce};

use crate::support::{apply, chunked, compute, factorization, made_value, product, session, stored, transposed};

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
        let outcome = program.run(TraceLevel::None, &mut |_| Ok(()));
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
    let outcome = program.run(TraceLevel::None, &mut |_| Err(EngineError::Cancelled));
    assert!(matches!(outcome, Err(EngineError::Cancelled)));
    session.clear();
    assert_eq!(session.ledger().used(), 0);
}

/// Whether an accumulator is read back from scratch for its last addition and then used by a task behind it.
fn brings_back_for_a_consumer(program: &PreparedProgram) -> bool {
    let tasks = &program.placed.tasks;
    let (mut brought, mut completed) = (HashSet::new(), HashSet::new());
    program
        .placed
        .program
        .instructions
        .iter()
        .any(|&instruction| match instruction {
            Instruction::Read(tile) => {
                brought.insert(tile);
                false
            }
            Instruction::Free(tile) => {
                brought.remove(&tile);
                completed.remove(&tile);
                false
            }
            Instruction::Run(task) => {
                let uses = tasks.inputs(task as usize).iter().any(|tile| completed.contains(tile));
                for output in tasks.outputs(task as usize) {
                    if brought.remove(&output.tile) && matches!(output.role, Role::Accumulate { last: true, .. }) {
                        completed.insert(output.tile);
                    }
                }
                uses
            }
            _ => false,
        })
}

#[test]
fn a_consumer_waits_for_the_last_addition_to_what_comes_back_from_scratch() {
    let square = |name: &str| chunked(name, &[3000, 3000], &[500, 500]);
    let [a, b, e, f] = ["back-A", "back-B", "back-E", "back-F"].map(square);
    let sum = apply(Binary::Add, &apply(Binary::Add, &product(&a, &b), &e), &f);
    let output = [ops::reduce(Reduce::Sum, Finish::Value, &sum, &[0]).expect("an axis to sum over")];
    let expected = compute(&session(1 << 30, 2, Policy::NextUse, PlanOptions::ALL), &output);
    let mut found = 0;
    for policy in Policy::ALL {
        for pool_kib in (72 << 10..128 << 10).step_by(8 << 10) {
            let session = session(pool_kib << 10, 4, policy, PlanOptions::ALL);
            let Ok(program) = session.prepare(&output, &[Target::Memory]) else {
                continue;
            };
            if !brings_back_for_a_consumer(&program) {
                continue;
            }
            found += 1;
            assert_eq!(
                compute(&session, &output),
                expected,
                "{}, {pool_kib} KiB",
                policy.name()
            );
        }
    }
    assert!(found > 0, "no program of these brings an accumulator back");
}

/// Plays in threads, and keeps the instructions that it was given.
#[derive(Default)]
struct Recorder(Mutex<Vec<Vec<Instruction>>>);

impl Player for Recorder {
    fn play(
        &self,
        run: PlayableRun<'_>,
        progress: &mut dyn FnMut(&ProgressReport) -> Result<(), EngineError>,
    ) -> Played {
        self.0
            .lock()
            .expect("one plays")
            .push(run.program().instructions.clone());
        ThreadPlayer.play(run, progress)
    }
}

/// Plays nothing.
struct Refuser;

impl Player for Refuser {
    fn play(&self, run: PlayableRun<'_>, _: &mut dyn FnMut(&ProgressReport) -> Result<(), EngineError>) -> Played {
        run.refused(EngineError::Argument("not here".into()))
    }
}

#[test]
fn a_player_is_given_the_program_as_it_was_placed() {
    let session = session(64 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let x = stored("played", &[900, 700]);
    let output = [apply(Binary::Add, &x, &x)];
    let prepared = session.prepare(&output, &[Target::Memory]).expect("it fits");
    let recorder = Recorder::default();
    let outcome = prepared
        .run_by(&recorder, TraceLevel::None, &mut |_| Ok(()))
        .expect("it runs");
    let played = recorder.0.into_inner().expect("one plays");
    assert_eq!(played.len(), 1);
    assert_eq!(played[0], prepared.placed.program.instructions);
    assert_eq!(outcome.peak_bytes, prepared.peak_bytes());
}

#[test]
fn each_stage_of_a_chain_is_a_program_of_the_player() {
    let session = session(16 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let keys = ops::reshape(&stored("played-sort", &[3_000_000, 1]), &[3_000_000]).expect("a row");
    let sorted = outcore_engine::sort::sort_by(&keys, &[], false, None).expect("keys");
    let path = std::env::temp_dir().join(format!("outcore-played-{}.npy", std::process::id()));
    let target = Target::Path {
        path: path.clone(),
        overwrite: true,
        chunks: None,
        resume: false,
        annotations: None,
        update: None,
        codecs: None,
        part: None,
    };
    let chain = session
        .plan_chain(&sorted, std::slice::from_ref(&target), &mut || Ok(()))
        .expect("it fits");
    assert!(chain.stages.len() > 1);
    let recorder = Recorder::default();
    let outcome = chain
        .run_by(&recorder, TraceLevel::None, &mut |_| Ok(()))
        .expect("it runs");
    assert_eq!(recorder.0.into_inner().expect("one plays").len(), outcome.stages.len());
    std::fs::remove_file(&path).expect("it was written");
    let refused = session.plan_chain(&sorted, &[target], &mut || Ok(())).expect("it fits");
    let refused = refused.run_by(&Refuser, TraceLevel::None, &mut |_| Ok(()));
    assert!(matches!(refused, Err(EngineError::Argument(_))));
    assert!(!path.exists());
}
