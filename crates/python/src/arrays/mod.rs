//! Expression nodes and the functions that build them; NumPy arrays in and out. Uses `base`. Start with `node.rs`.

mod algebra;
pub mod annotations;
mod blocks;
pub mod convert;
mod elementwise;
mod function;
mod looping;
mod making;
pub mod node;
mod recipe;
mod reducing;
mod selecting;
mod shaping;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    algebra::register(module)?;
    annotations::register(module)?;
    elementwise::register(module)?;
    looping::register(module)?;
    making::register(module)?;
    node::register(module)?;
    recipe::register(module)?;
    reducing::register(module)?;
    selecting::register(module)?;
    shaping::register(module)
}
