//! A factor on disk, as tiles of bytes.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;
use outcore_dtype::DType;

use super::header::{places, sections_of, tiles_of, FactorHeader, TileRecord, HEADER_BYTES};
use crate::array::rowmajor::{bytes_within, RowMajor};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::{Interval, Io, Region, StoreError};

/// An opened factor.
#[derive(Clone, Debug)]
pub struct FactorFile {
    path: PathBuf,
    rows: u64,
    dtype: DType,
    tiles: Arc<[TileRecord]>,
    offsets: Arc<[u64]>,
    lengths: Arc<[u64]>,
    grid: [u64; 2],
    identity: String,
    stamp: Stamp,
    header: FactorHeader,
    /// The owner that removes the file when its last reader is gone.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

/// Opens a factor. Its directory is read, no tile and not the record.
///
/// # Errors
/// One line: not such a file, one that is cut off, or one whose checksums do not agree.
pub fn open_factor(path: &Path, io: &Io) -> Result<FactorFile, StoreError> {
    let stamp = Stamp::settled(path)?;
    let malformed = |reason: String| StoreError::format(path, reason);
    let read = |offset, bytes| bytes_within(&stamp.open(path, io)?, Interval::new(offset, bytes), stamp.bytes, io);
    if stamp.bytes < PAGE as u64 {
        return Err(malformed("not a factor of outcore: shorter than its header".into()));
    }
    let header = FactorHeader::parse(&read(0, HEADER_BYTES as u64)?, stamp.bytes).map_err(malformed)?;
    let directory = match header.tiles {
        0 => vec![],
        _ => read(header.directory, header.record - header.directory)?,
    };
    let tiles = tiles_of(&header, &directory).map_err(malformed)?;
    let lengths: Arc<[u64]> = tiles.iter().map(|tile| tile.bytes).collect();
    Ok(FactorFile {
        path: path.to_path_buf(),
        rows: header.rows,
        dtype: header.dtype,
        offsets: places(&tiles).unwrap_or_default().into(),
        grid: [lengths.len() as u64, lengths.iter().copied().max().unwrap_or(1).max(1)],
        lengths,
        tiles: tiles.into(),
        identity: stamp.name(path),
        stamp,
        header,
        keeper: None,
    })
}

impl FactorFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rows of the matrix, as the file says.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The type of the elements.
    pub fn element(&self) -> DType {
        self.dtype
    }

    pub fn malformed(&self, reason: impl Into<String>) -> StoreError {
        StoreError::format(&self.path, reason)
    }

    /// Bytes of the record.
    pub fn record_bytes(&self) -> u64 {
        self.header.record_bytes
    }

    /// Reads the record, and calls `then` with its sections.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says.
    pub fn with_record<T>(&self, io: &Io, then: impl FnOnce(&[&[u8]]) -> T) -> Result<T, StoreError> {
        let record = match self.header.record_bytes {
            0 => vec![],
            bytes => {
                let place = Interval::new(self.header.record, bytes);
                bytes_within(&self.stamp.open(&self.path, io)?, place, self.stamp.bytes, io)?
            }
        };
        let malformed = |reason: String| StoreError::format(&self.path, reason);
        let sections = sections_of(&self.header, &record).map_err(malformed)?;
        Ok(then(&sections))
    }

    pub fn file_bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// Bytes of the file without the room that tiles do not take.
    pub fn taken_bytes(&self) -> u64 {
        let pages: u64 = self
            .lengths
            .iter()
            .map(|length| length.next_multiple_of(PAGE as u64))
            .sum();
        self.stamp.bytes - self.header.directory + PAGE as u64 + pages
    }

    /// The file with whoever removes it when its last reader is gone.
    pub(crate) fn kept_by(self, keeper: Arc<dyn Any + Send + Sync>) -> FactorFile {
        FactorFile {
            keeper: Some(keeper),
            ..self
        }
    }

    fn array(&self, tile: usize) -> RowMajor {
        RowMajor {
            base: self.offsets[tile],
            shape: vec![self.lengths[tile]],
            item: 1,
            file_bytes: self.file_bytes(),
        }
    }

    /// The tile that a region is, and how much of it.
    fn part(&self, region: &Region) -> Result<(usize, Region), StoreError> {
        region.check_in(&self.grid, &self.name())?;
        let tile = region.start[0] as usize;
        if region.shape[0] != 1 || region.start[1] != 0 {
            return Err(StoreError::Invalid(format!("{}: tiles are read whole", self.name())));
        }
        Ok((
            tile,
            Region::new(vec![0], vec![region.shape[1].min(self.lengths[tile])]),
        ))
    }
}

impl Source for FactorFile {
    fn shared(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn shape(&self) -> &[u64] {
        &self.grid
    }

    fn dtype(&self) -> DType {
        DType::U8
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(vec![1, self.grid[1]])
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.path, |stamp| stamp)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.path, Stamp::written)
    }

    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        let (tile, part) = self.part(region)?;
        let array = self.array(tile);
        Ok(ReadCost {
            read_bytes: array.read_bytes(&part),
            frame_bytes: array.frame_bytes(&part),
            workspace_bytes: 0,
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let (tile, part) = self.part(region)?;
        let file = self.stamp.open(&self.path, io)?;
        let offset = self.array(tile).read(&file, &part, frame, io)?;
        let bytes = &frame[offset..offset + part.shape[0] as usize];
        if crc32c(bytes) != self.tiles[tile].checksum {
            let at = self.offsets[tile];
            let reason = format!("the checksum of tile {tile} at byte {at} does not agree with it");
            return Err(StoreError::format(&self.path, reason));
        }
        Ok(offset)
    }

    fn listed(&self) -> Option<Arc<[u64]>> {
        Some(self.lengths.clone())
    }

    fn goes_with_readers(&self) -> bool {
        self.keeper.is_some()
    }
}
