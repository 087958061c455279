//! Sorting, searching, and choosing elements.

use outcore_engine::ops;
use outcore_engine::sort::Method;
use outcore_kernels::sort::Side;
use pyo3::prelude::*;

use super::node::{built, exprs, variant, Built, PyExpr};
use crate::base::errors::to_python;

/// The rows that a mask chooses, given how many each of its granules does.
#[pyfunction]
fn compress(x: &PyExpr, mask: &PyExpr, counts: Vec<u64>) -> Built {
    built(ops::compress(&x.0, &mask.0, &counts))
}

/// Where a mask is true, given how often each of its granules is.
#[pyfunction]
fn nonzero(mask: &PyExpr, counts: Vec<u64>) -> Built {
    built(ops::nonzero(&mask.0, &counts))
}

/// How many elements of each granule of a mask are true.
#[pyfunction]
fn count_granules(mask: &PyExpr) -> Built {
    built(ops::count_granules(&mask.0))
}

/// The counts of a mask of `length` that is true everywhere.
#[pyfunction]
fn full_counts(length: u64) -> Vec<u64> {
    ops::full_counts(length)
}

/// A node as large as `node` and in its tiles, of values that a run before would store: to plan with, never to run.
#[pyfunction]
fn foreseen(node: &PyExpr) -> Built {
    built(outcore_engine::sort::foreseen(&node.0))
}

/// One-dimensional keys sorted, and the values in the order of their keys.
#[pyfunction]
fn sort_by(
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
    descending: bool,
    method: Option<&str>,
) -> PyResult<Vec<PyExpr>> {
    let method = method
        .map(|name| variant("method of sorting", name, Method::named))
        .transpose()?;
    let sorted = outcore_engine::sort::sort_by(&keys.0, &exprs(&values), descending, method).map_err(to_python)?;
    Ok(sorted.into_iter().map(PyExpr::new).collect())
}

/// Rows in the order of an index that counts from the front.
#[pyfunction]
fn take(x: &PyExpr, index: &PyExpr) -> Built {
    built(outcore_engine::sort::take(&x.0, &index.0))
}

/// The same in the order of an index that ascends.
#[pyfunction]
fn take_ascending(x: &PyExpr, index: &PyExpr) -> Built {
    built(outcore_engine::sort::take_ascending(&x.0, &index.0))
}

/// Rows as keys are sorted, of which `order` says where each was.
#[pyfunction]
fn rows_by(keys: &PyExpr, order: &PyExpr, x: &PyExpr) -> Built {
    built(outcore_engine::sort::rows_by(&keys.0, &order.0, &x.0))
}

/// Columns along the first axis sorted whole, or where their elements were.
#[pyfunction]
fn sort_columns(x: &PyExpr, descending: bool, positions: bool) -> Built {
    built(outcore_engine::sort::sort_columns(&x.0, descending, positions))
}

/// Lanes along the last axis sorted whole, or where their elements were.
#[pyfunction]
fn sort_lanes(x: &PyExpr, descending: bool, positions: bool) -> Built {
    built(ops::sort_lanes(&x.0, descending, positions))
}

/// Where values belong in a sorted row.
#[pyfunction]
fn searchsorted(sorted: &PyExpr, values: &PyExpr, right: bool) -> Built {
    let side = if right { Side::Right } else { Side::Left };
    built(outcore_engine::sort::search_sorted(&sorted.0, &values.0, side))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compress, module)?)?;
    module.add_function(wrap_pyfunction!(nonzero, module)?)?;
    module.add_function(wrap_pyfunction!(count_granules, module)?)?;
    module.add_function(wrap_pyfunction!(full_counts, module)?)?;
    module.add_function(wrap_pyfunction!(foreseen, module)?)?;
    module.add_function(wrap_pyfunction!(sort_by, module)?)?;
    module.add_function(wrap_pyfunction!(take, module)?)?;
    module.add_function(wrap_pyfunction!(take_ascending, module)?)?;
    module.add_function(wrap_pyfunction!(rows_by, module)?)?;
    module.add_function(wrap_pyfunction!(sort_columns, module)?)?;
    module.add_function(wrap_pyfunction!(sort_lanes, module)?)?;
    module.add_function(wrap_pyfunction!(searchsorted, module)?)
}
