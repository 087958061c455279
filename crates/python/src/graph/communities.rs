//! Communities: Louvain and label propagation.

use numpy::PyArray1;
use outcore_engine::graph::{self, Coarse, Louvain, Resources};
use outcore_store::Direction;
use pyo3::prelude::*;

use super::graph::PyGraph;
use super::run::PyGraphRun;

#[pymethods]
impl PyGraph {
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
}
