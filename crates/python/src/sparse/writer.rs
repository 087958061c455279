//! Matrices written from entries in order.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use outcore_engine::sparse::Assembler;
use outcore_engine::EngineError;
use outcore_store::{Io, Reservation};
use pyo3::prelude::*;

use super::matrix::duplicates_named;
use super::matrix::shape_of;
use crate::base::errors::to_python;
use crate::session::PySession;

/// Writes a sparse matrix.
#[pyclass(name = "SparseWriter", module = "outcore._core")]
pub struct PySparseWriter {
    assembler: Option<Assembler>,
    session: Py<PySession>,
    /// Memory of the session's for what is not written yet.
    held: Vec<Reservation>,
    held_bytes: usize,
}

/// Memory for what is not written is taken so much at a time. The first is covered by the allowances beside the ledger.
const HELD_STEP: usize = 16 << 20;

#[pymethods]
impl PySparseWriter {
    #[new]
    #[pyo3(signature = (session, path, shape, dtype, side, duplicates, overwrite))]
    fn new(
        py: Python<'_>,
        session: Py<PySession>,
        path: PathBuf,
        shape: (u64, u64),
        dtype: &str,
        side: u32,
        duplicates: &str,
        overwrite: bool,
    ) -> PyResult<PySparseWriter> {
        let (shape, duplicates) = (shape_of(shape, side, dtype)?, duplicates_named(duplicates)?);
        let io = session.get().0.io().clone();
        let workers = session.get().0.options().threads.max(1);
        let assembler = py.detach(|| Assembler::new(&path, shape, duplicates, overwrite, workers, &io));
        Ok(PySparseWriter {
            assembler: Some(assembler.map_err(to_python)?),
            session,
            held: vec![],
            held_bytes: HELD_STEP,
        })
    }

    /// Takes entries: their places, ascending, and the bytes of their values.
    fn add(
        &mut self,
        py: Python<'_>,
        places: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (places, values) = (places.as_slice()?, values.as_slice()?);
        self.add_by(py, |assembler, io| assembler.add(places, values, io))
    }

    /// As `add`, of places within tile rows, whose numbers come beside them: where places take more than 64 bits.
    fn add_wide(
        &mut self,
        py: Python<'_>,
        tile_rows: PyReadonlyArray1<'_, u64>,
        places: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (tile_rows, places, values) = (tile_rows.as_slice()?, places.as_slice()?, values.as_slice()?);
        self.add_by(py, |assembler, io| assembler.add_wide(tile_rows, places, values, io))
    }

    /// Completes the file; the number of its entries.
    fn finish(&mut self, py: Python<'_>) -> PyResult<u64> {
        let io = self.session.get().0.io().clone();
        let assembler = self.assembler.take().ok_or_else(finished)?;
        let shape = py.detach(|| assembler.finish(&io)).map_err(to_python)?;
        Ok(shape.entries)
    }
}

impl PySparseWriter {
    /// Adds, and takes the memory that this has come to hold.
    fn add_by(
        &mut self,
        py: Python<'_>,
        add: impl FnOnce(&mut Assembler, &Io) -> Result<(), EngineError> + Send,
    ) -> PyResult<()> {
        let session = self.session.get().0.clone();
        let assembler = self.assembler.as_mut().ok_or_else(finished)?;
        let now = py.detach(|| add(assembler, session.io()).map(|()| assembler.held_bytes()));
        let now = now.map_err(to_python)?.next_multiple_of(HELD_STEP);
        if now > self.held_bytes {
            let more = (now - self.held_bytes) as u64;
            let held = py.detach(|| session.hold_beside("tile row", more));
            self.held.extend(held.map_err(to_python)?);
            self.held_bytes = now;
        }
        Ok(())
    }
}

fn finished() -> PyErr {
    to_python(EngineError::Session("sparse: this writer has finished".into()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySparseWriter>()
}
