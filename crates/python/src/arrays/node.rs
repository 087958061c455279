//! Expression nodes: one node of an expression, and what it says of itself.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use outcore_dtype::{DType, Scalar};
use outcore_engine::expr::lasting::{self, ProcessOwn};
use outcore_engine::expr::{topological, Expr, Named, Op};
use outcore_engine::{ops, EngineError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyComplexMethods, PyFloat, PyInt, PyTuple};

use crate::base::errors::to_python;

/// One node of an expression: immutable, and equal expressions are the same node (same `id`).
#[pyclass(frozen, name = "Expr", module = "outcore._core")]
pub struct PyExpr(pub Named);

impl PyExpr {
    pub fn new(node: Expr) -> PyExpr {
        PyExpr(Named::new(node))
    }
}

#[pymethods]
impl PyExpr {
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    #[getter]
    fn digest(&self) -> String {
        self.0.digest().to_string()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype.name()
    }

    #[getter]
    fn op(&self) -> String {
        self.0.label()
    }

    #[getter]
    fn inputs(&self) -> Vec<PyExpr> {
        self.0.inputs.iter().cloned().map(PyExpr::new).collect()
    }

    #[getter]
    fn tile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.tile)
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.nbytes()
    }

    /// Says of which function the caller has it: a refusal names that. The first that is named stays.
    #[getter]
    fn called(&self) -> Option<&'static str> {
        self.0.called()
    }

    fn call_as(&self, function: &str) {
        self.0.call_as(Some(name_of_call(function)));
    }
}

/// The variant that a name stands for.
pub fn variant<T>(what: &str, name: &str, named: impl Fn(&str) -> Option<T>) -> PyResult<T> {
    let unknown = || to_python(EngineError::Plan(format!("no {what} is called {name}")));
    named(name).ok_or_else(unknown)
}

/// The names of functions, of which there are few, each once.
pub fn name_of_call(function: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(function) {
        return name;
    }
    let name: &'static str = Box::leak(function.into());
    names.insert(name);
    name
}

pub type Built = PyResult<PyExpr>;

pub fn built(result: Result<Expr, EngineError>) -> Built {
    result.map(PyExpr::new).map_err(to_python)
}

pub fn dtype_named(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| to_python(EngineError::DType(format!("there is no element type {name}"))))
}

pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Scalar::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return match value.extract::<i64>() {
            Ok(value) => Ok(Scalar::Int(value)),
            Err(_) => Ok(Scalar::UInt(value.extract()?)),
        };
    }
    if let Ok(value) = value.cast::<PyComplex>() {
        return Ok(Scalar::Complex(value.real(), value.imag()));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Scalar::Float(value.extract()?));
    }
    Ok(Scalar::Float(value.extract()?))
}

pub fn exprs(nodes: &[PyRef<'_, PyExpr>]) -> Vec<Expr> {
    nodes.iter().map(|node| node.0.clone()).collect()
}

/// The files and folders that the array is made of.
#[pyfunction]
fn sources(x: &PyExpr) -> Vec<PathBuf> {
    let root: &Expr = &x.0;
    let nodes = topological(std::slice::from_ref(root));
    let paths = nodes.iter().filter_map(|node| match &node.op {
        Op::Source(source) => source.0.path().map(PathBuf::from),
        _ => None,
    });
    paths.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Arrays in which those of some digests are taken from elsewhere, in the tiles that they have here.
#[pyfunction]
fn substituted(nodes: Vec<PyRef<'_, PyExpr>>, instead: HashMap<String, PyRef<'_, PyExpr>>) -> Vec<PyExpr> {
    let found = |node: &Expr| {
        let new = &instead.get(&node.digest().to_string())?.0;
        let same = (&new.shape, new.dtype) == (&node.shape, node.dtype);
        same.then(|| ops::in_tiles(new, node.tile.clone()))
    };
    let nodes = outcore_engine::expr::substituted(&exprs(&nodes), &found);
    nodes.into_iter().map(PyExpr::new).collect()
}

/// Sources that no other process has, of those that some nodes are made of, and names of functions that none has.
#[pyfunction]
fn process_own(nodes: Vec<PyRef<'_, PyExpr>>) -> (Vec<PyExpr>, Vec<String>) {
    let own = ProcessOwn::of(&exprs(&nodes));
    (own.sources.into_iter().map(PyExpr::new).collect(), own.functions)
}

/// The digests of nodes, with texts in place of some that they are made of, by their `id`.
#[pyfunction]
fn digests_given(nodes: Vec<PyRef<'_, PyExpr>>, given: HashMap<u64, String>) -> Vec<String> {
    let digests = lasting::digests_given(&exprs(&nodes), &given);
    digests.iter().map(ToString::to_string).collect()
}

/// Whether reading the array again is reading stored arrays and little more.
#[pyfunction]
fn is_made_of_stored(x: &PyExpr) -> bool {
    ops::is_made_of_stored(&x.0)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExpr>()?;
    module.add_function(wrap_pyfunction!(sources, module)?)?;
    module.add_function(wrap_pyfunction!(substituted, module)?)?;
    module.add_function(wrap_pyfunction!(process_own, module)?)?;
    module.add_function(wrap_pyfunction!(digests_given, module)?)?;
    module.add_function(wrap_pyfunction!(is_made_of_stored, module)?)
}
