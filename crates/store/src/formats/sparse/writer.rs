//! Writing a sparse matrix: tile rows as they come, then what tells where they are, then the name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::{crc32c, crc32c_append};

use super::header::{head_bytes, head_of, record_bytes, SparseHeader, SparseShape, TileRowRecord, ALIGN};
use super::source::SparseFile;
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::durable::partial::{clean_partials, Partial};
use crate::durable::publish::place_all;
use crate::io::{File, Mode};
use crate::{Io, StoreError};

/// Bytes that are written in one go.
const WRITE_BYTES: usize = 8 << 20;

/// A file that has no name until it is complete.
pub struct SparseWriter {
    path: PathBuf,
    file: File,
    partial: Partial,
    shape: SparseShape,
    records: Vec<TileRowRecord>,
    /// What is not written yet, and where it goes.
    pending: Vec<u8>,
    written: u64,
}

impl SparseWriter {
    /// Begins a file beside `path`; `shape.entries` is counted, not believed.
    ///
    /// # Errors
    /// A file of that name that may not be replaced, or one that cannot be made.
    pub fn create(path: &Path, shape: SparseShape, overwrite: bool, io: &Io) -> Result<SparseWriter, StoreError> {
        // What processes that are gone left half-done.
        if let Some(folder) = path.parent() {
            clean_partials(folder)?;
        }
        let make = |partial: &Path| io.open(partial, Mode::CreateUnaligned);
        let (partial, file) = Partial::new_in(None, path, overwrite, make)?;
        Ok(SparseWriter {
            path: path.to_path_buf(),
            file: file.named(path.to_path_buf()),
            partial,
            shape: SparseShape { entries: 0, ..shape },
            records: vec![],
            pending: vec![],
            written: PAGE as u64,
        })
    }

    /// Where tile rows are put together: whoever adds one appends to this and says so by `add`.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// The bytes from `begin` of the buffer on are the tile row `number`, with so many entries. Numbers ascend.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, number: u64, begin: usize, entries: u64, io: &Io) -> Result<(), StoreError> {
        self.records.push(TileRowRecord {
            number,
            offset: self.written + begin as u64,
            bytes: (self.pending.len() - begin) as u64,
            entries,
            checksum: crc32c(&self.pending[begin..]),
            head: head_of(&self.pending[begin..]).map_or(0, crc32c),
        });
        self.shape.entries += entries;
        self.pad();
        match self.pending.len() >= WRITE_BYTES {
            true => self.flush(io),
            false => Ok(()),
        }
    }

    /// As `add`, of a tile row whose bytes are these parts: a large one is written from where it lies.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_parts(&mut self, number: u64, parts: &[&[u8]], entries: u64, io: &Io) -> Result<(), StoreError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes < WRITE_BYTES {
            let begin = self.pending.len();
            parts.iter().for_each(|part| self.pending.extend_from_slice(part));
            return self.add(number, begin, entries, io);
        }
        self.flush(io)?;
        self.records.push(TileRowRecord {
            number,
            offset: self.written,
            bytes: bytes as u64,
            entries,
            checksum: parts.iter().fold(0, |sum, part| crc32c_append(sum, part)),
            head: head_of_parts(parts),
        });
        self.shape.entries += entries;
        for part in parts.iter().flat_map(|part| part.chunks(WRITE_BYTES)) {
            io.write(&self.file, part, self.written)?;
            self.written += part.len() as u64;
        }
        // What comes next begins where it should.
        self.pending
            .resize((self.written.next_multiple_of(ALIGN) - self.written) as usize, 0);
        self.flush(io)
    }

    /// Bytes of memory that are held.
    pub fn held_bytes(&self) -> usize {
        self.pending.capacity()
    }

    fn pad(&mut self) {
        self.pending
            .resize(self.pending.len().next_multiple_of(ALIGN as usize), 0);
    }

    fn flush(&mut self, io: &Io) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        io.write(&self.file, &self.pending, self.written)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Completes the file, makes it durable and gives it its name.
    ///
    /// # Errors
    /// It cannot be written, or its name cannot be given; nothing is left behind then.
    pub fn finish(mut self, io: &Io) -> Result<SparseShape, StoreError> {
        self.complete(io)?;
        Ok(self.shape)
    }

    /// As `finish`, and opens what was written, of which nothing is read: it is all known.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_opened(mut self, io: &Io) -> Result<Arc<SparseFile>, StoreError> {
        self.complete(io)?;
        let stamp = Stamp::settled(&self.path)?;
        Ok(Arc::new(SparseFile::new(&self.path, self.shape, self.records, stamp)))
    }

    fn complete(&mut self, io: &Io) -> Result<(), StoreError> {
        self.flush(io)?;
        complete(&self.file, &self.shape, &self.records, self.written, io)?;
        place_all(&[&self.partial], io)?;
        Ok(())
    }
}

/// Writes what tells where the tile rows are behind `end`, then the header, and makes all durable.
pub(super) fn complete(
    file: &File,
    shape: &SparseShape,
    records: &[TileRowRecord],
    end: u64,
    io: &Io,
) -> Result<(), StoreError> {
    let directory: Vec<u8> = records.iter().flat_map(record_bytes).collect();
    let header = SparseHeader {
        shape: shape.clone(),
        tile_rows: records.len() as u64,
        directory: end.next_multiple_of(ALIGN),
        checksum: crc32c(&directory),
    };
    let mut written = header.directory;
    for part in directory.chunks(WRITE_BYTES) {
        io.write(file, part, written)?;
        written += part.len() as u64;
    }
    io.write(file, &header.bytes(), 0)?;
    io.sync(file)
}

/// The checksum of the head of a tile row in parts, of which the first holds the number of its tiles.
fn head_of_parts(parts: &[&[u8]]) -> u32 {
    let tiles = parts.first().and_then(|part| part.first_chunk());
    let Some(tiles) = tiles.map(|word| u32::from_le_bytes(*word)) else {
        return 0;
    };
    let mut left = head_bytes(u64::from(tiles));
    let sum = parts.iter().fold(0, |sum, part| {
        let own = left.min(part.len() as u64) as usize;
        left -= own as u64;
        crc32c_append(sum, &part[..own])
    });
    if left > 0 {
        0
    } else {
        sum
    }
}
