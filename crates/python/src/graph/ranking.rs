//! PageRank.

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::graph::{self, Deltas, Ranking, Strength};
use outcore_store::Direction;
use pyo3::prelude::*;

use super::graph::PyGraph;
use super::run::PyGraphRun;
use crate::base::errors::argument;

#[pymethods]
impl PyGraph {
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
}
