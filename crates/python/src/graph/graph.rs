//! Stored graphs: opened, made of matrices, and what they say of themselves.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use outcore_coding::lists::ListIndex;
use outcore_engine::graph::{self, Frontier, Graph, Resources, VertexProgram};
use outcore_engine::EngineError;
use outcore_store::{Direction, GraphFile, Io, Part, PAGE};
use pyo3::prelude::*;

use super::pages::PagesOfSessions;
use super::run::{OnlyForecast, PyGraphRun};
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
pub struct PyGraph {
    pub file: Arc<GraphFile>,
    /// Of each direction, once it was asked for.
    pub degrees: [OnceLock<Arc<ListIndex>>; 2],
    pub pages: PagesOfSessions,
}

impl PyGraph {
    /// Those of an undirected graph are one.
    pub fn directions(&self, name: &str) -> PyResult<&'static [Direction]> {
        let directions = directions_named(name)?;
        Ok(if self.file.shape().directed {
            directions
        } else {
            &directions[..1]
        })
    }

    /// The numbers of neighbours of a direction: read once.
    pub fn degrees_of(&self, direction: Direction, io: &Io) -> Result<Arc<ListIndex>, EngineError> {
        let known = match direction {
            Direction::In if self.file.shape().directed => &self.degrees[1],
            _ => &self.degrees[0],
        };
        if let Some(found) = known.get() {
            return Ok(found.clone());
        }
        let found = Arc::new(self.file.degrees(direction, io)?);
        Ok(known.get_or_init(|| found).clone())
    }

    /// Runs a program from the active vertices on until none is.
    pub fn run_program<P: VertexProgram>(
        &self,
        program: &mut P,
        degrees: Option<(&ListIndex, &ListIndex)>,
        states: &mut [P::State],
        mut active: Frontier,
        resources: &Resources<'_>,
        watch: &mut graph::Watch<'_>,
    ) -> Result<(), EngineError> {
        let graph = Graph {
            file: &self.file,
            degrees,
        };
        graph::run(
            &graph,
            program,
            states,
            &mut active,
            graph::Delivery::Synchronous,
            resources,
            watch,
        )
        .map(|_| ())
    }

    /// Those of weights, where there are any.
    pub fn degrees_of_weights(&self, direction: Direction, io: &Io) -> Result<Option<Arc<ListIndex>>, EngineError> {
        let is_weighted = self.file.shape().weights.is_some();
        is_weighted.then(|| self.degrees_of(direction, io)).transpose()
    }

    /// The direction of lists that are asked for; refuses vertices that do not ascend or are none.
    pub fn asked(&self, vertices: &[u32], direction: &str) -> PyResult<Direction> {
        let direction = directions_named(direction)?[0];
        let last = vertices.last().map_or(0, |last| u64::from(*last) + 1);
        if !vertices.is_sorted_by(|first, second| first < second) || last > self.file.shape().vertices {
            return Err(argument(format!(
                "graph: vertices ascend, and are below {}",
                self.file.shape().vertices
            )));
        }
        Ok(direction)
    }

    pub fn vertices(&self) -> usize {
        self.file.shape().vertices as usize
    }
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

    /// Bytes of the pages of lists, and of weights, of a direction.
    fn part_bytes(&self, direction: &str) -> PyResult<(u64, u64)> {
        let section = self.file.section(directions_named(direction)?[0]);
        let bytes = |part| section.part(part).1 * PAGE as u64;
        Ok((bytes(Part::Lists), bytes(Part::Weights)))
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.file.path().to_path_buf()
    }

    /// Equal where the bytes are.
    #[getter]
    fn identity(&self) -> &str {
        self.file.identity()
    }
}

/// Opens a stored graph.
#[pyfunction]
fn open_graph(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PyGraph> {
    let session = session.0.clone();
    let file = py.detach(|| GraphFile::open(&path, session.io()));
    Ok(PyGraph {
        file: file.map_err(|error| to_python(error.into()))?,
        degrees: Default::default(),
        pages: PagesOfSessions::default(),
    })
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
        // Entries of a tile are read, put row by row with columns of eight bytes, and their values beside.
        let _held = session.set_aside("graph", memory + 5 * largest.unwrap_or(0))?;
        let labels = labels.as_deref();
        graph::build(
            &matrix,
            transpose.as_ref(),
            &path,
            labels,
            overwrite,
            session.io(),
            watch,
        )
    })?;
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraph>()?;
    module.add_class::<PyGraphRun>()?;
    module.add("OnlyForecast", module.py().get_type::<OnlyForecast>())?;
    module.add_function(wrap_pyfunction!(open_graph, module)?)?;
    module.add_function(wrap_pyfunction!(build_graph, module)?)
}
