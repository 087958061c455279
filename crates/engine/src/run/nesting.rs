//! A run may not be started from inside a run: it would wait for itself.

use std::cell::Cell;

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

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
