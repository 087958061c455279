//! The header, the directory and the record, read without trust.

use crc32c::{crc32c, crc32c_append};
use outcore_dtype::DType;

use super::output::FactorRecord;
use crate::base::page::PAGE;
use crate::base::words::{dtype_named, u32_at, u64_at};

const MARK: &[u8; 8] = b"OCFACTOR";
/// The version of files whose tiles take all of their room, and of those where they need not.
const VERSIONS: [u32; 2] = [1, 2];
/// Bytes of the header that say something.
pub(super) const HEADER_BYTES: usize = 84;
/// Bytes of a tile in the directory.
pub(super) const TILE_BYTES: u64 = 16;
/// Sections of a record at most.
const SECTIONS_MAX: u32 = 64;
/// Tiles without bytes at most: each other has a page, so that a directory is no longer than the tiles before it make it.
const EMPTY_TILES_MAX: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub(super) struct FactorHeader {
    pub rows: u64,
    pub dtype: DType,
    pub tiles: u64,
    pub directory: u64,
    pub record: u64,
    pub record_bytes: u64,
    pub sections: u32,
    pub directory_checksum: u32,
    pub record_checksum: u32,
    /// Whether tiles say what room they have.
    pub has_room: bool,
}

impl FactorHeader {
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<FactorHeader, String> {
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MARK) {
            return Err("not a factor of outcore: it does not begin with OCFACTOR".into());
        }
        let version = u32_at(bytes, 8);
        if !VERSIONS.contains(&version) {
            let [first, last] = VERSIONS;
            return Err(format!(
                "version {version} of the format; this outcore reads versions {first} and {last}"
            ));
        }
        if crc32c(&bytes[..80]) != u32_at(bytes, 80) {
            return Err("the header's checksum does not agree with it".into());
        }
        let dtype = dtype_named(&bytes[48..64], "").map_err(|name| format!("elements of the unknown type {name:?}"))?;
        let header = FactorHeader {
            rows: u64_at(bytes, 16),
            dtype: dtype.ok_or("elements of no type")?,
            tiles: u64_at(bytes, 24),
            directory: u64_at(bytes, 32),
            record: u64_at(bytes, 40),
            record_bytes: u64_at(bytes, 72),
            sections: u32_at(bytes, 12),
            directory_checksum: u32_at(bytes, 64),
            record_checksum: u32_at(bytes, 68),
            has_room: version == VERSIONS[1],
        };
        let directory_end = header
            .tiles
            .checked_mul(TILE_BYTES)
            .and_then(|bytes| bytes.checked_add(header.directory));
        let record_end = header.record.checked_add(header.record_bytes);
        let is_whole = directory_end == Some(header.record)
            && record_end.is_some_and(|end| end <= file_bytes)
            && header.directory >= PAGE as u64
            && header.tiles <= header.directory / PAGE as u64 + EMPTY_TILES_MAX
            && header.sections <= SECTIONS_MAX
            && header.record_bytes >= 8 * u64::from(header.sections);
        if !is_whole || header.rows > u64::from(u32::MAX) {
            return Err(format!(
                "truncated: {} tiles listed from byte {}, the file has {file_bytes} bytes",
                header.tiles, header.directory
            ));
        }
        Ok(header)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        bytes.extend(VERSIONS[usize::from(self.has_room)].to_le_bytes());
        bytes.extend(self.sections.to_le_bytes());
        for word in [self.rows, self.tiles, self.directory, self.record] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.dtype.to_string().as_bytes());
        bytes.resize(64, 0);
        bytes.extend(self.directory_checksum.to_le_bytes());
        bytes.extend(self.record_checksum.to_le_bytes());
        bytes.extend(self.record_bytes.to_le_bytes());
        let checksum = crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes.resize(PAGE, 0);
        bytes
    }
}

/// A tile that a directory lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TileRecord {
    pub bytes: u64,
    pub checksum: u32,
    /// Pages that it has room in; 0 where those are all that its bytes take.
    pub pages: u32,
}

impl TileRecord {
    /// Bytes of the room; nothing where the tile is longer.
    fn room(&self) -> Option<u64> {
        match self.pages {
            0 => Some(self.bytes),
            pages => Some(u64::from(pages) * PAGE as u64).filter(|room| *room >= self.bytes),
        }
    }
}

/// Where each tile of a directory begins, and the last ends.
pub(super) fn places(tiles: &[TileRecord]) -> Option<Vec<u64>> {
    let rooms: Option<Vec<u64>> = tiles.iter().map(TileRecord::room).collect();
    offsets(rooms?.into_iter())
}

/// Where each tile of such a room begins, and the last ends.
pub(super) fn offsets(lengths: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let mut offsets = vec![PAGE as u64];
    for length in lengths {
        let padded = length.checked_next_multiple_of(PAGE as u64)?;
        offsets.push(offsets[offsets.len() - 1].checked_add(padded)?);
    }
    Some(offsets)
}

pub(super) fn directory_bytes(tiles: &[TileRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(tiles.len() * TILE_BYTES as usize);
    for tile in tiles {
        bytes.extend(tile.bytes.to_le_bytes());
        bytes.extend(tile.checksum.to_le_bytes());
        bytes.extend(tile.pages.to_le_bytes());
    }
    bytes
}

/// The tiles of a directory, which lie one behind the other up to it.
pub(super) fn tiles_of(header: &FactorHeader, directory: &[u8]) -> Result<Vec<TileRecord>, String> {
    if crc32c(directory) != header.directory_checksum {
        return Err("the directory's checksum does not agree with it".into());
    }
    let tile = |bytes: &[u8]| TileRecord {
        bytes: u64_at(bytes, 0),
        checksum: u32_at(bytes, 8),
        pages: if header.has_room { u32_at(bytes, 12) } else { 0 },
    };
    let tiles: Vec<TileRecord> = directory.chunks_exact(TILE_BYTES as usize).map(tile).collect();
    match places(&tiles).is_some_and(|ends| ends[ends.len() - 1] == header.directory) {
        true => Ok(tiles),
        false => Err("the tiles of the directory do not end where it begins".into()),
    }
}

/// Bytes of a record, and their checksum.
pub(super) fn record_size(record: &dyn FactorRecord) -> u64 {
    let sections = record.sections();
    let bytes: usize = sections.iter().map(|section| section.len().next_multiple_of(8)).sum();
    (bytes + 8 * sections.len()) as u64
}

/// The bytes that a record is written as, piece by piece.
pub(super) fn each_piece<E>(record: &dyn FactorRecord, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let sections = record.sections();
    let lengths: Vec<u8> = sections
        .iter()
        .flat_map(|section| (section.len() as u64).to_le_bytes())
        .collect();
    each(&lengths)?;
    for section in sections {
        each(section)?;
        let padding = section.len().next_multiple_of(8) - section.len();
        each(&[0; 8][..padding])?;
    }
    Ok(())
}

pub(super) fn record_checksum(record: &dyn FactorRecord) -> u32 {
    let mut checksum = 0;
    let summed: Result<(), std::convert::Infallible> = each_piece(record, |piece| {
        checksum = crc32c_append(checksum, piece);
        Ok(())
    });
    summed.map_or(0, |()| checksum)
}

/// The sections of a record.
pub(super) fn sections_of<'r>(header: &FactorHeader, record: &'r [u8]) -> Result<Vec<&'r [u8]>, String> {
    if crc32c(record) != header.record_checksum {
        return Err("the record's checksum does not agree with it".into());
    }
    let cut = || "a section leaves the record".to_string();
    let (lengths, mut rest) = record.split_at_checked(8 * header.sections as usize).ok_or_else(cut)?;
    let mut sections = vec![];
    for length in lengths.chunks_exact(8) {
        let length = usize::try_from(u64_at(length, 0)).map_err(|_| cut())?;
        let padded = length.checked_next_multiple_of(8).ok_or_else(cut)?;
        let (section, behind) = rest.split_at_checked(padded).ok_or_else(cut)?;
        sections.push(&section[..length]);
        rest = behind;
    }
    match rest.is_empty() {
        true => Ok(sections),
        false => Err("the record is longer than its sections".into()),
    }
}

/// Header, directory and record of a file that is all in memory: bytes of each tile, and of each section.
///
/// # Errors
/// Why the bytes are no factor.
pub fn parse_factor(bytes: &[u8]) -> Result<(Vec<u64>, Vec<usize>), String> {
    let header = FactorHeader::parse(bytes, bytes.len() as u64)?;
    let directory = &bytes[header.directory as usize..header.record as usize];
    let tiles = tiles_of(&header, directory)?;
    let record = &bytes[header.record as usize..][..header.record_bytes as usize];
    let sections = sections_of(&header, record)?;
    let lengths = tiles.iter().map(|tile| tile.bytes).collect();
    Ok((lengths, sections.iter().map(|section| section.len()).collect()))
}
