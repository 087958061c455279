//! Stored sparse matrices: opened, multiplied with dense ones, read.

use std::path::PathBuf;

use numpy::PyArray1;
use outcore_dtype::DType;
use outcore_engine::expr::Expr;
use outcore_engine::sparse::{self, Duplicates, Semiring, SparseMatrix};
use outcore_store::{Source, SparseShape};
use pyo3::prelude::*;

use crate::arrays::node::PyExpr;
use crate::base::errors::{argument, to_python};
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// The type of the values of a matrix; "pattern" for none.
pub fn values_named(name: &str) -> PyResult<Option<DType>> {
    match name {
        "pattern" => Ok(None),
        name => DType::from_name(name)
            .map(Some)
            .ok_or_else(|| argument(format!("sparse: values of {name}"))),
    }
}

pub fn semiring_named(name: &str) -> PyResult<Semiring> {
    Semiring::named(name).ok_or_else(|| argument(format!("sparse product: no semiring is called {name}")))
}

pub fn duplicates_named(name: &str) -> PyResult<Duplicates> {
    match name {
        "sum" => Ok(Duplicates::Sum),
        "last" => Ok(Duplicates::Last),
        "refuse" => Ok(Duplicates::Refuse),
        other => Err(argument(format!("sparse: duplicates={other:?}"))),
    }
}

/// The shape of a matrix whose entries are not counted yet.
pub fn shape_of((rows, columns): (u64, u64), side: u32, dtype: &str) -> PyResult<SparseShape> {
    Ok(SparseShape {
        rows,
        columns,
        side,
        entries: 0,
        dtype: values_named(dtype)?,
    })
}

#[pyclass(frozen, name = "Sparse", module = "outcore._core")]
pub struct PySparse(pub SparseMatrix);

#[pymethods]
impl PySparse {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        let matrix = self.0.file.matrix();
        (matrix.rows, matrix.columns)
    }

    #[getter]
    fn entries(&self) -> u64 {
        self.0.file.matrix().entries
    }

    /// Of the values; "pattern" where there are none.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.0.file.matrix().dtype;
        dtype.map_or("pattern".into(), |dtype| dtype.to_string())
    }

    /// Whether tiles lie in the file as they are multiplied; else they are made of rows as these are read.
    #[getter]
    fn is_tiled(&self) -> bool {
        self.0.file.is_tiled()
    }

    #[getter]
    fn side(&self) -> u32 {
        self.0.file.matrix().side
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.0.file.file_bytes()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.0.file.path().to_path_buf()
    }

    /// Equal where the bytes are.
    #[getter]
    fn identity(&self) -> String {
        self.0.file.identity().to_string()
    }

    /// Tiles that are read one by one.
    #[getter]
    fn tiles(&self) -> usize {
        self.0.file.tiles()
    }

    /// The matrix, or its transpose, times a dense one.
    fn product(&self, x: &PyExpr, transposed: bool, semiring: &str) -> PyResult<PyExpr> {
        let product = sparse::product(&self.0, transposed, &x.0, semiring_named(semiring)?);
        product.map(PyExpr::new).map_err(to_python)
    }

    /// Entries of a tile.
    fn entries_of(&self, tile: usize) -> u64 {
        self.0.entries_of(tile)
    }

    /// Rows, columns and the bytes of the values of a tile's entries.
    #[allow(clippy::type_complexity)] // three arrays
    fn read<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        tile: usize,
    ) -> PyResult<(
        Bound<'py, PyArray1<u64>>,
        Bound<'py, PyArray1<u64>>,
        Bound<'py, PyArray1<u8>>,
    )> {
        if tile >= self.0.file.tiles() {
            return Err(argument(format!("sparse: tile {tile} of {}", self.0.file.tiles())));
        }
        let (matrix, session) = (self.0.clone(), session.0.clone());
        let found = py.detach(|| matrix.entries(tile, session.io())).map_err(to_python)?;
        Ok((
            PyArray1::from_vec(py, found.rows),
            PyArray1::from_vec(py, found.columns),
            PyArray1::from_vec(py, found.values),
        ))
    }
}

/// Opens a stored sparse matrix.
#[pyfunction]
fn open_sparse(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PySparse> {
    let session = session.0.clone();
    watching_signals(py, |_| sparse::open(&path, session.io())).map(PySparse)
}

/// Opens compressed rows: row pointers, columns and values, if any, as stored arrays.
#[pyfunction]
#[pyo3(signature = (session, name, indptr, indices, data, shape, side))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn open_rows(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    name: String,
    indptr: PyRef<'_, PyExpr>,
    indices: PyRef<'_, PyExpr>,
    data: Option<PyRef<'_, PyExpr>>,
    shape: (u64, u64),
    side: u32,
) -> PyResult<PySparse> {
    let io = session.0.io().clone();
    let (indptr, indices): (Expr, Expr) = (indptr.0.clone(), indices.0.clone());
    let data: Option<Expr> = data.map(|data| data.0.clone());
    let opened = py.detach(|| sparse::open_rows(name, [&indptr, &indices], data.as_ref(), shape.into(), side, &io));
    Ok(PySparse(opened.map_err(to_python)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySparse>()?;
    module.add_function(wrap_pyfunction!(open_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(open_rows, module)?)
}
