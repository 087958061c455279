//! Lines of numbers read into arrays.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::EngineError;
use outcore_store::{agrees_with_sums, checksum_behind, remove_with_sums, LineFormat, Lines, NumberType, Unzstd};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::base::errors::to_python;
use crate::session::PySession;

#[pyclass(name = "TextLines", module = "outcore._core")]
pub struct PyTextLines {
    lines: Lines,
    /// The type of the values.
    numbers: &'static str,
}

#[pymethods]
impl PyTextLines {
    #[new]
    #[pyo3(signature = (name, ids, values, *, separators, comments, base=0, limits=None, numbers="float64"))]
    #[allow(clippy::too_many_arguments)] // of the Python side, by name
    fn new(
        name: PathBuf,
        ids: [usize; 2],
        values: Option<Vec<usize>>,
        separators: Vec<u8>,
        comments: Vec<u8>,
        base: u64,
        limits: Option<[u64; 2]>,
        numbers: &str,
    ) -> PyResult<PyTextLines> {
        let (number, numbers) = match numbers {
            "float64" => (NumberType::Float64, "float64"),
            "int64" => (NumberType::Int64, "int64"),
            "uint64" => (NumberType::Uint64, "uint64"),
            other => return Err(to_python(EngineError::Argument(format!("lines: numbers of {other}")))),
        };
        Ok(PyTextLines {
            lines: Lines::new(LineFormat {
                name,
                ids,
                values,
                number,
                separators,
                comments,
                base,
                limits,
            }),
            numbers,
        })
    }

    #[getter]
    fn is_begun(&self) -> bool {
        self.lines.is_begun()
    }

    fn skip(&mut self, lines: u64) {
        self.lines.skip(lines);
    }

    /// Rows, columns and values of a block of whole lines, by the threads of a session.
    fn parse<'py>(&mut self, py: Python<'py>, session: &PySession, block: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let threads = session.0.options().threads.max(1);
        let found = py
            .detach(|| self.lines.parse(block, threads))
            .map_err(|error| to_python(error.into()))?;
        let [rows, columns] = found.ids;
        let mut arrays = vec![];
        for ids in [rows, columns] {
            arrays.push(PyArray1::from_vec(py, ids).into_any());
        }
        for values in found.values {
            arrays.push(PyArray1::from_vec(py, values).call_method1("view", (self.numbers,))?);
        }
        Ok(arrays)
    }
}

/// Unpacks what Zstandard packed.
#[pyclass(name = "Unzstd", module = "outcore._core")]
pub struct PyUnzstd {
    unzstd: Unzstd,
}

/// Bytes that are unpacked in one go, at most.
const UNPACKED_BYTES: usize = 1 << 20;

#[pymethods]
impl PyUnzstd {
    #[new]
    fn new(name: PathBuf) -> PyResult<PyUnzstd> {
        let unzstd = Unzstd::new(&name).map_err(|error| to_python(error.into()))?;
        Ok(PyUnzstd { unzstd })
    }

    /// Whether the file may end here: not within a frame.
    #[getter]
    fn is_between(&self) -> bool {
        self.unzstd.is_between()
    }

    /// How many of these bytes were unpacked, and what they came to.
    fn unpack<'py>(&mut self, py: Python<'py>, packed: &[u8]) -> PyResult<(usize, Bound<'py, PyBytes>)> {
        let mut out = vec![0; UNPACKED_BYTES];
        let unzstd = &mut self.unzstd;
        let found = py.detach(|| unzstd.unpack(packed, &mut out));
        let (read, written) = found.map_err(|error| to_python(error.into()))?;
        Ok((read, PyBytes::new(py, &out[..written])))
    }
}

/// The CRC-32C of bytes behind others, whose it is `before`.
#[pyfunction]
#[pyo3(signature = (bytes, before=0))]
fn checksum(py: Python<'_>, bytes: PyReadonlyArray1<'_, u8>, before: u32) -> PyResult<u32> {
    let bytes = bytes.as_slice()?;
    Ok(py.detach(|| checksum_behind(before, bytes)))
}

/// Whether an array in a folder of stages is what was written there. One that is not is removed.
#[pyfunction]
fn agrees(py: Python<'_>, session: &PySession, path: PathBuf) -> bool {
    let session = session.0.clone();
    py.detach(|| {
        let agrees = agrees_with_sums(&path, session.io());
        if !agrees {
            remove_with_sums(&path);
        }
        agrees
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(checksum, module)?)?;
    module.add_function(wrap_pyfunction!(agrees, module)?)?;
    module.add_class::<PyUnzstd>()?;
    module.add_class::<PyTextLines>()
}
