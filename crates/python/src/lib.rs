//! The Python module `outcore._core`: conversion, error mapping and signals. Nothing clever lives here.

mod arrays;
mod blocks;
mod cached;
mod error;
mod expr;
mod factors;
mod function;
mod graph;
mod graph_pages;
mod graph_program;
mod graph_run;
mod recipe;
mod session;
mod sparse;
mod text;
mod volume;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The Rust half of outcore.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    outcore_kernels::check_processor().map_err(PyImportError::new_err)?;
    module.add_class::<expr::PyExpr>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<session::PyProgram>()?;
    module.add_class::<session::PyStagesFolder>()?;
    expr::register(module)?;
    session::register(module)?;
    sparse::register(module)?;
    factors::register(module)?;
    graph::register(module)?;
    graph_program::register(module)?;
    cached::register(module)?;
    text::register(module)?;
    volume::register(module)
}
