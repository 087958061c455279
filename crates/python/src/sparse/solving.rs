//! Direct solvers: analyses, factors and solutions.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use outcore_dtype::DType;
use outcore_engine::analyze::{AnalyzedMatrix, EliminationOrder};
use outcore_engine::live::LiveRun;
use outcore_engine::ops;
use outcore_engine::solve::{self, Analysis};
use outcore_store::{open_factor, FactorFile, Reservation, Source};
use pyo3::prelude::*;

use super::matrix::PySparse;
use crate::arrays::node::PyExpr;
use crate::base::errors::{argument, to_python};
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// An analysis, with the memory that it takes.
#[pyclass(frozen, name = "Analysis", module = "outcore._core")]
pub struct PyAnalysis {
    analysis: Arc<Analysis>,
    _held: Vec<Reservation>,
}

#[pymethods]
impl PyAnalysis {
    #[getter]
    fn rows(&self) -> u64 {
        self.analysis.rows()
    }

    #[getter]
    fn entries(&self) -> u64 {
        self.analysis.entries()
    }

    #[getter]
    fn operations(&self) -> f64 {
        self.analysis.operations()
    }

    /// Supernodes, and nodes that they are eliminated in.
    #[getter]
    fn counts(&self) -> (usize, usize) {
        (self.analysis.supernodes.len(), self.analysis.fronts.nodes.len())
    }

    /// Rows of the largest front.
    #[getter]
    fn largest_front(&self) -> u32 {
        self.analysis.supernodes.iter().map(|one| one.front).max().unwrap_or(0)
    }

    /// The row that is eliminated as each, and of each row the place in that order.
    fn orders<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>) {
        let order = &self.analysis.order;
        let of = PyArray1::from_iter(py, order.iter().map(|&row| i64::from(row)));
        let places = PyArray1::<i64>::zeros(py, order.len(), false);
        let mut known = places.readwrite();
        if let Ok(known) = known.as_slice_mut() {
            for (place, &row) in order.iter().enumerate() {
                known[row as usize] = place as i64;
            }
        }
        drop(known);
        (of, places)
    }

    /// The factor of a stored matrix whose rows and columns are in the order of elimination.
    fn cholesky(&self, permuted: PyRef<'_, PySparse>) -> PyResult<PyExpr> {
        let factor = solve::cholesky(&self.analysis, &permuted.matrix()?);
        factor.map(PyExpr::new).map_err(to_python)
    }

    /// The solution for right-hand sides (rows, count) in the order of elimination, by the tiles of a factor.
    fn solve(&self, factor: PyRef<'_, PyExpr>, dtype: &str, b: PyRef<'_, PyExpr>) -> PyResult<PyExpr> {
        let dtype = DType::from_name(dtype).ok_or_else(|| argument(format!("solve: a factor of {dtype}")))?;
        solve::solved(&self.analysis, &factor.0, dtype, &b.0)
            .map(PyExpr::new)
            .map_err(to_python)
    }

    /// The sum of the logarithms of the diagonal of a factor, as one number.
    fn log_pivots(&self, factor: PyRef<'_, PyExpr>, dtype: &str) -> PyResult<PyExpr> {
        let dtype = DType::from_name(dtype).ok_or_else(|| argument(format!("logdet: a factor of {dtype}")))?;
        solve::log_pivots(&self.analysis, &factor.0, dtype)
            .map(PyExpr::new)
            .map_err(to_python)
    }
}

/// Analyzes a stored matrix; `order` is a name, or `given` has the rows.
#[pyfunction]
#[pyo3(signature = (session, matrix, order, given=None))]
fn analyze(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    matrix: PyRef<'_, PySparse>,
    order: &str,
    given: Option<PyReadonlyArray1<'_, u32>>,
) -> PyResult<PyAnalysis> {
    let ordering = match (order, given) {
        ("given", Some(given)) => EliminationOrder::Given(given.as_slice()?.to_vec()),
        ("auto", None) => EliminationOrder::Auto,
        ("nd", None) => EliminationOrder::NestedDissection,
        ("amd", None) => EliminationOrder::MinimumDegree,
        ("natural", None) => EliminationOrder::Natural,
        _ => return Err(argument(format!("analyze: ordering {order:?}"))),
    };
    let (session, matrix) = (session.0.clone(), matrix.matrix()?);
    let analysis = watching_signals(py, |watch| {
        let matrix = AnalyzedMatrix {
            matrix: &matrix,
            ordering,
        };
        LiveRun::new(session.clone()).work(&matrix, watch)
    })?;
    // Beside the analysis its orders, which the caller takes as arrays.
    let bytes = analysis.bytes() + 2 * 8 * analysis.rows();
    let held = session.hold_beside("analyze", bytes).map_err(to_python)?;
    Ok(PyAnalysis {
        analysis: Arc::new(analysis),
        _held: held,
    })
}

/// The factor of a dense matrix as a result, and its analysis.
#[pyfunction]
fn dense_cholesky(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    x: PyRef<'_, PyExpr>,
) -> PyResult<(PyAnalysis, PyExpr)> {
    let (session, x) = (session.0.clone(), x.0.clone());
    let (analysis, factor, held) = watching_signals(py, |_| {
        let (analysis, factor) = solve::dense_cholesky(&x)?;
        let held = session.hold_beside("cholesky", analysis.bytes())?;
        Ok((analysis, factor, held))
    })?;
    Ok((PyAnalysis { analysis, _held: held }, PyExpr::new(factor)))
}

/// The tiles of a factor in a file.
#[pyclass(frozen, name = "Factor", module = "outcore._core")]
pub struct PyFactor(Arc<FactorFile>);

#[pymethods]
impl PyFactor {
    #[getter]
    fn tiles(&self) -> PyResult<PyExpr> {
        ops::source(self.0.clone()).map(PyExpr::new).map_err(to_python)
    }

    #[getter]
    fn dtype(&self) -> String {
        self.0.element().to_string()
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.file_bytes()
    }
}

/// Opens the tiles of a factor; `held` goes with its last reader.
#[pyfunction]
fn open_factor_tiles(session: PyRef<'_, PySession>, path: PathBuf, held: bool) -> PyResult<PyFactor> {
    let file = open_factor(&path, session.0.io()).map_err(|error| to_python(error.into()))?;
    let file = match held {
        true => session.0.hold_factor(file).map_err(to_python)?,
        false => Arc::new(file),
    };
    Ok(PyFactor(file))
}

/// Opens a factor, with the analysis that it was made by.
#[pyfunction]
fn open_factor_file(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<(PyAnalysis, PyFactor)> {
    let session = session.0.clone();
    let (analysis, file, held) = watching_signals(py, |_| {
        let file = open_factor(&path, session.io())?;
        // The record, its sections, and the analysis.
        let _room = session.set_aside("open factor", 2 * file.record_bytes())?;
        let item = file.element().size() as u64;
        let tiles = file.listed().unwrap_or_default();
        let restored = file.with_record(session.io(), |sections| Analysis::restored(sections, &tiles, item))?;
        let analysis = restored.map_err(|reason| file.malformed(reason))?;
        if analysis.rows() != file.rows() {
            return Err(file.malformed("the record is of another matrix").into());
        }
        let held = session.hold_beside("open factor", analysis.bytes())?;
        Ok((analysis, file, held))
    })?;
    let analysis = PyAnalysis {
        analysis: Arc::new(analysis),
        _held: held,
    };
    Ok((analysis, PyFactor(Arc::new(file))))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyAnalysis>()?;
    module.add_class::<PyFactor>()?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(dense_cholesky, module)?)?;
    module.add_function(wrap_pyfunction!(open_factor_file, module)?)?;
    module.add_function(wrap_pyfunction!(open_factor_tiles, module)?)
}
