//! Stored sparse matrices: opened, multiplied with dense ones, read.

use std::path::PathBuf;

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_dtype::DType;
use outcore_engine::expr::Expr;
use outcore_engine::sparse::{
    self, DenseOperand, Duplicates, Field, Formula, KeyedMatrix, PartPlaces, Rearrangement, Semiring, SparseMatrix,
    SparseOperand,
};
use outcore_store::{Interval, Source, SparseShape};
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
    Semiring::named(name).ok_or_else(|| {
        let names: Vec<&str> = Semiring::ALL.iter().map(|(name, _)| *name).collect();
        argument(format!(
            "sparse product: no semiring is called {name}; there are {}",
            names.join(", ")
        ))
    })
}

pub fn duplicates_named(name: &str) -> PyResult<Duplicates> {
    match name {
        "sum" => Ok(Duplicates::Sum),
        "last" => Ok(Duplicates::Last),
        "refuse" => Ok(Duplicates::Refuse),
        other => Err(argument(format!(
            "sparse: duplicates={other:?} is none of \"sum\", \"last\", \"any\" and \"refuse\""
        ))),
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

fn expr_of(node: &PyExpr) -> &Expr {
    &node.0
}

#[pyclass(frozen, name = "Sparse", module = "outcore._core")]
pub struct PySparse(pub SparseOperand);

impl PySparse {
    pub fn of(matrix: SparseMatrix) -> PySparse {
        PySparse(SparseOperand::Stored(matrix))
    }

    /// The matrix in its file.
    pub fn matrix(&self) -> PyResult<SparseMatrix> {
        self.0
            .stored()
            .ok_or_else(|| argument("sparse: the matrix is not made yet"))
    }
}

#[pymethods]
impl PySparse {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        let matrix = self.0.shape();
        (matrix.rows, matrix.columns)
    }

    /// How many entries it has, where that is known without reading.
    #[getter]
    fn entries(&self) -> Option<u64> {
        let matrix = self.0.stored()?;
        let keeps_all = matrix.formula.as_ref().is_none_or(|formula| formula.keeps_all());
        keeps_all.then_some(matrix.file.matrix().entries)
    }

    /// Whether it is in a file.
    #[getter]
    fn is_made(&self) -> bool {
        self.0.stored().is_some()
    }

    /// Whether it is the result of an operator.
    #[getter]
    fn is_result(&self) -> bool {
        matches!(self.0, SparseOperand::Unmade(_))
    }

    /// The result that becomes its file.
    #[getter]
    fn result_node(&self) -> PyExpr {
        PyExpr::new(self.0.node().clone())
    }

    /// Says in which file it is.
    fn made_in(&self, file: PyRef<'_, PySparse>) -> PyResult<()> {
        self.0.made_in(&file.matrix()?.file);
        Ok(())
    }

    /// Of the values; "pattern" where there are none.
    #[getter]
    fn dtype(&self) -> String {
        self.0.dtype().map_or("pattern".into(), |dtype| dtype.to_string())
    }

    /// Whether tiles lie in the file as they are multiplied; else they are made of rows as these are read.
    #[getter]
    fn is_tiled(&self) -> PyResult<bool> {
        Ok(self.matrix()?.file.is_tiled())
    }

    #[getter]
    fn side(&self) -> u32 {
        self.0.shape().side
    }

    #[getter]
    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.matrix()?.file.file_bytes())
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.matrix()?.file.path().to_path_buf())
    }

    /// Its tiles, as a node.
    #[getter]
    fn tiles_node(&self) -> PyResult<PyExpr> {
        Ok(PyExpr::new(self.matrix()?.tiles))
    }

    /// Equal where the entries are.
    #[getter]
    fn identity(&self) -> PyResult<String> {
        Ok(self.matrix()?.identity())
    }

    /// Whether the entries are those of the file, as they are stored.
    #[getter]
    fn is_plain(&self) -> bool {
        self.0.stored().is_some_and(|matrix| matrix.formula.is_none())
    }

    /// The matrix whose entries are functions of those of this file: its values, of a type ("pattern" for none), and which
    /// are kept.
    #[pyo3(signature = (value, kept, dtype))]
    fn changed(&self, value: Option<&PyExpr>, kept: Option<&PyExpr>, dtype: &str) -> PyResult<PySparse> {
        let types = [self.0.shape().dtype, values_named(dtype)?];
        let formula = Formula::new(value.map(expr_of), kept.map(expr_of), types).map_err(to_python)?;
        self.0.with_formula(formula).map(PySparse).map_err(to_python)
    }

    /// The matrix as a result that is stored.
    fn stored(&self) -> PyResult<PyExpr> {
        sparse::stored(&self.0).map(PyExpr::new).map_err(to_python)
    }

    /// This matrix and another, place by place: the values, of a type ("pattern" for none), and which are kept.
    #[pyo3(signature = (other, value, kept, dtype))]
    fn combined(
        &self,
        other: PyRef<'_, PySparse>,
        value: Option<&PyExpr>,
        kept: Option<&PyExpr>,
        dtype: &str,
    ) -> PyResult<PySparse> {
        let types = [None, values_named(dtype)?];
        let formula = Formula::new(value.map(expr_of), kept.map(expr_of), types).map_err(to_python)?;
        let combined = sparse::combined(&self.0, &other.0, formula);
        combined.map(PySparse).map_err(to_python)
    }

    /// The entries at other places, in tiles of a side: keys over the fields of an entry say where.
    fn rearranged(&self, keys: Vec<PyRef<'_, PyExpr>>, shape: (u64, u64), side: u32) -> PyResult<PySparse> {
        let keys = keys.iter().map(|key| key.0.clone()).collect();
        let shape = shape_of(shape, side, "pattern")?;
        let rearrangement = Rearrangement::new(keys, shape).map_err(to_python)?;
        sparse::rearranged(&self.0, rearrangement)
            .map(PySparse)
            .map_err(to_python)
    }

    /// Columns of the entries of the file, in their order: an array of each function of their fields.
    fn columns(&self, nodes: Vec<PyRef<'_, PyExpr>>) -> PyResult<Vec<PyExpr>> {
        let matrix = self.matrix()?;
        let stored = matrix.file.matrix().dtype;
        let formula = |node: &PyRef<'_, PyExpr>| {
            let types = [stored, Some(node.0.dtype)];
            Formula::new(Some(&node.0), None, types).map(Arc::new)
        };
        let formulas = nodes.iter().map(formula).collect::<Result<_, _>>().map_err(to_python)?;
        let columns = sparse::entry_columns(&matrix, formulas).map_err(to_python)?;
        Ok(columns.into_iter().map(PyExpr::new).collect())
    }

    /// Rows that lie beside each other, by the first and their number, and columns, by the first, the distance to the next
    /// and their number.
    fn part(&self, rows: (u64, u64), columns: (u64, u64, u64)) -> PyResult<PySparse> {
        let places = PartPlaces {
            rows: Interval::new(rows.0, rows.1),
            columns: columns.into(),
        };
        sparse::part(&self.0, places).map(PySparse).map_err(to_python)
    }

    /// The same in a file of scratch, which from now on goes with its last reader.
    fn hold(&self, session: PyRef<'_, PySession>) -> PyResult<PySparse> {
        let file = session.0.hold_sparse(&self.matrix()?.file).map_err(to_python)?;
        sparse::of_file(file).map(PySparse::of).map_err(to_python)
    }

    /// Whether it goes with its last reader.
    #[getter]
    fn is_held(&self) -> bool {
        self.0.stored().is_none_or(|matrix| matrix.file.goes_with_readers())
    }

    /// Bytes that reading a tile takes beside its entries.
    fn reading_bytes(&self, tile: usize) -> PyResult<u64> {
        Ok(self.matrix()?.reading_bytes(tile))
    }

    /// Tiles that are read one by one.
    #[getter]
    fn tiles(&self) -> PyResult<usize> {
        Ok(self.matrix()?.file.tiles())
    }

    /// The matrix, or its transpose, times a dense one.
    fn product(&self, x: &PyExpr, transposed: bool, semiring: &str) -> PyResult<PyExpr> {
        let product = sparse::product(&self.0, transposed, &x.0, semiring_named(semiring)?);
        product.map(PyExpr::new).map_err(to_python)
    }

    /// Entries of a tile.
    fn entries_of(&self, tile: usize) -> PyResult<u64> {
        Ok(self.matrix()?.entries_of(tile))
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
        let (matrix, session) = (self.matrix()?, session.0.clone());
        if tile >= matrix.file.tiles() {
            return Err(argument(format!("sparse: tile {tile} of {}", matrix.file.tiles())));
        }
        let found = py.detach(|| matrix.entries(tile, session.io())).map_err(to_python)?;
        Ok((
            PyArray1::from_vec(py, found.rows),
            PyArray1::from_vec(py, found.columns),
            PyArray1::from_vec(py, found.values),
        ))
    }
}

/// The node that stands for a field of an entry in formulas: "value" or "other", of a type, "row" or "column".
#[pyfunction]
#[pyo3(signature = (name, dtype=None))]
fn entry_field(name: &str, dtype: Option<&str>) -> PyResult<PyExpr> {
    let dtype = || values_named(dtype.unwrap_or("bool")).map(|dtype| dtype.unwrap_or(DType::Bool));
    let field = match name {
        "value" => Field::Value(dtype()?),
        "other" => Field::Other(dtype()?),
        "row" => Field::Row,
        "column" => Field::Column,
        name => return Err(argument(format!("sparse: an entry has no {name}"))),
    };
    field.node().map(PyExpr::new).map_err(to_python)
}

/// The node that stands for the element of a dense operand at an entry's place: of a column, a row, or a matrix whose rows
/// and columns are those of the file.
#[pyfunction]
fn entry_operand(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    shape: (u64, u64),
    elements: PyReadonlyArray1<'_, u8>,
    dtype: &str,
) -> PyResult<PyExpr> {
    let dtype = values_named(dtype)?.unwrap_or(DType::Bool);
    let (elements, session) = (elements.as_slice()?, session.0.clone());
    let held = py.detach(|| session.hold_beside("sparse multiply", elements.len() as u64));
    let elements = DenseOperand::new(elements, held.map_err(to_python)?);
    let field = match shape {
        (_, 1) => Field::AtRow(dtype, elements),
        (1, _) => Field::AtColumn(dtype, elements),
        (_, width) => Field::AtPlace(dtype, elements, width),
    };
    field.node().map(PyExpr::new).map_err(to_python)
}

/// Raises where no semiring has such a name.
#[pyfunction]
fn check_semiring(name: &str) -> PyResult<()> {
    semiring_named(name).map(drop)
}

/// The file of a sparse matrix whose tiles a node is; nothing for another node.
#[pyfunction]
fn sparse_file(node: &PyExpr) -> Option<PathBuf> {
    let matrix = sparse::of_tiles(&node.0).ok()?;
    matrix.file.is_tiled().then(|| matrix.file.path().to_path_buf())
}

/// The matrix that a result becomes, of a shape, in tiles of a side, with values of a type ("pattern" for none).
#[pyfunction]
fn sparse_result(node: &PyExpr, shape: (u64, u64), side: u32, dtype: &str) -> PyResult<PySparse> {
    let shape = shape_of(shape, side, dtype)?;
    Ok(PySparse(SparseOperand::of_result(node.0.clone(), shape)))
}

/// The matrix of entries that are columns: keys, the most significant first, then values, unless `dtype` is "pattern".
#[pyfunction]
fn keyed_sparse(
    columns: Vec<PyRef<'_, PyExpr>>,
    keys: usize,
    shape: (u64, u64),
    side: u32,
    dtype: &str,
) -> PyResult<PySparse> {
    let columns: Vec<Expr> = columns.iter().map(|column| column.0.clone()).collect();
    let matrix = KeyedMatrix::new(shape_of(shape, side, dtype)?, keys).map_err(to_python)?;
    sparse::keyed(matrix, &columns).map(PySparse).map_err(to_python)
}

/// Opens a stored sparse matrix.
#[pyfunction]
fn open_sparse(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PySparse> {
    let session = session.0.clone();
    watching_signals(py, |_| sparse::open(&path, session.io())).map(PySparse::of)
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
    opened.map(PySparse::of).map_err(to_python)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySparse>()?;
    module.add_function(wrap_pyfunction!(sparse_result, module)?)?;
    module.add_function(wrap_pyfunction!(keyed_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(sparse_file, module)?)?;
    module.add_function(wrap_pyfunction!(check_semiring, module)?)?;
    module.add_function(wrap_pyfunction!(open_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(entry_field, module)?)?;
    module.add_function(wrap_pyfunction!(entry_operand, module)?)?;
    module.add_function(wrap_pyfunction!(open_rows, module)?)
}
