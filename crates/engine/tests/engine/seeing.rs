//! Facts of a program beside its bytes: occupancy of memory, traces, and forecasts under other limits.

use outcore_engine::place::Policy;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{timeline, Target, TraceLevel};

use crate::support::{compute, factorization, product, session, stored, transposed};

#[test]
fn occupancy_sums_to_the_forecast() {
    let (w, h) = factorization("occupied", 40_000, 3);
    let x = stored("occupied-product", &[3_000, 1_000]);
    for (pool, outputs) in [(40 << 20, vec![w, h]), (90 << 20, vec![product(&x, &transposed(&x))])] {
        let session = session(pool, 2, Policy::default(), PlanOptions::default());
        let targets = vec![Target::Memory; outputs.len()];
        let program = session.prepare(&outputs, &targets).expect("fits");
        let occupancy = program.occupancy();
        let arrays = || occupancy.arrays.iter();
        assert_eq!(arrays().map(|array| array.read).sum::<u64>(), program.read_bytes());
        assert_eq!(
            arrays().map(|array| array.spilled).sum::<u64>(),
            program.placed.program.totals.spilled_bytes
        );
        let fullest = occupancy.memory.iter().map(|used| used.sum()).max();
        assert_eq!(
            fullest.map(|used| used + program.fixed_bytes),
            Some(program.peak_bytes())
        );
        assert!(arrays().any(|array| array.read_again > 0), "{:?}", program.read_bytes());
        assert!(arrays().all(|array| array.peak <= array.bytes && array.read_again <= array.read));
        assert!(occupancy.producers.iter().all(Option::is_some), "every pass runs");
        assert!(!occupancy.flows.is_empty());
    }
}

#[test]
fn a_traced_run_does_what_an_untraced_one_does() {
    let x = stored("traced", &[900, 300]);
    let outputs = [product(&transposed(&x), &x)];
    let plain = session(4 << 20, 2, Policy::default(), PlanOptions::default());
    let expected = compute(&plain, &outputs);
    for level in [TraceLevel::Bins, TraceLevel::Events] {
        let session = session(4 << 20, 2, Policy::default(), PlanOptions::default());
        let program = session.prepare(&outputs, &[Target::Memory]).expect("fits");
        let outcome = program.run(level, &mut |_| Ok(())).expect("runs");
        assert_eq!(outcome.peak_bytes, program.peak_bytes());
        let frame = outcome.results[0].as_ref().expect("a result in memory");
        assert_eq!(&frame[..8], &expected[0][0].to_ne_bytes());
        let Some(trace) = outcome.traces.first() else {
            assert_eq!(
                level,
                TraceLevel::Bins,
                "short runs have no trace, unless events are kept"
            );
            continue;
        };
        assert!(trace.json.contains("\"occupancy\":{"), "as bytes were free for it");
        let tasks = trace
            .events
            .iter()
            .filter(|event| event.kind.name() == "compute")
            .count();
        let expected = if level == TraceLevel::Events {
            program.placed.tasks.len()
        } else {
            0
        };
        assert_eq!(tasks, expected);
        assert!(timeline(&outcome.traces).starts_with('['));
    }
}

#[test]
fn a_sweep_moves_less_with_more_memory_and_names_what_does_not_fit() {
    let x = stored("swept", &[2_000, 1_000]);
    let outputs = [product(&x, &transposed(&x))];
    let session = session(8 << 30, 2, Policy::default(), PlanOptions::default());
    let process = session.overhead();
    let limits: Vec<u64> = [1_u64, 40, 48, 64, 512]
        .iter()
        .map(|room| process + (room << 20))
        .collect();
    let points = session
        .sweep(&outputs, &[Target::Memory], &limits, &mut || Ok(()))
        .expect("plans");
    assert_eq!(
        points.iter().map(|point| point.memory_limit).collect::<Vec<_>>(),
        limits
    );
    assert!(points[0].forecast.is_none() && points[0].need > 1 << 20);
    let read: Vec<u64> = points[1..]
        .iter()
        .filter_map(|point| Some(point.forecast?.read_bytes))
        .collect();
    assert!(read.windows(2).all(|pair| pair[1] <= pair[0]), "{read:?}");
    let last = points[4].forecast.expect("it fits");
    let alone = session.prepare(&outputs, &[Target::Memory]).expect("fits");
    assert_eq!(
        (last.read_bytes, last.peak_bytes),
        (alone.read_bytes(), alone.peak_bytes())
    );
    assert!(last.is_exact);
    let stopped = session.sweep(&outputs, &[Target::Memory], &limits, &mut || {
        Err(outcore_engine::EngineError::Cancelled)
    });
    assert!(stopped.is_err());
}
