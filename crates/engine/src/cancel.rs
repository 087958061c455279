//! Planning that nobody waits for any more ends soon, wherever it is.
//!
//! A plan is a pure function of expressions, so it may be left in the middle of any loop: the stack unwinds to `until`,
//! and locks, reservations and turns are given back on the way. Every loop that grows with a program calls `check`.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use outcore_store::{is_unwanted, watch_unwanted};

use crate::EngineError;

/// Watches for what ends the work early.
pub type Watch<'a> = dyn FnMut() -> Result<(), EngineError> + 'a;

/// What unwinds: no fault, and so no message of the panic hook.
struct Unwound(EngineError);

/// Runs `work` on this thread; `check` ends it once `unwanted` is set.
///
/// # Errors
/// `Cancelled` then, what `refuse` was given, else what `work` returns.
pub fn until<T>(unwanted: &Arc<AtomicBool>, work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    let watched = watch_unwanted(unwanted);
    let result = catch_unwind(AssertUnwindSafe(work));
    drop(watched);
    match result {
        Ok(result) => result,
        Err(panic) => Err(panic
            .downcast::<Unwound>()
            .map_or_else(|panic| resume_unwind(panic), |left| left.0)),
    }
}

/// Goes on, unless the work of this thread is not wanted any more.
pub fn check() {
    if is_unwanted() {
        refuse(EngineError::Cancelled);
    }
}

/// Leaves the work of this thread with an error, from a place that is too deep to return one.
pub fn refuse(error: EngineError) -> ! {
    resume_unwind(Box::new(Unwound(error)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn work_ends_at_the_next_look_and_only_where_it_was_begun() {
        let flag = Arc::new(AtomicBool::new(false));
        let mut steps = 0;
        let ended = until(&flag, || {
            loop {
                check();
                steps += 1;
                flag.store(steps == 3, Ordering::Relaxed);
            }
            #[allow(unreachable_code)] // gives the closure its type
            Ok(())
        });
        assert!(matches!(ended, Err(EngineError::Cancelled)));
        assert_eq!(steps, 3);
        check();
        assert_eq!(until(&Arc::default(), || Ok(7)).expect("wanted"), 7);
    }
}
