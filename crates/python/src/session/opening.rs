//! Stored arrays as nodes.

use std::path::PathBuf;

use outcore_engine::ops;
use outcore_store::RawArray;
use pyo3::prelude::*;

use super::session::PySession;
use crate::arrays::node::{built, dtype_named, Built, PyExpr};
use crate::base::errors::{store_error, to_python};
use crate::base::signals::watching_signals;

#[pyfunction]
fn open(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> Built {
    let session = session.0.clone();
    let opened = watching_signals(py, |watch| session.open(&path, watch))?;
    let node = ops::source(opened.source).map_err(to_python)?;
    if !opened.transposed {
        return Ok(PyExpr::new(node));
    }
    let axes: Vec<usize> = (0..node.ndim()).rev().collect();
    built(ops::permute(&node, &axes))
}

#[pyfunction]
fn open_raw(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    path: PathBuf,
    start: u64,
    shape: Vec<u64>,
    dtype: &str,
    swapped: bool,
) -> Built {
    let io = session.0.io().clone();
    let raw = RawArray {
        start,
        shape,
        dtype: dtype_named(dtype)?,
        swapped,
    };
    let source = py.detach(|| outcore_store::open_raw(&path, raw, &io));
    built(ops::source(source.map_err(store_error)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(open_raw, module)?)
}
