//! The index of a shard: where each inner chunk lies.

use std::borrow::Cow;

use super::codec::check_crc;
use super::metadata::Sharding;
use crate::io::File;
use crate::mapping::AlignedBuffer;
use crate::rowmajor::Window;
use crate::{Io, StoreError};

/// Byte ranges of a shard's inner chunks, C order; `None` for a chunk that is all fill value.
pub(super) struct ShardIndex {
    ranges: Vec<Option<(u64, u64)>>,
}

impl ShardIndex {
    /// Reads and checks the index of `count` inner chunks. Counted as metadata.
    pub(super) fn read(
        file: &File,
        file_bytes: u64,
        count: u64,
        sharding: &Sharding,
        io: &Io,
    ) -> Result<ShardIndex, StoreError> {
        let format = |reason: String| StoreError::format(file.path(), reason);
        let checksum = if sharding.index_crc { 4 } else { 0 };
        let bytes = count.checked_mul(16).and_then(|bytes| bytes.checked_add(checksum));
        let bytes = bytes.filter(|bytes| *bytes <= file_bytes);
        let bytes = bytes.ok_or_else(|| format(format!("a shard of {file_bytes} bytes is too short for its index")))?;
        let first = if sharding.index_at_start { 0 } else { file_bytes - bytes };
        let window = Window::of(first, first + bytes, file_bytes);
        let mut pages = AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(file.path(), first, "map memory", cause))?;
        io.read_metadata(
            file,
            &mut pages[..window.bytes()],
            window.start,
            window.present as usize,
        )?;
        let head = (first - window.start) as usize;
        let mut index = Cow::Borrowed(&pages[head..head + bytes as usize]);
        if sharding.index_crc {
            index = check_crc(index).map_err(|reason| format(format!("shard index: {reason}")))?;
        }
        let ranges: Option<Vec<_>> = index
            .chunks_exact(16)
            .map(|entry| range(entry, sharding, file_bytes))
            .collect();
        let ranges =
            ranges.ok_or_else(|| format(format!("the shard index points outside of its {file_bytes} bytes")))?;
        Ok(ShardIndex { ranges })
    }

    pub(super) fn range(&self, chunk: u64) -> Option<(u64, u64)> {
        self.ranges.get(chunk as usize).copied().flatten()
    }
}

/// One entry: `Some(None)` for a missing chunk, `None` when it leaves the file.
fn range(entry: &[u8], sharding: &Sharding, file_bytes: u64) -> Option<Option<(u64, u64)>> {
    let number = |at: usize| {
        let bytes: [u8; 8] = entry[at..at + 8].try_into().ok()?;
        Some(if sharding.index_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    };
    let (offset, bytes) = (number(0)?, number(8)?);
    if offset == u64::MAX && bytes == u64::MAX {
        return Some(None);
    }
    (offset.checked_add(bytes)? <= file_bytes).then_some(Some((offset, bytes)))
}
