//! Files read at random, lines of text, volumes, stores of objects. Uses `base` and `session`. Start with `cached.rs`.

mod cached;
mod remote;
mod requests;
mod text;
mod volume;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    cached::register(module)?;
    remote::register(module)?;
    text::register(module)?;
    volume::register(module)
}
