//! The turn to run, one program at a time in a process.

use std::sync::PoisonError;
use std::time::Duration;

use super::ledger::Ledger;
use super::process::{Process, TurnQueue};
use crate::base::locked::locked;

/// A place in the queue of those who want to run; left when dropped.
pub struct Turn {
    ledger: Ledger,
    process: &'static Process,
    number: u64,
}

impl Turn {
    /// Queues for the turn to run: one at a time in the whole process, first come, first served.
    pub fn queue(ledger: &Ledger) -> Turn {
        let process = ledger.process();
        let mut queue = locked(&process.queue);
        let number = queue.next;
        queue.next += 1;
        queue.places.push_back(number);
        Turn {
            ledger: ledger.clone(),
            process,
            number,
        }
    }

    /// Whether the turn has come, after waiting for it no longer than `patience`.
    pub fn has_come(&self, patience: Duration) -> bool {
        let waiting = |queue: &mut TurnQueue| queue.places.front() != Some(&self.number);
        let queue = locked(&self.process.queue);
        let waited = self.process.moved.wait_timeout_while(queue, patience, waiting);
        let came = !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        if came {
            self.ledger.begin_turn(self.number);
        }
        came
    }

    /// Turns away all who wait behind this turn, also those still to come, until it ends.
    pub fn turn_others_away(&self) {
        let mut queue = locked(&self.process.queue);
        if queue.places.front() == Some(&self.number) {
            queue.closed = true;
            self.process.moved.notify_all();
        }
    }

    /// Whether the one whose turn it is turned this one away.
    pub fn is_turned_away(&self) -> bool {
        let queue = locked(&self.process.queue);
        queue.closed && queue.places.front() != Some(&self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.ledger.end_turn(self.number);
        let mut queue = locked(&self.process.queue);
        queue.closed &= queue.places.front() != Some(&self.number);
        queue.places.retain(|&place| place != self.number);
        drop(queue);
        self.process.moved.notify_all();
    }
}
