//! Work that a thread of its own does whenever there is enough of it.
//!
//! The test of every interleaving (`tests/gate_model.rs`) compiles this file with `loom`'s primitives in place of `sync`.

use super::gate::Gate;
use super::sync::{AtomicUsize, Ordering};

const DUE: usize = 1;
const OVER: usize = 2;

/// Wakes one thread.
///
/// Invariant: who is woken sees what was done before `ring`; what is done later is rung for anew. So every change of the
/// state reads it, even where it stays the same.
#[derive(Default)]
pub(crate) struct Alarm {
    state: AtomicUsize,
    gate: Gate,
}

impl Alarm {
    /// There is work.
    pub(crate) fn ring(&self) {
        if self.state.fetch_or(DUE, Ordering::AcqRel) == 0 {
            self.gate.announce();
        }
    }

    /// There will be none any more.
    pub(crate) fn end(&self) {
        self.state.fetch_or(OVER, Ordering::AcqRel);
        self.gate.announce();
    }

    /// Whether there is work, once that is known; false when there will be none.
    pub(crate) fn wait(&self) -> bool {
        self.gate
            .wait_for(|| match self.state.fetch_and(!DUE, Ordering::AcqRel) {
                0 => None,
                state => Some(state & OVER == 0),
            })
    }
}
