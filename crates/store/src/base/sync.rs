//! What `gate.rs` waits and announces with; a test puts its model's own in its place.

pub(crate) use std::sync::atomic::{fence, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};
