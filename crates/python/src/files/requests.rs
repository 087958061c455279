//! Threads that make requests through Python. Who asks waits in a thread of its own, and may leave: a signal, or an end of the run, need
//! not wait for a network. A request that was left goes on until the transport gives it up or its next answer is there, and fills
//! memory of the transport alone.

use std::io::{Error, Result};
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use outcore_store::is_unwanted;
use pyo3::prelude::*;

use crate::base::raised::Raised;

/// How long an answer is waited for between two looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(50);
/// Answers of one request that are there before they are taken.
const AHEAD: usize = 1;
/// Threads that wait for the next request.
const IDLE_MAX: usize = 64;

type RequestJob = Box<dyn FnOnce() + Send>;

/// Where threads without a request wait for one, and the process that they belong to: a forked child has none of them.
struct IdleThreads {
    process: u32,
    waiting: Vec<Sender<RequestJob>>,
}

static IDLE: Mutex<IdleThreads> = Mutex::new(IdleThreads {
    process: 0,
    waiting: Vec::new(),
});

fn idle() -> MutexGuard<'static, IdleThreads> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if idle.process != process {
        idle.process = process;
        // Of the parent: a channel whose other end is in no thread here is not to be dropped, as locks in it may be held.
        let _ = std::mem::ManuallyDrop::new(std::mem::take(&mut idle.waiting));
    }
    idle
}

/// Has a thread do this, one that is there or a new one.
fn hand_over(mut job: RequestJob) -> Result<()> {
    loop {
        let Some(thread) = idle().waiting.pop() else { break };
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(returned) => job = returned.0,
        }
    }
    let thread = Builder::new().name("outcore-request".into());
    thread.spawn(move || {
        job();
        let (sender, jobs) = channel::<RequestJob>();
        loop {
            {
                let mut idle = idle();
                if idle.waiting.len() >= IDLE_MAX {
                    return;
                }
                idle.waiting.push(sender.clone());
            }
            let Ok(job) = jobs.recv() else { return };
            job();
        }
    })?;
    Ok(())
}

/// The answers of a request that is under way.
pub struct Answers<T>(Receiver<PyResult<T>>);

/// Gives an answer to who waits; false where nobody does.
pub type Answer<'a, T> = &'a (dyn Fn(PyResult<T>) -> bool + Sync);

/// Starts requests, each on a thread of its own, whose answers come in any order.
///
/// # Errors
/// No thread can be started.
pub fn begin<T: Send + 'static>(
    requests: impl IntoIterator<Item = impl FnOnce(Answer<'_, T>) + Send + 'static>,
) -> Result<Answers<T>> {
    let (sender, answers) = sync_channel(AHEAD);
    for request in requests {
        let sender: SyncSender<PyResult<T>> = sender.clone();
        hand_over(Box::new(move || request(&|answer| sender.send(answer).is_ok())))?;
    }
    Ok(Answers(answers))
}

impl<T> Answers<T> {
    /// The next answer; nothing after the last.
    ///
    /// # Errors
    /// An exception that a signal's handler raised; the answer is not wanted any more.
    pub fn next(&self) -> Result<Option<PyResult<T>>> {
        loop {
            match self.0.recv_timeout(POLL) {
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if is_unwanted() => {
                    return Err(Error::other("the answer is not wanted any more"));
                }
                // Handlers run in the main thread alone.
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())
                    .map_err(|error| Error::other(Raised::new("a request", error)))?,
            }
        }
    }
}
