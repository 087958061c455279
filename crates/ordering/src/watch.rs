//! Threads to work with, and the question whether to stop.

use std::cell::Cell;

/// The caller wanted the ordering to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the ordering was stopped")
    }
}

impl std::error::Error for Stopped {}

/// Threads and the question whether to stop, asked at least every 20 ms of each thread's work.
#[derive(Clone, Copy)]
pub struct OrderingWatch<'a> {
    pub threads: usize,
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Steps of work between two questions: some milliseconds, whatever a step costs.
const STEPS_PER_QUESTION: u64 = 1 << 18;

/// Counts one thread's steps of work, and asks now and then.
pub(crate) struct Patience<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    steps: Cell<u64>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(stop: &'a (dyn Fn() -> bool + Sync)) -> Patience<'a> {
        Patience {
            stop,
            steps: Cell::new(0),
        }
    }

    /// A step is about one visit to a neighbour.
    #[inline]
    pub(crate) fn work(&self, steps: usize) -> Result<(), Stopped> {
        let total = self.steps.get() + steps as u64;
        if total < STEPS_PER_QUESTION {
            self.steps.set(total);
            return Ok(());
        }
        self.steps.set(0);
        if (self.stop)() {
            return Err(Stopped);
        }
        Ok(())
    }
}
