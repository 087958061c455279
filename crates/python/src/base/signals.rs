//! Work without the interpreter, with signals watched.

use std::time::Duration;

use outcore_engine::EngineError;
use pyo3::prelude::*;

use super::errors::to_python;

/// Progress is told to Python at most this often; signals are looked for as often as the runner asks.
pub const TELL: Duration = Duration::from_millis(200);

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
