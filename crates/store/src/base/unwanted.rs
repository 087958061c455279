//! Whether anybody still waits for the work of a thread: loops and requests that may take long ask now and then.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

thread_local! {
    static UNWANTED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The flag that is set when the work of this thread is not wanted any more, until dropped: the one before holds again then.
pub struct UnwantedFlag(Option<Arc<AtomicBool>>);

/// Makes a flag the one that this thread asks.
pub fn watch_unwanted(flag: &Arc<AtomicBool>) -> UnwantedFlag {
    UnwantedFlag(UNWANTED.replace(Some(flag.clone())))
}

/// Whether the work of this thread is not wanted any more.
pub fn is_unwanted() -> bool {
    UNWANTED.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)))
}

impl Drop for UnwantedFlag {
    fn drop(&mut self) {
        UNWANTED.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_flag_is_asked() {
        assert!(!is_unwanted());
        let outer = watch_unwanted(&Arc::new(AtomicBool::new(true)));
        assert!(is_unwanted());
        let inner = watch_unwanted(&Arc::default());
        assert!(!is_unwanted());
        drop(inner);
        assert!(is_unwanted());
        drop(outer);
        assert!(!is_unwanted());
    }
}
