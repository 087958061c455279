//! Files read at random through a page cache.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::live::{cached_bytes, RandomFile};
use outcore_engine::EngineError;
use outcore_store::cache::{CacheOptions, CachePolicy};
use outcore_store::io::Mode;
use pyo3::prelude::*;

use crate::base::errors::to_python;
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// A file, by way of a page cache of its own.
#[pyclass(frozen, name = "CachedFile", module = "outcore._core")]
pub struct PyCachedFile(RandomFile);

fn policy_named(name: &str) -> PyResult<CachePolicy> {
    Ok(match name {
        "lru" => CachePolicy::Lru,
        "lfu" => CachePolicy::Lfu,
        "clock" => CachePolicy::Clock,
        "gclock" => CachePolicy::Gclock,
        other => {
            let text = format!("cached: policy={other:?}; lru, lfu, clock and gclock are right");
            return Err(to_python(EngineError::Argument(text)));
        }
    })
}

#[pymethods]
impl PyCachedFile {
    #[new]
    fn new(
        py: Python<'_>,
        session: PyRef<'_, PySession>,
        path: PathBuf,
        memory: u64,
        page_bytes: usize,
        policy: &str,
        writable: bool,
    ) -> PyResult<PyCachedFile> {
        let options = CacheOptions {
            page_bytes,
            policy: policy_named(policy)?,
            ..CacheOptions::default()
        };
        let mode = if writable { Mode::Reopen } else { Mode::Read };
        let session = session.0.clone();
        let opened = py.detach(|| RandomFile::open(session, &path, memory, options, mode));
        opened.map(PyCachedFile).map_err(to_python)
    }

    /// Bytes of the file.
    #[getter]
    fn length(&self) -> u64 {
        self.0.file().len()
    }

    /// Hits, misses, joins, evictions, bytes read, bytes written.
    #[getter]
    fn counters(&self) -> (u64, u64, u64, u64, u64, u64) {
        let counted = self.0.file().cache().counters();
        (
            counted.hits,
            counted.misses,
            counted.joins,
            counted.evictions,
            counted.bytes_read,
            counted.bytes_written,
        )
    }

    /// The bytes at each of the offsets, one behind the other.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'_, u64>,
        bytes: usize,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let offsets = offsets.as_slice()?;
        let found = watching_signals(py, |watch| self.0.read(offsets, bytes, watch))?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// Writes so many bytes at each of the offsets, out of those that are one behind the other.
    fn write(
        &self,
        py: Python<'_>,
        offsets: PyReadonlyArray1<'_, u64>,
        data: PyReadonlyArray1<'_, u8>,
        bytes: usize,
    ) -> PyResult<()> {
        let (offsets, data) = (offsets.as_slice()?, data.as_slice()?);
        let held = py.detach(|| self.0.hold_copy(data, offsets)).map_err(to_python)?;
        // What Python may change meanwhile is copied.
        let (offsets, data) = (offsets.to_vec(), data.to_vec());
        let written = watching_signals(py, |watch| self.0.write(&offsets, &data, bytes, watch));
        drop(held);
        written
    }

    /// Writes what the file has not, and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.file().sync())
            .map_err(|error| to_python(error.into()))
    }
}

/// The memory that the cache of a file has where nobody says.
#[pyfunction]
fn cached_memory(session: PyRef<'_, PySession>, page_bytes: u64) -> u64 {
    cached_bytes(session.0.budget(), page_bytes)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cached_memory, module)?)?;
    module.add_class::<PyCachedFile>()
}
