use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock, also after a panic under it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
