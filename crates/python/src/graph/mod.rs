//! Graphs. Uses `base`, `session` and `sparse`. Start with `graph.rs`; algorithms are methods of it, in `operators.rs`.
#![allow(clippy::module_inception)] // the graph of the room of graphs

mod graph;
mod operators;
mod program;
mod reading;
mod run;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graph::register(module)?;
    module.add_class::<run::PyLiveRun>()?;
    module.add_class::<operators::PyLiveOperator>()?;
    program::register(module)
}
