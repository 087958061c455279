//! Programs: forecasts and outcomes out, signals watched in between.

use std::time::{Duration, Instant};

use outcore_engine::run::{timeline, Chain, Doing, Outcome, PreparedProgram, ProgressReport, SweepPoint, TraceLevel};
use outcore_engine::EngineError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::convert::to_numpy;
use crate::base::errors::to_python;
use crate::base::signals::{watching_signals, TELL};

/// Planning that takes longer is told.
pub const LONG: Duration = Duration::from_secs(1);

pub const PLANNING: &str = "planning";

type TileAccounts = (u32, u64, u64, u64, bool);
type TaskAccounts = (u32, u32, Option<u32>, Option<u32>, Vec<u32>, Vec<u32>, Vec<u32>);
type StageAccesses = (u64, Vec<TileAccounts>, Vec<TaskAccounts>);

/// A limit, its forecast if there is one, and bytes that are needed where there is none.
type SweepRow = (u64, Option<(u64, u64, u64, u64, bool)>, u64);

fn sweep_rows(points: Vec<SweepPoint>) -> Vec<SweepRow> {
    let row = |point: SweepPoint| {
        let figures = point.forecast.map(|forecast| {
            (
                forecast.read_bytes,
                forecast.written_bytes,
                forecast.spilled_bytes,
                forecast.peak_bytes,
                forecast.is_exact,
            )
        });
        (point.memory_limit, figures, point.need)
    };
    points.into_iter().map(row).collect()
}

#[pyclass(frozen, name = "Program", module = "outcore._core")]
pub struct PyProgram {
    pub chain: Chain,
    pub shapes: Vec<(Vec<u64>, outcore_dtype::DType)>,
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

    /// Of each stage that is planned: the memory for tiles; all tiles as (array, bytes in memory, bytes read, bytes written
    /// as a result, whether it is there before); and tasks in their order as (producer, number, nest, sweep, tiles read,
    /// tiles created, tiles updated).
    fn accesses(&self) -> Vec<StageAccesses> {
        let programs = self.chain.stages.iter().map(|stage| &stage.program);
        let of = |program: &PreparedProgram| {
            let tiles = program.tile_facts().into_iter().map(|tile| {
                (
                    tile.array,
                    tile.frame_bytes,
                    tile.read_bytes,
                    tile.result_bytes,
                    tile.is_there,
                )
            });
            let tasks = program.task_tiles().into_iter().map(|task| {
                (
                    task.producer,
                    task.number,
                    task.nest,
                    task.sweep,
                    task.read,
                    task.created,
                    task.updated,
                )
            });
            (program.memory, tiles.collect(), tasks.collect())
        };
        programs.map(of).collect()
    }

    /// Bytes moved beyond those that every order moves, tasks of all stages, and seconds that planning took.
    fn beyond_once(&self) -> (u64, u64, f64) {
        let stages = self.chain.stages.iter().map(|stage| &stage.program);
        let sums = stages.fold((0, 0.0), |(tasks, seconds), program| {
            (
                tasks + program.placed.tasks.len() as u64,
                seconds + program.plan_seconds,
            )
        });
        (self.chain.bytes_beyond_once(), sums.0, sums.1)
    }

    /// The forecast under each of some memory limits: the limit, and bytes read, written, spilled, peak, and whether these
    /// are exact; with None for these the bytes that are needed beside the process where that does not fit.
    fn sweep(&self, py: Python<'_>, limits: Vec<u64>) -> PyResult<Vec<SweepRow>> {
        let points = watching_signals(py, |watch| self.chain.sweep(&limits, watch))?;
        Ok(sweep_rows(points))
    }

    /// The occupancy of memory by each stage that is planned, as JSON.
    fn occupancy(&self, py: Python<'_>) -> Vec<String> {
        let stages = &self.chain.stages;
        py.detach(|| stages.iter().map(|stage| stage.program.occupancy_json()).collect())
    }

    /// The least and the most seconds that it takes by the rates of the session's last runs, and how many these are; None
    /// before the first.
    fn time(&self) -> Option<(f64, f64, usize)> {
        self.chain.time().map(|band| (band.least, band.most, band.runs))
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
        let level = match trace.as_deref() {
            None => TraceLevel::None,
            Some("events") => TraceLevel::Events,
            Some(_) => TraceLevel::Bins,
        };
        let result = py.detach(|| self.chain.run(level, &mut tell));
        if let Some(error) = raised {
            return Err(error);
        }
        self.outcome(py, result.map_err(to_python)?)
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
        if !outcome.traces.is_empty() {
            let traces = outcome.traces.iter();
            let traces = traces.map(|trace| (&trace.label, trace.begin_seconds, trace.seconds, &trace.json));
            dict.set_item("traces", traces.collect::<Vec<_>>())?;
            dict.set_item("events", timeline(&outcome.traces))?;
        }
        let resumed = self.chain.resumed();
        dict.set_item("resumed_tiles", resumed.tiles)?;
        dict.set_item("verified_bytes", resumed.verified_bytes)?;
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

/// The part of a run that is under way; nothing where all of it is one pass.
fn in_words(report: &ProgressReport) -> String {
    let part = match report.doing {
        Doing::Waiting => "waiting for another computation",
        Doing::Planning => PLANNING,
        Doing::Running => "",
        Doing::Finishing => "making outputs durable",
        Doing::Cleaning => "removing files of killed processes",
    };
    let pass = match &report.pass {
        Some(pass) if pass.of > 1 => format!("pass {} of {}", pass.number, pass.of),
        _ => String::new(),
    };
    match &report.stage {
        None if part.is_empty() => pass,
        None => part.into(),
        Some(stage) => {
            let part = if part.is_empty() { &stage.label } else { part };
            let comma = if pass.is_empty() { "" } else { ", " };
            format!("stage {} of {}: {part}{comma}{pass}", stage.number, stage.of)
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProgram>()
}
