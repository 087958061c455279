//! Stored arrays and groups as nodes.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use outcore_engine::expr::annotations::annotated;
use outcore_engine::ops;
use outcore_store::{ChunkListing, FieldPlace, Opened, RawArray, StoredGroup, StoredObject, StoredRecords};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::session::PySession;
use crate::arrays::annotations::attributes_to_python;
use crate::arrays::node::{built, dtype_named, Built, PyExpr};
use crate::base::errors::{store_error, to_python};
use crate::base::signals::watching_signals;

/// A group of a file or a folder, as it was when it was opened.
#[pyclass(frozen, name = "StoredGroup", module = "outcore._core")]
pub struct PyStoredGroup(StoredGroup);

#[pymethods]
impl PyStoredGroup {
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path.clone()
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.0.format
    }

    /// Names, and whether each is a group.
    #[getter]
    fn members(&self) -> Vec<(String, bool)> {
        let members = self.0.members.iter();
        members.map(|member| (member.name.clone(), member.is_group)).collect()
    }

    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        attributes_to_python(py, &self.0.attributes)
    }
}

/// An array of records or of text, of which fields are arrays of numbers.
#[pyclass(frozen, name = "StoredRecords", module = "outcore._core")]
pub struct PyStoredRecords(StoredRecords);

#[pymethods]
impl PyStoredRecords {
    /// The type of elements, as JSON.
    #[getter]
    fn record(&self) -> &str {
        &self.0.record
    }

    /// Numbers that begin `offset` bytes within each element, along axes of `shape` behind those of the array.
    fn field(&self, offset: u64, shape: Vec<u64>, dtype: &str, is_swapped: bool) -> Built {
        let place = FieldPlace {
            offset,
            shape,
            dtype: dtype_named(dtype)?,
            is_swapped,
        };
        let within = place.shape.len();
        let source = self.0.field(place).map_err(store_error)?;
        let mut opened = Opened {
            source,
            ..self.0.bytes.clone()
        };
        if !opened.annotations.dims.is_empty() {
            opened
                .annotations
                .dims
                .resize(opened.annotations.dims.len() + within, None);
        }
        array(opened)
    }
}

/// The array or the group at a path.
#[pyfunction]
fn find(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let session = session.0.clone();
    match watching_signals(py, |watch| session.find(&path, watch))? {
        StoredObject::Array(opened) => Ok(Py::new(py, array(opened)?)?.into_any()),
        StoredObject::Records(records) => Ok(Py::new(py, PyStoredRecords(records))?.into_any()),
        StoredObject::Group(group) => Ok(Py::new(py, PyStoredGroup(group))?.into_any()),
    }
}

/// The array at a path.
#[pyfunction]
fn open(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> Built {
    let session = session.0.clone();
    match watching_signals(py, |watch| session.find(&path, watch))? {
        StoredObject::Array(opened) => array(opened),
        StoredObject::Records(records) => Err(store_error(records.no_numbers())),
        StoredObject::Group(group) => Err(store_error(group.no_array())),
    }
}

fn array(opened: Opened) -> Built {
    let node = ops::source(opened.source).map_err(to_python)?;
    let node = match opened.annotations.dims.len() == node.ndim() {
        true => annotated(&node, opened.annotations),
        false => node,
    };
    if !opened.transposed {
        return Ok(PyExpr::new(node));
    }
    let axes: Vec<usize> = (0..node.ndim()).rev().collect();
    built(ops::permute(&node, &axes))
}

/// The shape, the chunk shape and the type of an array that can be written in parts.
#[pyfunction]
fn updatable(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<u64>, Vec<u64>, &'static str)> {
    let array = py
        .detach(|| outcore_store::find_updatable(&path))
        .map_err(store_error)?;
    Ok((array.shape, array.chunk, array.dtype.name()))
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

/// The array of a list of chunks, by the path of a file and its own in that. Rows of `chunks`: number, file, first byte, bytes, stages that are left out.
#[pyfunction]
fn open_listing(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    place: (PathBuf, String),
    document: &str,
    files: Vec<PathBuf>,
    chunks: PyReadonlyArray2<'_, u64>,
    cut: bool,
) -> Built {
    let session = session.0.clone();
    let (chunks, rest) = chunks.as_slice()?.as_chunks();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("rows of chunks have five numbers"));
    }
    let listing = ChunkListing {
        path: &place.0,
        member: &place.1,
        document: document.as_bytes(),
        files: &files,
        chunks,
        is_cut: cut,
    };
    array(watching_signals(py, |watch| session.open_listing(&listing, watch))?)
}

/// The elements of a chunk in memory, in C order and native byte order.
#[pyfunction]
fn decode_listed_chunk<'py>(py: Python<'py>, document: &str, encoded: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let decoded = outcore_store::decode_listed_chunk(document.as_bytes(), encoded);
    decoded
        .map(|bytes| PyBytes::new(py, &bytes))
        .map_err(PyValueError::new_err)
}

type Integers<'py> = Bound<'py, PyArray1<i64>>;

/// Of a footer of Parquet the rows of each row group, and facts of each column's chunk in it, one row a chunk.
#[pyfunction]
fn parquet_chunks<'py>(py: Python<'py>, footer: &[u8]) -> PyResult<(Integers<'py>, Integers<'py>)> {
    let chunks = outcore_store::parquet_chunks(footer).map_err(PyValueError::new_err)?;
    let facts = chunks.facts.into_flattened();
    Ok((chunks.rows.into_pyarray(py), facts.into_pyarray(py)))
}

/// The formats of arrays: their names, the suffixes of outputs, and what they can do beside reading.
#[pyfunction]
fn formats() -> Vec<(&'static str, Option<&'static str>, Vec<String>)> {
    let facts = outcore_store::formats().into_iter();
    facts
        .map(|facts| {
            let abilities = facts.abilities.iter();
            let abilities = abilities.map(|ability| format!("{ability:?}").to_lowercase()).collect();
            (facts.name, facts.suffix, abilities)
        })
        .collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStoredGroup>()?;
    module.add_class::<PyStoredRecords>()?;
    module.add_function(wrap_pyfunction!(find, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(updatable, module)?)?;
    module.add_function(wrap_pyfunction!(open_listing, module)?)?;
    module.add_function(wrap_pyfunction!(decode_listed_chunk, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(open_raw, module)?)
}
