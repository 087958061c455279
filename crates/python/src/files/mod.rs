//! Files read at random, lines of text, volumes. Uses `base` and `session`. Start with `cached.rs`.

mod cached;
mod text;
mod volume;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    cached::register(module)?;
    text::register(module)?;
    volume::register(module)
}
