//! Lines of numbers read into arrays.

use std::path::PathBuf;

use numpy::PyArray1;
use outcore_store::{LineFormat, Lines};
use pyo3::prelude::*;

use crate::error::to_python;
use crate::session::PySession;

#[pyclass(name = "TextLines", module = "outcore._core")]
pub struct PyTextLines {
    lines: Lines,
    /// Values are int64.
    is_whole: bool,
}

#[pymethods]
impl PyTextLines {
    #[new]
    #[pyo3(signature = (name, ids, values, *, separators, comments, base=0, limits=None, whole=false))]
    #[allow(clippy::too_many_arguments)] // of the Python side, by name
    fn new(
        name: PathBuf,
        ids: [usize; 2],
        values: Option<Vec<usize>>,
        separators: Vec<u8>,
        comments: Vec<u8>,
        base: u64,
        limits: Option<[u64; 2]>,
        whole: bool,
    ) -> PyTextLines {
        PyTextLines {
            lines: Lines::new(LineFormat {
                name,
                ids,
                values,
                is_whole: whole,
                separators,
                comments,
                base,
                limits,
            }),
            is_whole: whole,
        }
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
        let kind = if self.is_whole { "int64" } else { "float64" };
        for values in found.values {
            arrays.push(PyArray1::from_vec(py, values).call_method1("view", (kind,))?);
        }
        Ok(arrays)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTextLines>()
}
