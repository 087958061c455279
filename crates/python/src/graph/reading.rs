//! Lists of neighbours for Python.

use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::graph::{PartsOfLists, WholeLists};
use outcore_engine::EngineError;
use pyo3::prelude::*;

use super::graph::{directions_named, PyGraph};
use super::program::give;
use super::run::PyLiveRun;

#[pymethods]
impl PyGraph {
    /// The lists of some vertices, which ascend: where each begins, the neighbours, and the weights if there are any.
    #[allow(clippy::type_complexity)] // three arrays
    fn lists<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyLiveRun>,
        vertices: PyReadonlyArray1<'_, u32>,
        direction: &str,
    ) -> PyResult<(
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<f64>>,
    )> {
        let vertices = vertices.as_slice()?;
        let asked = WholeLists {
            graph: &self.0,
            direction: self.asked(vertices, direction)?,
            vertices,
        };
        let found = run.get().work(py, &asked)?;
        Ok((
            PyArray1::from_vec(py, found.begins),
            PyArray1::from_vec(py, found.neighbours),
            PyArray1::from_vec(py, found.weights),
        ))
    }

    /// Calls a function with the lists of some vertices, which ascend, about so many neighbours at a time: see `give`. Without
    /// weights, if it is to be, also where the graph has some.
    fn each_lists(
        &self,
        py: Python<'_>,
        run: &Bound<'_, PyLiveRun>,
        vertices: PyReadonlyArray1<'_, u32>,
        direction: &str,
        neighbours: usize,
        in_parts: bool,
        with_weights: bool,
        call: Py<PyAny>,
    ) -> PyResult<()> {
        let vertices = vertices.as_slice()?;
        let direction = self.asked(vertices, direction)?;
        let mut raised = None;
        let take = |found| {
            Python::attach(|py| give(py, &call, found)).map_err(|error| {
                raised = Some(error);
                EngineError::Cancelled
            })
        };
        let asked = PartsOfLists {
            graph: &self.0,
            direction,
            vertices,
            neighbours,
            in_parts,
            with_weights,
            take: Mutex::new(take),
        };
        let done = run.get().work(py, &asked);
        raised.map_or(done, Err)
    }

    /// The vertex from a vertex on before which there are so many bytes of lists.
    fn vertex_after(&self, vertex: u32, bytes: u64, direction: &str) -> PyResult<u32> {
        Ok(self.0.vertex_after(vertex, bytes, directions_named(direction)?[0]))
    }
}
