//! Element by element, and functions over tiles.

use std::sync::Arc;

use outcore_engine::expr::{Check, Refusal};
use outcore_engine::{ops, EngineError};
use outcore_kernels::{Binary, Bounds, Unary};
use pyo3::prelude::*;

use super::function::PyFunction;
use super::node::{built, dtype_named, exprs, Built, PyExpr};
use crate::base::errors::to_python;

#[pyfunction]
fn unary(name: &str, x: &PyExpr) -> Built {
    let op =
        Unary::from_name(name).ok_or_else(|| to_python(EngineError::Plan(format!("there is no function {name}"))))?;
    built(ops::unary(op, &x.0))
}

#[pyfunction]
fn binary(name: &str, x: &PyExpr, y: &PyExpr) -> Built {
    let op =
        Binary::from_name(name).ok_or_else(|| to_python(EngineError::Plan(format!("there is no function {name}"))))?;
    built(ops::binary(op, &x.0, &y.0))
}

#[pyfunction]
#[pyo3(name = "where")]
fn select(c: &PyExpr, x: &PyExpr, y: &PyExpr) -> Built {
    built(ops::select(&c.0, &x.0, &y.0))
}

#[pyfunction]
fn astype(x: &PyExpr, dtype: &str) -> Built {
    built(ops::astype(&x.0, dtype_named(dtype)?))
}

/// The array as it is; the run ends with the text, `{}` being the element, where one is outside the bounds, or not finite.
#[pyfunction]
fn check(x: &PyExpr, bounds: Option<(i64, i64)>, text: String, is_index: bool) -> Built {
    let check = Check {
        bounds: bounds.map_or(Bounds::Finite, |(least, most)| Bounds::Between(least, most)),
        refusal: if is_index { Refusal::Index } else { Refusal::Argument },
        text,
    };
    built(ops::check(&x.0, check))
}

#[pyfunction]
fn map_blocks(
    function: &Bound<'_, PyAny>,
    inputs: Vec<PyRef<'_, PyExpr>>,
    dtype: &str,
    workspace: Option<usize>,
    whole: Vec<usize>,
) -> Built {
    let call = ops::map_blocks(&exprs(&inputs), dtype_named(dtype)?, &whole).map_err(to_python)?;
    let workspace = workspace.unwrap_or(call.bytes() as usize);
    Ok(PyExpr::new(call.node(Arc::new(PyFunction::new(function, workspace)))))
}

/// The array in tiles that its first axes are not cut in.
#[pyfunction]
fn uncut(x: &PyExpr, whole: usize) -> Built {
    built(ops::uncut(&x.0, whole))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(unary, module)?)?;
    module.add_function(wrap_pyfunction!(binary, module)?)?;
    module.add_function(wrap_pyfunction!(select, module)?)?;
    module.add_function(wrap_pyfunction!(astype, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(map_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(uncut, module)?)
}
