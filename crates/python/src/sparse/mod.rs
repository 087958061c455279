//! Sparse matrices. Uses `base`, `arrays` and `session`. Start with `matrix.rs`.

mod dense;
mod factors;
mod ingest;
pub mod matrix;
mod products;
mod solving;
mod writer;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    dense::register(module)?;
    factors::register(module)?;
    ingest::register(module)?;
    matrix::register(module)?;
    products::register(module)?;
    solving::register(module)?;
    writer::register(module)
}
