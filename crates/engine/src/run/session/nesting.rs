//! A run may not be started from inside a run: it would wait for itself.

use std::cell::Cell;

use outcore_store::Turn;

use crate::EngineError;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as working for a run until dropped.
pub struct Inside(bool);

pub fn enter() -> Inside {
    Inside(INSIDE.replace(true))
}

/// Whether this thread works for a run: a worker, or whoever is being told about progress.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Refuses a run from inside a run.
pub(in crate::run) fn check_outside() -> Result<(), EngineError> {
    if is_inside() {
        return Err(EngineError::Plan(
            "a computation was started inside a running one (by a function over tiles or a progress callback)".into(),
        ));
    }
    Ok(())
}

/// Refuses to wait behind a program that was given up and does not end: its function may wait for the very one who asks.
pub(in crate::run) fn check_welcome(turn: &Turn) -> Result<(), EngineError> {
    if turn.is_turned_away() {
        return Err(EngineError::Interrupted(
            "cancelled: the computation before this one was interrupted while its function over tiles was running, \
             which may be waiting for this one; a function over tiles must not wait for another computation"
                .into(),
        ));
    }
    Ok(())
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
