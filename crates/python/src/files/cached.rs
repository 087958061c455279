//! Files read at random through a page cache.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_engine::run::Session;
use outcore_engine::EngineError;
use outcore_store::cache::{ByteSpan, CacheOptions, CachePolicy, CachedFile, PageCache};
use outcore_store::io::Mode;
use pyo3::prelude::*;

use crate::base::errors::to_python;
use crate::base::signals::watching_signals;
use crate::session::PySession;

/// Places that are read or written between two looks at signals, and about as many bytes.
const PART: usize = 16_384;
const PART_BYTES: usize = 64 << 20;

/// Places of so many bytes each that go between two looks at signals.
fn part_of(bytes: usize) -> usize {
    (PART_BYTES / bytes.max(1)).clamp(1, PART)
}

/// A file, by way of a page cache of its own.
#[pyclass(frozen, name = "CachedFile", module = "outcore._core")]
pub struct PyCachedFile {
    file: CachedFile,
    session: Py<PySession>,
    /// Bytes of memory that it was asked to have.
    memory: u64,
}

impl PyCachedFile {
    /// Says that it is used, and has it be as large as it was once where others gave back what they had of it.
    fn regrow(&self, session: &Session) {
        let cache = self.file.cache();
        cache.register();
        let missing = self.memory.saturating_sub(cache.bytes() as u64);
        // Sets are a whole number of sixteenths at first; a little less is no loss.
        if missing > self.memory / 16 {
            session.resize_pages(cache, &**cache, self.memory, false);
        }
    }
}

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
        session: Py<PySession>,
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
        let inner = session.get().0.clone();
        let opened = py.detach(|| {
            // What can be had again, as tiles that are kept, goes first.
            drop(inner.set_aside("cached", memory)?);
            inner.make_way(memory, None, false);
            let cache = PageCache::new(inner.io(), inner.ledger(), memory as usize, options)?;
            Ok(cache.open(&path, if writable { Mode::Reopen } else { Mode::Read })?)
        });
        let file = opened.map_err(to_python)?;
        Ok(PyCachedFile { file, session, memory })
    }

    /// Bytes of the file.
    #[getter]
    fn length(&self) -> u64 {
        self.file.len()
    }

    /// Hits, misses, joins, evictions, bytes read, bytes written.
    #[getter]
    fn counters(&self) -> (u64, u64, u64, u64, u64, u64) {
        let counted = self.file.cache().counters();
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
        let total = offsets.len().saturating_mul(bytes);
        // One request is no larger than what the cache serves at once.
        let most = self.file.cache().request_bytes().min(1 << 30);
        let pieces = (0..bytes).step_by(most).map(|at| (at, most.min(bytes - at)));
        let session = self.session.get().0.clone();
        let part = part_of(bytes);
        let found = watching_signals(py, |watch| -> Result<Vec<u8>, EngineError> {
            // What the caller gets is the caller's; it is looked at whether there is room for it and what is asked.
            let asked = offsets
                .len()
                .min(part)
                .saturating_mul(pieces.len() * size_of::<ByteSpan>());
            let _held = session.set_aside("read_at", total.saturating_add(asked) as u64)?;
            self.regrow(&session);
            let mut found = vec![0; total];
            for (offsets, found) in offsets.chunks(part).zip(found.chunks_mut((part * bytes).max(1))) {
                watch()?;
                let spans = offsets.iter().flat_map(|offset| {
                    pieces.clone().map(|(at, bytes)| ByteSpan {
                        offset: *offset + at as u64,
                        bytes: bytes as u32,
                    })
                });
                let spans: Vec<ByteSpan> = spans.collect();
                self.file.visit(&spans, &mut |number, pages| {
                    let (row, piece) = (number / pieces.len(), number % pieces.len());
                    let begin = row * bytes + piece * most;
                    pages.copy_to(&mut found[begin..begin + pages.len()]);
                })?;
            }
            Ok(found)
        });
        Ok(PyArray1::from_vec(py, found?))
    }

    /// Writes so many bytes at each of the offsets, out of those that are one behind the other.
    fn write(
        &self,
        py: Python<'_>,
        offsets: PyReadonlyArray1<'_, u64>,
        data: PyReadonlyArray1<'_, u8>,
        bytes: usize,
    ) -> PyResult<()> {
        let session = self.session.get().0.clone();
        let (offsets, data) = (offsets.as_slice()?, data.as_slice()?);
        let copied = (data.len() + 8 * offsets.len()) as u64;
        let held = py
            .detach(|| session.hold_beside("write_at", copied))
            .map_err(to_python)?;
        // What Python may change meanwhile is copied.
        let (offsets, data) = (offsets.to_vec(), data.to_vec());
        let part = part_of(bytes);
        let written = watching_signals(py, |watch| {
            self.regrow(&session);
            if offsets.len() <= part || offsets.len().checked_mul(bytes) != Some(data.len()) {
                return Ok(self.file.write_many(&data, bytes, &offsets)?);
            }
            // Nothing has no places, and no parts.
            for (offsets, data) in offsets.chunks(part).zip(data.chunks((part * bytes).max(1))) {
                watch()?;
                self.file.write_many(data, bytes, offsets)?;
            }
            Ok(())
        });
        drop(held);
        written
    }

    /// Writes what the file has not, and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.file.sync()).map_err(|error| to_python(error.into()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCachedFile>()
}
