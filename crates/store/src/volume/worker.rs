//! The thread of a disk: begins what it is given in that order, has its transfers under way together, and ends when it has
//! had nothing to do for a while.

use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::flights::Flights;
use super::scatter::DiskTask;
use crate::backend::Bell;
use crate::base::locked::locked;

/// How long a thread waits for work before it ends.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    /// The process whose thread it is: a forked child has only its copy of the queue.
    owner: u32,
    idle: Duration,
    shared: Arc<WorkerState>,
}

#[derive(Default)]
struct WorkerState {
    queue: Mutex<TaskQueue>,
    changed: Condvar,
    bell: Bell,
}

#[derive(Default)]
struct TaskQueue {
    tasks: VecDeque<DiskTask<Flights>>,
    /// There is a thread, which looks at the queue once more before it ends.
    has_thread: bool,
    /// It waits for transfers, and hears the bell alone.
    at_ring: bool,
    /// No more work comes.
    over: bool,
}

impl Worker {
    pub(crate) fn new(idle: Duration) -> Worker {
        Worker {
            owner: std::process::id(),
            idle,
            shared: Arc::default(),
        }
    }

    /// Has the thread do it; where there is none, and none can be had, it is done here.
    pub(crate) fn give(&self, task: DiskTask<Flights>) {
        if self.owner != std::process::id() {
            return do_all([task]);
        }
        let mut queue = locked(&self.shared.queue);
        queue.tasks.push_back(task);
        if queue.has_thread {
            let at_ring = std::mem::take(&mut queue.at_ring);
            drop(queue);
            return match at_ring {
                true => self.shared.bell.strike(),
                false => self.shared.changed.notify_one(),
            };
        }
        let (shared, idle) = (self.shared.clone(), self.idle);
        let thread = std::thread::Builder::new().name("outcore-disk".into());
        if thread.spawn(move || work(&shared, idle)).is_ok() {
            queue.has_thread = true;
            return;
        }
        let unsent = std::mem::take(&mut queue.tasks);
        drop(queue);
        do_all(unsent);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            locked(&self.shared.queue).over = true;
            self.shared.changed.notify_one();
        }
    }
}

fn do_all(tasks: impl IntoIterator<Item = DiskTask<Flights>>) {
    let mut flights = Flights::default();
    tasks.into_iter().for_each(|task| task(&mut flights));
    while flights.under_way() > 0 {
        flights.complete(true);
    }
}

fn work(shared: &WorkerState, idle: Duration) {
    let mut flights = Flights::default();
    let mut queue = locked(&shared.queue);
    loop {
        let tasks = std::mem::take(&mut queue.tasks);
        if !tasks.is_empty() || flights.under_way() > 0 {
            // What all of them ask for goes out together when there is no more.
            let waits = tasks.is_empty();
            queue.at_ring = waits;
            drop(queue);
            for task in tasks {
                // Who waits for it finds no outcome, and says so.
                let _ = catch_unwind(AssertUnwindSafe(|| task(&mut flights)));
            }
            if waits {
                flights.wait(&shared.bell);
            }
            let _ = catch_unwind(AssertUnwindSafe(|| flights.complete(false)));
            queue = locked(&shared.queue);
            queue.at_ring = false;
            continue;
        }
        if !queue.over {
            let waited = shared.changed.wait_timeout(queue, idle);
            let (again, waited) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            queue = again;
            if !waited.timed_out() {
                continue;
            }
        }
        if queue.tasks.is_empty() {
            queue.has_thread = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_ends_when_it_is_idle_and_comes_back_for_more() {
        let worker = Worker::new(Duration::from_millis(1));
        for round in 0..5 {
            let (sender, receiver) = channel();
            for number in 0..10 {
                let sender = sender.clone();
                worker.give(Box::new(move |_| sender.send(number + 10 * round).unwrap()));
            }
            drop(sender);
            assert!(receiver.into_iter().eq(10 * round..10 * round + 10));
            while locked(&worker.shared.queue).has_thread {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_thread_ends_with_its_disk_and_not_by_a_panic() {
        let worker = Worker::new(Duration::from_secs(3600));
        let shared = worker.shared.clone();
        let (sender, receiver) = channel();
        worker.give(Box::new(|_| panic!("as planned")));
        worker.give(Box::new(move |_| sender.send(1).unwrap()));
        assert_eq!(receiver.recv(), Ok(1));
        drop(worker);
        while locked(&shared.queue).has_thread {
            std::thread::yield_now();
        }
    }
}
