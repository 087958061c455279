//! Sessions: options in, programs out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use outcore_engine::expr::{topological, Expr, Op};
use outcore_engine::place::Policy;
use outcore_engine::run::{Session, SessionOptions};
use outcore_store::{may_change_unseen, StagesFolder};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::options::{invalid, option, plan_options, read_target};
use super::program::{PyProgram, LONG, PLANNING};
use crate::arrays::node::PyExpr;
use crate::base::errors::{store_error, to_python};
use crate::base::signals::watching;
use crate::session::stages::PyStagesFolder;

#[pyclass(frozen, name = "Session", module = "outcore._core")]
pub struct PySession(pub Arc<Session>);

#[pymethods]
impl PySession {
    #[new]
    fn new(options: &Bound<'_, PyDict>) -> PyResult<PySession> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = option::<usize>(options, "threads")?.unwrap_or(cores).max(1);
        let policy: Option<String> = option(options, "policy")?;
        let policy = match policy {
            None => Policy::default(),
            Some(name) => Policy::from_name(&name).ok_or_else(|| {
                let names: Vec<&str> = Policy::ALL.iter().map(|policy| policy.name()).collect();
                invalid(format!(
                    "policy: there is none called {name}; there are {}",
                    names.join(", ")
                ))
            })?,
        };
        let session = Session::new(SessionOptions {
            memory_limit: option(options, "memory_limit")?.unwrap_or(u64::MAX >> 2),
            pool_limit: option(options, "pool_limit")?,
            threads,
            io_threads: option::<usize>(options, "io_threads")?.unwrap_or(4).max(1),
            window: option(options, "window")?,
            scratch: option::<Vec<PathBuf>>(options, "scratch")?.unwrap_or_else(|| vec![std::env::temp_dir()]),
            scratch_quota: option(options, "scratch_quota")?,
            policy,
            plan: plan_options(options)?,
            direct_io: option(options, "direct_io")?.unwrap_or(true),
            faults: option(options, "faults")?,
        });
        Ok(PySession(Arc::new(session.map_err(to_python)?)))
    }

    /// `doing` is called with words for it while planning takes long.
    #[pyo3(signature = (outputs, targets, doing=None))]
    fn plan(
        &self,
        py: Python<'_>,
        outputs: Vec<PyRef<'_, PyExpr>>,
        targets: Vec<Option<Bound<'_, PyDict>>>,
        doing: Option<Py<PyAny>>,
    ) -> PyResult<PyProgram> {
        let nodes: Vec<_> = outputs.iter().map(|output| output.0.clone()).collect();
        let targets = targets
            .iter()
            .zip(&nodes)
            .map(|(target, node)| read_target(target.as_ref(), node))
            .collect::<PyResult<Vec<_>>>()?;
        let session = self.0.clone();
        let stale = |node: &Expr| matches!(&node.op, Op::Source(source) if may_change_unseen(&*source.0));
        if topological(&nodes).iter().any(stale) {
            session.clear();
        }
        let (begin, mut said) = (Instant::now(), false);
        let look = |py: Python<'_>| {
            py.check_signals()?;
            match &doing {
                Some(doing) if !said && begin.elapsed() >= LONG => {
                    said = true;
                    doing.call1(py, (PLANNING,)).map(drop)
                }
                _ => Ok(()),
            }
        };
        let chain = watching(py, look, |watch| session.plan_chain(&nodes, &targets, watch))?;
        let shapes = nodes.iter().map(|node| (node.shape.clone(), node.dtype)).collect();
        Ok(PyProgram { chain, shapes })
    }

    /// A path for an array that is to be held in scratch.
    fn unused_path(&self) -> PyResult<String> {
        let path = self.0.unused_path().map_err(to_python)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// The array stored at such a path; the file goes away with the last expression that reads it.
    fn hold(&self, py: Python<'_>, path: PathBuf) -> PyResult<PyExpr> {
        let held = py.detach(|| self.0.hold(&path)).map_err(to_python)?;
        let node = outcore_engine::ops::source(Arc::new(held)).map_err(to_python)?;
        Ok(PyExpr::new(node))
    }

    /// A folder of this name in the first directory of scratch, for work on `target` that may have to be gone on with.
    fn stages_folder(&self, name: &str, target: PathBuf) -> PyResult<PyStagesFolder> {
        let held = StagesFolder::hold(&self.0.options().scratch, name, &target);
        held.map(PyStagesFolder).map_err(store_error)
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.0.io().counters();
        let dict = PyDict::new(py);
        dict.set_item("bytes_read", counters.bytes_read)?;
        dict.set_item("bytes_written", counters.bytes_written)?;
        dict.set_item("read_calls", counters.read_calls)?;
        dict.set_item("write_calls", counters.write_calls)?;
        dict.set_item("metadata_bytes_read", counters.metadata_bytes_read)?;
        dict.set_item("reserved_bytes", self.0.ledger().used())?;
        dict.set_item("kept_bytes", self.0.kept_bytes())?;
        dict.set_item("peak_bytes", self.0.ledger().peak())?;
        dict.set_item("reservations", self.0.ledger().reservations())?;
        dict.set_item("budget_bytes", self.0.budget())?;
        Ok(dict)
    }

    /// What is kept in memory, the most bytes first: the file of an array with how many tiles, or a value.
    fn kept(&self) -> Vec<(String, Option<u64>, u64)> {
        let kept = self.0.kept_arrays().into_iter();
        kept.map(|array| (array.name, array.tiles, array.bytes)).collect()
    }

    /// What the disks of volumes have done since the session was made.
    fn disks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        super::disks::disks(py, &self.0)
    }

    /// What users should know of the disks of volumes, each once.
    fn notes(&self) -> Vec<String> {
        self.0.io().notes()
    }

    fn clear(&self) {
        self.0.clear();
    }

    /// The limit under which so many bytes are there beside what is held now.
    fn limit_that_leaves(&self, bytes: u64) -> u64 {
        self.0.limit_that_leaves(bytes)
    }

    /// Has kept tiles give so many bytes back, for what the process takes beside.
    fn leave_room(&self, py: Python<'_>, bytes: u64) {
        py.detach(|| self.0.leave_room(bytes));
    }

    fn settle_ahead(&self, py: Python<'_>) {
        py.detach(|| self.0.settle_ahead());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySession>()
}
