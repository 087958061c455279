//! Searches: by levels, by distance, in topological order, and betweenness.

use numpy::PyArray1;
use outcore_engine::graph::{self, BreadthFirst, Frontier, GenerationState, Generations, Graph, Paths};
use outcore_engine::EngineError;
use outcore_store::Direction;
use pyo3::prelude::*;

use super::graph::PyGraph;
use super::memory::Reading;
use super::run::PyGraphRun;
use crate::base::errors::to_python;

/// Weights on the average to a step of paths: as lists of many vertices share a page, few wide iterations read less than many
/// narrow ones, and are hardly slower where paths are long.
const STEP_WEIGHTS: f64 = 8.0;

#[pymethods]
impl PyGraph {
    /// Distances from the nearest source in edges, as far as `farthest`.
    fn levels<'py>(
        &self,
        py: Python<'py>,
        run: &Bound<'_, PyGraphRun>,
        sources: Vec<u32>,
        direction: &str,
        farthest: u32,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let search = BreadthFirst {
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
                    states.push(GenerationState {
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
}
