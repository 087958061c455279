//! What the disks of volumes have done.

use std::path::Path;

use outcore_engine::run::Session;
use outcore_store::volumes::DiskCounters;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What the disks of volumes have done for a session.
pub fn disks<'py>(py: Python<'py>, session: &Session) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for counters in session.io().disks() {
        let DiskCounters {
            volume,
            disk,
            requests,
            bytes_read,
            bytes_written,
            busy_seconds,
            errors,
        } = counters;
        let row = PyDict::new(py);
        row.set_item("volume", text(&volume))?;
        row.set_item("disk", text(&disk))?;
        row.set_item("requests", requests)?;
        row.set_item("bytes_read", bytes_read)?;
        row.set_item("bytes_written", bytes_written)?;
        row.set_item("busy_seconds", busy_seconds)?;
        row.set_item("errors", errors)?;
        rows.append(row)?;
    }
    Ok(rows)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
