//! Reductions, scans and statistics.

use outcore_engine::{ops, EngineError};
use outcore_kernels::{Finish, Reduce, Scan, Tally};
use pyo3::prelude::*;

use super::node::{built, dtype_named, variant, Built, PyExpr};
use crate::base::errors::to_python;

#[pyfunction]
fn reduce(name: &str, x: &PyExpr, axes: Vec<usize>, correction: f64) -> Built {
    let (op, finish) = match name {
        "mean" => (Reduce::Moments, Finish::Mean),
        "var" => (Reduce::Moments, Finish::Variance { correction }),
        "std" => (Reduce::Moments, Finish::StandardDeviation { correction }),
        _ => {
            let op = Reduce::ALL
                .iter()
                .copied()
                .find(|op| op.name() == name && *op != Reduce::Moments);
            (
                op.ok_or_else(|| to_python(EngineError::Plan(format!("there is no reduction {name}"))))?,
                Finish::Value,
            )
        }
    };
    built(ops::reduce(op, finish, &x.0, &axes))
}

/// Running sums, products or extrema along an axis; from marked places on anew.
#[pyfunction]
fn scan(name: &str, x: &PyExpr, axis: usize, starts: Option<PyRef<'_, PyExpr>>) -> Built {
    let op = variant("scan", name, Scan::named)?;
    let starts = starts.map(|starts| starts.0.clone());
    built(ops::scan(op, &x.0, axis, starts.as_ref()))
}

/// What a summary is made of, for each column.
#[pyfunction]
fn describe(x: &PyExpr) -> Built {
    built(ops::described(&x.0))
}

/// How often each number below `rows` occurs, or what is made of the values beside it.
#[pyfunction]
fn tally(
    name: &str,
    numbers: &PyExpr,
    values: Option<PyRef<'_, PyExpr>>,
    centers: Option<PyRef<'_, PyExpr>>,
    rows: u64,
    dtype: &str,
) -> Built {
    let op = variant("tally", name, Tally::named)?;
    let values = values.map(|values| values.0.clone());
    let centers = centers.map(|centers| centers.0.clone());
    let dtype = dtype_named(dtype)?;
    built(ops::tallied(
        op,
        &numbers.0,
        values.as_ref(),
        centers.as_ref(),
        rows,
        dtype,
    ))
}

/// Bytes of the table of the narrowest band of columns that values are tallied by.
#[pyfunction]
fn least_table_bytes(values: &PyExpr, rows: u64) -> u64 {
    ops::least_table_bytes(&values.0, rows)
}

/// The elements on both sides of places among the sorted elements of every column, how far between them each place is, and
/// how many elements are not NaN.
#[pyfunction]
fn order_statistics(x: &PyExpr, fractions: Vec<f64>) -> PyResult<Vec<PyExpr>> {
    let found = outcore_engine::sort::order_statistics(&x.0, &fractions).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

/// As `order_statistics`, of columns along the first axis of an array.
#[pyfunction]
fn column_statistics(x: &PyExpr, fractions: Vec<f64>) -> PyResult<Vec<PyExpr>> {
    let found = outcore_engine::sort::column_statistics(&x.0, &fractions).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

/// The elements on both sides of the middle of every group, by columns.
#[pyfunction]
fn group_middles(x: &PyExpr, codes: &PyExpr, groups: u64, omit: bool) -> PyResult<Vec<PyExpr>> {
    let found = outcore_engine::sort::group_middles(&x.0, &codes.0, groups, omit).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(reduce, module)?)?;
    module.add_function(wrap_pyfunction!(scan, module)?)?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(tally, module)?)?;
    module.add_function(wrap_pyfunction!(least_table_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(order_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(column_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(group_middles, module)?)
}
