//! Folders of stages, unfinished outputs, and scratch that dead processes left.

use std::path::PathBuf;

use outcore_store::StagesFolder;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::base::errors::store_error;

/// A folder that stays until it is removed; locked while this is alive.
#[pyclass(frozen, name = "StagesFolder", module = "outcore._core")]
pub struct PyStagesFolder(pub StagesFolder);

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

/// Removes what was listed in a directory, but what is at work; or only what no process can go on with. Gives how many and how
/// many bytes.
#[pyfunction]
fn remove_unfinished(py: Python<'_>, directory: PathBuf, lost_only: bool) -> PyResult<(u64, u64)> {
    let remove = || {
        let mut removed = (0, 0);
        for one in outcore_store::list_unfinished(&directory)? {
            if (one.lost || !lost_only) && outcore_store::remove_unfinished(&one)? {
                removed = (removed.0 + 1, removed.1 + one.bytes);
            }
        }
        Ok(removed)
    };
    py.detach(remove).map_err(store_error)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStagesFolder>()?;
    module.add_function(wrap_pyfunction!(clean, module)?)?;
    module.add_function(wrap_pyfunction!(unfinished, module)?)?;
    module.add_function(wrap_pyfunction!(remove_unfinished, module)?)
}
