//! A run over a graph: its session, who is told how far it is, and what its iterations did.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use outcore_engine::graph::{Activity, Frames, Resources, Watch, PORTION_PAGES};
use outcore_engine::run::Session;
use outcore_engine::EngineError;
use outcore_store::cache::CachedFile;
use outcore_store::Reservation;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::base::errors::to_python;
use crate::base::signals::{watching, TELL};
use crate::session::PySession;

#[pyclass(frozen, name = "GraphRun", module = "outcore._core")]
pub struct PyGraphRun {
    pub session: Arc<Session>,
    /// Is told of the iteration that is under way.
    report: Option<Py<PyAny>>,
    pub activity: Activity,
    reserved_bytes: AtomicU64,
    /// What a run would begin with, if it only tells.
    forecast: Option<OnceLock<Begin>>,
    /// Memory of what the run knows of vertices, and of what its iterations have meanwhile.
    held: Mutex<Vec<Reservation>>,
    meanwhile: Mutex<Vec<Reservation>>,
}

create_exception!(
    outcore._core,
    OnlyForecast,
    PyException,
    "A run that only tells what it would begin with has told."
);

/// What a run begins with.
#[derive(Clone, Copy)]
pub struct Begin {
    /// Bytes for what is known of vertices, with the index.
    pub known: u64,
    /// Bytes for what is read and sent.
    pub meanwhile: u64,
    /// Bytes that the page cache may take.
    pub cache: u64,
}

fn lock(held: &Mutex<Vec<Reservation>>) -> MutexGuard<'_, Vec<Reservation>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyGraphRun {
    pub fn resources<'a>(&'a self, memory: u64, frames: &'a Frames, cache: Option<&'a CachedFile>) -> Resources<'a> {
        Resources {
            memory,
            portion_pages: PORTION_PAGES,
            threads: self.threads(),
            io_threads: self.session.options().io_threads,
            io: self.session.io(),
            frames,
            cache,
            activity: &self.activity,
        }
    }

    /// Threads that work.
    pub fn threads(&self) -> usize {
        self.session.options().threads
    }

    /// Has memory for what is known of vertices until it is released: computations run in what is left.
    ///
    /// # Errors
    /// There is not so much.
    pub fn hold_for(&self, py: Python<'_>, operator: &'static str, bytes: u64) -> PyResult<()> {
        let more = py.detach(|| self.session.hold_beside(operator, bytes));
        lock(&self.held).extend(more.map_err(to_python)?);
        Ok(())
    }

    /// Ends here, if the run only tells what it would begin with.
    ///
    /// # Errors
    /// It is such a run.
    pub fn begins(&self, begin: Begin) -> PyResult<()> {
        let Some(forecast) = &self.forecast else { return Ok(()) };
        let _ = forecast.set(begin);
        Err(OnlyForecast::new_err("told"))
    }

    /// What the run has reserved at a time.
    pub fn reserves(&self, bytes: u64) {
        self.reserved_bytes.fetch_max(bytes, Relaxed);
    }

    /// Works without the interpreter, looking for signals and telling how far it is whenever the work asks.
    pub fn watching<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Watch<'_>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let mut told = Instant::now();
        let tell = move |py: Python<'_>| {
            py.check_signals()?;
            match &self.report {
                Some(report) if told.elapsed() >= TELL => {
                    told = Instant::now();
                    let now = self.activity.now();
                    let what = (now.first, now.active, now.lists, now.read_bytes, now.hits);
                    report.call1(py, what).map(|_| ())
                }
                _ => Ok(()),
            }
        };
        watching(py, tell, work)
    }
}

#[pymethods]
impl PyGraphRun {
    #[new]
    #[pyo3(signature = (session, report=None, only_forecast=false))]
    fn new(session: PyRef<'_, PySession>, report: Option<Py<PyAny>>, only_forecast: bool) -> PyGraphRun {
        PyGraphRun {
            session: session.0.clone(),
            report,
            activity: Activity::default(),
            reserved_bytes: AtomicU64::new(0),
            forecast: only_forecast.then(OnceLock::new),
            held: Mutex::default(),
            meanwhile: Mutex::default(),
        }
    }

    #[getter]
    fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Relaxed)
    }

    /// What the run would begin with, once it has told: bytes for what is known of vertices with the index, for what is read
    /// and sent, and for the page cache at most; and what the session has.
    #[getter]
    fn forecast(&self) -> Option<(u64, u64, u64, u64)> {
        let begin = self.forecast.as_ref()?.get()?;
        Some((begin.known, begin.meanwhile, begin.cache, self.session.spare()))
    }

    /// Holds memory for states.
    fn hold(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        self.hold_for(py, "graph: states", bytes)
    }

    /// Holds memory for vertices and messages of an iteration, in place of what was held for them before.
    fn hold_meanwhile(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        lock(&self.meanwhile).clear();
        let more = py.detach(|| self.session.hold_beside("graph: vertices and messages", bytes));
        lock(&self.meanwhile).extend(more.map_err(to_python)?);
        Ok(())
    }

    /// Gives back what was held.
    fn release(&self) {
        lock(&self.held).clear();
        lock(&self.meanwhile).clear();
    }

    /// An iteration begins, with so many active vertices that ask for so many lists.
    fn begin(&self, active: u64) {
        self.activity.begin(active, None);
    }

    /// The last iteration has ended.
    fn end(&self) {
        self.activity.end(None);
    }

    /// Iterations: the first of each row, how many, active vertices, lists, bytes read, pages from the cache, seconds.
    #[allow(clippy::type_complexity)] // a row of a table
    fn rows(&self) -> Vec<(u64, u64, u64, u64, u64, u64, f64)> {
        let rows = self.activity.rows().into_iter();
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
