//! Volumes: one logical file over several directories; and files that may lie in one, for what Python itself does to them.

use std::path::{Path, PathBuf};

use outcore_store::io::Mode;
use outcore_store::volumes::{self, BlockLayout};
use outcore_store::{Io, StoreError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::base::errors::store_error;
use crate::base::signals::watching_signals;

/// Bytes that are handed to Python at a time.
const BYTES_MAX: u64 = 1 << 30;

fn named(layout: &str) -> Result<BlockLayout, StoreError> {
    let unknown = || StoreError::Invalid(format!("layout={layout:?}; striped, rotated and hashed are right"));
    BlockLayout::from_name(layout).ok_or_else(unknown)
}

/// Makes a directory a volume over others, each with its weight.
#[pyfunction]
fn volume_create(
    py: Python<'_>,
    home: PathBuf,
    members: Vec<(PathBuf, u32)>,
    layout: &str,
    block_bytes: u64,
) -> PyResult<()> {
    let made = named(layout).and_then(|layout| py.detach(|| volumes::create(&home, &members, layout, block_bytes)));
    made.map_err(store_error)
}

#[pyfunction]
fn volume_add(py: Python<'_>, home: PathBuf, directory: PathBuf, weight: u32) -> PyResult<()> {
    py.detach(|| volumes::add(&home, &directory, weight))
        .map_err(store_error)
}

#[pyfunction]
fn volume_set_weights(py: Python<'_>, home: PathBuf, weights: Vec<(String, u32)>) -> PyResult<()> {
    py.detach(|| volumes::set_weights(&home, &weights)).map_err(store_error)
}

/// Takes a disk that has no bytes of any file out of a volume.
#[pyfunction]
fn volume_remove(py: Python<'_>, home: PathBuf, disk: String) -> PyResult<()> {
    py.detach(|| volumes::remove(&home, &disk)).map_err(store_error)
}

/// Writes down where the disks of a volume are now.
#[pyfunction]
fn volume_record_places(py: Python<'_>, home: PathBuf, further: Vec<PathBuf>) -> PyResult<()> {
    py.detach(|| volumes::record_places(&home, &further))
        .map_err(store_error)
}

#[pyfunction]
fn volume_info<'py>(py: Python<'py>, home: PathBuf, further: Vec<PathBuf>) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| volumes::info(&home, &further)).map_err(store_error)?;
    let members = PyList::empty(py);
    for member in &found.members {
        let row = PyDict::new(py);
        row.set_item("id", &member.id)?;
        row.set_item("path", text(&member.path))?;
        row.set_item("recorded", member.recorded.as_deref().map(text))?;
        row.set_item("found", member.found)?;
        row.set_item("reason", &member.reason)?;
        row.set_item("weight", member.weight)?;
        row.set_item("bytes", member.bytes)?;
        row.set_item("free_bytes", member.free_bytes)?;
        members.append(row)?;
    }
    let content = PyDict::new(py);
    content.set_item("home", text(&found.home))?;
    content.set_item("id", found.id)?;
    content.set_item("layout", found.layout.name())?;
    content.set_item("block_bytes", found.block_bytes)?;
    content.set_item("generation", found.generation)?;
    content.set_item("members", members)?;
    Ok(content)
}

#[pyfunction]
fn volume_check<'py>(py: Python<'py>, home: PathBuf, repair: bool) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| volumes::check(&home, repair)).map_err(store_error)?;
    let damaged = found.damaged.iter().map(|(path, reason)| (text(path), reason.clone()));
    let content = PyDict::new(py);
    content.set_item("files", found.files)?;
    content.set_item("bytes", found.bytes)?;
    content.set_item("older", found.older)?;
    content.set_item("damaged", damaged.collect::<Vec<_>>())?;
    content.set_item("orphans", found.orphans)?;
    content.set_item("orphan_bytes", found.orphan_bytes)?;
    content.set_item("adopted", found.adopted)?;
    content.set_item("repaired", found.repaired)?;
    Ok(content)
}

#[pyfunction]
fn volume_rebalance<'py>(py: Python<'py>, home: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let done = watching_signals(py, |watch| {
        let done = volumes::rebalance(&home, &Io::direct(), &mut || watch().is_ok())?;
        Ok(done)
    })?;
    let content = PyDict::new(py);
    content.set_item("files", done.files)?;
    content.set_item("bytes", done.bytes)?;
    content.set_item("left", done.left)?;
    Ok(content)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[pyfunction]
fn is_in_volume(path: PathBuf) -> bool {
    volumes::is_within(&path)
}

/// Removes a file, or a directory with everything in it, and what volumes have of them.
#[pyfunction]
fn remove(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| volumes::remove_tree(&path)).map_err(store_error)
}

/// Two files or folders exchange their names; false where the file system cannot.
#[pyfunction]
fn exchange(py: Python<'_>, first: PathBuf, second: PathBuf) -> PyResult<bool> {
    py.detach(|| volumes::exchange(&first, &second)).map_err(store_error)
}

/// Gives a file another name, and replaces what has it.
#[pyfunction]
fn replace(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<()> {
    py.detach(|| volumes::replace(&source, &target, &Io::buffered()))
        .map_err(store_error)
}

/// Bytes of a file from an offset on, as many as there are up to `count`.
#[pyfunction]
fn read_bytes<'py>(py: Python<'py>, path: PathBuf, offset: u64, count: u64) -> PyResult<Bound<'py, PyBytes>> {
    let read = || {
        let io = Io::buffered();
        let file = io.open(&path, Mode::Read)?;
        let count = file.len()?.saturating_sub(offset).min(count).min(BYTES_MAX) as usize;
        let mut bytes = vec![0; count];
        io.read(&file, &mut bytes, offset, count)?;
        Ok(bytes)
    };
    let bytes = py.detach(read).map_err(store_error)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Writes bytes into a file that is there, durably.
#[pyfunction]
fn write_bytes(py: Python<'_>, path: PathBuf, offset: u64, content: Vec<u8>) -> PyResult<()> {
    let write = || {
        let io = Io::buffered();
        let file = io.open(&path, Mode::ReopenUnaligned)?;
        io.write(&file, &content, offset)?;
        io.sync(&file)
    };
    py.detach(write).map_err(store_error)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(volume_create, module)?)?;
    module.add_function(wrap_pyfunction!(volume_add, module)?)?;
    module.add_function(wrap_pyfunction!(volume_set_weights, module)?)?;
    module.add_function(wrap_pyfunction!(volume_remove, module)?)?;
    module.add_function(wrap_pyfunction!(volume_record_places, module)?)?;
    module.add_function(wrap_pyfunction!(volume_info, module)?)?;
    module.add_function(wrap_pyfunction!(volume_check, module)?)?;
    module.add_function(wrap_pyfunction!(volume_rebalance, module)?)?;
    module.add_function(wrap_pyfunction!(is_in_volume, module)?)?;
    module.add_function(wrap_pyfunction!(remove, module)?)?;
    module.add_function(wrap_pyfunction!(exchange, module)?)?;
    module.add_function(wrap_pyfunction!(replace, module)?)?;
    module.add_function(wrap_pyfunction!(read_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(write_bytes, module)?)
}
