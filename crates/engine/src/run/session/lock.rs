//! Locks that a panic elsewhere does not spoil: what they guard is whole between any two statements.

use std::sync::{Mutex, MutexGuard};

pub(in crate::run) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
