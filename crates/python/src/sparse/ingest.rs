//! Entries in any order: parted into groups of tile rows, each put in order in memory.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use outcore_dtype::DType;
use outcore_engine::expr::staged::Room;
use outcore_engine::ingest::{groups_in, Ingest, StoredEntries};
use outcore_engine::live::LiveRun;
use outcore_engine::sort::{self, Parting, Parts};
use outcore_engine::EngineError;
use pyo3::prelude::*;

use super::matrix::duplicates_named;
use super::matrix::shape_of;
use crate::arrays::node::{exprs, PyExpr};
use crate::base::errors::{argument, to_python};
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// How entries are cut into groups by their keys: elements of a run, and splitters, none where all of them are a group.
/// Nothing where there is no room for that.
#[pyfunction]
fn parting(
    session: PyRef<'_, PySession>,
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
) -> PyResult<Option<(u64, usize)>> {
    let (session, values) = (&session.0, exprs(&values));
    let groups = groups_in(&keys.0, &values, session).map_err(to_python)?;
    let length = keys.0.elements();
    if length <= groups.wanted {
        return Ok(Some((length, 0)));
    }
    let budget = session.budget();
    let room = Room {
        memory: budget - budget / 8,
        threads: session.options().threads.max(1),
    };
    let found = sort::parting(&keys.0, &values, groups.wanted, groups.most, room).map_err(to_python)?;
    Ok(found.map(|parting| (parting.run, parting.splitters)))
}

/// Some of the keys, in which all are about as often as in all of them: pages evenly apart; nothing of fewer than a page.
#[pyfunction]
fn sample_keys(keys: &PyExpr) -> PyResult<Option<PyExpr>> {
    Ok(sort::sample(&keys.0).map_err(to_python)?.map(PyExpr::new))
}

/// Keys and values in runs of buckets that lie between `splitters` (the bytes of keys in order), and how many elements each bucket has in each run.
#[pyfunction]
fn part(
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
    splitters: PyReadonlyArray1<'_, u8>,
    run: u64,
) -> PyResult<Vec<PyExpr>> {
    let splitters = splitters.as_slice()?;
    let parting = Parting {
        run,
        splitters: splitters.len() / keys.0.dtype.size(),
    };
    let found = sort::part(&keys.0, &exprs(&values), splitters, parting).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

/// Writes the first `count` entries of stored columns, keys first, to a file: columns in order, or in runs of so many
/// elements, each of so many buckets, whose lengths are given (the bytes of int64). Gives the number of entries in the file; nothing where
/// a bucket is larger than there is memory for. `told` hears how many entries are done.
#[pyfunction]
#[pyo3(signature = (session, path, shape, dtype, side, duplicates, overwrite, columns, keys, count, runs, told))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn assemble_sparse(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    path: PathBuf,
    shape: (u64, u64),
    dtype: &str,
    side: u32,
    duplicates: &str,
    overwrite: bool,
    columns: Vec<PyRef<'_, PyExpr>>,
    keys: usize,
    count: u64,
    runs: Option<(u64, usize, PyReadonlyArray1<'_, u8>)>,
    told: Option<Py<PyAny>>,
) -> PyResult<Option<u64>> {
    let (shape, duplicates) = (shape_of(shape, side, dtype)?, duplicates_named(duplicates)?);
    let wanted_columns = keys + usize::from(shape.dtype.is_some());
    let (session, columns) = (session.0.clone(), exprs(&columns));
    if !(1..=2).contains(&keys)
        || columns.len() != wanted_columns
        || columns[..keys].iter().any(|keys| keys.dtype != DType::U64)
        || columns.get(keys).map(|values| values.dtype) != shape.dtype
    {
        return Err(argument(format!("sparse: {} columns are no entries", columns.len())));
    }
    let groups = groups_in(&columns[0], &columns[1..], &session).map_err(to_python)?;
    let parts = match &runs {
        None => Parts::of_sorted(&columns, groups.wanted).map(Some),
        Some((run, splitters, counts)) => {
            let (run, splitters) = (*run, *splitters);
            let parting = Parting { run, splitters };
            Parts::of_runs(&columns, counts.as_slice()?, parting, groups.wanted, groups.most)
        }
    };
    let Some(parts) = parts.map_err(to_python)? else {
        return Ok(None);
    };
    let told = |entries: u64| match &told {
        None => Ok(()),
        Some(told) => Python::attach(|py| told.call1(py, (entries,)).map(|_| ()))
            .map_err(|error| EngineError::Internal(format!("sparse: progress: {error}"))),
    };
    let entries = StoredEntries {
        ingest: Ingest {
            parts: &parts,
            keys,
            count,
        },
        path: &path,
        shape,
        duplicates,
        overwrite,
        told: &told,
    };
    let shape = watching_signals(py, |watch| LiveRun::new(session).work(&entries, watch))?;
    Ok(Some(shape.entries))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parting, module)?)?;
    module.add_function(wrap_pyfunction!(sample_keys, module)?)?;
    module.add_function(wrap_pyfunction!(part, module)?)?;
    module.add_function(wrap_pyfunction!(assemble_sparse, module)?)
}
