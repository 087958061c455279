//! Stored graphs: opened, made of matrices, and what they say of themselves.

use std::path::PathBuf;
use std::sync::Arc;

use outcore_engine::graph::{BuildGraph, StoredGraph};
use outcore_engine::live::LiveRun;
use outcore_store::{Direction, Part, PAGE};
use pyo3::prelude::*;

use crate::base::errors::{argument, to_python};
use crate::base::signals::watching_signals;
use crate::session::PySession;
use crate::sparse::matrix::PySparse;

pub fn directions_named(name: &str) -> PyResult<&'static [Direction]> {
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
pub struct PyGraph(pub Arc<StoredGraph>);

impl PyGraph {
    pub fn graph(&self) -> Arc<StoredGraph> {
        self.0.clone()
    }

    /// Those of an undirected graph are one.
    pub fn directions(&self, name: &str) -> PyResult<&'static [Direction]> {
        let directions = directions_named(name)?;
        Ok(match self.0.file.shape().directed {
            true => directions,
            false => &directions[..1],
        })
    }

    /// The direction of lists that are asked for; refuses vertices that do not ascend or are none.
    pub fn asked(&self, vertices: &[u32], direction: &str) -> PyResult<Direction> {
        let direction = directions_named(direction)?[0];
        let last = vertices.last().map_or(0, |last| u64::from(*last) + 1);
        if !vertices.is_sorted_by(|first, second| first < second) || last > self.0.file.shape().vertices {
            return Err(argument(format!(
                "graph: vertices ascend, and are below {}",
                self.0.file.shape().vertices
            )));
        }
        Ok(direction)
    }
}

#[pymethods]
impl PyGraph {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        (self.0.file.shape().vertices, self.0.file.shape().edges)
    }

    #[getter]
    fn directed(&self) -> bool {
        self.0.file.shape().directed
    }

    /// Of the weights; "none" where there are none.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.0.file.shape().weights;
        dtype.map_or("none".into(), |dtype| dtype.to_string())
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.0.file.file_bytes()
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.file.memory_bytes()
    }

    /// Bytes of the pages of lists, and of weights, of a direction.
    fn part_bytes(&self, direction: &str) -> PyResult<(u64, u64)> {
        let section = self.0.file.section(directions_named(direction)?[0]);
        let bytes = |part| section.part(part).1 * PAGE as u64;
        Ok((bytes(Part::Lists), bytes(Part::Weights)))
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.0.file.path().to_path_buf()
    }

    /// Equal where the bytes are.
    #[getter]
    fn identity(&self) -> &str {
        self.0.file.identity()
    }
}

/// Opens a stored graph.
#[pyfunction]
fn open_graph(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PyGraph> {
    let session = session.0.clone();
    let graph = py.detach(|| StoredGraph::open(&path, session.io()));
    Ok(PyGraph(Arc::new(graph.map_err(to_python)?)))
}

/// Writes the graph whose edges are the entries of a matrix.
#[pyfunction]
#[pyo3(signature = (session, matrix, transpose, path, labels, overwrite))]
fn build_graph(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    matrix: PyRef<'_, PySparse>,
    transpose: Option<PyRef<'_, PySparse>>,
    path: PathBuf,
    labels: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<()> {
    let session = session.0.clone();
    let transpose = transpose.map(|other| other.matrix()).transpose()?;
    let matrix = matrix.matrix()?;
    let graph = BuildGraph {
        matrix: &matrix,
        transpose: transpose.as_ref(),
        path: &path,
        labels: labels.as_deref(),
        overwrite,
    };
    watching_signals(py, |watch| LiveRun::new(session).work(&graph, watch))?;
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraph>()?;
    module.add_function(wrap_pyfunction!(open_graph, module)?)?;
    module.add_function(wrap_pyfunction!(build_graph, module)?)
}
