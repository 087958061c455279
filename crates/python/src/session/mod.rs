//! Sessions and programs. Uses `base` and `arrays`. Start with `session.rs`.
#![allow(clippy::module_inception)] // the session of the room of sessions

mod disks;
mod machine;
mod memory;
mod opening;
mod options;
mod program;
pub mod session;
mod stages;

pub use session::PySession;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    machine::register(module)?;
    memory::register(module)?;
    opening::register(module)?;
    program::register(module)?;
    session::register(module)?;
    stages::register(module)
}
