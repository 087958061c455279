//! Work that waits for the file system, on a thread of its own: whoever waits for it sees signals meanwhile.
//!
//! The wait for a file system cannot be broken off, so work that nobody waits for any more goes on by itself. It asks `Wanted`
//! before each step that must not be left half done, and is waited for until that step is over.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore_store::watch_unwanted;

use crate::run::session::POLL;
use crate::EngineError;

/// How long work that is not wanted any more is waited for, so that little work leaves nothing behind.
const GRACE: Duration = Duration::from_millis(400);

const WANTED: u8 = 0;
const UNWANTED: u8 = 1;
const BOUND: u8 = 2;
const FREE: u8 = 3;

/// Whether somebody waits for the work.
#[derive(Default)]
pub(in crate::run) struct Demand(AtomicU8);

impl Demand {
    /// Begins a step that is waited for to its end; false where nobody waits any more.
    pub fn bind(&self) -> bool {
        let bound = self
            .0
            .compare_exchange(WANTED, BOUND, Ordering::SeqCst, Ordering::SeqCst);
        bound.is_ok()
    }

    /// Ends that step: the rest may be left.
    pub fn release(&self) {
        self.0.store(FREE, Ordering::SeqCst);
    }

    /// Whether the work may be left now, which it is told.
    fn leave(&self) -> bool {
        let left = self
            .0
            .compare_exchange(WANTED, UNWANTED, Ordering::SeqCst, Ordering::SeqCst);
        !matches!(left, Err(BOUND))
    }
}

/// What `work` gives, done on another thread while `watch` is asked.
///
/// # Errors
/// The first of `watch`: the work is waited for a moment then, and goes on without its caller.
pub(in crate::run) fn aside<T: Send + 'static>(
    watch: &mut dyn FnMut() -> Result<(), EngineError>,
    work: impl FnOnce(&Demand) -> T + Send + 'static,
) -> Result<T, EngineError> {
    let demand = Arc::new(Demand::default());
    let seen = demand.clone();
    let unwanted = Arc::new(AtomicBool::new(false));
    let watched = unwanted.clone();
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new()
        .name("outcore-files".into())
        .spawn(move || {
            let _watched = watch_unwanted(&watched);
            // Nobody takes what comes when the caller has gone.
            let _ = sender.send(work(&seen));
        })
        .map_err(|error| EngineError::Plan(format!("cannot start a thread for files: {error}")))?;
    let mut left: Option<(EngineError, Instant)> = None;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(found) => {
                let _ = thread.join();
                return left.map_or(Ok(found), |(error, _)| Err(error));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(EngineError::Internal("a thread that waits for files stopped".into()));
            }
        }
        left = match left {
            None => watch().err().map(|error| {
                unwanted.store(true, Ordering::Relaxed);
                (error, Instant::now())
            }),
            Some((error, since)) if demand.leave() && since.elapsed() >= GRACE => return Err(error),
            left => left,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_that_is_waited_for_gives_its_result() {
        assert!(aside(&mut || Ok(()), |demand| demand.bind()).expect("wanted"));
    }

    #[test]
    fn work_that_waits_is_left_and_is_told() {
        let (release, held) = channel::<()>();
        let (tell, told) = channel();
        let left = aside(&mut || Err(EngineError::Cancelled), move |demand| {
            let _ = held.recv();
            let _ = tell.send(demand.bind());
        });
        assert!(matches!(left, Err(EngineError::Cancelled)));
        drop(release);
        assert_eq!(told.recv(), Ok(false));
    }

    #[test]
    fn a_step_that_must_not_be_left_is_waited_for() {
        let demand = Demand::default();
        assert!(demand.bind() && !demand.leave());
        demand.release();
        assert!(demand.leave());
        let left = Demand::default();
        assert!(left.leave() && left.leave() && !left.bind());
    }
}
