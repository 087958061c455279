//! Direct solvers: analyses, factors and solutions.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use outcore_dtype::DType;
use outcore_engine::analyze::{AnalyzedMatrix, EliminationOrder, OrderedAnalysis, Pairing};
use outcore_engine::live::LiveRun;
use outcore_engine::ops;
use outcore_engine::solve::{
    self, Analysis, PivotScaling, PivotedFactor, PivotedMatrix, PivotedRecord, QrCut, SlabCut,
};
use outcore_kernels::{PivotRule, PivotedKind, Transposition};
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
    scaling: Option<PivotScaling>,
    /// The ordering that was taken, where it was made by one.
    ordering: Option<&'static str>,
    _held: Vec<Reservation>,
}

/// Bytes that a place of the inverse takes while the places are sorted.
const WANTED_BYTES: u64 = 8 + 8 + 8 + 4;

/// How candidates for pivots are tested: of scaled matrices, elements are about 1.
const THRESHOLD: f64 = 0.01;
const ZERO_PIVOT: f64 = 1e-15;
const PERTURBATION: f64 = 1.490_116_119_384_765_6e-8;

/// Kinds by the names that factorizations with pivoting have.
fn pivoted_kind(kind: &str) -> PyResult<PivotedKind> {
    match kind {
        "hermitian" => Ok(PivotedKind::Hermitian),
        "symmetric" => Ok(PivotedKind::Symmetric),
        "unsymmetric" => Ok(PivotedKind::Unsymmetric),
        _ => Err(argument(format!("factorize: kind {kind:?}"))),
    }
}

fn pivot_rule(kind: &str) -> PyResult<PivotRule> {
    Ok(PivotRule {
        kind: pivoted_kind(kind)?,
        threshold: THRESHOLD,
        zero: ZERO_PIVOT,
        perturbation: PERTURBATION,
    })
}

fn dtype_of(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| argument(format!("a factor of {name}")))
}

#[pymethods]
impl PyAnalysis {
    #[getter]
    fn rows(&self) -> u64 {
        self.analysis.rows()
    }

    /// The ordering that was taken: "nd", "amd", "natural" or "given"; None where the analysis was not made of a pattern.
    #[getter]
    fn ordering(&self) -> Option<&'static str> {
        self.ordering
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
        let (of, places) = (
            PyArray1::<i64>::zeros(py, order.len(), false),
            PyArray1::zeros(py, order.len(), false),
        );
        let (mut rows, mut known) = (of.readwrite(), places.readwrite());
        if let (Ok(rows), Ok(known)) = (rows.as_slice_mut(), known.as_slice_mut()) {
            for (place, &row) in order.iter().enumerate() {
                (rows[place], known[row as usize]) = (i64::from(row), place as i64);
            }
        }
        drop((rows, known));
        (of, places)
    }

    /// The tolerance of tiles of low rank; None where tiles are full.
    #[getter]
    fn low_rank(&self) -> Option<f64> {
        self.analysis.low_rank
    }

    /// The factor of a type of a stored matrix whose rows and columns are in the order of elimination; scaled where scales of
    /// rows and columns are given.
    #[pyo3(signature = (permuted, dtype, scales=None))]
    fn cholesky(
        &self,
        permuted: PyRef<'_, PySparse>,
        dtype: &str,
        scales: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<PyExpr> {
        let scales = scales.map(|scales| scales.as_slice().map(Into::into)).transpose()?;
        let factor = solve::cholesky(&self.analysis, &permuted.matrix()?, dtype_of(dtype)?, scales);
        factor.map(PyExpr::new).map_err(to_python)
    }

    /// The solution for right-hand sides (rows, count) in the order of elimination, by the tiles of a factor.
    fn solve(&self, factor: PyRef<'_, PyExpr>, dtype: &str, b: PyRef<'_, PyExpr>) -> PyResult<PyExpr> {
        let dtype = DType::from_name(dtype).ok_or_else(|| argument(format!("solve: a factor of {dtype}")))?;
        solve::solved(&self.analysis, &factor.0, dtype, &b.0)
            .map(PyExpr::new)
            .map_err(to_python)
    }

    /// Elements of the inverse by the tiles of a factor, at places on and below the diagonal in the order of elimination:
    /// in another order, with the number of each.
    fn selected_inverse<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        factor: PyRef<'_, PyExpr>,
        dtype: &str,
        rows: PyReadonlyArray1<'py, u32>,
        columns: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<(PyExpr, Bound<'py, PyArray1<u32>>)> {
        let (rows, columns) = (rows.as_slice()?, columns.as_slice()?);
        let (session, analysis) = (session.0.clone(), &self.analysis);
        let (wanted, numbers) = watching_signals(py, |_| {
            // Places, sorted with their tiles and numbers, and in their new order.
            let _room = session.set_aside("inverse_entries", WANTED_BYTES * rows.len() as u64)?;
            let places: Vec<[u32; 2]> = rows.iter().zip(columns).map(|(row, column)| [*row, *column]).collect();
            solve::WantedPlaces::new(analysis, &places)
        })?;
        let elements = solve::selected_inverse(analysis, &factor.0, dtype_of(dtype)?, Arc::new(wanted));
        Ok((
            PyExpr::new(elements.map_err(to_python)?),
            PyArray1::from_vec(py, numbers),
        ))
    }

    /// Scales of rows and columns, and the columns, in the order of elimination; nothing where the matrix is not scaled.
    fn scaling<'py>(&self, py: Python<'py>) -> Option<PyScaling<'py>> {
        let scaling = self.scaling.as_ref()?;
        let order = scaling.order.iter().map(|column| i64::from(*column));
        Some((
            PyArray1::from_slice(py, &scaling.rows),
            PyArray1::from_slice(py, &scaling.columns),
            PyArray1::from_iter(py, order),
        ))
    }

    /// The factor with pivoting of a stored matrix whose rows and columns are in the order of elimination, and of its
    /// transpose where it is not symmetric.
    #[pyo3(signature = (permuted, kind, transpose=None))]
    fn pivoted(
        &self,
        permuted: PyRef<'_, PySparse>,
        kind: &str,
        transpose: Option<PyRef<'_, PySparse>>,
    ) -> PyResult<PyExpr> {
        let scaling = self
            .scaling
            .clone()
            .ok_or_else(|| argument("factorize: the matrix is not scaled"))?;
        let of = PivotedMatrix {
            analysis: self.analysis.clone(),
            matrix: permuted.matrix()?,
            transpose: transpose.map(|transpose| transpose.matrix()).transpose()?,
            scaling,
            rule: pivot_rule(kind)?,
        };
        solve::pivoted(&of).map(PyExpr::new).map_err(to_python)
    }

    /// As `solve`, by a factor with pivoting: `trans` 0 of A, 1 of its transpose, 2 of its adjoint.
    fn pivoted_solve(
        &self,
        factor: PyRef<'_, PyExpr>,
        dtype: &str,
        b: PyRef<'_, PyExpr>,
        kind: &str,
        trans: u8,
    ) -> PyResult<PyExpr> {
        let of = self.pivoted_factor(&factor, kind, transposition(trans)?)?;
        solve::pivoted_solved(&of, dtype_of(dtype)?, &b.0)
            .map(PyExpr::new)
            .map_err(to_python)
    }

    /// Facts of the pivots of a factor: log |det|, its sign (two parts), positive, negative, perturbed pivots, delays.
    fn pivot_facts(&self, factor: PyRef<'_, PyExpr>, dtype: &str, kind: &str) -> PyResult<PyExpr> {
        let of = self.pivoted_factor(&factor, kind, Transposition::None)?;
        solve::pivot_facts(&of, dtype_of(dtype)?)
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

type PyScaling<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
);

impl PyAnalysis {
    fn pivoted_factor(&self, factor: &PyExpr, kind: &str, turn: Transposition) -> PyResult<PivotedFactor> {
        Ok(PivotedFactor {
            analysis: self.analysis.clone(),
            tiles: factor.0.clone(),
            kind: pivoted_kind(kind)?,
            turn,
        })
    }
}

/// Analyzes a stored matrix; `order` is a name, or `given` has the rows.
#[pyfunction]
#[pyo3(signature = (session, matrix, order, given=None, pairing="nothing", low_rank=None))]
fn analyze(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    matrix: PyRef<'_, PySparse>,
    order: &str,
    given: Option<PyReadonlyArray1<'_, u32>>,
    pairing: &str,
    low_rank: Option<f64>,
) -> PyResult<PyAnalysis> {
    let pairing = match pairing {
        "symmetric" => Pairing::Symmetric,
        "unsymmetric" => Pairing::Unsymmetric,
        _ => Pairing::Nothing,
    };
    let ordering = match (order, given) {
        ("given", Some(given)) => EliminationOrder::Given(given.as_slice()?.to_vec()),
        ("auto", None) => EliminationOrder::Auto,
        ("nd", None) => EliminationOrder::NestedDissection,
        ("amd", None) => EliminationOrder::MinimumDegree,
        ("natural", None) => EliminationOrder::Natural,
        _ => return Err(argument(format!("analyze: ordering {order:?}"))),
    };
    let (session, matrix) = (session.0.clone(), matrix.matrix()?);
    let OrderedAnalysis {
        analysis,
        taken,
        scaling,
    } = watching_signals(py, |watch| {
        let matrix = AnalyzedMatrix {
            matrix: &matrix,
            ordering,
            pairing,
            low_rank,
        };
        LiveRun::new(session.clone()).work(&matrix, watch)
    })?;
    let bytes = analysis_bytes(&analysis, scaling.is_some());
    let held = session.hold_beside("analyze", bytes).map_err(to_python)?;
    Ok(PyAnalysis {
        analysis: Arc::new(analysis),
        scaling,
        ordering: Some(taken.name()),
        _held: held,
    })
}

/// The factor with pivoting of a dense symmetric matrix as a result, and its analysis.
#[pyfunction]
fn dense_ldl(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    x: PyRef<'_, PyExpr>,
    scales: PyReadonlyArray1<'_, f64>,
    order: PyReadonlyArray1<'_, u32>,
    kind: &str,
) -> PyResult<(PyAnalysis, PyExpr)> {
    let (session, x) = (session.0.clone(), x.0.clone());
    let scales: Arc<[f64]> = scales.as_slice()?.into();
    let scaling = PivotScaling {
        rows: scales.clone(),
        columns: scales,
        order: order.as_slice()?.into(),
    };
    let rule = pivot_rule(kind)?;
    let (analysis, factor, held) = watching_signals(py, |_| {
        let (analysis, factor) = solve::dense_ldl(&x, scaling.clone(), rule)?;
        let held = session.hold_beside("ldl", analysis_bytes(&analysis, true))?;
        Ok((analysis, factor, held))
    })?;
    let analysis = PyAnalysis {
        analysis,
        scaling: Some(scaling),
        ordering: None,
        _held: held,
    };
    Ok((analysis, PyExpr::new(factor)))
}

/// The factor of a dense matrix as a result, and its analysis.
#[pyfunction]
#[pyo3(signature = (session, x, low_rank=None))]
fn dense_cholesky(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    x: PyRef<'_, PyExpr>,
    low_rank: Option<f64>,
) -> PyResult<(PyAnalysis, PyExpr)> {
    let (session, x) = (session.0.clone(), x.0.clone());
    let (analysis, factor, held) = watching_signals(py, |_| {
        let (analysis, factor) = solve::dense_cholesky(&x, low_rank)?;
        let held = session.hold_beside("cholesky", analysis.bytes())?;
        Ok((analysis, factor, held))
    })?;
    let analysis = PyAnalysis {
        analysis,
        scaling: None,
        ordering: None,
        _held: held,
    };
    Ok((analysis, PyExpr::new(factor)))
}

/// Whether what was begun or is there at a path is this factor; nothing where there is nothing.
#[pyfunction]
fn is_begun_for(node: PyRef<'_, PyExpr>, path: PathBuf) -> PyResult<Option<bool>> {
    outcore_engine::run::is_begun_for(&node.0, &path).map_err(to_python)
}

/// SciPy's numbers: of A, of its transpose, of its adjoint.
pub(super) fn transposition(trans: u8) -> PyResult<Transposition> {
    Transposition::numbered(trans.into()).ok_or_else(|| argument(format!("solve: trans={trans} is not 0, 1 or 2")))
}

/// The tiles of a factor in a file.
#[pyclass(frozen, name = "Factor", module = "outcore._core")]
pub struct PyFactor(pub(super) Arc<FactorFile>);

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
        self.0.taken_bytes()
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

/// What a file of a factor says of it: its analysis, how it was scaled, and its kind; nothing of positive definite ones.
type OpenedAnalysis = (Arc<Analysis>, Option<(PivotScaling, PivotedKind)>);

fn opened(sections: &[&[u8]], tiles: &[u64], item: u64) -> Result<OpenedAnalysis, &'static str> {
    if SlabCut::is_record(sections) || QrCut::is_record(sections) {
        return Err("a dense LU or QR factor: linalg.open_factor opens it");
    }
    if sections.len() != PivotedRecord::SECTIONS {
        return Ok((Arc::new(Analysis::restored(sections, tiles, item)?), None));
    }
    let record = PivotedRecord::restored(sections, tiles, item)?;
    Ok((record.analysis, Some((record.scaling, record.kind))))
}

/// Opens a factor, with the analysis that it was made by, and its kind.
#[pyfunction]
fn open_factor_file(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    path: PathBuf,
) -> PyResult<(PyAnalysis, PyFactor, &'static str)> {
    let session = session.0.clone();
    let ((analysis, pivoted), file, held) = watching_signals(py, |_| {
        let file = open_factor(&path, session.io())?;
        // The record, its sections, and the analysis.
        let room = session.set_aside("open factor", 2 * file.record_bytes())?;
        let item = file.element().size() as u64;
        let tiles = file.listed().unwrap_or_default();
        let restored = file.with_record(session.io(), |sections| opened(sections, &tiles, item))?;
        let restored = restored.map_err(|reason| file.malformed(reason))?;
        if restored.0.rows() != file.rows() {
            return Err(file.malformed("the record is of another matrix").into());
        }
        let bytes = analysis_bytes(&restored.0, restored.1.is_some());
        // Who holds the room has the turn, which what is held next waits for.
        drop(room);
        let held = session.hold_beside("open factor", bytes)?;
        Ok((restored, file, held))
    })?;
    let kind = match &pivoted {
        None => "definite",
        Some((_, PivotedKind::Hermitian)) => "hermitian",
        Some((_, PivotedKind::Symmetric)) => "symmetric",
        Some((_, PivotedKind::Unsymmetric)) => "unsymmetric",
    };
    let analysis = PyAnalysis {
        analysis,
        scaling: pivoted.map(|(scaling, _)| scaling),
        ordering: None,
        _held: held,
    };
    Ok((analysis, PyFactor(Arc::new(file)), kind))
}

/// Bytes of an analysis, its orders and scales, and those that the caller takes as arrays.
fn analysis_bytes(analysis: &Analysis, is_scaled: bool) -> u64 {
    let scales = if is_scaled { 2 * (8 + 8 + 4) + 2 * 8 } else { 0 };
    analysis.bytes() + (2 * 8 + scales) * analysis.rows()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyAnalysis>()?;
    module.add_class::<PyFactor>()?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(dense_cholesky, module)?)?;
    module.add_function(wrap_pyfunction!(dense_ldl, module)?)?;
    module.add_function(wrap_pyfunction!(is_begun_for, module)?)?;
    module.add_function(wrap_pyfunction!(open_factor_file, module)?)?;
    module.add_function(wrap_pyfunction!(open_factor_tiles, module)?)
}
