//! Programs of loops.

use outcore_engine::loops;
use pyo3::prelude::*;

use super::node::{built, dtype_named, exprs, Built, PyExpr};
use crate::base::errors::to_python;

/// The arrays that a program of loops writes, after it. The words tell the program: the front end writes them.
#[pyfunction]
fn loop_nest(inputs: Vec<PyRef<'_, PyExpr>>, words: Vec<i64>, nodes: Vec<PyRef<'_, PyExpr>>) -> PyResult<Vec<PyExpr>> {
    let results = loops::loop_nest(&exprs(&inputs), &words, &exprs(&nodes)).map_err(to_python)?;
    Ok(results.into_iter().map(PyExpr::new).collect())
}

/// The node that stands for a leaf of a value: an element, a number, a register.
#[pyfunction]
fn loop_leaf(number: u32, dtype: &str) -> Built {
    built(loops::loop_leaf(number, dtype_named(dtype)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(loop_nest, module)?)?;
    module.add_function(wrap_pyfunction!(loop_leaf, module)?)
}
