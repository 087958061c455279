//! OrderedWork of work by several threads at once, with results in the order of the pieces.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::cancel::Watch;
use crate::EngineError;

/// The results of `work` for each of `count` pieces, done by so many threads; this one asks `watch` before each of its own.
///
/// # Errors
/// The first in the order of the pieces, or that of `watch`; pieces that nobody has begun are left then.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    watch: &mut Watch<'_>,
    work: impl Fn(usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let mut all = Vec::with_capacity(count);
    each_in_order(count, threads, watch, work, |result| {
        all.push(result);
        Ok(())
    })?;
    Ok(all)
}

/// As `in_order`; this thread hands results on as soon as those before them are, while the others work.
///
/// # Errors
/// As `in_order`, and the first of `each`.
pub(crate) fn each_in_order<T: Send>(
    count: usize,
    threads: usize,
    watch: &mut Watch<'_>,
    work: impl Fn(usize) -> Result<T, EngineError> + Sync,
    mut each: impl FnMut(T) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let pieces = OrderedWork::default();
    std::thread::scope(|scope| {
        // Threads stop at their next piece, whichever way this one ends.
        let _end = OrderedWorkEnd {
            pieces: &pieces,
            is_panic_only: false,
        };
        for _ in 0..threads.min(count).saturating_sub(1) {
            scope.spawn(|| {
                while let Some(piece) = pieces.begin(count) {
                    let _end = OrderedWorkEnd {
                        pieces: &pieces,
                        is_panic_only: true,
                    };
                    pieces.put(piece, work(piece));
                }
            });
        }
        let mut due = 0;
        while due < count {
            let ready = pieces.ready().remove(&due);
            if let Some(result) = ready {
                each(result?)?;
                due += 1;
            } else if let Some(piece) = pieces.begin(count) {
                watch()?;
                pieces.put(piece, work(piece));
            } else if !pieces.wait_for(due) {
                // A thread panicked, which the scope passes on.
                return Err(EngineError::Internal("sparse: a thread is gone".into()));
            }
        }
        Ok(())
    })
}

/// OrderedWork that are begun in their order, and the results that are ready.
struct OrderedWork<T> {
    next: AtomicUsize,
    is_over: AtomicBool,
    is_broken: AtomicBool,
    ready: Mutex<BTreeMap<usize, Result<T, EngineError>>>,
    changed: Condvar,
}

impl<T> Default for OrderedWork<T> {
    fn default() -> OrderedWork<T> {
        OrderedWork {
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            ready: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

impl<T> OrderedWork<T> {
    fn ready(&self) -> MutexGuard<'_, BTreeMap<usize, Result<T, EngineError>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, count: usize) -> Option<usize> {
        let is_over = self.is_over.load(Ordering::Relaxed);
        let next = || self.next.fetch_add(1, Ordering::Relaxed);
        (!is_over).then(next).filter(|piece| *piece < count)
    }

    /// No piece is begun behind one that failed.
    fn put(&self, piece: usize, result: Result<T, EngineError>) {
        self.is_over.fetch_or(result.is_err(), Ordering::Relaxed);
        self.ready().insert(piece, result);
        self.changed.notify_all();
    }

    /// Waits until a piece that is begun is ready; false where a thread panicked.
    fn wait_for(&self, piece: usize) -> bool {
        let mut ready = self.ready();
        while !ready.contains_key(&piece) && !self.is_broken.load(Ordering::Relaxed) {
            ready = self.changed.wait(ready).unwrap_or_else(PoisonError::into_inner);
        }
        ready.contains_key(&piece)
    }
}

/// Ends the work when it is dropped: this thread is done, or another panics.
struct OrderedWorkEnd<'a, T> {
    pieces: &'a OrderedWork<T>,
    is_panic_only: bool,
}

impl<T> Drop for OrderedWorkEnd<'_, T> {
    fn drop(&mut self) {
        if self.is_panic_only && !std::thread::panicking() {
            return;
        }
        self.pieces.is_over.store(true, Ordering::Relaxed);
        let _ready = self.pieces.ready();
        self.pieces.is_broken.store(true, Ordering::Relaxed);
        self.pieces.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for threads in 1..5 {
            let found = in_order(100, threads, &mut || Ok(()), |piece| Ok(piece * piece));
            assert_eq!(
                found.ok(),
                Some((0..100).map(|piece| piece * piece).collect::<Vec<_>>())
            );
        }
    }

    #[test]
    fn the_first_error_is_given() {
        let found = in_order(50, 1, &mut || Ok(()), |piece| match piece {
            7.. => Err(EngineError::Argument(piece.to_string())),
            _ => Ok(piece),
        });
        assert!(matches!(found, Err(EngineError::Argument(text)) if text == "7"));
        let handed = each_in_order(50, 3, &mut || Ok(()), Ok, |piece| match piece {
            20.. => Err(EngineError::Argument(piece.to_string())),
            _ => Ok(()),
        });
        assert!(matches!(handed, Err(EngineError::Argument(text)) if text == "20"));
        // The others wait until this thread has asked, so that it begins a piece.
        let asked = AtomicBool::new(false);
        let mut watch = || {
            asked.store(true, Ordering::Release);
            Err(EngineError::Cancelled)
        };
        let watched = in_order(50, 3, &mut watch, |piece| {
            while !asked.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(piece)
        });
        assert!(matches!(watched, Err(EngineError::Cancelled)));
    }

    #[test]
    fn a_panic_is_passed_on() {
        let own = std::thread::current().id();
        let work = |piece| match std::thread::current().id() == own {
            true => {
                std::thread::sleep(std::time::Duration::from_millis(1));
                Ok(())
            }
            false => panic!("{piece}"),
        };
        let found = std::panic::catch_unwind(|| in_order(50, 2, &mut || Ok(()), work).map(drop));
        assert!(found.is_err());
    }
}
