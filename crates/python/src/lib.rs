//! The Python module `outcore._core`: conversion, error mapping and signals. Nothing clever lives here.
//!
//! Rooms, each using those to its left: `base ← arrays ← session ← files ← sparse ← graph`.

mod arrays;
mod base;
mod files;
mod graph;
mod session;
mod sparse;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The Rust half of outcore.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    outcore_kernels::check_processor().map_err(PyImportError::new_err)?;
    arrays::register(module)?;
    session::register(module)?;
    files::register(module)?;
    sparse::register(module)?;
    graph::register(module)
}
