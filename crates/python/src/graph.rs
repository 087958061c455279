//! Stored graphs: opened, made of matrices, and what is found in them.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use outcore_engine::graph::{self, Bits, Graph, Iteration, Levels, Means};
use outcore_engine::run::Session;
use outcore_engine::EngineError;
use outcore_store::{Direction, GraphFile};
use pyo3::prelude::*;

use crate::error::to_python;
use crate::session::{watching_signals, PySession};
use crate::sparse::PySparse;

fn argument(text: String) -> PyErr {
    to_python(EngineError::Argument(text))
}

fn directions_named(name: &str) -> PyResult<&'static [Direction]> {
    match name {
        "out" => Ok(&[Direction::Out]),
        "in" => Ok(&[Direction::In]),
        "both" => Ok(&[Direction::Out, Direction::In]),
        other => Err(argument(format!(
            "graph: direction={other:?}; out, in and both are right"
        ))),
    }
}

#[pyclass(frozen, name = "Graph", module = "outcore._core")]
pub struct PyGraph {
    file: Arc<GraphFile>,
}

/// Memory for reading and sending: what is left of the session's beside what is known of vertices, within reason.
const READING_MAX: u64 = 256 << 20;

impl PyGraph {
    /// Those of an undirected graph are one.
    fn directions(&self, name: &str) -> PyResult<&'static [Direction]> {
        let directions = directions_named(name)?;
        Ok(if self.file.shape().directed { directions } else { &directions[..1] })
    }

    fn vertices(&self) -> usize {
        self.file.shape().vertices as usize
    }

    /// Runs `work` with memory for so many bytes a vertex, and for reading.
    fn with_memory<T: Send>(
        &self,
        py: Python<'_>,
        session: &Arc<Session>,
        operator: &'static str,
        vertex_bytes: u64,
        work: impl FnOnce(&Means<'_>, &mut graph::Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let state = self.file.shape().vertices * vertex_bytes + self.file.memory_bytes();
        let least = graph::least_memory(&self.file);
        watching_signals(py, |watch| {
            let left = session.budget().saturating_sub(state) / 2;
            let memory = left.clamp(least, READING_MAX.max(least));
            let _held = session.set_aside(operator, state + memory)?;
            let means = Means {
                memory,
                threads: session.options().threads,
                io_threads: session.options().io_threads,
                io: session.io(),
            };
            work(&means, watch)
        })
    }
}

/// Number, active, asked, bytes read, messages: of each iteration.
type Course = Vec<(u32, u64, u64, u64, u64)>;

fn told(iteration: &Iteration) -> (u32, u64, u64, u64, u64) {
    (
        iteration.number,
        iteration.active,
        iteration.asked,
        iteration.bytes_read,
        iteration.messages,
    )
}

#[pymethods]
impl PyGraph {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        (self.file.shape().vertices, self.file.shape().edges)
    }

    #[getter]
    fn directed(&self) -> bool {
        self.file.shape().directed
    }

    /// Of the weights; "none" where there are none.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.file.shape().weights;
        dtype.map_or("none".into(), |dtype| dtype.to_string())
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.file.memory_bytes()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.file.path().to_path_buf()
    }

    /// Neighbours of each vertex in a direction.
    fn degrees<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        direction: &str,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let direction = directions_named(direction)?[0];
        let session = session.0.clone();
        let found = py.detach(|| {
            let degrees = self.file.degrees(direction, session.io())?;
            let of = degrees.spans(0..u32::MAX).map(|(_, span)| span.bytes);
            Ok::<Vec<u64>, EngineError>(of.collect())
        });
        Ok(PyArray1::from_vec(py, found.map_err(to_python)?))
    }

    /// Distances from the nearest source in edges, and the course of the search.
    fn levels<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        sources: Vec<u32>,
        direction: &str,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, Course)> {
        let directions = self.directions(direction)?;
        let vertices = self.vertices();
        let session = session.0.clone();
        let found = self.with_memory(py, &session, "graph: levels", 5, |means, watch| {
            let mut levels = vec![graph::UNMET; vertices];
            let mut active = Bits::none(vertices);
            for source in sources {
                levels[source as usize] = 0;
                active.insert(source);
            }
            let mut program = Levels {
                directions,
                met: active.clone(),
            };
            let graph = Graph {
                file: &self.file,
                degrees: &[],
            };
            let mut course = vec![];
            let mut observe = |iteration: &Iteration| course.push(told(iteration));
            graph::run(
                &graph,
                &mut program,
                &mut levels,
                &mut active,
                means,
                &mut observe,
                watch,
            )?;
            Ok((levels, course))
        })?;
        Ok((PyArray1::from_vec(py, found.0), found.1))
    }

    /// The lowest vertex that each is connected with.
    fn components<'py>(&self, py: Python<'py>, session: PyRef<'_, PySession>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let session = session.0.clone();
        let found = self.with_memory(
            py,
            &session,
            "graph: components",
            graph::COMPONENTS_BYTES,
            |means, watch| graph::components(&self.file, means, watch),
        )?;
        Ok(PyArray1::from_vec(py, found))
    }
}

/// Opens a stored graph.
#[pyfunction]
fn open_graph(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PyGraph> {
    let session = session.0.clone();
    let file = py.detach(|| GraphFile::open(&path, session.io()));
    Ok(PyGraph {
        file: file.map_err(|error| to_python(error.into()))?,
    })
}

/// Writes the graph whose edges are the entries of a matrix.
#[pyfunction]
#[pyo3(signature = (session, matrix, transpose, path, overwrite))]
fn build_graph(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    matrix: PyRef<'_, PySparse>,
    transpose: Option<PyRef<'_, PySparse>>,
    path: PathBuf,
    overwrite: bool,
) -> PyResult<()> {
    let session = session.0.clone();
    let (matrix, transpose) = (matrix.0.clone(), transpose.map(|other| other.0.clone()));
    watching_signals(py, |watch| {
        let shape = matrix.file.matrix();
        let largest = (0..matrix.file.tiles()).map(|tile| matrix.file.tile_bytes(tile)).max();
        let memory = outcore_store::GraphWriter::memory_bytes(&outcore_store::GraphShape {
            vertices: shape.rows,
            edges: shape.entries,
            directed: transpose.is_some(),
            weights: shape.dtype,
        });
        // Entries of a tile are there three times: read, row by row, and in lists.
        let _held = session.set_aside("graph", memory + 8 * largest.unwrap_or(0))?;
        graph::build(&matrix, transpose.as_ref(), &path, overwrite, session.io(), watch)
    })?;
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraph>()?;
    module.add_function(wrap_pyfunction!(open_graph, module)?)?;
    module.add_function(wrap_pyfunction!(build_graph, module)?)
}
