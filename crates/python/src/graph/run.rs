//! A run of live work: who is told how far it is, and its iterations.

use std::sync::Arc;
use std::time::Instant;

use outcore_engine::graph::program_bytes;
use outcore_engine::live::{LiveOperator, LiveRun, Watch};
use outcore_engine::EngineError;
use pyo3::prelude::*;

use crate::base::errors::to_python;
use crate::base::signals::{watching, TELL};
use crate::session::PySession;

#[pyclass(frozen, name = "LiveRun", module = "outcore._core")]
pub struct PyLiveRun {
    pub live: LiveRun,
    /// Is told of the iteration that is under way.
    report: Option<Py<PyAny>>,
}

impl PyLiveRun {
    /// Works without the interpreter, looking for signals and telling how far it is whenever the work asks.
    pub fn watching<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&LiveRun, &mut Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let mut told = Instant::now();
        let tell = move |py: Python<'_>| {
            py.check_signals()?;
            match &self.report {
                Some(report) if told.elapsed() >= TELL => {
                    told = Instant::now();
                    let now = self.live.activity().now();
                    let what = (now.first, now.active, now.lists, now.read_bytes, now.hits);
                    report.call1(py, what).map(|_| ())
                }
                _ => Ok(()),
            }
        };
        watching(py, tell, |watch| work(&self.live, watch))
    }

    pub fn work<O: LiveOperator>(&self, py: Python<'_>, operator: &O) -> PyResult<O::Output> {
        self.watching(py, |live, watch| live.work(operator, watch))
    }
}

#[pymethods]
impl PyLiveRun {
    /// A run of a session, or one within another.
    #[new]
    #[pyo3(signature = (session, report=None, outer=None))]
    fn new(session: PyRef<'_, PySession>, report: Option<Py<PyAny>>, outer: Option<PyRef<'_, PyLiveRun>>) -> PyLiveRun {
        let is_within = |outer: &PyRef<'_, PyLiveRun>| Arc::ptr_eq(outer.live.session(), &session.0);
        let live = match outer.filter(is_within) {
            Some(outer) => LiveRun::within(&outer.live),
            None => LiveRun::new(session.0.clone()),
        };
        PyLiveRun { live, report }
    }

    #[getter]
    fn bytes_read(&self) -> u64 {
        self.live.bytes_read()
    }

    #[getter]
    fn reserved_bytes(&self) -> u64 {
        self.live.reserved_bytes()
    }

    /// Holds memory for the states of a program, in so many bytes of each vertex.
    fn hold_states(&self, py: Python<'_>, vertices: u64, state_bytes: u64) -> PyResult<()> {
        self.hold(py, program_bytes(vertices, state_bytes))
    }

    /// Holds memory for states.
    fn hold(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        py.detach(|| self.live.hold("graph: states", bytes)).map_err(to_python)
    }

    /// Holds memory for vertices and messages of an iteration, if it is more than was held for them before.
    fn hold_meanwhile(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        py.detach(|| self.live.hold_meanwhile(bytes)).map_err(to_python)
    }

    /// Gives back what was held.
    fn release(&self) {
        self.live.release();
    }

    /// An iteration begins, with so many active vertices that ask for so many lists.
    fn begin(&self, active: u64) {
        self.live.activity().begin(active, None);
    }

    /// The last iteration has ended.
    fn end(&self) {
        self.live.activity().end(None);
    }

    /// Iterations: the first of each row, how many, active vertices, lists, bytes read, pages from the cache, seconds.
    #[allow(clippy::type_complexity)] // a row of a table
    fn rows(&self) -> Vec<(u64, u64, u64, u64, u64, u64, f64)> {
        let rows = self.live.activity().rows().into_iter();
        rows.map(|row| {
            (
                row.first,
                row.count,
                row.active,
                row.lists,
                row.read_bytes,
                row.hits,
                row.seconds,
            )
        })
        .collect()
    }
}
