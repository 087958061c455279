//! LU and QR factors, and eigenvalues, of dense matrices.

use std::path::PathBuf;
use std::sync::Arc;

use outcore_engine::solve::{self, QrCut, SlabCut};
use outcore_store::{open_factor, Source};
use pyo3::prelude::*;

use super::solving::{transposition, PyFactor};
use crate::arrays::node::PyExpr;
use crate::base::errors::to_python;
use crate::session::PySession;

/// The cut of a dense LU factor.
#[pyclass(frozen, name = "DenseLu", module = "outcore._core")]
pub struct PyDenseLu(SlabCut);

#[pymethods]
impl PyDenseLu {
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    /// The solution for right-hand sides (rows, count) by the tiles of a factor: of A (0), its transpose (1) or adjoint (2).
    fn solve(&self, factor: PyRef<'_, PyExpr>, b: PyRef<'_, PyExpr>, trans: u8) -> PyResult<PyExpr> {
        let solved = solve::lu_solved(&self.0, &factor.0, &b.0, transposition(trans)?);
        solved.map(PyExpr::new).map_err(to_python)
    }

    /// Sums over the pivots of a factor, and of each row the one that it was exchanged with.
    fn pivots(&self, factor: PyRef<'_, PyExpr>) -> PyResult<[PyExpr; 2]> {
        let pivots = solve::lu_pivots(&self.0, &factor.0).map_err(to_python)?;
        Ok(pivots.map(PyExpr::new))
    }
}

/// The LU factor of a dense matrix as a result, and its cut.
#[pyfunction]
fn dense_lu(x: PyRef<'_, PyExpr>, allows_singular: bool) -> PyResult<(PyDenseLu, PyExpr)> {
    let (cut, factor) = solve::dense_lu(&x.0, allows_singular).map_err(to_python)?;
    Ok((PyDenseLu(cut), PyExpr::new(factor)))
}

/// The cut of a dense QR factor.
#[pyclass(frozen, name = "DenseQr", module = "outcore._core")]
pub struct PyDenseQr(QrCut);

#[pymethods]
impl PyDenseQr {
    #[getter]
    fn shape(&self) -> [u64; 2] {
        [self.0.rows(), self.0.columns()]
    }

    /// Q X or, `adjoint`, Qᴴ X by the tiles of a factor.
    fn product(&self, factor: PyRef<'_, PyExpr>, x: PyRef<'_, PyExpr>, adjoint: bool) -> PyResult<PyExpr> {
        let product = solve::qr_product(&self.0, &factor.0, &x.0, adjoint);
        product.map(PyExpr::new).map_err(to_python)
    }

    /// The first columns of Q.
    fn basis(&self, factor: PyRef<'_, PyExpr>, columns: u64) -> PyResult<PyExpr> {
        let basis = solve::qr_basis(&self.0, &factor.0, columns);
        basis.map(PyExpr::new).map_err(to_python)
    }

    /// R.
    fn triangle(&self, factor: PyRef<'_, PyExpr>) -> PyResult<PyExpr> {
        let triangle = solve::qr_triangle(&self.0, &factor.0);
        triangle.map(PyExpr::new).map_err(to_python)
    }

    /// The X of the least |A X − B|, and Qᴴ B.
    fn least_squares(&self, factor: PyRef<'_, PyExpr>, b: PyRef<'_, PyExpr>) -> PyResult<[PyExpr; 2]> {
        let results = solve::qr_least_squares(&self.0, &factor.0, &b.0).map_err(to_python)?;
        Ok(results.map(PyExpr::new))
    }
}

/// The QR factor of a dense matrix as a result, and its cut.
#[pyfunction]
fn dense_qr(x: PyRef<'_, PyExpr>) -> PyResult<(PyDenseQr, PyExpr)> {
    let (cut, factor) = solve::dense_qr(&x.0).map_err(to_python)?;
    Ok((PyDenseQr(cut), PyExpr::new(factor)))
}

/// Eigenvalues of a dense Hermitian matrix and, where a range of them is asked for, eigenvectors.
#[pyfunction]
fn dense_hermitian(x: PyRef<'_, PyExpr>, columns: Option<(u64, u64)>) -> PyResult<Vec<PyExpr>> {
    let columns = columns.map(|(first, end)| first..end);
    let results = solve::hermitian(&x.0, columns).map_err(to_python)?;
    Ok(results.into_iter().map(PyExpr::new).collect())
}

/// The lower triangle of a dense positive definite matrix of several tiles.
#[pyfunction]
fn cholesky_lower(x: PyRef<'_, PyExpr>) -> PyResult<PyExpr> {
    solve::cholesky_lower(&x.0).map(PyExpr::new).map_err(to_python)
}

/// The solution of systems with a dense triangular matrix (0), its transpose (1) or its adjoint (2).
#[pyfunction]
fn triangular_solved(
    t: PyRef<'_, PyExpr>,
    b: PyRef<'_, PyExpr>,
    is_lower: bool,
    has_unit_diagonal: bool,
    trans: u8,
) -> PyResult<PyExpr> {
    let solved = solve::triangular_solved(&t.0, &b.0, [is_lower, has_unit_diagonal], transposition(trans)?);
    solved.map(PyExpr::new).map_err(to_python)
}

/// Opens a factor of a dense matrix.
#[pyfunction]
fn open_dense_file(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<(Py<PyAny>, PyFactor)> {
    let io = session.0.io();
    let file = open_factor(&path, io).map_err(|error| to_python(error.into()))?;
    let tiles = file.listed().unwrap_or_default();
    let (rows, dtype) = (file.rows(), file.element());
    let cut = file.with_record(io, |sections| match SlabCut::is_record(sections) {
        true => SlabCut::restored(rows, dtype, sections, &tiles).map(DenseCut::Lu),
        false if QrCut::is_record(sections) => QrCut::restored(rows, dtype, sections, &tiles).map(DenseCut::Qr),
        false => Err("a factor of a sparse matrix, or a Cholesky factor: sparse.linalg.open_factor opens it".into()),
    });
    let cut = cut
        .and_then(|cut| cut.map_err(|reason| file.malformed(reason)))
        .map_err(|error| to_python(error.into()))?;
    let cut = match cut {
        DenseCut::Lu(cut) => Py::new(py, PyDenseLu(cut))?.into_any(),
        DenseCut::Qr(cut) => Py::new(py, PyDenseQr(cut))?.into_any(),
    };
    Ok((cut, PyFactor(Arc::new(file))))
}

/// The cut of a factor in a file.
enum DenseCut {
    Lu(SlabCut),
    Qr(QrCut),
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDenseLu>()?;
    module.add_class::<PyDenseQr>()?;
    module.add_function(wrap_pyfunction!(cholesky_lower, module)?)?;
    module.add_function(wrap_pyfunction!(triangular_solved, module)?)?;
    module.add_function(wrap_pyfunction!(dense_hermitian, module)?)?;
    module.add_function(wrap_pyfunction!(dense_lu, module)?)?;
    module.add_function(wrap_pyfunction!(dense_qr, module)?)?;
    module.add_function(wrap_pyfunction!(open_dense_file, module)?)?;
    Ok(())
}
