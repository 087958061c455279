//! Nodes as calls of the functions that make them, for other processes.

use outcore_dtype::Scalar;
use outcore_engine::expr::{Expr, Op, Refusal};
use outcore_kernels::{Bounds, Finish, Generator};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};
use pyo3::IntoPyObjectExt;

/// A function's name and its arguments besides inputs, shape, type and tile. Sources in memory are "memory", others
/// "source" with their path, where they have one, and which part of the file they are, where it is one run of it; changes of type or tile are "cast". Nothing for functions of the user and for what is computed
/// by algorithms.
pub fn recipe<'py>(py: Python<'py>, node: &Expr) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let (name, arguments) = match &node.op {
        Op::Source(key) if key.0.memory().is_some() => ("memory", none(py)?),
        Op::Source(key) => {
            let raw = key
                .0
                .raw()
                .map(|raw| (raw.start, raw.shape, raw.dtype.name(), raw.swapped));
            let path = key.0.path().map(|path| path.as_os_str().to_os_string());
            ("source", (path, raw).into_py_any(py)?)
        }
        Op::Generate(generator) => generated(py, generator.clone())?,
        Op::Unary(op) => ("unary", (op.name(),).into_py_any(py)?),
        Op::Binary(op) => ("binary", (op.name(),).into_py_any(py)?),
        Op::Select => ("where", none(py)?),
        Op::Cast => ("cast", none(py)?),
        Op::Check(check) => {
            let bounds = match check.bounds {
                Bounds::Between(least, most) => Some((least, most)),
                Bounds::Finite => None,
            };
            let is_index = check.refusal == Refusal::Index;
            ("check", (bounds, check.text.as_str(), is_index).into_py_any(py)?)
        }
        Op::Broadcast => ("broadcast_to", none(py)?),
        Op::Permute(axes) => ("permute_dims", (axes.clone(),).into_py_any(py)?),
        Op::Slice(slices) => {
            let starts: Vec<i64> = slices.iter().map(|slice| slice.start).collect();
            let steps: Vec<i64> = slices.iter().map(|slice| slice.step).collect();
            ("slice", (starts, steps).into_py_any(py)?)
        }
        Op::Expand(axes) => ("expand_dims", (axes.clone(),).into_py_any(py)?),
        Op::Squeeze(axes) => ("squeeze", (axes.clone(),).into_py_any(py)?),
        Op::Reshape => ("reshape", none(py)?),
        Op::Concat(axis) => ("concat", (*axis,).into_py_any(py)?),
        Op::Matmul => ("matmul", none(py)?),
        Op::Reduce { op, finish, axes } => {
            let (name, correction) = match finish.0 {
                Finish::Value => (op.name(), 0.0),
                Finish::Mean => ("mean", 0.0),
                Finish::Variance { correction } => ("var", correction),
                Finish::StandardDeviation { correction } => ("std", correction),
            };
            ("reduce", (name, axes.clone(), correction).into_py_any(py)?)
        }
        Op::MapBlocks(_) | Op::Algorithm(..) | Op::Staged(..) => return Ok(None),
    };
    Ok(Some(PyTuple::new(py, [name.into_py_any(py)?, arguments])?))
}

fn none(py: Python<'_>) -> PyResult<Py<PyAny>> {
    PyTuple::empty(py).into_py_any(py)
}

fn generated(py: Python<'_>, generator: Generator) -> PyResult<(&'static str, Py<PyAny>)> {
    Ok(match generator {
        Generator::Full(value) => ("full", (number(py, value)?,).into_py_any(py)?),
        Generator::Arange { start, step } => ("arange", (number(py, start)?, number(py, step)?).into_py_any(py)?),
        Generator::Linspace {
            start,
            stop,
            count,
            endpoint,
        } => ("linspace", (start, stop, count, endpoint).into_py_any(py)?),
        Generator::Eye { k } => ("eye", (k,).into_py_any(py)?),
        Generator::Uniform { seed, low, high } => ("random", ("uniform", seed, low, high).into_py_any(py)?),
        Generator::Normal { seed, mean, deviation } => ("random", ("normal", seed, mean, deviation).into_py_any(py)?),
        Generator::Integers { seed, low, high } => ("random", ("integers", seed, low, high).into_py_any(py)?),
    })
}

fn number(py: Python<'_>, value: Scalar) -> PyResult<Py<PyAny>> {
    match value {
        Scalar::Bool(value) => value.into_py_any(py),
        Scalar::Int(value) => value.into_py_any(py),
        Scalar::UInt(value) => value.into_py_any(py),
        Scalar::Float(value) => value.into_py_any(py),
        Scalar::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_py_any(py),
    }
}
