//! Products of two sparse matrices.

use std::path::{Path, PathBuf};

use outcore_dtype::DType;
use outcore_engine::live::LiveRun;
use outcore_engine::sparse::{self, Semiring, SparseMatrix};
use outcore_engine::spgemm::{forecast, SparseProduct, StoredProduct};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::matrix::{semiring_named, values_named, PySparse};
use crate::base::errors::{argument, to_python};
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// The operands of a product of two sparse matrices.
struct ProductOperands {
    first: SparseMatrix,
    second: SparseMatrix,
    mask: Option<SparseMatrix>,
    complement: bool,
    semiring: Semiring,
    dtype: DType,
    stored: Option<DType>,
}

impl ProductOperands {
    /// `types` are that of the sums and that of the values that are stored, "pattern" for none.
    fn new(
        [first, second]: [&PySparse; 2],
        mask: Option<PyRef<'_, PySparse>>,
        complement: bool,
        semiring: &str,
        types: [&str; 2],
    ) -> PyResult<ProductOperands> {
        let (first, second) = (first.matrix()?, second.matrix()?);
        let mask = mask.map(|mask| mask.matrix()).transpose()?;
        let files = [Some(&first), Some(&second), mask.as_ref()];
        if files.into_iter().flatten().any(|matrix| matrix.formula.is_some()) {
            return Err(argument("spgemm: matrices whose entries change are stored first"));
        }
        Ok(ProductOperands {
            first,
            second,
            mask,
            complement,
            semiring: semiring_named(semiring)?,
            dtype: values_named(types[0])?.ok_or_else(|| argument("spgemm: sums have a type"))?,
            stored: values_named(types[1])?,
        })
    }

    fn product<'a>(&'a self, tiles: (usize, usize), path: &'a Path, overwrite: bool) -> StoredProduct<'a> {
        let product = SparseProduct {
            first: &self.first,
            second: &self.second,
            mask: self.mask.as_ref().map(|mask| (mask, self.complement)),
            semiring: self.semiring,
            dtype: self.dtype,
            stored: self.stored,
            tiles: tiles.0..tiles.1.min(self.first.file.tiles()),
        };
        StoredProduct {
            product,
            path,
            overwrite,
        }
    }
}

/// Writes the product of two sparse matrices to `path`, with values of the type `stored` ("pattern" for none): `dtype` is
/// that of the sums, `mask` what places may have entries, or with `complement` may not. Gives the result, opened.
#[pyfunction]
#[pyo3(signature = (session, first, second, mask, complement, semiring, dtype, stored, path, overwrite, tiles))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn spgemm(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    first: PyRef<'_, PySparse>,
    second: PyRef<'_, PySparse>,
    mask: Option<PyRef<'_, PySparse>>,
    complement: bool,
    semiring: &str,
    dtype: &str,
    stored: &str,
    path: PathBuf,
    overwrite: bool,
    tiles: (usize, usize),
) -> PyResult<PySparse> {
    let operands = ProductOperands::new([&first, &second], mask, complement, semiring, [dtype, stored])?;
    let session = session.0.clone();
    let product = operands.product(tiles, &path, overwrite);
    watching_signals(py, |watch| LiveRun::new(session).work(&product, watch)).map(PySparse::of)
}

/// What `spgemm` will read and write, by name.
#[pyfunction]
#[pyo3(signature = (session, first, second, mask, complement, semiring, dtype, stored))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn foresee_spgemm<'py>(
    py: Python<'py>,
    session: PyRef<'py, PySession>,
    first: PyRef<'py, PySparse>,
    second: PyRef<'py, PySparse>,
    mask: Option<PyRef<'py, PySparse>>,
    complement: bool,
    semiring: &str,
    dtype: &str,
    stored: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let operands = ProductOperands::new([&first, &second], mask, complement, semiring, [dtype, stored])?;
    let session = session.0.clone();
    let product = operands.product((0, usize::MAX), Path::new(""), false);
    let said = watching_signals(py, |_| forecast(&product, &session))?;
    let found = PyDict::new(py);
    found.set_item("bytes_read", said.read_bytes)?;
    found.set_item("exact", said.exact)?;
    found.set_item("groups", said.groups)?;
    found.set_item("bytes_written", said.written_bytes)?;
    found.set_item("peak_bytes", said.peak_bytes)?;
    found.set_item("memory_limit", session.options().memory_limit)?;
    found.set_item("overhead_bytes", session.overhead())?;
    found.set_item("budget_bytes", session.budget())?;
    Ok(found)
}

/// Writes the tile rows of several stored matrices to one file.
#[pyfunction]
fn join_sparse(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    parts: Vec<PyRef<'_, PySparse>>,
    path: PathBuf,
    overwrite: bool,
) -> PyResult<u64> {
    let io = session.0.io().clone();
    let parts: Vec<SparseMatrix> = parts.iter().map(|part| part.matrix()).collect::<PyResult<_>>()?;
    let shape = py
        .detach(|| sparse::join(&parts, &path, overwrite, &io))
        .map_err(to_python)?;
    Ok(shape.entries)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(spgemm, module)?)?;
    module.add_function(wrap_pyfunction!(foresee_spgemm, module)?)?;
    module.add_function(wrap_pyfunction!(join_sparse, module)?)
}
