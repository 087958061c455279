//! Expression nodes and the functions that build them.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyUntypedArray;
use outcore_dtype::{DType, Scalar};
use outcore_engine::expr::{topological, AxisSlice, Check, Expr, Named, Op, Refusal};
use outcore_engine::sort::Method;
use outcore_engine::{linalg, ops, EngineError};
use outcore_kernels::sort::Side;
use outcore_kernels::{Binary, Bounds, Factor, Finish, Fourier, Generator, Reduce, Scan, Tally, Unary};
use outcore_store::RawArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyComplexMethods, PyFloat, PyInt, PyTuple};

use crate::arrays;
use crate::blocks::BlockSource;
use crate::error::{store_error, to_python};
use crate::function::PyFunction;
use crate::recipe::recipe;
use crate::session::{watching_signals, PySession};

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
    fn call_as(&self, function: &str) {
        self.0.call_as(Some(name_of_call(function)));
    }

    /// What makes this node of its inputs: a function of this module and its further arguments, or what kind of source it
    /// is. Nothing where no such call is known.
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        recipe(py, &self.0)
    }
}

/// The names of functions, of which there are few, each once.
fn name_of_call(function: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(function) {
        return name;
    }
    let name: &'static str = Box::leak(function.into());
    names.insert(name);
    name
}

type Built = PyResult<PyExpr>;

fn built(result: Result<Expr, EngineError>) -> Built {
    result.map(PyExpr::new).map_err(to_python)
}

fn dtype_named(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| to_python(EngineError::DType(format!("there is no element type {name}"))))
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
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

#[pyfunction]
fn open(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> Built {
    let session = session.0.clone();
    let opened = watching_signals(py, |watch| session.open(&path, watch))?;
    let node = ops::source(opened.source).map_err(to_python)?;
    if !opened.transposed {
        return Ok(PyExpr::new(node));
    }
    let axes: Vec<usize> = (0..node.ndim()).rev().collect();
    built(ops::permute(&node, &axes))
}

#[pyfunction]
fn open_raw(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    path: PathBuf,
    start: u64,
    shape: Vec<u64>,
    dtype: &str,
    swapped: bool,
) -> Built {
    let io = session.0.io().clone();
    let raw = RawArray {
        start,
        shape,
        dtype: dtype_named(dtype)?,
        swapped,
    };
    let source = py.detach(|| outcore_store::open_raw(&path, raw, &io));
    built(ops::source(source.map_err(store_error)?))
}

#[pyfunction]
fn from_blocks(read: &Bound<'_, PyAny>, shape: Vec<u64>, dtype: &str, chunks: Option<Vec<u64>>, name: String) -> Built {
    let source = BlockSource::new(read, shape, dtype_named(dtype)?, chunks, name);
    built(ops::source(Arc::new(source)))
}

#[pyfunction]
fn from_numpy(array: &Bound<'_, PyUntypedArray>) -> Built {
    arrays::from_numpy(array).map(PyExpr::new)
}

#[pyfunction]
fn full(shape: Vec<u64>, value: &Bound<'_, PyAny>, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Full(scalar(value)?),
        shape,
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn arange(start: &Bound<'_, PyAny>, step: &Bound<'_, PyAny>, count: u64, dtype: &str) -> Built {
    let generator = Generator::Arange {
        start: scalar(start)?,
        step: scalar(step)?,
    };
    built(ops::generate(generator, vec![count], dtype_named(dtype)?))
}

#[pyfunction]
fn linspace(start: f64, stop: f64, count: u64, endpoint: bool, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Linspace {
            start,
            stop,
            count,
            endpoint,
        },
        vec![count],
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn eye(rows: u64, columns: u64, k: i64, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Eye { k },
        vec![rows, columns],
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn random(
    kind: &str,
    shape: Vec<u64>,
    seed: u64,
    low_or_mean: &Bound<'_, PyAny>,
    high_or_deviation: &Bound<'_, PyAny>,
    dtype: &str,
) -> Built {
    let generator = match kind {
        "uniform" => Generator::Uniform {
            seed,
            low: low_or_mean.extract()?,
            high: high_or_deviation.extract()?,
        },
        "normal" => Generator::Normal {
            seed,
            mean: low_or_mean.extract()?,
            deviation: high_or_deviation.extract()?,
        },
        "integers" => Generator::Integers {
            seed,
            low: low_or_mean.extract()?,
            high: high_or_deviation.extract()?,
        },
        _ => {
            return Err(to_python(EngineError::Plan(format!(
                "there is no random distribution {kind}"
            ))))
        }
    };
    built(ops::generate(generator, shape, dtype_named(dtype)?))
}

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

#[pyfunction]
fn concat(xs: Vec<PyRef<'_, PyExpr>>, axis: usize) -> Built {
    built(ops::concat(&exprs(&xs), axis))
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

/// Whether reading the array again is reading stored arrays and little more.
#[pyfunction]
fn is_made_of_stored(x: &PyExpr) -> bool {
    ops::is_made_of_stored(&x.0)
}

/// Running sums, products or extrema along an axis; from marked places on anew.
#[pyfunction]
fn scan(name: &str, x: &PyExpr, axis: usize, starts: Option<PyRef<'_, PyExpr>>) -> Built {
    let op = match name {
        "sum" => Scan::Sum,
        "prod" => Scan::Prod,
        "max" => Scan::Max,
        "min" => Scan::Min,
        _ => return Err(to_python(EngineError::Plan(format!("no scan is called {name}")))),
    };
    let starts = starts.map(|starts| starts.0.clone());
    built(ops::scan(op, &x.0, axis, starts.as_ref()))
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

/// One-dimensional keys sorted, and the values in the order of their keys.
#[pyfunction]
fn sort_by(
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
    descending: bool,
    method: Option<&str>,
) -> PyResult<Vec<PyExpr>> {
    let method = match method {
        None => None,
        Some("merge") => Some(Method::Merge),
        Some("distribution") => Some(Method::Distribution),
        Some(other) => return Err(PyValueError::new_err(format!("no method of sorting is called {other}"))),
    };
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

/// The elements on both sides of places among the sorted elements of every column, how far between them each place is, and
/// how many elements are not NaN.
#[pyfunction]
fn order_statistics(x: &PyExpr, fractions: Vec<f64>) -> PyResult<Vec<PyExpr>> {
    let found = outcore_engine::sort::order_statistics(&x.0, &fractions).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

/// Where values belong in a sorted row.
#[pyfunction]
fn searchsorted(sorted: &PyExpr, values: &PyExpr, right: bool) -> Built {
    let side = if right { Side::Right } else { Side::Left };
    built(outcore_engine::sort::search_sorted(&sorted.0, &values.0, side))
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
    let op = match name {
        "count" => Tally::Count,
        "sum" => Tally::Sum,
        "prod" => Tally::Prod,
        "min" => Tally::Min,
        "max" => Tally::Max,
        _ => return Err(to_python(EngineError::Plan(format!("no tally is called {name}")))),
    };
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

/// What a summary is made of, for each column.
#[pyfunction]
fn describe(x: &PyExpr) -> Built {
    built(ops::described(&x.0))
}

/// Lanes along the last axis sorted whole, or where their elements were.
#[pyfunction]
fn sort_lanes(x: &PyExpr, descending: bool, positions: bool) -> Built {
    built(ops::sort_lanes(&x.0, descending, positions))
}

/// The factors of every matrix along the last two axes.
#[pyfunction]
fn factorize(name: &str, x: &PyExpr, right: Option<PyRef<'_, PyExpr>>) -> PyResult<Vec<PyExpr>> {
    let factor = match name {
        "cholesky" => Factor::Cholesky,
        "qr" => Factor::Qr,
        "qr_complete" => Factor::QrComplete,
        "triangle" => Factor::Triangle,
        "svd" => Factor::Svd,
        "svd_complete" => Factor::SvdComplete,
        "svdvals" => Factor::SingularValues,
        "eigh" => Factor::Eigh,
        "eigvalsh" => Factor::Eigvalsh,
        "eig" => Factor::Eig,
        "eigvals" => Factor::Eigvals,
        "inv" => Factor::Inverse,
        "solve" => Factor::Solve,
        "det" => Factor::Determinant,
        _ => {
            return Err(to_python(EngineError::Plan(format!(
                "no factorization is called {name}"
            ))))
        }
    };
    let right = right.map(|right| right.0.clone());
    let factors = linalg::factorize(factor, &x.0, right.as_ref()).map_err(to_python)?;
    Ok(factors.into_iter().map(PyExpr::new).collect())
}

/// Whether QR of the matrix goes by tiles.
#[pyfunction]
fn is_tall(x: &PyExpr) -> bool {
    linalg::is_tall(&x.0)
}

/// The Fourier transform along an axis; `length` is that of the real side. The result is cut along it, if `cut` is given.
#[pyfunction]
fn fourier(name: &str, x: &PyExpr, axis: usize, length: u64, scale: f64, cut: Option<u64>) -> Built {
    let kind = match name {
        "forward" => Fourier::Forward,
        "backward" => Fourier::Backward,
        "from_real" => Fourier::FromReal,
        "to_real" => Fourier::ToReal,
        _ => return Err(to_python(EngineError::Plan(format!("no transform is called {name}")))),
    };
    built(ops::fourier(kind, &x.0, axis, length, scale, cut))
}

/// The array in tiles of another shape.
#[pyfunction]
fn copy_tiled(x: &PyExpr, tile: Vec<u64>) -> PyExpr {
    PyExpr::new(ops::copy_tiled(&x.0, tile))
}

#[pyfunction]
fn matmul(x: &PyExpr, y: &PyExpr) -> Built {
    built(ops::matmul(&x.0, &y.0))
}

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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(open_raw, module)?)?;
    module.add_function(wrap_pyfunction!(from_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(arange, module)?)?;
    module.add_function(wrap_pyfunction!(linspace, module)?)?;
    module.add_function(wrap_pyfunction!(eye, module)?)?;
    module.add_function(wrap_pyfunction!(random, module)?)?;
    module.add_function(wrap_pyfunction!(unary, module)?)?;
    module.add_function(wrap_pyfunction!(binary, module)?)?;
    module.add_function(wrap_pyfunction!(select, module)?)?;
    module.add_function(wrap_pyfunction!(astype, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_to, module)?)?;
    module.add_function(wrap_pyfunction!(permute_dims, module)?)?;
    module.add_function(wrap_pyfunction!(expand_dims, module)?)?;
    module.add_function(wrap_pyfunction!(squeeze, module)?)?;
    module.add_function(wrap_pyfunction!(reshape, module)?)?;
    module.add_function(wrap_pyfunction!(slice, module)?)?;
    module.add_function(wrap_pyfunction!(concat, module)?)?;
    module.add_function(wrap_pyfunction!(sort_by, module)?)?;
    module.add_function(wrap_pyfunction!(take, module)?)?;
    module.add_function(wrap_pyfunction!(order_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(take_ascending, module)?)?;
    module.add_function(wrap_pyfunction!(rows_by, module)?)?;
    module.add_function(wrap_pyfunction!(sort_columns, module)?)?;
    module.add_function(wrap_pyfunction!(column_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(group_middles, module)?)?;
    module.add_function(wrap_pyfunction!(least_table_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(searchsorted, module)?)?;
    module.add_function(wrap_pyfunction!(tally, module)?)?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(sort_lanes, module)?)?;
    module.add_function(wrap_pyfunction!(factorize, module)?)?;
    module.add_function(wrap_pyfunction!(is_tall, module)?)?;
    module.add_function(wrap_pyfunction!(fourier, module)?)?;
    module.add_function(wrap_pyfunction!(copy_tiled, module)?)?;
    module.add_function(wrap_pyfunction!(sources, module)?)?;
    module.add_function(wrap_pyfunction!(substituted, module)?)?;
    module.add_function(wrap_pyfunction!(is_made_of_stored, module)?)?;
    module.add_function(wrap_pyfunction!(scan, module)?)?;
    module.add_function(wrap_pyfunction!(count_granules, module)?)?;
    module.add_function(wrap_pyfunction!(full_counts, module)?)?;
    module.add_function(wrap_pyfunction!(foreseen, module)?)?;
    module.add_function(wrap_pyfunction!(compress, module)?)?;
    module.add_function(wrap_pyfunction!(nonzero, module)?)?;
    module.add_function(wrap_pyfunction!(matmul, module)?)?;
    module.add_function(wrap_pyfunction!(reduce, module)?)?;
    module.add_function(wrap_pyfunction!(map_blocks, module)?)
}
