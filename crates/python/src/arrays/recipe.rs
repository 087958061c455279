//! Nodes as calls of the functions that make them, for other processes.

use std::path::Path;

use outcore_dtype::Scalar;
use outcore_engine::expr::{Expr, Node, Op, Refusal};
use outcore_engine::recipes;
use outcore_engine::sparse::{self, DenseOperand, Field};
use outcore_engine::task::{Parameter, Recipe};
use outcore_kernels::{Bounds, Finish, Generator};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyTuple};
use pyo3::IntoPyObjectExt;

use super::node::{exprs, PyExpr};
use crate::base::errors::{argument, to_python};

/// A node as a function of this module and its arguments besides inputs, shape, type and tile. Sources in memory are "memory",
/// others "source" with their path, where they have one, and the run of the file they are, where they are one, or "process" where
/// only this process reads them; changes of type or
/// tile are "cast", operators by algorithms "rebuild". Nothing where no other process can make it.
#[pyfunction]
fn recipe<'py>(py: Python<'py>, node: &PyExpr) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let node: &Expr = &node.0;
    let (name, arguments) = match &node.op {
        Op::Source(_) if Field::of(node).is_some() => match Field::of(node) {
            Some(field) => entry_field(py, field)?,
            None => return Ok(None),
        },
        Op::Source(key) if key.0.memory().is_some() => ("memory", none(py)?),
        Op::Source(key) => {
            let raw = key
                .0
                .raw()
                .map(|raw| (raw.start, raw.shape, raw.dtype.name(), raw.swapped));
            let tiles_of = sparse::of_tiles(node).ok();
            let path = tiles_of
                .as_ref()
                .map_or(key.0.path(), |matrix| Some(matrix.file.path()));
            if tiles_of.is_none() && key.0.goes_with_readers() {
                return Ok(Some(PyTuple::new(py, ["process".into_py_any(py)?, none(py)?])?));
            }
            // A file of scratch goes before another process reads it.
            let path = path.filter(|_| !key.0.goes_with_readers());
            let whole = |path: &Path| key.0.member().map_or(path.to_path_buf(), |member| path.join(member));
            let path = path.map(|path| whole(path).into_os_string());
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
        Op::MapBlocks(_) | Op::Algorithm(..) | Op::Staged(..) => match recipes::recipe(node) {
            Some((recipe, result)) => ("rebuild", rebuilding(py, &recipe, result)?),
            None => return Ok(None),
        },
    };
    Ok(Some(PyTuple::new(py, [name.into_py_any(py)?, arguments])?))
}

/// The builder, its parameters as Python has them, and which of the results it is.
fn rebuilding(py: Python<'_>, recipe: &Recipe, result: usize) -> PyResult<Py<PyAny>> {
    let parameters: Vec<Py<PyAny>> = recipe
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Word(word) => word.into_py_any(py),
            Parameter::Float(float) => float.into_py_any(py),
            Parameter::Text(text) => text.into_py_any(py),
            Parameter::Words(words) => PyTuple::new(py, words)?.into_py_any(py),
            Parameter::Floats(floats) => PyTuple::new(py, floats)?.into_py_any(py),
            Parameter::Node(None) => Ok(py.None()),
            Parameter::Node(Some(node)) => match node.clone().downcast::<Node>() {
                Ok(node) => PyExpr::new(node).into_py_any(py),
                Err(_) => Err(argument("a recipe holds what is no node")),
            },
        })
        .collect::<PyResult<_>>()?;
    (recipe.builder, PyTuple::new(py, parameters)?, result).into_py_any(py)
}

/// A parameter as it was pickled.
#[derive(FromPyObject)]
pub enum PickledParameter<'py> {
    Word(u64),
    Float(f64),
    Text(String),
    Node(PyRef<'py, PyExpr>),
    Words(Vec<u64>),
    Floats(Vec<f64>),
}

/// The node that another process described by `recipe`.
#[pyfunction]
fn rebuild(
    builder: &str,
    parameters: Vec<Option<PickledParameter<'_>>>,
    result: usize,
    inputs: Vec<PyRef<'_, PyExpr>>,
) -> PyResult<PyExpr> {
    let parameters = parameters.into_iter().map(|parameter| match parameter {
        None => Parameter::Node(None),
        Some(PickledParameter::Word(word)) => Parameter::Word(word),
        Some(PickledParameter::Float(float)) => Parameter::Float(float),
        Some(PickledParameter::Text(text)) => Parameter::Text(text),
        Some(PickledParameter::Words(words)) => Parameter::Words(words),
        Some(PickledParameter::Floats(floats)) => Parameter::Floats(floats),
        Some(PickledParameter::Node(node)) => {
            let node: Expr = node.0.clone();
            Parameter::Node(Some(node))
        }
    });
    let parameters: Vec<Parameter> = parameters.collect();
    let mut built = recipes::rebuild(builder, &parameters, &exprs(&inputs)).map_err(to_python)?;
    match result < built.len() {
        true => Ok(PyExpr::new(built.swap_remove(result))),
        false => Err(argument(format!("{builder}: it has no result {result}"))),
    }
}

/// A field of an entry, as the call that makes its node.
fn entry_field(py: Python<'_>, field: &Field) -> PyResult<(&'static str, Py<PyAny>)> {
    let dtype = field.dtype().name();
    let operand = |shape: (u64, u64), operand: &DenseOperand| {
        let elements = PyBytes::new(py, operand.elements());
        Ok(("entry_operand", (shape, elements, dtype).into_py_any(py)?))
    };
    let length = |operand: &DenseOperand| (operand.elements().len() / field.dtype().size()) as u64;
    match field {
        Field::Value(_) => Ok(("entry_field", ("value", dtype).into_py_any(py)?)),
        Field::Other(_) => Ok(("entry_field", ("other", dtype).into_py_any(py)?)),
        Field::Row => Ok(("entry_field", ("row",).into_py_any(py)?)),
        Field::Column => Ok(("entry_field", ("column",).into_py_any(py)?)),
        Field::AtRow(_, vector) => operand((length(vector), 1), vector),
        Field::AtColumn(_, vector) => operand((1, length(vector)), vector),
        Field::AtPlace(_, matrix, width) => operand((length(matrix) / (*width).max(1), *width), matrix),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(recipe, module)?)?;
    module.add_function(wrap_pyfunction!(rebuild, module)?)
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
