//! The index of a shard: where each inner chunk lies. Read in blocks when it is asked, so that its memory is bounded.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use super::metadata::Sharding;
use crate::array::rowmajor::ReadWindow;
use crate::base::interval::Interval;
use crate::base::page::PAGE;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, StoreError};

const ENTRY_BYTES: u64 = 16;
/// Bytes of an index that are read at a time.
const BLOCK_BYTES: u64 = 64 << 10;
/// Bytes of blocks that stay for the next to ask.
const CACHE_BYTES: usize = 512 << 10;
/// Memory that one reader of indices takes, with those that stay.
pub(super) const INDEX_WORKSPACE_BYTES: usize = CACHE_BYTES + 2 * BLOCK_BYTES as usize + 2 * PAGE;

/// A block by its shard and its place in the index.
type ShardKey = (u64, u64);

/// Blocks of the indices of an array's shards, the last used last.
#[derive(Default)]
pub(super) struct Indices(Mutex<IndexState>);

#[derive(Default)]
struct IndexState {
    blocks: Vec<(ShardKey, Arc<[u8]>)>,
    /// Shards of several blocks whose checksum was found right.
    checked: HashSet<u64>,
}

/// A shard to look into.
pub(super) struct Shard<'a> {
    pub number: u64,
    /// Of the file, where a message names it.
    pub path: &'a dyn Fn() -> PathBuf,
    pub bytes: u64,
    /// Inner chunks.
    pub count: u64,
    pub sharding: &'a Sharding,
}

/// The block that was asked last.
#[derive(Default)]
pub(super) struct ShardCursor(Option<(ShardKey, Arc<[u8]>)>);

impl Indices {
    fn state(&self) -> MutexGuard<'_, IndexState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The byte range of an inner chunk, nothing where it is all fill value. `open` gives the shard's file when the index
    /// must be read.
    pub fn range<'f>(
        &self,
        shard: &Shard<'_>,
        inner: u64,
        cursor: &mut ShardCursor,
        io: &Io,
        open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<Interval>, StoreError> {
        let at = inner * ENTRY_BYTES;
        let key = (shard.number, at / BLOCK_BYTES);
        let block = match &mut cursor.0 {
            Some((found, block)) if *found == key => block,
            place => &mut place.insert((key, self.block(shard, key, io, open)?)).1,
        };
        let within = (at % BLOCK_BYTES) as usize;
        shard.range(&block[within..within + ENTRY_BYTES as usize])
    }

    fn block<'f>(
        &self,
        shard: &Shard<'_>,
        key: ShardKey,
        io: &Io,
        open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Arc<[u8]>, StoreError> {
        {
            let mut state = self.state();
            if let Some(at) = state.blocks.iter().position(|(found, _)| *found == key) {
                let found = state.blocks.remove(at);
                let block = found.1.clone();
                state.blocks.push(found);
                return Ok(block);
            }
        }
        let file = open()?;
        if shard.sharding.index_crc && !self.state().checked.contains(&shard.number) {
            shard.check(file, io)?;
            if shard.index_bytes()? > BLOCK_BYTES {
                self.state().checked.insert(shard.number);
            }
        }
        let block: Arc<[u8]> = shard.read(file, key.1 * BLOCK_BYTES, io, |bytes| Arc::from(bytes))?;
        let mut state = self.state();
        let mut kept: usize = block.len() + state.blocks.iter().map(|(_, block)| block.len()).sum::<usize>();
        while kept > CACHE_BYTES && !state.blocks.is_empty() {
            kept -= state.blocks.remove(0).1.len();
        }
        state.blocks.push((key, block.clone()));
        Ok(block)
    }
}

impl Shard<'_> {
    /// Bytes of the index's entries, when the shard is long enough to have them.
    fn index_bytes(&self) -> Result<u64, StoreError> {
        let entries = self.count.checked_mul(ENTRY_BYTES);
        let whole = entries.and_then(|bytes| bytes.checked_add(self.checksum_bytes()));
        let fits = whole.is_some_and(|bytes| bytes <= self.bytes);
        entries.filter(|_| fits).ok_or_else(|| {
            let reason = format!("a shard of {} bytes is too short for its index", self.bytes);
            StoreError::format(&(self.path)(), reason)
        })
    }

    fn checksum_bytes(&self) -> u64 {
        if self.sharding.index_crc {
            4
        } else {
            0
        }
    }

    /// Reads at most a block of the index from `from` on, and its checksum where that is the end. Counted as metadata.
    fn read<T>(&self, file: &File, from: u64, io: &Io, take: impl FnOnce(&[u8]) -> T) -> Result<T, StoreError> {
        let whole = self.index_bytes()? + self.checksum_bytes();
        let base = if self.sharding.index_at_start {
            0
        } else {
            self.bytes - whole
        };
        let bytes = (whole - from).min(BLOCK_BYTES);
        let window = ReadWindow::of(base + from, base + from + bytes, self.bytes);
        let mut pages = AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(&(self.path)(), base + from, "map memory", cause))?;
        let buffer = &mut pages[..window.bytes()];
        io.read_metadata(file, buffer, window.start, window.present as usize)?;
        let head = (base + from - window.start) as usize;
        Ok(take(&pages[head..head + bytes as usize]))
    }

    fn check(&self, file: &File, io: &Io) -> Result<(), StoreError> {
        let entries = self.index_bytes()?;
        let (mut found, mut stored) = (0, Vec::new());
        let mut at = 0;
        while at < entries + 4 {
            let step = self.read(file, at, io, |bytes| {
                let covered = bytes.len().min(entries.saturating_sub(at) as usize);
                found = crc32c::crc32c_append(found, &bytes[..covered]);
                stored.extend_from_slice(&bytes[covered..]);
                bytes.len() as u64
            })?;
            at += step;
        }
        if stored != found.to_le_bytes() {
            let reason = "shard index: crc32c: a checksum does not match";
            return Err(StoreError::format(&(self.path)(), reason));
        }
        Ok(())
    }

    /// One entry: nothing for a missing chunk, an error when it leaves the file.
    fn range(&self, entry: &[u8]) -> Result<Option<Interval>, StoreError> {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&entry[at..at + 8]);
            if self.sharding.index_big_endian {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            }
        };
        let (offset, bytes) = (number(0), number(8));
        if offset == u64::MAX && bytes == u64::MAX {
            return Ok(None);
        }
        if offset.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(Some(Interval::new(offset, bytes)));
        }
        let reason = format!("the shard index points outside of its {} bytes", self.bytes);
        Err(StoreError::format(&(self.path)(), reason))
    }
}
