//! Stored graphs: opened, made of matrices, and what is found in them.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_coding::lists::ListIndex;
use outcore_engine::graph::{
    self, Asked, Coarse, Deltas, Frames, Frontier, Generations, Graph, Left, Louvain, Paths, Peeling, Place, Ranking,
    Resources, Search, Strength, VertexProgram,
};
use outcore_engine::run::Session;
use outcore_engine::EngineError;
use outcore_store::cache::CachedFile;
use outcore_store::{return_freed_memory, Direction, GraphFile, Io, Part, PAGE};
use pyo3::prelude::*;

use crate::error::to_python;
use crate::graph_pages::{PagesOfSessions, CACHE_LEAST};
use crate::graph_program::give;
use crate::graph_run::{Begin, OnlyForecast, PyGraphRun};
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
    /// Of each direction, once it was asked for.
    degrees: [OnceLock<Arc<ListIndex>>; 2],
    pages: PagesOfSessions,
}

/// Memory for what is read ahead and sent: so much at the least, and one of so many parts of what is left; the cache has the rest.
struct Reading {
    least: u64,
    part: u64,
}

impl From<u64> for Reading {
    fn from(least: u64) -> Reading {
        Reading { least, part: 4 }
    }
}

/// Memory for reading and sending: what is left of the session's beside what is known of vertices, within reason.
const READING_MAX: u64 = 256 << 20;
/// Bytes of a message at most, of those that are sent here.
const MESSAGE_BYTES_MOST: u64 = 24;
/// Weights on the average to a step of paths: as lists of many vertices share a page, few wide iterations read less than many
/// narrow ones, and are hardly slower where paths are long.
const STEP_WEIGHTS: f64 = 8.0;
/// Bytes of lists from which on it is worth while to give back what they took meanwhile.
const FREED_LEAST: u64 = 1 << 20;
/// Bytes of memory for the loop of a vertex, in a list that has grown.
const LOOPS_BYTES: u64 = 8;

impl PyGraph {
    /// Those of an undirected graph are one.
    fn directions(&self, name: &str) -> PyResult<&'static [Direction]> {
        let directions = directions_named(name)?;
        Ok(if self.file.shape().directed {
            directions
        } else {
            &directions[..1]
        })
    }

    /// The numbers of neighbours of a direction: read once.
    fn degrees_of(&self, direction: Direction, io: &Io) -> Result<Arc<ListIndex>, EngineError> {
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
    fn run_program<P: VertexProgram>(
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

    /// Memory for reading where neighbours are sent so many bytes: long lists in parts, without weights.
    fn in_parts(&self, message_bytes: u64) -> u64 {
        graph::least_memory_of_parts(&self.file, message_bytes, false)
    }

    /// The same with weights, if there are any.
    fn with_weights(&self, message_bytes: u64) -> u64 {
        graph::least_memory_of_parts(&self.file, message_bytes, true)
    }

    /// What is known of lists that are to be read: in two sweeps, of which one is within the other, or is chosen.
    fn plan_bytes(&self) -> u64 {
        2 * graph::portion_bytes(&self.file, graph::PORTION_PAGES)
    }

    /// Those of weights, where there are any.
    fn degrees_of_weights(&self, direction: Direction, io: &Io) -> Result<Option<Arc<ListIndex>>, EngineError> {
        let is_weighted = self.file.shape().weights.is_some();
        is_weighted.then(|| self.degrees_of(direction, io)).transpose()
    }

    /// What `degrees_of_weights` takes.
    fn weights_bytes(&self) -> u64 {
        let is_weighted = self.file.shape().weights.is_some();
        u64::from(is_weighted)
            * self
                .file
                .degrees_bytes(Direction::Out)
                .max(self.file.degrees_bytes(Direction::In))
    }

    /// Bytes for each vertex that the degrees of some directions take.
    fn degree_bytes(&self, directions: &[Direction]) -> u64 {
        let of = |direction: &Direction| self.file.degrees_bytes(*direction);
        directions.iter().map(of).sum::<u64>() / self.file.shape().vertices.max(1)
    }

    /// The direction of lists that are asked for; refuses vertices that do not ascend or are none.
    fn asked(&self, vertices: &[u32], direction: &str) -> PyResult<Direction> {
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

    fn vertices(&self) -> usize {
        self.file.shape().vertices as usize
    }

    /// What a cache takes of so much memory.
    fn cache_bytes(&self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.file.file_bytes() / 8 * 9 + CACHE_LEAST);
        if bytes < CACHE_LEAST {
            0
        } else {
            bytes
        }
    }

    /// The file by way of a cache, where there is memory for one: it takes no more than all pages need. What it holds stays
    /// for the next call, until others in the session need its memory.
    fn cached(&self, session: &Arc<Session>, bytes: u64, is_turn: bool) -> Option<Arc<CachedFile>> {
        let bytes = self.cache_bytes(bytes);
        self.pages.of(session).sized(&self.file, session, bytes, is_turn)
    }

    /// The cache for lists that Python asks for, beside what is held: that which is there, if it is not smaller than a new one.
    fn cached_beside(&self, session: &Arc<Session>, is_turn: bool) -> Option<Arc<CachedFile>> {
        let wanted = session.spare() / 2;
        let pages = self.pages.of(session);
        let is_enough = |file: &Arc<CachedFile>| file.cache().bytes() as u64 >= self.cache_bytes(wanted);
        let there = pages.held().filter(is_enough);
        there
            .inspect(|_| pages.prefer(session))
            .or_else(|| self.cached(session, wanted, is_turn))
    }

    /// What is known of vertices, in so many bytes of each, and of their lists.
    fn state_bytes(&self, vertex_bytes: u64) -> u64 {
        self.file.shape().vertices * vertex_bytes + self.file.memory_bytes() + self.plan_bytes()
    }

    /// Runs `work` with memory for so many bytes a vertex, and for reading.
    fn with_memory<T: Send>(
        &self,
        py: Python<'_>,
        run: &PyGraphRun,
        operator: &'static str,
        vertex_bytes: u64,
        reading: impl Into<Reading>,
        work: impl FnOnce(&Resources<'_>, &mut graph::Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let state = self.state_bytes(vertex_bytes);
        let session = &run.session;
        let left = session.spare().saturating_sub(state);
        // What is read ahead and sent does with little; what has been read is asked for again.
        let most = READING_MAX.min(graph::most_memory(&self.file, MESSAGE_BYTES_MOST, true));
        let Reading { least, part } = reading.into();
        let memory = (left / part).clamp(least, most.max(least));
        let cache_bytes = left.saturating_sub(memory) / 8 * 7;
        run.begins(Begin {
            known: state,
            meanwhile: memory,
            cache: self.cache_bytes(cache_bytes),
        })?;
        run.watching(py, |watch| {
            let _held = session.set_aside(operator, state + memory)?;
            run.reserves(state + memory);
            let (frames, file) = (Frames::default(), self.cached(session, cache_bytes, true));
            let found = work(&run.resources(memory, &frames, file.as_deref()), watch);
            run.activity.end(file.as_deref());
            // What was sent and found in parts is nobody's now, and others count on it.
            return_freed_memory();
            found
        })
    }
}

impl PyGraph {
    /// Runs `work` with degrees and memory for triangles: that of a block, and the means for the rest.
    fn with_triangles<T: Send>(
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

    /// Distances from the nearest source in edges, as far as `farthest`.
    fn levels<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        sources: Vec<u32>,
        direction: &str,
        farthest: u32,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let search = Search {
            file: &self.file,
            directions: self.directions(direction)?,
            farthest,
        };
        let (operator, least) = ("graph: levels", self.in_parts(0));
        let found = self.with_memory(
            py,
            run.get(),
            operator,
            graph::LEVELS_BYTES,
            least,
            |resources, watch| search.levels(&sources, resources, watch),
        )?;
        Ok(PyArray1::from_vec(py, found))
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

    /// Ranks, and the iterations that they took; nothing where those were not enough. By weights, if they are to count; by what
    /// changes, if there is a threshold for that. Vectors have a number for each vertex, and sum to 1.
    fn ranks<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        damping: f64,
        tolerance: f64,
        iterations: u32,
        weighted: bool,
        threshold: Option<f64>,
        teleport: Option<PyReadonlyArray1<'_, f64>>,
        dangling: Option<PyReadonlyArray1<'_, f64>>,
        start: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Option<u32>)> {
        let teleport = teleport.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let dangling = dangling.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let start = start.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let mut given = [teleport, dangling, start].into_iter().flatten();
        if let Some(wrong) = given.find(|vector| vector.len() != self.vertices()) {
            return Err(argument(format!(
                "graph: a vector of {} ranks for {} vertices",
                wrong.len(),
                self.vertices()
            )));
        }
        let run = run.get();
        let state = threshold.map_or(graph::RANKS_BYTES, |_| graph::DELTAS_BYTES);
        let of_weights = match weighted {
            true => graph::STRENGTH_BYTES + self.degree_bytes(&[Direction::In]),
            false => 0,
        };
        let bytes = state + of_weights + self.degree_bytes(&[Direction::Out]);
        let messages = threshold.map_or(0, |_| size_of::<f64>() as u64);
        let least = match weighted {
            true => self.with_weights(messages),
            false => self.in_parts(messages),
        };
        let (found, done) = self.with_memory(py, run, "graph: pagerank", bytes, least, |resources, watch| {
            let degrees = self.degrees_of(Direction::Out, resources.io)?;
            let into = match weighted {
                true => Some(self.degrees_of(Direction::In, resources.io)?),
                false => None,
            };
            let strength = match weighted {
                true => Strength::of_weights(&self.file, &degrees, resources, watch)?,
                false => Strength::Degrees(&degrees),
            };
            let Some(threshold) = threshold else {
                let what = Ranking {
                    damping,
                    tolerance,
                    iterations,
                    teleport,
                    dangling,
                    start,
                };
                return graph::ranks(&self.file, &strength, into.as_deref(), &what, resources, watch);
            };
            let what = Deltas {
                damping,
                threshold,
                iterations,
                teleport,
            };
            let both = into.as_deref().map(|into| (&*degrees, into));
            graph::ranks_by_deltas(&self.file, &strength, both, &what, resources, watch)
        })?;
        Ok((PyArray1::from_vec(py, found), done))
    }

    /// Distances from the nearest source along weighted edges, and a weight on the way that is below 0 or no number.
    fn distances<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        sources: Vec<u32>,
        step: Option<f64>,
        direction: &str,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Option<f64>)> {
        let directions = self.directions(direction)?;
        let run = run.get();
        let (found, wrong) = self.with_memory(
            py,
            run,
            "graph: distances",
            graph::PATHS_BYTES + self.degree_bytes(directions),
            // Nothing is sent.
            Reading {
                least: self.with_weights(0),
                part: 8,
            },
            |resources, watch| {
                let degrees = directions
                    .iter()
                    .map(|direction| self.degrees_of(*direction, resources.io));
                let degrees = degrees.collect::<Result<Vec<_>, _>>()?;
                // Of the direction that is not read nobody asks.
                let (first, last) = (&degrees[0], &degrees[degrees.len() - 1]);
                let step = match step {
                    Some(step) => step,
                    None => (STEP_WEIGHTS * graph::mean_weight(&self.file, directions[0], first, resources)?)
                        .max(f64::MIN_POSITIVE),
                };
                let graph = Graph {
                    file: &self.file,
                    degrees: Some((first, last)),
                };
                let paths = Paths {
                    graph: &graph,
                    directions,
                    step,
                };
                paths.distances(&sources, resources, watch)
            },
        )?;
        Ok((PyArray1::from_vec(py, found), wrong))
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
                let mut states = vec![Left::new(0); vertices];
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

    /// The longest way to each vertex, in edges; -1 for those on or behind a circle.
    fn generations<'py>(&self, py: Python<'py>, run: &Bound<'_, PyGraphRun>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let vertices = self.vertices();
        let run = run.get();
        let found = self.with_memory(
            py,
            run,
            "graph: topological order",
            21 + self.degree_bytes(&[Direction::In]),
            self.in_parts(0),
            |resources, watch| {
                let degrees = self.degrees_of(Direction::In, resources.io)?;
                let mut active = Frontier::none(vertices);
                let mut states = Vec::with_capacity(vertices);
                for (vertex, span) in degrees.spans(0..u32::MAX) {
                    states.push(Place {
                        edges: span.bytes as u32,
                        generation: None,
                    });
                    if span.bytes == 0 {
                        active.insert(vertex);
                    }
                }
                self.run_program(&mut Generations, None, &mut states, active, resources, watch)?;
                let generations = states.into_iter().map(|state| state.generation.map_or(-1, i64::from));
                Ok(generations.collect())
            },
        )?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// Of the shortest paths from each of the sources, those that lead through each vertex.
    fn betweenness<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        sources: Vec<u32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let run = run.get();
        let least = self.in_parts(8);
        let search = |bytes| {
            self.with_memory(py, run, "graph: betweenness", bytes, least, |resources, watch| {
                graph::betweenness(&self.file, &sources, bytes, resources, watch)
            })
        };
        // With room for the levels of any search, where there is so much.
        let [any, few_levels] = graph::BETWEENNESS_BYTES;
        let found = match self.state_bytes(any) + least <= run.session.spare() {
            true => None,
            false => search(few_levels)?,
        };
        let found = match found {
            Some(found) => found,
            // If there is not, this says how much it would have to be.
            None => search(any)?.ok_or_else(|| to_python(EngineError::Internal("levels beyond their most".into())))?,
        };
        Ok(PyArray1::from_vec(py, found))
    }

    /// Labels of communities, and the iterations that they took; nothing where those were not enough.
    fn spread<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        iterations: u32,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Option<u32>)> {
        let run = run.get();
        let bytes = graph::labels_bytes(&self.file);
        let (found, done) =
            self.with_memory(py, run, "graph: labels", bytes, self.in_parts(0), |resources, watch| {
                graph::spread(&self.file, iterations, seed, resources, watch)
            })?;
        Ok((PyArray1::from_vec(py, found), done))
    }

    /// The lowest vertex of the community of each, and the modularity of them all.
    fn louvain<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        resolution: f64,
        seed: u64,
        threshold: f64,
        exponent: i32,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
        let run = run.get();
        let what = Louvain {
            resolution,
            seed,
            threshold,
            exponent,
        };
        let is_weighted = self.file.shape().weights.is_some();
        let degrees = if is_weighted { &[Direction::Out][..] } else { &[] };
        let bytes = graph::LOUVAIN_BYTES + self.degree_bytes(degrees);
        let (found, modularity) = self.with_memory(
            py,
            run,
            "graph: communities",
            bytes,
            2 * self.with_weights(8),
            |resources, watch| {
                let degrees = match is_weighted {
                    true => Some(self.degrees_of(Direction::Out, resources.io)?),
                    false => None,
                };
                // Lists take eight bytes for a neighbour, what else is set aside is for graphs of communities.
                let memory = resources.memory / 2;
                let mut coarse = Coarse {
                    bytes: resources.memory - memory,
                    path: &mut || run.session.unused_path(),
                };
                let resources = Resources { memory, ..*resources };
                graph::louvain(&self.file, degrees.as_deref(), &what, &mut coarse, &resources, watch)
            },
        )?;
        Ok((PyArray1::from_vec(py, found), modularity))
    }

    /// Vertices no two of which are neighbours, to which none can be added.
    fn independent<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let run = run.get();
        let found = self.with_memory(
            py,
            run,
            "graph: independent set",
            graph::INDEPENDENT_BYTES,
            self.in_parts(0),
            |resources, watch| Ok(graph::independent(&self.file, seed, resources, watch)?.iter().collect()),
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
            let asked = Asked {
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
            let asked = Asked {
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
