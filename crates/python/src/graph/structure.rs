//! Degrees, components, cores, triangles, dense neighbourhoods.

use numpy::PyArray1;
use outcore_coding::lists::ListIndex;
use outcore_engine::graph::{self, CoreState, Peeling, Resources};
use outcore_engine::EngineError;
use outcore_store::Direction;
use pyo3::prelude::*;

use super::graph::{directions_named, PyGraph};
use super::run::PyGraphRun;
use crate::base::errors::to_python;
use crate::session::PySession;

/// Bytes of memory for the loop of a vertex, in a list that has grown.
const LOOPS_BYTES: u64 = 8;

impl PyGraph {
    /// Runs `work` with degrees and memory for triangles: that of a block, and the means for the rest.
    pub fn with_triangles<T: Send>(
        &self,
        py: Python<'_>,
        run: &PyGraphRun,
        each: bool,
        work: impl FnOnce(&ListIndex, u64, &Resources<'_>, &mut graph::Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let bytes = graph::triangles_bytes(each, run.session.options().threads) + self.degree_bytes(&[Direction::Out]);
        self.with_memory(
            py,
            run,
            "graph: triangles",
            bytes,
            self.in_parts(0),
            |resources, watch| {
                let degrees = self.degrees_of(Direction::Out, resources.io)?;
                let resources = Resources {
                    memory: resources.memory / 4,
                    ..*resources
                };
                work(&degrees, resources.memory * 3, &resources, watch)
            },
        )
    }
}

#[pymethods]
impl PyGraph {
    /// Neighbours of each vertex in a direction.
    fn degrees<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        direction: &str,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let direction = directions_named(direction)?[0];
        let session = session.0.clone();
        let bytes = 8 * self.file.shape().vertices + self.file.degrees_bytes(direction);
        let found = py.detach(|| {
            let _held = session.set_aside("graph: degrees", bytes)?;
            let degrees = self.degrees_of(direction, session.io())?;
            let of = degrees.spans(0..u32::MAX).map(|(_, span)| span.bytes);
            Ok::<Vec<u64>, EngineError>(of.collect())
        });
        Ok(PyArray1::from_vec(py, found.map_err(to_python)?))
    }

    /// The lowest vertex that each is connected with; along the directions of edges where `strong`.
    fn components<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        strong: bool,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let run = run.get();
        let (operator, bytes, message_bytes) = match strong {
            true => ("graph: strongly connected components", graph::STRONG_BYTES, 4),
            false => ("graph: connected components", graph::COMPONENTS_BYTES, 0),
        };
        let found = self.with_memory(
            py,
            run,
            operator,
            bytes,
            self.in_parts(message_bytes),
            |resources, watch| match strong {
                true => graph::strong_components(&self.file, resources, watch),
                false => graph::components(&self.file, resources, watch),
            },
        )?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The core that each vertex is in.
    fn cores<'py>(&self, py: Python<'py>, run: &Bound<'_, PyGraphRun>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let directions = self.directions("both")?;
        let vertices = self.vertices();
        let run = run.get();
        let found = self.with_memory(
            py,
            run,
            "graph: cores",
            13 + self.degree_bytes(directions),
            self.in_parts(0),
            |resources, watch| {
                let mut states = vec![CoreState::new(0); vertices];
                for direction in directions {
                    let degrees = self.degrees_of(*direction, resources.io)?;
                    for (vertex, span) in degrees.spans(0..u32::MAX) {
                        states[vertex as usize].degree += span.bytes as u32;
                    }
                }
                let (mut program, active) = Peeling::new(directions, &states);
                self.run_program(&mut program, None, &mut states, active, resources, watch)?;
                Ok(states.into_iter().map(|state| state.core).collect())
            },
        )?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The number of triangles, and with `each` those of every vertex.
    fn triangles<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        each: bool,
    ) -> PyResult<(u64, Bound<'py, PyArray1<u64>>)> {
        let found = self.with_triangles(py, run.get(), each, |degrees, block_bytes, resources, watch| {
            graph::triangles(&self.file, degrees, each, block_bytes, resources, watch)
        })?;
        Ok((found.0, PyArray1::from_vec(py, found.1)))
    }

    /// Of the pairs of neighbours of each vertex, the part that are neighbours of each other.
    fn clustering<'py>(&self, py: Python<'py>, run: &Bound<'_, PyGraphRun>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = self.with_triangles(py, run.get(), true, |degrees, block_bytes, resources, watch| {
            graph::clustering(&self.file, degrees, block_bytes, resources, watch)
        })?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The vertices of the loops, ascending.
    fn loops<'py>(&self, py: Python<'py>, run: &Bound<'_, PyGraphRun>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let run = run.get();
        let found = self.with_memory(
            py,
            run,
            "graph: loops",
            LOOPS_BYTES,
            self.in_parts(0),
            |resources, watch| graph::loops(&self.file, resources, watch),
        )?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The vertex with the most edges around it, how many, and how many vertices were looked at.
    fn scan(&self, py: Python<'_>, run: &Bound<'_, PyGraphRun>) -> PyResult<Option<(u32, u64, u64)>> {
        let run = run.get();
        let bytes = graph::SCAN_BYTES + self.degree_bytes(&[Direction::Out]);
        let found = self.with_memory(
            py,
            run,
            "graph: scan statistics",
            bytes,
            self.in_parts(8),
            |resources, watch| {
                let degrees = self.degrees_of(Direction::Out, resources.io)?;
                graph::scan(&self.file, &degrees, resources, watch)
            },
        )?;
        Ok(found.map(|found| (found.vertex, found.edges, found.looked_at)))
    }
}
