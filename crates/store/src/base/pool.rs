//! Threads that issue blocking I/O calls, first in first out.

use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

type PoolJob = Box<dyn FnOnce() + Send>;

/// Where jobs are handed in, for jobs of other pools. A pool ends when its queues are gone, so none may be kept.
#[derive(Clone)]
pub struct IoQueue(Sender<PoolJob>);

impl IoQueue {
    pub fn submit(&self, job: PoolJob) {
        // The receiver lives as long as a thread does, and threads end only after the last queue is dropped.
        let _ = self.0.send(job);
    }
}

/// A queue of jobs and the threads that take from it. Dropping it runs what is queued, then joins.
///
/// A job that panics ends neither its thread nor the queue; it must report its own outcome.
pub struct IoPool {
    queue: Option<IoQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl IoPool {
    pub fn new(threads: usize) -> IoPool {
        let (queue, jobs) = channel::<PoolJob>();
        let jobs = Arc::new(Mutex::new(jobs));
        let work = move |jobs: Arc<Mutex<std::sync::mpsc::Receiver<PoolJob>>>| loop {
            let job = jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
            let Ok(job) = job else { return };
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        };
        let threads = (0..threads.max(1))
            .map(|_| {
                let jobs = jobs.clone();
                std::thread::spawn(move || work(jobs))
            })
            .collect();
        IoPool {
            queue: Some(IoQueue(queue)),
            threads,
        }
    }

    pub fn queue(&self) -> &IoQueue {
        self.queue.as_ref().expect("taken by drop alone")
    }

    pub fn submit(&self, job: PoolJob) {
        self.queue().submit(job);
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_runs_jobs_in_order_and_drop_finishes_them() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let pool = IoPool::new(1);
        for number in 0..10 {
            let seen = seen.clone();
            pool.submit(Box::new(move || seen.lock().unwrap().push(number)));
        }
        pool.submit(Box::new(|| panic!("a job's own fault")));
        drop(pool);
        assert_eq!(*seen.lock().unwrap(), (0..10).collect::<Vec<_>>());
    }
}
