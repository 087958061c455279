//! The header and the directory, read without trust.

use crc32c::crc32c;
use outcore_coding::tiles::{HEAD_BYTES, LISTED_BYTES, SIDE_MAX};
use outcore_dtype::DType;

use crate::base::page::PAGE;
use crate::base::words::{dtype_named, u32_at, u64_at};

const MARK: &[u8; 8] = b"OCSPARSE";
const VERSION: u32 = 1;
/// Bytes of the header that say something.
pub(super) const HEADER_BYTES: usize = 80;
pub(super) const RECORD_BYTES: usize = 40;
/// Bytes of the column of an entry.
const COLUMN_BYTES: u64 = 2;
/// Tile rows and the directory begin at multiples of this.
pub(super) const ALIGN: u64 = 64;

/// What a sparse matrix is, without its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseShape {
    pub rows: u64,
    pub columns: u64,
    /// Rows and columns of a tile.
    pub side: u32,
    pub entries: u64,
    /// Of the values; nothing where the places are all there is.
    pub dtype: Option<DType>,
}

/// A tile row of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRowRecord {
    pub number: u64,
    pub offset: u64,
    pub bytes: u64,
    pub entries: u64,
    pub checksum: u32,
    /// CRC-32C of its head, which says what tiles it has; 0 where that was not computed.
    pub head: u32,
}

impl SparseShape {
    /// The rows of a tile, the columns of the matrix, and the bytes of a value; 0 where there are none.
    pub fn layout(&self) -> (u64, u64, usize) {
        let item = self.dtype.map_or(0, |dtype| dtype.size());
        (u64::from(self.side), self.columns, item)
    }
}

/// Bytes of the head of a tile row with so many tiles.
pub(super) fn head_bytes(tiles: u64) -> u64 {
    tiles
        .saturating_mul(LISTED_BYTES as u64)
        .saturating_add(HEAD_BYTES as u64)
}

/// The bytes of a tile row, or the first of them, up to the end of its head; nothing where they end before.
pub(super) fn head_of(bytes: &[u8]) -> Option<&[u8]> {
    let tiles = bytes.first_chunk().map(|word| u32::from_le_bytes(*word))?;
    bytes.get(..usize::try_from(head_bytes(u64::from(tiles))).ok()?)
}

/// What a header says.
#[derive(Clone, Debug)]
pub(super) struct SparseHeader {
    pub shape: SparseShape,
    pub tile_rows: u64,
    pub directory: u64,
    pub checksum: u32,
}

impl SparseHeader {
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<SparseHeader, String> {
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MARK) {
            return Err("not a sparse matrix of outcore: it does not begin with OCSPARSE".into());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!(
                "version {version} of the format; this outcore reads version {VERSION}"
            ));
        }
        if crc32c(&bytes[..76]) != u32_at(bytes, 76) {
            return Err("the header's checksum does not agree with it".into());
        }
        let dtype =
            dtype_named(&bytes[56..72], "pattern").map_err(|name| format!("values of the unknown type {name:?}"))?;
        let header = SparseHeader {
            shape: SparseShape {
                side: u32_at(bytes, 12),
                rows: u64_at(bytes, 16),
                columns: u64_at(bytes, 24),
                entries: u64_at(bytes, 32),
                dtype,
            },
            tile_rows: u64_at(bytes, 40),
            directory: u64_at(bytes, 48),
            checksum: u32_at(bytes, 72),
        };
        header.check(file_bytes)?;
        Ok(header)
    }

    fn check(&self, file_bytes: u64) -> Result<(), String> {
        let SparseShape {
            side, rows, columns, ..
        } = self.shape;
        if !side.is_power_of_two() || side as usize > SIDE_MAX {
            return Err(format!(
                "tiles of {side} rows; a power of two up to {SIDE_MAX} is right"
            ));
        }
        if rows > i64::MAX as u64
            || columns > i64::MAX as u64
            || columns.div_ceil(u64::from(side)) > u64::from(u32::MAX)
        {
            return Err(format!("shape ({rows}, {columns}) is too large to address"));
        }
        let end = self
            .tile_rows
            .checked_mul(RECORD_BYTES as u64)
            .and_then(|bytes| bytes.checked_add(self.directory));
        let most = if columns == 0 {
            0
        } else {
            rows.div_ceil(u64::from(side))
        };
        if self.tile_rows > most || end.is_none_or(|end| end > file_bytes) {
            return Err(format!(
                "truncated: {} tile rows listed from byte {}, the file has {file_bytes} bytes",
                self.tile_rows, self.directory
            ));
        }
        Ok(())
    }

    pub fn bytes(&self) -> Vec<u8> {
        let shape = &self.shape;
        let mut bytes = MARK.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(shape.side.to_le_bytes());
        for word in [shape.rows, shape.columns, shape.entries, self.tile_rows, self.directory] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(
            shape
                .dtype
                .map_or("pattern".to_string(), |dtype| dtype.to_string())
                .as_bytes(),
        );
        bytes.resize(72, 0);
        bytes.extend(self.checksum.to_le_bytes());
        let checksum = crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes.resize(PAGE, 0);
        bytes
    }
}

pub(super) fn record_bytes(record: &TileRowRecord) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    for (at, word) in [record.number, record.offset, record.bytes, record.entries]
        .iter()
        .enumerate()
    {
        bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes[32..36].copy_from_slice(&record.checksum.to_le_bytes());
    bytes[36..40].copy_from_slice(&record.head.to_le_bytes());
    bytes
}

/// The records of a directory, held against the header: in order, beside each other, and with all the entries.
pub(super) fn records(header: &SparseHeader, directory: &[u8]) -> Result<Vec<TileRowRecord>, String> {
    if crc32c(directory) != header.checksum {
        return Err("the directory's checksum does not agree with it".into());
    }
    let side = u64::from(header.shape.side);
    let mut records: Vec<TileRowRecord> = Vec::with_capacity(directory.len() / RECORD_BYTES);
    let (mut end, mut entries) = (PAGE as u64, 0u64);
    for bytes in directory.chunks_exact(RECORD_BYTES) {
        let record = TileRowRecord {
            number: u64_at(bytes, 0),
            offset: u64_at(bytes, 8),
            bytes: u64_at(bytes, 16),
            entries: u64_at(bytes, 24),
            checksum: u32_at(bytes, 32),
            head: u32_at(bytes, 36),
        };
        let is_next = records.last().is_none_or(|before| before.number < record.number);
        let is_inside = record.number < header.shape.rows.div_ceil(side)
            && record.offset >= end
            && record.offset.is_multiple_of(ALIGN)
            && record
                .offset
                .checked_add(record.bytes)
                .is_some_and(|end| end <= header.directory);
        if !is_next || !is_inside {
            return Err(format!("tile row {} of the directory is out of place", record.number));
        }
        // An entry has a column, if nothing else.
        if record.entries > record.bytes / COLUMN_BYTES {
            return Err(format!(
                "tile row {} of the directory has {} entries in {} bytes",
                record.number, record.entries, record.bytes
            ));
        }
        end = record.offset + record.bytes;
        entries = entries.saturating_add(record.entries);
        records.push(record);
    }
    if entries != header.shape.entries {
        return Err(format!(
            "{entries} entries in the tile rows, {} in the header",
            header.shape.entries
        ));
    }
    Ok(records)
}

/// Header and directory of a file that is all in memory: what a fuzzer looks at.
///
/// # Errors
/// Why the bytes are no sparse matrix.
pub fn parse_sparse(bytes: &[u8]) -> Result<(SparseShape, Vec<TileRowRecord>), String> {
    let header = SparseHeader::parse(bytes, bytes.len() as u64)?;
    let length = header.tile_rows as usize * RECORD_BYTES;
    let records = records(&header, &bytes[header.directory as usize..][..length])?;
    Ok((header.shape, records))
}
