//! Errors of the engine as the exceptions of `outcore.errors`, by their stable code.

use outcore_engine::EngineError;
use outcore_store::StoreError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::function::Raised;

/// The Python exception for an engine error.
pub fn to_python(error: EngineError) -> PyErr {
    Python::attach(|py| build(py, &error).unwrap_or_else(|failure| failure))
}

pub fn store_error(error: StoreError) -> PyErr {
    to_python(EngineError::Store(error))
}

fn build(py: Python<'_>, error: &EngineError) -> PyResult<PyErr> {
    let details = PyDict::new(py);
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
        }
        EngineError::Store(StoreError::Memory { need, limit, .. }) => {
            details.set_item("need", need)?;
            details.set_item("limit", limit)?;
        }
        _ => {}
    }
    let cause = raised(error).map(|raised| raised.error.clone_ref(py));
    // KeyboardInterrupt and SystemExit are no failures of the computation: they stay what they are.
    if let Some(stop) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
        return Ok(stop.clone_ref(py));
    }
    let from_code = py.import("outcore.errors")?.getattr("from_code")?;
    let exception = PyErr::from_value(from_code.call1((error.code(), error.to_string(), details))?);
    exception.set_cause(py, cause);
    Ok(exception)
}

/// What a Python function over tiles raised, if that is the error.
fn raised(error: &EngineError) -> Option<&Raised> {
    match error {
        EngineError::Function(cause) => cause.downcast_ref(),
        _ => None,
    }
}
