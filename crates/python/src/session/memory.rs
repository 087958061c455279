//! Memory of the session's for what Python has in arrays of NumPy.

use std::sync::{Arc, Mutex, PoisonError};

use outcore_engine::run::Session;
use outcore_store::Reservation;
use pyo3::prelude::*;

use super::PySession;
use crate::base::errors::to_python;

/// Memory is taken so much at a time.
const STEP: u64 = 1 << 20;
/// Less is covered by the allowances beside the ledger.
const SMALL: u64 = 8 << 20;

/// Memory for entries of sparse matrices that Python works on, as much as there was at most; given back with this object.
#[pyclass(frozen, name = "EntriesMemory", module = "outcore._core")]
pub struct PyEntriesMemory {
    session: Arc<Session>,
    held: Mutex<Vec<Reservation>>,
}

#[pymethods]
impl PyEntriesMemory {
    #[new]
    fn new(session: PyRef<'_, PySession>) -> PyEntriesMemory {
        PyEntriesMemory {
            session: session.0.clone(),
            held: Mutex::default(),
        }
    }

    /// Has memory for so many bytes, in place of what there was for fewer.
    fn cover(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let covered: u64 = held.iter().map(|part| part.bytes() as u64).sum();
        if bytes <= covered.max(SMALL) {
            return Ok(());
        }
        let missing = bytes.next_multiple_of(STEP) - covered;
        let more = py.detach(|| self.session.hold_beside("sparse: entries", missing));
        held.extend(more.map_err(to_python)?);
        Ok(())
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyEntriesMemory>()
}
