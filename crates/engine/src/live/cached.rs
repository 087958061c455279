//! A file that is read and written at random, by way of a page cache of its own.

use std::path::Path;
use std::sync::Arc;

use outcore_store::cache::{ByteSpan, CacheOptions, CachedFile, PageCache};
use outcore_store::io::Mode;
use outcore_store::Reservation;

use super::resources::Watch;
use crate::run::Session;
use crate::EngineError;

/// Places that are read or written between two looks at signals, and about as many bytes.
const PART: usize = 16_384;
const PART_BYTES: usize = 64 << 20;

/// Places of so many bytes each that go between two looks at signals.
fn part_of(bytes: usize) -> usize {
    (PART_BYTES / bytes.max(1)).clamp(1, PART)
}

/// A file, by way of a page cache of its own.
pub struct RandomFile {
    file: CachedFile,
    session: Arc<Session>,
    /// Bytes of memory that it was asked to have.
    memory: u64,
}

impl RandomFile {
    /// Opens a file with a cache of so many bytes: kept tiles make room.
    ///
    /// # Errors
    /// There is not so much memory; the file cannot be opened.
    pub fn open(
        session: Arc<Session>,
        path: &Path,
        memory: u64,
        options: CacheOptions,
        mode: Mode,
    ) -> Result<RandomFile, EngineError> {
        // Memory that can be had again, as that of kept tiles, goes first.
        drop(session.set_aside("cached", memory)?);
        session.make_way(memory, None, false);
        let cache = PageCache::new(session.io(), session.ledger(), memory as usize, options)?;
        let file = cache.open(path, mode)?;
        Ok(RandomFile { file, session, memory })
    }

    pub fn file(&self) -> &CachedFile {
        &self.file
    }

    /// Says that it is used, and has it be as large as it was once where others gave back what they had of it.
    fn regrow(&self) {
        let cache = self.file.cache();
        cache.register();
        let missing = self.memory.saturating_sub(cache.bytes() as u64);
        // Sets are a whole number of sixteenths at first; a little less is no loss.
        if missing > self.memory / 16 {
            self.session.resize_pages(cache, &**cache, self.memory, false);
        }
    }

    /// The bytes at each of the offsets, one behind the other.
    ///
    /// # Errors
    /// There is no memory for them; the file cannot be read; the error of `watch`.
    pub fn read(&self, offsets: &[u64], bytes: usize, watch: &mut Watch<'_>) -> Result<Vec<u8>, EngineError> {
        let total = offsets.len().saturating_mul(bytes);
        // One request is no larger than what the cache serves at once.
        let most = self.file.cache().request_bytes().min(1 << 30);
        let pieces = (0..bytes).step_by(most).map(|at| (at, most.min(bytes - at)));
        let part = part_of(bytes);
        // The result is the caller's; here it is looked at whether there is room for it and for the requests.
        let asked = offsets.len().min(part);
        let asked = asked.saturating_mul(pieces.len() * size_of::<ByteSpan>());
        let _held = self.session.set_aside("read_at", total.saturating_add(asked) as u64)?;
        self.regrow();
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
    }

    /// Memory for a copy of data to be written, and of its places.
    ///
    /// # Errors
    /// There is not so much.
    pub fn hold_copy(&self, data: &[u8], offsets: &[u64]) -> Result<Vec<Reservation>, EngineError> {
        self.session
            .hold_beside("write_at", (data.len() + 8 * offsets.len()) as u64)
    }

    /// Writes so many bytes at each of the offsets, out of those that are one behind the other.
    ///
    /// # Errors
    /// The file cannot be written; the error of `watch`.
    pub fn write(&self, offsets: &[u64], data: &[u8], bytes: usize, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let part = part_of(bytes);
        self.regrow();
        if offsets.len() <= part || offsets.len().checked_mul(bytes) != Some(data.len()) {
            return Ok(self.file.write_many(data, bytes, offsets)?);
        }
        // Nothing has no places, and no parts.
        for (offsets, data) in offsets.chunks(part).zip(data.chunks((part * bytes).max(1))) {
            watch()?;
            self.file.write_many(data, bytes, offsets)?;
        }
        Ok(())
    }
}
