//! Views and other shapes.

use outcore_engine::expr::AxisSlice;
use outcore_engine::ops;
use pyo3::prelude::*;

use super::node::{built, exprs, Built, PyExpr};

#[pyfunction]
fn broadcast_to(x: &PyExpr, shape: Vec<u64>) -> Built {
    built(ops::broadcast_to(&x.0, &shape))
}

#[pyfunction]
fn permute_dims(x: &PyExpr, axes: Vec<usize>) -> Built {
    built(ops::permute(&x.0, &axes))
}

#[pyfunction]
fn expand_dims(x: &PyExpr, axes: Vec<usize>) -> Built {
    built(ops::expand_dims(&x.0, &axes))
}

#[pyfunction]
fn squeeze(x: &PyExpr, axes: Vec<usize>) -> Built {
    built(ops::squeeze(&x.0, &axes))
}

#[pyfunction]
fn reshape(x: &PyExpr, shape: Vec<u64>) -> Built {
    built(ops::reshape(&x.0, &shape))
}

#[pyfunction]
fn slice(x: &PyExpr, starts: Vec<i64>, steps: Vec<i64>, counts: Vec<u64>) -> Built {
    let slices: Vec<AxisSlice> = starts
        .into_iter()
        .zip(steps)
        .map(|(start, step)| AxisSlice { start, step })
        .collect();
    built(ops::slice(&x.0, &slices, &counts))
}

/// Runs of places along an axis, one behind the other: starts, steps and lengths.
#[pyfunction]
fn take_runs(x: &PyExpr, axis: usize, runs: Vec<(i64, i64, u64)>) -> Built {
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(start, step, count)| (AxisSlice { start, step }, count))
        .collect();
    built(ops::take_runs(&x.0, axis, &runs))
}

#[pyfunction]
fn concat(xs: Vec<PyRef<'_, PyExpr>>, axis: usize) -> Built {
    built(ops::concat(&exprs(&xs), axis))
}

/// The array in tiles of another shape.
#[pyfunction]
fn copy_tiled(x: &PyExpr, tile: Vec<u64>) -> PyExpr {
    PyExpr::new(ops::copy_tiled(&x.0, tile))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(broadcast_to, module)?)?;
    module.add_function(wrap_pyfunction!(permute_dims, module)?)?;
    module.add_function(wrap_pyfunction!(expand_dims, module)?)?;
    module.add_function(wrap_pyfunction!(squeeze, module)?)?;
    module.add_function(wrap_pyfunction!(reshape, module)?)?;
    module.add_function(wrap_pyfunction!(slice, module)?)?;
    module.add_function(wrap_pyfunction!(take_runs, module)?)?;
    module.add_function(wrap_pyfunction!(concat, module)?)?;
    module.add_function(wrap_pyfunction!(copy_tiled, module)?)
}
