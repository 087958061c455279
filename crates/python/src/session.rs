//! Sessions and programs: options in, forecasts and outcomes out, signals watched in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore_engine::expr::{topological, Expr, Op};
use outcore_engine::place::Policy;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{Chain, Doing, Outcome, ProgressReport, Session, SessionOptions, Target};
use outcore_engine::EngineError;
use outcore_store::{may_change_unseen, Io, StagesFolder};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::to_numpy;
use crate::error::{store_error, to_python};
use crate::expr::PyExpr;

/// Progress is told to Python at most this often; signals are looked for as often as the runner asks.
pub const TELL: Duration = Duration::from_millis(200);
/// Planning that takes longer is told.
const LONG: Duration = Duration::from_secs(1);
const PLANNING: &str = "planning";

#[pyclass(frozen, name = "Session", module = "outcore._core")]
pub struct PySession(pub Arc<Session>);

fn option<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    match options.get_item(name)? {
        Some(value) if !value.is_none() => Ok(Some(value.extract()?)),
        _ => Ok(None),
    }
}

fn invalid(text: String) -> PyErr {
    to_python(EngineError::Plan(text))
}

fn plan_options(options: &Bound<'_, PyDict>) -> PyResult<PlanOptions> {
    let mut plan = PlanOptions::ALL;
    let Some(rewrites) = options.get_item("rewrites")?.filter(|value| !value.is_none()) else {
        return Ok(plan);
    };
    let rewrites = rewrites.cast_into::<PyDict>()?;
    let all: Option<bool> = option(&rewrites, "all")?;
    if let Some(on) = all {
        plan.switch("all", on);
    }
    for (name, on) in rewrites.iter() {
        let name: String = name.extract()?;
        if name != "all" && !plan.switch(&name, on.extract()?) {
            return Err(invalid(format!(
                "rewrites: there is none called {name}; there are {}",
                PlanOptions::NAMES.join(", ")
            )));
        }
    }
    Ok(plan)
}

/// Works without the interpreter, looking for signals whenever the work asks: what one raises is what is raised here.
pub fn watching_signals<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> Result<(), EngineError>) -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    watching(py, |py| py.check_signals(), work)
}

/// Works without the interpreter, and calls `look` with it whenever the work asks: what it raises is what is raised here.
pub fn watching<T: Send>(
    py: Python<'_>,
    mut look: impl FnMut(Python<'_>) -> PyResult<()> + Send,
    work: impl FnOnce(&mut dyn FnMut() -> Result<(), EngineError>) -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let mut watch = || {
        Python::attach(&mut look).map_err(|error| {
            raised = Some(error);
            EngineError::Cancelled
        })
    };
    let result = py.detach(|| work(&mut watch));
    match raised {
        Some(error) => Err(error),
        None => result.map_err(to_python),
    }
}

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
            .map(|target| read_target(target.as_ref()))
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

    /// What the disks of volumes have done since the session was made.
    fn disks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        crate::volume::disks(py, self)
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

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

fn read_target(target: Option<&Bound<'_, PyDict>>) -> PyResult<Target> {
    let Some(target) = target else {
        return Ok(Target::Memory);
    };
    let path: PathBuf = option(target, "path")?.ok_or_else(|| invalid("a target needs a path".into()))?;
    Ok(Target::Path {
        path,
        overwrite: option(target, "overwrite")?.unwrap_or(false),
        chunks: option(target, "chunks")?,
        resume: option(target, "resume")?.unwrap_or(false),
    })
}

/// A folder that stays until it is removed; locked while this is alive.
#[pyclass(frozen, name = "StagesFolder", module = "outcore._core")]
pub struct PyStagesFolder(StagesFolder);

#[pymethods]
impl PyStagesFolder {
    #[getter]
    fn path(&self) -> String {
        self.0.path().to_string_lossy().into_owned()
    }

    fn remove(&self) {
        self.0.remove();
    }
}

#[pyclass(frozen, name = "Program", module = "outcore._core")]
pub struct PyProgram {
    chain: Chain,
    shapes: Vec<(Vec<u64>, outcore_dtype::DType)>,
}

#[pymethods]
impl PyProgram {
    fn explain(&self) -> String {
        self.chain.to_json()
    }

    /// What could not be gone on with, and why.
    fn notes(&self) -> Vec<String> {
        self.chain.notes()
    }

    fn dot(&self) -> String {
        self.chain.to_dot()
    }

    /// `progress` is told how far the run is, `doing` what is under way, in words, whenever that changes.
    #[pyo3(signature = (progress, trace, doing=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        trace: Option<String>,
        doing: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut told = Instant::now() - TELL;
        let mut said = String::new();
        let mut raised: Option<PyErr> = None;
        let mut tell = |report: &ProgressReport| {
            let is_complete = report.tasks_total > 0 && report.tasks_done == report.tasks_total;
            // All is computed while outputs get their names.
            let due = report.doing != Doing::Finishing && (is_complete || told.elapsed() >= TELL);
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                if let Some(doing) = &doing {
                    let words = in_words(report);
                    if words != said {
                        doing.call1(py, (&words,))?;
                        said = words;
                    }
                }
                match &progress {
                    Some(progress) if due => {
                        told = Instant::now();
                        let ProgressReport {
                            bytes_done,
                            bytes_total,
                            tasks_done,
                            tasks_total,
                            estimate,
                            ..
                        } = *report;
                        let (fraction, left) = (estimate.fraction, estimate.seconds_left);
                        progress
                            .call1(py, (bytes_done, bytes_total, tasks_done, tasks_total, fraction, left))
                            .map(|_| ())
                    }
                    _ => Ok(()),
                }
            });
            outcome.map_err(|error| {
                raised = Some(error);
                EngineError::Cancelled
            })
        };
        let result = py.detach(|| self.chain.run(trace.is_some(), &mut tell));
        if let Some(error) = raised {
            return Err(error);
        }
        let outcome = result.map_err(to_python)?;
        if let Some(path) = trace {
            write_trace(Path::new(&path), &outcome)?;
        }
        self.outcome(py, outcome)
    }
}

/// The part of a run that is under way; nothing where all of it is one program that runs.
fn in_words(report: &ProgressReport) -> String {
    let part = match report.doing {
        Doing::Waiting => "waiting for another computation",
        Doing::Planning => PLANNING,
        Doing::Running => "",
        Doing::Finishing => "making outputs durable",
        Doing::Cleaning => "removing files of killed processes",
    };
    match &report.stage {
        None => part.into(),
        Some(stage) => {
            let part = if part.is_empty() { &stage.label } else { part };
            format!("stage {} of {}: {part}", stage.number, stage.of)
        }
    }
}

impl PyProgram {
    fn outcome<'py>(&self, py: Python<'py>, outcome: Outcome) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("bytes_read", outcome.read_bytes)?;
        dict.set_item("bytes_written", outcome.written_bytes)?;
        dict.set_item("bytes_spilled", outcome.spilled_bytes)?;
        dict.set_item("peak_bytes", outcome.peak_bytes)?;
        dict.set_item("seconds", outcome.seconds)?;
        dict.set_item("read_seconds", outcome.read_seconds)?;
        dict.set_item("write_seconds", outcome.write_seconds)?;
        dict.set_item("compute_seconds", outcome.compute_seconds)?;
        let stages = outcome.stages.iter().map(|stage| (stage.forecast, stage.counted));
        dict.set_item("stages", stages.collect::<Vec<_>>())?;
        let (tiles, bytes) = self.chain.resumed();
        dict.set_item("resumed_tiles", tiles)?;
        dict.set_item("verified_bytes", bytes)?;
        let results = PyList::empty(py);
        for (frame, (shape, dtype)) in outcome.results.into_iter().zip(&self.shapes) {
            match frame {
                Some(frame) => results.append(to_numpy(py, frame, shape, *dtype)?)?,
                None => results.append(py.None())?,
            }
        }
        dict.set_item("results", results)?;
        Ok(dict)
    }
}

/// Writes the timeline in Chrome's trace format: complete events, microseconds.
fn write_trace(path: &Path, outcome: &Outcome) -> PyResult<()> {
    let events: Vec<String> = outcome
        .events
        .iter()
        .map(|event| {
            format!(
                "{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{},\"dur\":{}}}",
                event.name.replace(['"', '\\'], "'"),
                event.kind,
                event.thread,
                event.start.as_micros(),
                event.length.as_micros()
            )
        })
        .collect();
    std::fs::write(path, format!("{{\"traceEvents\":[{}]}}\n", events.join(",\n"))).map_err(PyErr::from)
}

#[pyfunction]
fn clean(py: Python<'_>, directory: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let (scratch, partials) = py
        .detach(|| {
            Ok((
                outcore_store::clean(&directory)?,
                outcore_store::clean_partials(&directory)?,
            ))
        })
        .map_err(store_error)?;
    let dict = PyDict::new(py);
    dict.set_item("count", scratch.count + partials.count)?;
    dict.set_item("bytes", scratch.bytes + partials.bytes)?;
    Ok(dict)
}

/// Folder, target, bytes, seconds since it was worked on, whether it is now.
type UnfinishedRow = (PathBuf, PathBuf, u64, f64, bool);

/// Work in a directory that can be gone on with.
#[pyfunction]
fn unfinished(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<UnfinishedRow>> {
    let found = py
        .detach(|| outcore_store::list_unfinished(&directory))
        .map_err(store_error)?;
    let rows = found
        .into_iter()
        .map(|one| (one.folder, one.target, one.bytes, one.age.as_secs_f64(), one.busy));
    Ok(rows.collect())
}

/// Removes what was listed in a directory, but what is at work. Gives how many and how many bytes.
#[pyfunction]
fn remove_unfinished(py: Python<'_>, directory: PathBuf) -> PyResult<(u64, u64)> {
    let remove = || {
        let mut removed = (0, 0);
        for one in outcore_store::list_unfinished(&directory)? {
            if outcore_store::remove_unfinished(&one)? {
                removed = (removed.0 + 1, removed.1 + one.bytes);
            }
        }
        Ok(removed)
    };
    py.detach(remove).map_err(store_error)
}

#[pyfunction]
fn info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let opened = py.detach(|| outcore_store::open(&path, &Io::direct()));
    let opened = opened.map_err(store_error)?;
    let source = opened.source;
    let (kind, chunks) = match source.layout() {
        outcore_store::Layout::Chunks(chunks) => ("zarr", format!("{chunks:?}")),
        _ => ("npy", "null".into()),
    };
    let mut shape = source.shape().to_vec();
    if opened.transposed {
        shape.reverse();
    }
    let bytes = shape.iter().product::<u64>() * source.dtype().size() as u64;
    let order = if opened.transposed { "F" } else { "C" };
    Ok(format!(
        "{{\"format\":\"{kind}\",\"shape\":{shape:?},\"dtype\":\"{}\",\"nbytes\":{bytes},\"chunks\":{chunks},\"order\":\"{order}\"}}",
        source.dtype()
    ))
}

#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Resident bytes of this process, now and at most, as the kernel counts them.
#[pyfunction]
fn rss(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or("");
        line.split_whitespace()
            .nth(1)
            .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    };
    let dict = PyDict::new(py);
    dict.set_item("current", field("VmRSS:"))?;
    dict.set_item("peak", field("VmHWM:"))?;
    Ok(dict)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(clean, module)?)?;
    module.add_function(wrap_pyfunction!(unfinished, module)?)?;
    module.add_function(wrap_pyfunction!(remove_unfinished, module)?)?;
    module.add_function(wrap_pyfunction!(info, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(rss, module)?)
}
