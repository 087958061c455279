//! Graphs. Uses `base`, `session` and `sparse`. Start with `graph.rs`; algorithms are methods of it, by what they find.
#![allow(clippy::module_inception)] // the graph of the room of graphs

mod communities;
mod graph;
mod memory;
mod pages;
mod program;
mod ranking;
mod reading;
mod run;
mod searching;
mod structure;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graph::register(module)?;
    program::register(module)
}
