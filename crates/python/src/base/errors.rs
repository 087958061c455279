//! Errors of the engine as the exceptions of `outcore.errors`, by their stable code.

use std::path::Path;

use outcore_engine::EngineError;
use outcore_store::{show_size, StoreError};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::held::{held_results, HeldResults};
use super::raised::Raised;

/// The Python exception for an engine error.
pub fn to_python(error: EngineError) -> PyErr {
    Python::attach(|py| build(py, &error).unwrap_or_else(|failure| failure))
}

pub fn store_error(error: StoreError) -> PyErr {
    to_python(EngineError::Store(error))
}

/// An error of an argument, in words.
pub fn argument(text: impl Into<String>) -> PyErr {
    to_python(EngineError::Argument(text.into()))
}

fn build(py: Python<'_>, error: &EngineError) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    // Of a refusal, the bytes that are missing.
    let mut short = None;
    match error {
        EngineError::Memory {
            operator,
            need,
            available,
            smallest,
            ..
        } => {
            details.set_item("operator", operator)?;
            details.set_item("need", need)?;
            details.set_item("limit", available)?;
            details.set_item("smallest", smallest)?;
            short = Some(need.saturating_sub(*available));
        }
        EngineError::Store(error) => {
            describe(error, &details)?;
            if let StoreError::Memory { need, used, limit, .. } = error {
                short = Some((need + used).saturating_sub(*limit) as u64);
            }
        }
        _ => {}
    }
    let cause = raised(error).map(|raised| raised.error.clone_ref(py));
    // KeyboardInterrupt and SystemExit are no failures of the computation: they stay what they are.
    if let Some(stop) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
        return Ok(stop.clone_ref(py));
    }
    let from_code = py.import("outcore.errors")?.getattr("from_code")?;
    let code = if matches!(error, EngineError::Store(_)) && cause.is_some() {
        "function"
    } else {
        error.code()
    };
    let mut message = error.to_string();
    if let Some(held) = short.and_then(in_the_way) {
        details.set_item("held", held.bytes)?;
        message += &format!(
            "; results held by the caller: {}, the largest {}; delete them or use oc.store",
            show_size(held.bytes),
            held.largest
        );
    }
    let exception = PyErr::from_value(from_code.call1((code, message, details))?);
    exception.set_cause(py, cause);
    Ok(exception)
}

/// Results that callers hold, where letting go of them would give back much of what is missing.
fn in_the_way(short: u64) -> Option<HeldResults> {
    held_results().filter(|held| held.bytes >= (64 << 10).max(short / 4))
}

/// The facts of a storage error, under the names that all of them share.
fn describe(error: &StoreError, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let path = |path: &Path| details.set_item("path", path.to_string_lossy());
    match error {
        StoreError::Io {
            path: file,
            offset,
            action,
            cause,
        } => {
            path(file)?;
            details.set_item("offset", offset)?;
            details.set_item("action", action)?;
            details.set_item("cause", cause.to_string())?;
            details.set_item("errno", outcore_store::volumes::errno(cause))
        }
        StoreError::Format { path: file, reason }
        | StoreError::Unsupported { path: file, reason }
        | StoreError::Changed { path: file, reason } => {
            path(file)?;
            details.set_item("cause", reason)
        }
        StoreError::Disturbed { path: file, reason, .. } => {
            path(file)?;
            details.set_item("cause", reason)
        }
        StoreError::HalfPublished { cause, standing } => {
            describe(cause, details)?;
            let standing = standing.iter().map(|one| one.path.to_string_lossy().into_owned());
            details.set_item("standing", standing.collect::<Vec<_>>())
        }
        StoreError::Exists { path: file } => path(file),
        StoreError::Memory {
            what,
            need,
            used,
            limit,
        } => {
            details.set_item("operator", what)?;
            details.set_item("need", need)?;
            details.set_item("used", used)?;
            details.set_item("limit", limit)
        }
        StoreError::Quota { need, used, quota } => {
            details.set_item("need", need)?;
            details.set_item("used", used)?;
            details.set_item("quota", quota)
        }
        StoreError::Space { path: file, need, free } => {
            path(file)?;
            details.set_item("need", need)?;
            details.set_item("free", free)
        }
        StoreError::Invalid(_) => Ok(()),
    }
}

/// What a Python function over tiles or blocks raised, if that is the error.
fn raised(error: &EngineError) -> Option<&Raised> {
    match error {
        EngineError::Function(cause) => cause.downcast_ref(),
        EngineError::Store(StoreError::Io { cause, .. }) => cause.get_ref()?.downcast_ref(),
        _ => None,
    }
}
