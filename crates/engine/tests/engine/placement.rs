//! Placed programs: replayed by an independent checker, and compared with what theory says they must cost.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use outcore_engine::place::{place, Limits, Policy, Window};
use outcore_engine::plan::PlanOptions;
use outcore_engine::{cancel, EngineError};
use proptest::prelude::*;

use outcore_kernels::Binary;

use crate::replay::{replay, Case};
use crate::support::{apply, chunked, descent, factorization, product, stored, transposed};

fn cases() -> Vec<(&'static str, Case, PlanOptions)> {
    let (w, h) = factorization("place", 1 << 18, 2);
    let (a, b) = (stored("place-A", &[4096, 4096]), stored("place-B", &[4096, 4096]));
    vec![
        (
            "fused factorization",
            Case::new(&[w.clone(), h.clone()], PlanOptions::ALL),
            PlanOptions::ALL,
        ),
        (
            "factorization, one operator per pass",
            Case::new(&[w, h], PlanOptions::NONE),
            PlanOptions::NONE,
        ),
        (
            "product",
            Case::new(&[product(&a, &transposed(&b))], PlanOptions::ALL),
            PlanOptions::ALL,
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_program_that_is_placed_can_be_played(memory_mib in 24u64..700, window in 1usize..12, which in 0usize..5) {
        for (name, case, options) in cases() {
            let memory = memory_mib << 20;
            if let Some(placed) = case.place(options, memory, window, Policy::ALL[which]) {
                prop_assert!(placed.program.totals.peak_bytes <= memory, "{name}");
                replay(&case, &placed, memory);
            }
        }
    }
}

/// Cyclic sweeps with `c` of the array kept: LRU reads all of it every time, next-use reads `1 + (n − 1)(1 − c)`.
#[test]
fn cyclic_sweeps_cost_what_theory_says() {
    let sweeps = 10;
    let w = descent("cyclic", 1 << 19, sweeps);
    let case = Case::new(&[w], PlanOptions::ALL);
    let x_bytes = (1u64 << 19) * 100 * 8;
    let memory = x_bytes / 2;
    let window = 4;
    let next_use = case
        .place(PlanOptions::ALL, memory, window, Policy::NextUse)
        .expect("fits");
    let lru = case
        .place(
            PlanOptions {
                alternate: false,
                ..PlanOptions::ALL
            },
            memory,
            window,
            Policy::Lru,
        )
        .expect("fits");
    let sweeps = sweeps as f64;
    let kept = 0.5 - 8.0 * (4096.0 * 800.0) / x_bytes as f64;
    let best = x_bytes as f64 * (1.0 + (sweeps - 1.0) * (1.0 - kept));
    assert!(
        (next_use.program.totals.read_bytes as f64) < 1.05 * best,
        "{} against {best}",
        next_use.program.totals.read_bytes
    );
    assert!(lru.program.totals.read_bytes as f64 > 0.99 * sweeps * x_bytes as f64);
}

#[test]
fn more_memory_never_reads_more() {
    let (w, h) = factorization("monotone", 1 << 18, 3);
    let case = Case::new(&[w, h], PlanOptions::ALL);
    let mut least = u64::MAX;
    for memory_mib in [48, 64, 96, 128, 192, 256, 384, 512] {
        let placed = case
            .place(PlanOptions::ALL, memory_mib << 20, 4, Policy::NextUse)
            .expect("fits");
        let totals = &placed.program.totals;
        assert!(totals.read_bytes + totals.written_bytes <= least, "{memory_mib} MiB");
        least = totals.read_bytes + totals.written_bytes;
    }
}

#[test]
fn next_use_moves_no_more_than_the_policies_of_the_literature() {
    for (name, case, options) in cases() {
        for memory_mib in [96, 160, 256] {
            let moved = |policy| {
                let placed = case.place(options, memory_mib << 20, 4, policy)?;
                Some(placed.program.totals.read_bytes + placed.program.totals.written_bytes)
            };
            let Some(best) = moved(Policy::NextUse) else { continue };
            for policy in Policy::ALL {
                let other = moved(policy).expect("what fits one policy fits all");
                assert!(
                    best <= other + other / 50,
                    "{name}, {memory_mib} MiB: next-use {best}, {} {other}",
                    policy.name()
                );
            }
        }
    }
}

/// `A + A.T` reads two tiles per cell, and the cell across the diagonal reads the same two: together they read A once.
#[test]
fn cells_that_share_tiles_run_together() {
    let a = chunked("symmetric-A", &[8192, 8192], &[512, 512]);
    let case = Case::new(&[apply(Binary::Add, &a, &transposed(&a))], PlanOptions::ALL);
    let bytes = 8192 * 8192 * 8;
    let memory = bytes / 8;
    let placed = case.place(PlanOptions::ALL, memory, 4, Policy::NextUse).expect("fits");
    replay(&case, &placed, memory);
    assert!(placed.candidate.shared, "{}", placed.candidate.name());
    assert!(placed.program.totals.read_bytes < bytes + bytes / 10);
    let rows = placed.compared.iter().find(|(name, ..)| name == "rows").expect("tried");
    assert!(rows.1 > bytes + bytes / 2, "{rows:?}");
}

#[test]
fn nothing_is_placed_for_nobody() {
    let case = Case::new(&[factorization("unwanted", 100_000, 2).0], PlanOptions::ALL);
    let limits = Limits::new(1 << 30, Window::of_tasks(4));
    let unwanted = Arc::new(AtomicBool::new(true));
    let placed = cancel::until(&unwanted, || {
        Ok(place(&case.plan, &case.tiles, PlanOptions::ALL, limits, &[]).is_ok())
    });
    assert!(matches!(placed, Err(EngineError::Cancelled)));
}

#[test]
fn a_start_that_does_not_fit_is_refused() {
    let case = Case::new(&[factorization("start", 100_000, 1).0], PlanOptions::ALL);
    let limits = |memory| Limits::new(memory, Window::of_tasks(4));
    let start: Vec<_> = (0..20).collect();
    let bytes: u64 = start.iter().map(|&tile| case.tiles.weights[tile as usize].frame).sum();
    let place = |memory| place(&case.plan, &case.tiles, PlanOptions::ALL, limits(memory), &start);
    let shortage = place(bytes - 1).err().expect("the start alone takes more");
    assert!(shortage.need >= bytes);
    assert!(place(2 * bytes).is_ok_and(|placed| placed.program.totals.peak_bytes <= 2 * bytes));
}
