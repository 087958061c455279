//! How long a run will go on, from what its plan says is left and how fast things went so far.
//!
//! A pass takes the longer of its computing and its transfers, since both go on at once:
//! `time(p) = max(tasks · seconds per task / workers, bytes · seconds per byte / I/O threads)`. Passes are judged by their
//! operations, at the rate of all work so far, until they begin; then by their own tasks, beside which that judgement
//! weighs as one task per worker, because the first ones often tell little. What the model leaves out (waiting, other
//! programs) is in the ratio of the time that passed to the time it gives for what is done.

use crate::plan::{Pass, StepKind};
use crate::run::session::progress::Estimate;

impl Pass {
    /// Whether its tasks call functions of the user.
    pub fn calls_functions(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.kind, StepKind::Function(_)))
    }

    /// Operations of the whole pass, for estimates of its time: those of products, and a few for each element that
    /// another step gives.
    pub fn operations(&self) -> f64 {
        const PER_ELEMENT: f64 = 4.0;
        let others = self.steps.iter().filter(|step| !matches!(step.kind, StepKind::Matmul));
        self.flops as f64 + PER_ELEMENT * others.map(|step| step.node.elements() as f64).sum::<f64>()
    }
}

/// What the plan says of one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassWork {
    pub tasks: u64,
    /// Operations of all its tasks.
    pub operations: f64,
    pub bytes: u64,
}

/// What is done of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassDone {
    pub tasks: u64,
    pub compute_ns: u64,
}

/// Measured since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub seconds: f64,
    /// Busy time of all I/O threads together, and the bytes they moved.
    pub transfer_ns: u64,
    pub transfer_bytes: u64,
    pub workers: usize,
    pub io_threads: usize,
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// The share of the run that is done and the time that is left. Pure; O(passes).
pub fn estimate(passes: &[PassWork], done: &[PassDone], measured: &Measured) -> Estimate {
    let begun = || passes.iter().zip(done).filter(|(_, done)| done.tasks > 0);
    let spent: f64 = begun().map(|(_, done)| done.compute_ns as f64).sum();
    let worked: f64 = begun()
        .map(|(pass, done)| pass.operations * ratio(done.tasks as f64, pass.tasks as f64))
        .sum();
    let per_operation = ratio(spent, worked);
    let per_byte = ratio(measured.transfer_ns as f64, measured.transfer_bytes as f64);
    let (workers, io_threads) = (measured.workers.max(1) as f64, measured.io_threads.max(1) as f64);
    let (mut past, mut left) = (0.0, 0.0);
    for (pass, done) in passes.iter().zip(done).filter(|(pass, _)| pass.tasks > 0) {
        let (tasks, complete) = (pass.tasks as f64, done.tasks as f64);
        let judged = per_operation * pass.operations / tasks;
        let per_task = (done.compute_ns as f64 + workers * judged) / (complete + workers);
        let transfer = per_byte * pass.bytes as f64 / tasks / io_threads;
        past += (done.compute_ns as f64 / workers).max(transfer * complete);
        left += (per_task / workers).max(transfer) * (tasks - complete);
    }
    Estimate {
        fraction: ratio(past, past + left),
        seconds_left: (past > 0.0).then(|| measured.seconds * left / past),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pass(tasks: u64, operations: f64, bytes: u64) -> PassWork {
        PassWork {
            tasks,
            operations,
            bytes,
        }
    }

    fn at(tasks: u64, seconds: u64) -> PassDone {
        PassDone {
            tasks,
            compute_ns: seconds * SECOND,
        }
    }

    fn measured(seconds: f64, transfer_seconds: u64, transfer_bytes: u64) -> Measured {
        Measured {
            seconds,
            transfer_ns: transfer_seconds * SECOND,
            transfer_bytes,
            workers: 2,
            io_threads: 4,
        }
    }

    fn close(found: Estimate, fraction: f64, seconds_left: f64) {
        let left = found.seconds_left.unwrap();
        assert!((found.fraction - fraction).abs() < 1e-9, "{found:?}");
        assert!((left - seconds_left).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn nothing_is_said_before_the_first_task() {
        let found = estimate(&[pass(10, 1e9, 1 << 20)], &[at(0, 0)], &measured(3.0, 3, 1 << 20));
        assert_eq!(found, Estimate::default());
    }

    /// Recorded of a product of 10 by 10 tiles on two workers: all bytes are there after a second, each task takes one.
    #[test]
    fn a_compute_bound_run_is_measured_by_its_tasks() {
        let passes = [pass(100, 2e12, 1 << 30)];
        for done in [4u64, 10, 50, 90] {
            let seconds = done as f64 / 2.0;
            let read = (1 << 28) + (done << 22);
            let found = estimate(&passes, &[at(done, done)], &measured(seconds, 1, read));
            close(found, done as f64 / 100.0, (100 - done) as f64 / 2.0);
        }
    }

    #[test]
    fn a_run_that_waits_for_its_disks_is_measured_by_its_bytes() {
        let passes = [pass(40, 1e6, 40 << 20), pass(10, 1e6, 40 << 20)];
        // Four I/O threads were busy for 8 of the 2 seconds that passed, and half of the first pass is there.
        let found = estimate(&passes, &[at(20, 1), at(0, 0)], &measured(2.0, 8, 20 << 20));
        close(found, 0.25, 6.0);
    }

    /// A quick scan first, then a product that nobody has seen yet: its operations tell.
    #[test]
    fn passes_to_come_are_judged_by_their_operations() {
        let passes = [pass(10, 1e9, 0), pass(5, 9e9, 0)];
        let found = estimate(&passes, &[at(10, 2), at(0, 0)], &measured(1.0, 0, 0));
        close(found, 0.1, 9.0);
        // Once it has begun, its own pace counts more and more: half of what its operations suggested.
        let left = |complete: u64| {
            let found = estimate(
                &passes,
                &[at(10, 2), at(complete, complete)],
                &measured(1.0 + complete as f64 / 2.0, 0, 0),
            );
            found.seconds_left.unwrap() / (5 - complete) as f64
        };
        assert!(1.8 > left(1) && left(1) > left(2) && left(2) > left(4) && left(4) > 0.5);
    }

    /// The remaining time of iterations that are all alike falls evenly.
    #[test]
    fn iterations_count_down() {
        let passes = [pass(8, 1e9, 1 << 20); 40];
        let mut before = f64::INFINITY;
        for iteration in 1..40u64 {
            let mut done = [at(0, 0); 40];
            done[..iteration as usize].fill(at(8, 4));
            let found = estimate(&passes, &done, &measured(2.0 * iteration as f64, 1, iteration << 20));
            close(found, iteration as f64 / 40.0, 2.0 * (40 - iteration) as f64);
            assert!(found.seconds_left.unwrap() < before);
            before = found.seconds_left.unwrap();
        }
    }
}
