//! Algorithms as Python has them: arguments in, an operator that says its forecast and runs, results out.

use std::sync::Arc;

use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use outcore_engine::graph::{self, Degrees, Louvain, Ranking, StoredGraph};
use outcore_engine::live::{forecast, LiveForecast, LiveOperator};
use outcore_engine::run::Session;
use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;

use super::graph::{directions_named, PyGraph};
use super::run::PyLiveRun;
use crate::base::errors::argument;
use crate::session::PySession;

/// An operator whose output is an object of Python.
trait ObjectOperator: Send + Sync {
    fn forecast(&self, session: &Session) -> LiveForecast;
    fn run(&self, py: Python<'_>, run: &PyLiveRun) -> PyResult<Py<PyAny>>;
}

/// An operator, and the conversion of its output.
struct Converted<O, C>(O, C);

impl<O, C> ObjectOperator for Converted<O, C>
where
    O: LiveOperator + Send,
    C: Fn(Python<'_>, O::Output) -> PyResult<Py<PyAny>> + Send + Sync,
{
    fn forecast(&self, session: &Session) -> LiveForecast {
        forecast(session, &self.0)
    }

    fn run(&self, py: Python<'_>, run: &PyLiveRun) -> PyResult<Py<PyAny>> {
        let output = run.work(py, &self.0)?;
        (self.1)(py, output)
    }
}

/// Live work that has not run.
#[pyclass(frozen, name = "LiveOperator", module = "outcore._core")]
pub struct PyLiveOperator(Box<dyn ObjectOperator>);

#[pymethods]
impl PyLiveOperator {
    /// Runs the operator, and gives its output.
    fn run(&self, py: Python<'_>, run: &Bound<'_, PyLiveRun>) -> PyResult<Py<PyAny>> {
        self.0.run(py, run.get())
    }

    /// Bytes known of vertices with the index, of reading and sending, and of the page cache at most; spare bytes of the
    /// session; the most that is read, if that is bounded, the bytes of all pages once, those that are read where that is
    /// known exactly, and the reason.
    fn forecast(&self, session: PyRef<'_, PySession>) -> ([u64; 4], Option<u64>, u64, Option<u64>, String) {
        let said = self.0.forecast(&session.0);
        let (shares, bound) = (said.shares, said.bound);
        let memory = [shares.known, shares.reading, shares.cache, said.spare];
        (memory, bound.most, bound.once, said.exact, bound.because)
    }
}

fn of<O, C>(operator: O, convert: C) -> PyLiveOperator
where
    O: LiveOperator + Send + 'static,
    C: Fn(Python<'_>, O::Output) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
{
    PyLiveOperator(Box::new(Converted(operator, convert)))
}

fn array<T: Element>(py: Python<'_>, numbers: Vec<T>) -> PyResult<Py<PyAny>> {
    Ok(PyArray1::from_vec(py, numbers).into_any().unbind())
}

/// An array, and another value.
fn array_and<T: Element, U>(py: Python<'_>, (numbers, other): (Vec<T>, U)) -> PyResult<Py<PyAny>>
where
    U: for<'py> IntoPyObject<'py>,
{
    (PyArray1::from_vec(py, numbers), other).into_py_any(py)
}

/// PageRank with vectors that Python holds: they are lent to a run.
struct Ranks {
    graph: Arc<StoredGraph>,
    how: Ranking<'static>,
    weighted: bool,
    threshold: Option<f64>,
    vectors: [Option<Py<PyArray1<f64>>>; 3],
}

impl Ranks {
    fn operator<'a>(
        &self,
        [teleport, dangling, start]: [Option<&'a [f64]>; 3],
    ) -> impl LiveOperator<Output = (Vec<f64>, Option<u32>)> + 'a {
        let how = Ranking {
            teleport,
            dangling,
            start,
            ..self.how
        };
        graph::page_rank(self.graph.clone(), how, self.weighted, self.threshold)
    }
}

impl ObjectOperator for Ranks {
    fn forecast(&self, session: &Session) -> LiveForecast {
        forecast(session, &self.operator([None; 3]))
    }

    fn run(&self, py: Python<'_>, run: &PyLiveRun) -> PyResult<Py<PyAny>> {
        let lent = self
            .vectors
            .each_ref()
            .map(|vector| Some(vector.as_ref()?.bind(py).readonly()));
        let mut slices = [None; 3];
        for (slice, vector) in slices.iter_mut().zip(&lent) {
            *slice = vector.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        }
        let vertices = self.graph.vertices();
        if let Some(wrong) = slices.iter().flatten().find(|vector| vector.len() != vertices) {
            let text = format!("graph: a vector of {} ranks for {vertices} vertices", wrong.len());
            return Err(argument(text));
        }
        let walk = self.operator(slices);
        array_and(py, run.work(py, &walk)?)
    }
}

#[pymethods]
impl PyGraph {
    /// Neighbours of each vertex in a direction.
    fn degrees(&self, direction: &str) -> PyResult<PyLiveOperator> {
        let (graph, direction) = (self.graph(), directions_named(direction)?[0]);
        Ok(of(Degrees { graph, direction }, array))
    }

    /// Distances from the nearest source in edges, as far as `farthest`; of so many searches is the forecast.
    #[pyo3(signature = (sources, direction, farthest, searches=1))]
    fn levels(&self, sources: Vec<u32>, direction: &str, farthest: u32, searches: u64) -> PyResult<PyLiveOperator> {
        let directions = self.directions(direction)?;
        let search = graph::levels(self.graph(), sources, directions, farthest, searches);
        Ok(of(search, array))
    }

    /// Distances from the nearest source along weighted edges, and a weight on the way that is below 0 or no number.
    fn distances(&self, sources: Vec<u32>, step: Option<f64>, direction: &str) -> PyResult<PyLiveOperator> {
        let directions = self.directions(direction)?;
        Ok(of(graph::distances(self.graph(), sources, step, directions), array_and))
    }

    /// Of the shortest paths from each of the sources, those that lead through each vertex.
    fn betweenness(&self, sources: Vec<u32>) -> PyLiveOperator {
        of(graph::betweenness_of(self.graph(), sources), |py, sums| {
            array(py, sums.unwrap_or_default())
        })
    }

    /// The longest way to each vertex, in edges; -1 for those on or behind a circle.
    fn generations(&self) -> PyLiveOperator {
        of(graph::topological_order(self.graph()), array)
    }

    /// The lowest vertex that each is connected with; along the directions of edges where `strong`.
    fn components(&self, strong: bool) -> PyLiveOperator {
        match strong {
            true => of(graph::strong_components_of(self.graph()), array),
            false => of(graph::components_of(self.graph()), array),
        }
    }

    /// The core that each vertex is in.
    fn cores(&self) -> PyLiveOperator {
        of(graph::core_numbers(self.graph()), array)
    }

    /// Ranks, and the iterations that they took; nothing where those were not enough. By weights, if they are to count; by what
    /// changes, if there is a threshold for that. Vectors have a number for each vertex, and sum to 1.
    fn ranks(
        &self,
        damping: f64,
        tolerance: f64,
        iterations: u32,
        weighted: bool,
        threshold: Option<f64>,
        vectors: [Option<Py<PyArray1<f64>>>; 3],
    ) -> PyLiveOperator {
        let how = Ranking {
            damping,
            tolerance,
            iterations,
            teleport: None,
            dangling: None,
            start: None,
        };
        PyLiveOperator(Box::new(Ranks {
            graph: self.graph(),
            how,
            weighted,
            threshold,
            vectors,
        }))
    }

    /// The number of triangles, and with `each` those of every vertex.
    fn triangles(&self, each: bool) -> PyLiveOperator {
        of(graph::triangles_of(self.graph(), each), |py, (all, each)| {
            (all, PyArray1::from_vec(py, each)).into_py_any(py)
        })
    }

    /// Of the pairs of neighbours of each vertex, the part that are neighbours of each other.
    fn clustering(&self) -> PyLiveOperator {
        of(graph::clustering_of(self.graph()), array)
    }

    /// The vertices of the loops, ascending.
    fn loops(&self) -> PyLiveOperator {
        of(graph::loops_of(self.graph()), array)
    }

    /// The vertex with the most edges around it, how many, and how many vertices were looked at.
    fn scan(&self) -> PyLiveOperator {
        of(graph::scan_statistics(self.graph()), |py, densest| {
            let numbers = densest.map(|densest| (densest.vertex, densest.edges, densest.looked_at));
            numbers.into_py_any(py)
        })
    }

    /// The lowest weight, the highest, their sum, and whether one of them is not a number.
    fn weights(&self) -> PyLiveOperator {
        of(graph::weights_of(self.graph()), |py, weights| weights.into_py_any(py))
    }

    /// Labels of communities, and the iterations that they took; nothing where those were not enough.
    fn spread(&self, iterations: u32, seed: u64) -> PyLiveOperator {
        of(graph::label_propagation(self.graph(), iterations, seed), array_and)
    }

    /// The lowest vertex of the community of each, and the modularity of them all.
    fn louvain(&self, resolution: f64, seed: u64, threshold: f64, exponent: i32) -> PyLiveOperator {
        let how = Louvain {
            resolution,
            seed,
            threshold,
            exponent,
        };
        of(graph::louvain_communities(self.graph(), how), array_and)
    }

    /// Vertices no two of which are neighbours, to which none can be added.
    fn independent(&self, seed: u64) -> PyLiveOperator {
        of(graph::independent_set(self.graph(), seed), array)
    }
}
