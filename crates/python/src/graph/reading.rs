//! Lists of neighbours for Python.

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::graph::{self, Frames, ListRequest, Resources};
use outcore_engine::EngineError;
use outcore_store::{return_freed_memory, Direction};
use pyo3::prelude::*;

use super::graph::{directions_named, PyGraph};
use super::program::give;
use super::run::PyGraphRun;

/// Bytes of lists from which on it is worth while to give back what they took meanwhile.
const FREED_LEAST: u64 = 1 << 20;

#[pymethods]
impl PyGraph {
    /// The lists of some vertices, which ascend: where each begins, the neighbours, and the weights if there are any.
    #[allow(clippy::type_complexity)] // three arrays
    fn lists<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        vertices: PyReadonlyArray1<'_, u32>,
        direction: &str,
    ) -> PyResult<(
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<f64>>,
    )> {
        let vertices = vertices.as_slice()?;
        let direction = self.asked(vertices, direction)?;
        let run = run.get();
        let index = &self.file.section(direction).index;
        let bytes: u64 = vertices.iter().map(|vertex| index.bytes_of(*vertex)).sum();
        let session = &run.session;
        let found = run.watching(py, |watch| {
            // Neighbours and weights, and as much while they are put together.
            let memory = graph::least_memory(&self.file, 0) + 24 * bytes + 16 * vertices.len() as u64;
            let memory = memory + self.weights_bytes() + self.plan_bytes();
            let _held = session.set_aside("graph: lists", memory)?;
            let frames = Frames::default();
            run.reserves(memory);
            let degrees = self.degrees_of_weights(direction, session.io())?;
            let asked = ListRequest {
                file: &self.file,
                direction,
                degrees: degrees.as_deref(),
                vertices,
            };
            let cache = self.cached_beside(session, true);
            let found = asked.whole(&run.resources(memory, &frames, cache.as_deref()), watch);
            if bytes > FREED_LEAST {
                return_freed_memory();
            }
            found
        })?;
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
        run: &Bound<'_, PyGraphRun>,
        vertices: PyReadonlyArray1<'_, u32>,
        direction: &str,
        neighbours: usize,
        in_parts: bool,
        with_weights: bool,
        call: Py<PyAny>,
    ) -> PyResult<()> {
        let vertices = vertices.as_slice()?;
        let direction = self.asked(vertices, direction)?;
        let run = run.get();
        let session = &run.session;
        let mut raised = None;
        let done = run.watching(py, |watch| {
            let frames = Frames::default();
            let (memory, resources) = graph::for_parts(&self.file, in_parts, run.resources(0, &frames, None));
            let memory = memory + if with_weights { self.weights_bytes() } else { 0 };
            // Not in turn, as programs are: what is called may compute.
            let _held = session.hold_beside("graph: lists", memory)?;
            run.reserves(memory);
            let cache = self.cached_beside(session, false);
            let counters = || cache.as_ref().map(|file| file.cache().counters()).unwrap_or_default();
            let before = counters();
            let resources = Resources {
                cache: cache.as_deref(),
                ..resources
            };
            let degrees = match with_weights {
                true => self.degrees_of_weights(direction, session.io())?,
                false => None,
            };
            let asked = ListRequest {
                file: &self.file,
                direction,
                degrees: degrees.as_deref(),
                vertices,
            };
            let give = |found| {
                Python::attach(|py| give(py, &call, found)).map_err(|error| {
                    raised = Some(error);
                    EngineError::Cancelled
                })
            };
            let done = asked.parts(neighbours, in_parts, &resources, give, watch);
            let after = counters();
            run.activity.read(after.bytes_read - before.bytes_read);
            run.activity.hit(after.hits - before.hits);
            done
        });
        raised.map_or(done, Err)
    }

    /// The lowest weight, the highest, their sum, and whether one of them is not a number.
    fn weights(&self, py: Python<'_>, run: &Bound<'_, PyGraphRun>) -> PyResult<(f64, f64, f64, bool)> {
        let run = run.get();
        self.with_memory(
            py,
            run,
            "graph: weights",
            self.degree_bytes(&[Direction::Out]),
            self.with_weights(0),
            |resources, watch| {
                let degrees = self.degrees_of(Direction::Out, resources.io)?;
                graph::weights(&self.file, &degrees, resources, watch)
            },
        )
    }

    /// The vertex from a vertex on before which there are so many bytes of lists.
    fn vertex_after(&self, vertex: u32, bytes: u64, direction: &str) -> PyResult<u32> {
        let index = &self.file.section(directions_named(direction)?[0]).index;
        Ok(index.vertex_at(index.span(vertex).offset.saturating_add(bytes)))
    }
}
