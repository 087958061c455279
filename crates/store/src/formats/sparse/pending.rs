//! A tile of a sparse matrix on its way into a file: its tile rows as they will lie there, behind a list of them.
//!
//! ```text
//! 0    u64  where in the file the tile rows go, once the tiles before are known
//! 8    u64  bytes of the tile rows, a multiple of 64
//! 16   u64  tile rows
//! 24   for each: u64 number, u64 first byte behind the list, u64 bytes, u64 entries, u32 CRC-32C, u32 CRC-32C of its head
//!      the tile rows, each from a multiple of 64 bytes
//! ```

use crc32c::crc32c;

use super::header::{head_of, TileRowRecord, ALIGN, RECORD_BYTES};
use crate::base::page::PAGE;
use crate::base::words::{u32_at, u64_at};

/// Bytes before the list.
const HEAD_BYTES: usize = 24;

/// Where the first tile row of a file lies.
pub const FIRST_OFFSET: u64 = PAGE as u64;

/// Bytes of a tile whose tile rows have these lengths.
pub fn pending_bytes(rows: impl Iterator<Item = u64>) -> u64 {
    let (mut count, mut bytes) = (0, 0u64);
    for row in rows {
        count += 1;
        bytes = bytes.saturating_add(row.next_multiple_of(ALIGN));
    }
    (list_bytes(count) as u64).saturating_add(bytes)
}

/// Bytes in a file that tile rows of these lengths take.
pub fn stored_bytes(rows: impl Iterator<Item = u64>) -> u64 {
    rows.fold(0u64, |sum, row| sum.saturating_add(row.next_multiple_of(ALIGN)))
}

fn list_bytes(rows: usize) -> usize {
    (HEAD_BYTES + rows * RECORD_BYTES).next_multiple_of(ALIGN as usize)
}

/// A tile that is being made in memory of the caller.
pub struct PendingTile<'a> {
    list: &'a mut [u8],
    rows: &'a mut [u8],
    count: usize,
    done: usize,
}

impl<'a> PendingTile<'a> {
    /// Begins a tile of at most so many tile rows.
    pub fn new(memory: &'a mut [u8], rows: usize) -> PendingTile<'a> {
        let (list, rows) = memory.split_at_mut(list_bytes(rows));
        list.fill(0);
        PendingTile {
            list,
            rows,
            count: 0,
            done: 0,
        }
    }

    /// Memory for the next tile row.
    pub fn row(&mut self) -> &mut [u8] {
        &mut self.rows[self.done..]
    }

    /// The first `bytes` of [`Self::row`] are the tile row of a number.
    pub fn add(&mut self, number: u64, bytes: usize, entries: u64) {
        let row = &self.rows[self.done..self.done + bytes];
        let at = HEAD_BYTES + self.count * RECORD_BYTES;
        let record = TileRowRecord {
            number,
            offset: self.done as u64,
            bytes: bytes as u64,
            entries,
            checksum: crc32c(row),
            head: head_of(row).map_or(0, crc32c),
        };
        self.list[at..at + RECORD_BYTES].copy_from_slice(&super::header::record_bytes(&record));
        self.count += 1;
        let end = (self.done + bytes).next_multiple_of(ALIGN as usize);
        self.rows[self.done + bytes..end].fill(0);
        self.done = end;
        self.list[8..16].copy_from_slice(&(self.done as u64).to_le_bytes());
        self.list[16..24].copy_from_slice(&(self.count as u64).to_le_bytes());
    }
}

/// Says where in the file a tile goes; gives where the one behind it does.
pub fn place_pending(tile: &mut [u8], offset: u64) -> u64 {
    tile[..8].copy_from_slice(&offset.to_le_bytes());
    offset + u64_at(tile, 8)
}

/// A tile that is ready to be written: where, the tile rows, and what they are. `most` is how many it was begun for.
pub(super) fn placed(tile: &[u8], most: usize) -> Option<(u64, &[u8], Vec<TileRowRecord>)> {
    let list = tile.get(..list_bytes(most))?;
    let (offset, bytes, count) = (u64_at(list, 0), u64_at(list, 8) as usize, u64_at(list, 16) as usize);
    let rows = tile[list.len()..].get(..bytes)?;
    let records = list[HEAD_BYTES..].chunks_exact(RECORD_BYTES).take(count);
    let records = records.map(|record| TileRowRecord {
        number: u64_at(record, 0),
        offset: offset + u64_at(record, 8),
        bytes: u64_at(record, 16),
        entries: u64_at(record, 24),
        checksum: u32_at(record, 32),
        head: u32_at(record, 36),
    });
    Some((offset, rows, records.collect()))
}
