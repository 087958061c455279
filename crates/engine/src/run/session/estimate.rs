//! How long a run will go on, from what its plan says is left and how fast things went so far.
//!
//! A pass takes the longer of its computing and its transfers, since both go on at once:
//! `time(p) = max(tasks · seconds per task / workers, bytes · seconds per byte / I/O threads)`. Passes are judged by their
//! operations, at the rate of all work so far, until they begin; then by their own tasks, beside which that judgement
//! weighs as one task per worker, because the first ones often tell little. Time outside of the model (waiting, other
//! programs) is in the ratio of the time that passed to the time it gives for what is done. Programs that follow are judged by
//! the pace of all that ran before them.

use std::collections::VecDeque;

use outcore_kernels::Generator;

use crate::place::Program;
use crate::plan::{Base, Pass, Plan, Producer, Step, StepKind};
use crate::task::costs::{PER_CALLED, PER_DRAWN, PER_ELEMENT};

impl Pass {
    /// Operations of the whole pass, for estimates of its time, in which a step takes as long as so many of a product's.
    pub fn operations(&self) -> f64 {
        self.flops as f64 + self.steps.iter().map(Step::operations).sum::<f64>()
    }
}

impl Step {
    fn operations(&self) -> f64 {
        let elements = self.node.elements() as f64;
        match &self.kind {
            StepKind::View | StepKind::Matmul => 0.0,
            StepKind::Gather(gather) => match &gather.base {
                Base::Generate {
                    generator: Generator::Uniform { .. } | Generator::Normal { .. } | Generator::Integers { .. },
                    ..
                } => PER_DRAWN * elements,
                _ => PER_ELEMENT * elements,
            },
            StepKind::Fused(fused) => PER_ELEMENT * (1 + fused.instructions.len()) as f64 * elements,
            StepKind::Reduce { .. } => PER_ELEMENT * self.node.inputs[0].elements() as f64,
            StepKind::Function(_) => PER_CALLED * elements,
        }
    }
}

/// How far a run is by time, not by bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of the whole run's time, from 0 to 1.
    pub fraction: f64,
    /// Nothing before the first task is complete.
    pub seconds_left: Option<f64>,
}

impl Estimate {
    pub const DONE: Estimate = Estimate {
        fraction: 1.0,
        seconds_left: Some(0.0),
    };
}

/// The planned work of one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassWork {
    pub tasks: u64,
    /// Operations of all its tasks.
    pub operations: f64,
    pub bytes: u64,
}

impl PassWork {
    /// Of each pass of a placed program.
    pub fn of(plan: &Plan, program: &Program) -> Vec<PassWork> {
        plan.producers
            .iter()
            .zip(&program.totals.per_pass)
            .map(|(producer, traffic)| PassWork {
                tasks: producer.tasks(),
                operations: match producer {
                    Producer::Pass(pass) => pass.operations(),
                    Producer::Work(step) => step.work.operations(),
                },
                bytes: traffic.read + traffic.written,
            })
            .collect()
    }
}

/// The complete part of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassDone {
    pub tasks: u64,
    pub compute_ns: u64,
}

/// A task of a pass that a worker is at, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct PassRunning {
    pub pass: usize,
    pub seconds: f64,
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

/// How fast work went: seconds in which all threads of a kind were busy, and what was done in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    compute_seconds: f64,
    operations: f64,
    transfer_seconds: f64,
    transfer_bytes: f64,
    /// Seconds that passed, and those that the model gives for what is done.
    seconds: f64,
    modelled_seconds: f64,
}

impl Pace {
    fn per_operation(&self) -> f64 {
        ratio(self.compute_seconds, self.operations)
    }

    fn per_byte(&self) -> f64 {
        ratio(self.transfer_seconds, self.transfer_bytes)
    }

    /// The pace of this and of other work together.
    pub fn with(&self, other: &Pace) -> Pace {
        Pace {
            compute_seconds: self.compute_seconds + other.compute_seconds,
            operations: self.operations + other.operations,
            transfer_seconds: self.transfer_seconds + other.transfer_seconds,
            transfer_bytes: self.transfer_bytes + other.transfer_bytes,
            seconds: self.seconds + other.seconds,
            modelled_seconds: self.modelled_seconds + other.modelled_seconds,
        }
    }

    /// The seconds of passes that have not begun; nothing where no work tells.
    pub fn seconds_of(&self, passes: &[PassWork]) -> Option<f64> {
        let modelled = |pass: &PassWork| {
            let transfer = self.per_byte() * pass.bytes as f64;
            (self.per_operation() * pass.operations).max(transfer)
        };
        let sum: f64 = passes.iter().map(modelled).sum();
        (self.modelled_seconds > 0.0).then(|| sum * ratio(self.seconds, self.modelled_seconds))
    }
}

/// A task that goes on is not nearly done, however long it takes.
const PART_MOST: f64 = 0.9;
/// Runs of which a session remembers the pace, and the seconds from which a run tells any.
const PACES_MAX: usize = 16;
const TELLING_SECONDS: f64 = 0.02;

/// The paces of a session's last runs.
#[derive(Debug, Default)]
pub struct Paces(VecDeque<Pace>);

/// The least and the most seconds that work takes, and by how many runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeBand {
    pub least: f64,
    pub most: f64,
    pub runs: usize,
}

impl Paces {
    /// Remembers a run of so many seconds, if it was long enough to tell.
    pub fn add(&mut self, seconds: f64, pace: impl FnOnce() -> Pace) {
        if seconds < TELLING_SECONDS {
            return;
        }
        let pace = pace();
        if pace.modelled_seconds > 0.0 {
            self.0.truncate(PACES_MAX - 1);
            self.0.push_front(pace);
        }
    }

    /// The time of passes by the rates of all runs together, and by the shares of it that their threads waited.
    pub fn time_of(&self, passes: &[PassWork]) -> Option<TimeBand> {
        let all = self.0.iter().fold(Pace::default(), |sum, pace| sum.with(pace));
        let seconds = all.seconds_of(passes)? * ratio(all.modelled_seconds, all.seconds);
        let waits = || self.0.iter().map(|pace| pace.seconds / pace.modelled_seconds);
        Some(TimeBand {
            least: seconds * waits().fold(f64::INFINITY, f64::min),
            most: seconds * waits().fold(0.0, f64::max),
            runs: self.0.len(),
        })
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// The share of the run that is done and the time that is left, and the pace of what is done. Pure; O(passes).
pub fn estimate(
    passes: &[PassWork],
    done: &[PassDone],
    running: &[PassRunning],
    measured: &Measured,
) -> (Estimate, Pace) {
    let (workers, io_threads) = (measured.workers.max(1) as f64, measured.io_threads.max(1) as f64);
    let begun = || passes.iter().zip(done).filter(|(_, done)| done.tasks > 0);
    let spent: f64 = begun().map(|(_, done)| done.compute_ns as f64).sum();
    let worked = begun().map(|(pass, done)| pass.operations * ratio(done.tasks as f64, pass.tasks as f64));
    let mut pace = Pace {
        compute_seconds: spent * 1e-9 / workers,
        operations: worked.sum(),
        transfer_seconds: measured.transfer_ns as f64 * 1e-9 / io_threads,
        transfer_bytes: measured.transfer_bytes as f64,
        seconds: measured.seconds,
        modelled_seconds: 0.0,
    };
    let mut left = 0.0;
    for (number, (pass, done)) in passes.iter().zip(done).enumerate() {
        if pass.tasks == 0 {
            continue;
        }
        let (tasks, complete) = (pass.tasks as f64, done.tasks as f64);
        let spent = done.compute_ns as f64 * 1e-9 / workers;
        let judged = pace.per_operation() * pass.operations / tasks;
        let per_task = (spent + workers * judged) / (complete + workers);
        let transfer = pace.per_byte() * pass.bytes as f64 / tasks;
        let under_way = running.iter().filter(|task| task.pass == number);
        let parts = under_way.map(|task| ratio(task.seconds, per_task * workers).min(PART_MOST));
        let parts: f64 = parts.sum();
        pace.modelled_seconds += spent.max(transfer * complete) + parts * per_task.max(transfer);
        left += per_task.max(transfer) * (tasks - complete - parts);
    }
    let past = pace.modelled_seconds;
    let estimate = Estimate {
        fraction: ratio(past, past + left),
        seconds_left: (past > 0.0).then(|| measured.seconds * left / past),
    };
    (estimate, pace)
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
        let (found, pace) = estimate(&[pass(10, 1e9, 1 << 20)], &[at(0, 0)], &[], &measured(3.0, 3, 1 << 20));
        assert_eq!(found, Estimate::default());
        assert_eq!(pace.seconds_of(&[pass(1, 1e9, 1)]), None);
    }

    /// Recorded of a product of 10 by 10 tiles on two workers: all bytes are there after a second, each task takes one.
    #[test]
    fn a_compute_bound_run_is_measured_by_its_tasks() {
        let passes = [pass(100, 2e12, 1 << 30)];
        for done in [4u64, 10, 50, 90] {
            let seconds = done as f64 / 2.0;
            let read = (1 << 28) + (done << 22);
            let (found, _) = estimate(&passes, &[at(done, done)], &[], &measured(seconds, 1, read));
            close(found, done as f64 / 100.0, (100 - done) as f64 / 2.0);
        }
    }

    #[test]
    fn a_run_that_waits_for_its_disks_is_measured_by_its_bytes() {
        let passes = [pass(40, 1e6, 40 << 20), pass(10, 1e6, 40 << 20)];
        // Four I/O threads were busy for 8 of the 2 seconds that passed, and half of the first pass is there.
        let (found, _) = estimate(&passes, &[at(20, 1), at(0, 0)], &[], &measured(2.0, 8, 20 << 20));
        close(found, 0.25, 6.0);
    }

    /// A quick scan first, then a product that nobody has seen yet: its operations tell.
    #[test]
    fn passes_to_come_are_judged_by_their_operations() {
        let passes = [pass(10, 1e9, 0), pass(5, 9e9, 0)];
        let (found, _) = estimate(&passes, &[at(10, 2), at(0, 0)], &[], &measured(1.0, 0, 0));
        close(found, 0.1, 9.0);
        // Once it has begun, its own pace counts more and more: half of what its operations suggested.
        let left = |complete: u64| {
            let (found, _) = estimate(
                &passes,
                &[at(10, 2), at(complete, complete)],
                &[],
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
            let (found, _) = estimate(
                &passes,
                &done,
                &[],
                &measured(2.0 * iteration as f64, 1, iteration << 20),
            );
            close(found, iteration as f64 / 40.0, 2.0 * (40 - iteration) as f64);
            assert!(found.seconds_left.unwrap() < before);
            before = found.seconds_left.unwrap();
        }
    }

    /// Of one program each was computed for two seconds and read for one; the next computes half as much or reads four times.
    #[test]
    fn programs_that_follow_are_judged_by_those_before() {
        let work = [pass(10, 1e9, 1 << 20)];
        let (_, pace) = estimate(&work, &[at(10, 4)], &[], &measured(2.0, 4, 1 << 20));
        let twice = pace.with(&pace);
        for pace in [pace, twice] {
            let left = |operations, bytes| pace.seconds_of(&[pass(3, operations, bytes)]).unwrap();
            assert!((left(5e8, 0) - 1.0).abs() < 1e-9);
            assert!((left(0.0, 4 << 20) - 4.0).abs() < 1e-9);
            assert!((left(1e9, 1 << 20) - 2.0).abs() < 1e-9);
        }
    }

    /// One run waited for nothing, the other as long as it worked.
    #[test]
    fn a_band_of_time_is_of_the_runs_that_tell() {
        let work = [pass(10, 1e9, 1 << 20)];
        let mut paces = Paces::default();
        assert_eq!(paces.time_of(&work), None);
        for seconds in [2.0, 4.0, 0.001] {
            paces.add(seconds, || {
                estimate(&work, &[at(10, 4)], &[], &measured(seconds, 4, 1 << 20)).1
            });
        }
        let found = paces.time_of(&[pass(3, 5e8, 0)]).unwrap();
        assert_eq!((found.least, found.most, found.runs), (1.0, 2.0, 2));
        for _ in 0..2 * PACES_MAX {
            paces.add(2.0, || estimate(&work, &[at(10, 4)], &[], &measured(2.0, 4, 1 << 20)).1);
        }
        let found = paces.time_of(&[pass(3, 5e8, 0)]).unwrap();
        assert_eq!((found.least, found.most, found.runs), (1.0, 1.0, PACES_MAX));
    }

    /// Two tasks of a second each are complete, and two more half done; one that takes ten times as long is not complete yet.
    #[test]
    fn tasks_under_way_count_by_their_time() {
        let left = |seconds| {
            let running = [PassRunning { pass: 0, seconds }; 2];
            let (found, _) = estimate(
                &[pass(10, 1e9, 0)],
                &[at(2, 2)],
                &running,
                &measured(1.0 + seconds, 0, 0),
            );
            found.seconds_left.unwrap()
        };
        assert!((left(0.5) - 3.5).abs() < 1e-9);
        // Nine tenths of each, of a second by the model, in eleven that passed.
        assert!((left(10.0) - 11.0 * 3.1 / 1.9).abs() < 1e-9);
    }
}
