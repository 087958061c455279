//! A sparse matrix on disk, as tiles of bytes: each some tile rows that lie beside each other.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;
use outcore_coding::tiles::check_tile_row;
use outcore_coding::Malformed;
use outcore_dtype::DType;

use super::compressed::CompressedRows;
use super::header::{
    head_bytes, head_of, records, SparseHeader, SparseShape, TileRowRecord, ALIGN, HEADER_BYTES, RECORD_BYTES,
};
use super::output::{RowBound, SparseOutput};
use super::pending::FIRST_OFFSET;
use crate::array::rowmajor::{bytes_within, RowMajor};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::io::Mode;
use crate::memory::mapping::AlignedBuffer;
use crate::{Interval, Io, Region, StoreError};

/// A tile has no more bytes than this, unless a single tile row has.
const TILE_BYTES: u64 = 4 << 20;
/// A tile has no more tile rows than this from its first to its last, so that the rows of a product stay in the cache.
const TILE_ROWS: u64 = 8;

/// An opened sparse matrix.
#[derive(Clone, Debug)]
pub struct SparseFile {
    path: PathBuf,
    shape: SparseShape,
    records: Vec<TileRowRecord>,
    /// Where in `records` each tile begins, and where the last ends.
    tiles: Vec<usize>,
    /// Bytes of each tile; the most that there may be where it is made of something else.
    lengths: Arc<[u64]>,
    grid: [u64; 2],
    identity: String,
    body: Origin,
    /// Whoever removes the file when its last reader is gone.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

/// Where tile rows come from.
#[derive(Clone, Debug)]
enum Origin {
    /// They lie in the file.
    File(Stamp),
    /// They are made of compressed rows, one in each tile.
    Rows(CompressedRows),
    /// They are still to be written: these are bounds.
    Output,
}

/// Opens a sparse matrix, of which every tile row is checked when it is read, so that products need not look again.
///
/// # Errors
/// One line: not such a file, one that is cut off, or one whose checksums do not agree.
pub fn open_sparse(path: &Path, io: &Io) -> Result<Arc<SparseFile>, StoreError> {
    io.open(path, Mode::Read)?; // which says it best where there is none
    let stamp = Stamp::settled(path)?;
    let malformed = |reason: String| StoreError::format(path, reason);
    let read = |offset: u64, bytes: usize| {
        let place = Interval::new(offset, bytes as u64);
        bytes_within(&stamp.open(path, io)?, place, stamp.bytes, io)
    };
    if stamp.bytes < PAGE as u64 {
        return Err(malformed(
            "not a sparse matrix of outcore: shorter than its header".into(),
        ));
    }
    let header = SparseHeader::parse(&read(0, HEADER_BYTES)?, stamp.bytes).map_err(malformed)?;
    let directory = match header.tile_rows {
        0 => vec![],
        tile_rows => read(header.directory, tile_rows as usize * RECORD_BYTES)?,
    };
    let records = records(&header, &directory).map_err(malformed)?;
    Ok(Arc::new(SparseFile::new(path, header.shape, records, stamp)))
}

/// Opens a matrix that lies in compressed rows, without another copy of it. Its row pointers are read once; `shape` says
/// how many entries there are.
///
/// # Errors
/// Arrays whose lengths do not go together, or row pointers that fall.
pub fn open_rows(rows: CompressedRows, shape: SparseShape, io: &Io) -> Result<Arc<SparseFile>, StoreError> {
    rows.check(&shape)?;
    let records = rows.records(&shape, io)?;
    let identities: Vec<&str> = rows.arrays().map(|array| array.identity()).collect();
    let lengths: Arc<[u64]> = records.iter().map(|record| record.bytes).collect();
    Ok(Arc::new(SparseFile {
        path: rows.name.clone().into(),
        tiles: (0..=records.len()).collect(),
        grid: [lengths.len() as u64, lengths.iter().copied().max().unwrap_or(0)],
        identity: format!("rows of {} in tiles of {}", identities.join(" and "), shape.side),
        lengths,
        records,
        shape,
        body: Origin::Rows(rows),
        keeper: None,
    }))
}

impl SparseFile {
    pub(super) fn new(path: &Path, shape: SparseShape, records: Vec<TileRowRecord>, stamp: Stamp) -> SparseFile {
        SparseFile {
            identity: stamp.name(path),
            path: path.to_path_buf(),
            body: Origin::File(stamp),
            ..SparseFile::of_records(shape, records)
        }
    }

    /// A file as large as an output is at most: programs are planned over it, and never run.
    pub fn foreseen(output: &SparseOutput, identity: String) -> SparseFile {
        let mut offset = FIRST_OFFSET;
        let record = |row: &RowBound| {
            let record = TileRowRecord {
                number: row.number,
                offset,
                bytes: row.bytes,
                entries: row.entries,
                checksum: 0,
                head: 0,
            };
            offset = (offset.saturating_add(row.bytes)).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
            record
        };
        let records: Vec<TileRowRecord> = output.rows.iter().flatten().map(record).collect();
        SparseFile {
            path: "matrix to come".into(),
            identity,
            ..SparseFile::of_records(output.shape.clone(), records)
        }
    }

    fn of_records(shape: SparseShape, records: Vec<TileRowRecord>) -> SparseFile {
        let mut tiles = vec![0];
        for (position, record) in records.iter().enumerate() {
            let first = &records[tiles[tiles.len() - 1]];
            let is_full =
                record.offset + record.bytes - first.offset > TILE_BYTES || record.number - first.number >= TILE_ROWS;
            if position > 0 && is_full && tiles[tiles.len() - 1] < position {
                tiles.push(position);
            }
        }
        if !records.is_empty() {
            tiles.push(records.len());
        }
        let bytes_of = |pair: &[usize]| {
            let (first, last) = (&records[pair[0]], &records[pair[1] - 1]);
            last.offset + last.bytes - first.offset
        };
        let lengths: Arc<[u64]> = tiles.windows(2).map(bytes_of).collect();
        SparseFile {
            path: PathBuf::new(),
            grid: [lengths.len() as u64, lengths.iter().copied().max().unwrap_or(0)],
            shape,
            records,
            tiles,
            lengths,
            identity: String::new(),
            body: Origin::Output,
            keeper: None,
        }
    }

    /// The same file, which lives as long as its readers. A node of it is another than one of the file as it was opened first,
    /// which would not keep it.
    pub(crate) fn kept_by(self, keeper: Arc<dyn Any + Send + Sync>) -> SparseFile {
        SparseFile {
            identity: format!("{}, held", self.identity),
            keeper: Some(keeper),
            ..self
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// That its bytes cannot be a sparse matrix, and why.
    pub fn malformed(&self, reason: impl Into<String>) -> StoreError {
        StoreError::format(&self.path, reason)
    }

    pub fn matrix(&self) -> &SparseShape {
        &self.shape
    }

    /// Bytes of the file, or of the arrays.
    pub fn file_bytes(&self) -> u64 {
        match &self.body {
            Origin::File(stamp) => stamp.bytes,
            Origin::Rows(rows) => rows.bytes(),
            Origin::Output => u64::MAX,
        }
    }

    /// Whether tiles lie in the file as they are multiplied.
    pub fn is_tiled(&self) -> bool {
        !matches!(self.body, Origin::Rows(_))
    }

    /// Whether it is yet to be made, so that tile rows may have other numbers.
    pub fn is_foreseen(&self) -> bool {
        matches!(self.body, Origin::Output)
    }

    /// Tiles of the source.
    pub fn tiles(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of a tile.
    pub fn tile_bytes(&self, tile: usize) -> u64 {
        self.lengths[tile]
    }

    /// The tile rows of a tile, and where in its bytes each of them is.
    pub fn tile_rows(&self, tile: usize) -> impl Iterator<Item = (&TileRowRecord, std::ops::Range<usize>)> {
        let records = self.records_of(tile);
        let base = records.first().map_or(0, |record| record.offset);
        records.iter().map(move |record| {
            let at = (record.offset - base) as usize;
            (record, at..at + record.bytes as usize)
        })
    }

    /// Where the head of a tile row is, and what lies behind it at most.
    fn head_array(&self, record: &TileRowRecord) -> RowMajor {
        let side = u64::from(self.shape.side);
        let tiles = self.shape.columns.div_ceil(side).min(record.entries);
        RowMajor {
            base: record.offset,
            shape: vec![head_bytes(tiles).min(record.bytes)],
            item: 1,
            file_bytes: self.file_bytes(),
        }
    }

    /// Bytes that reading the heads of a tile's tile rows takes; nothing where not all of them have a checksum.
    pub fn heads_bytes(&self, tile: usize) -> Option<u64> {
        let records = self.records_of(tile);
        if !self.is_tiled() || records.iter().any(|record| record.head == 0) {
            return None;
        }
        let bytes = |record| {
            let array = self.head_array(record);
            array.read_bytes(&Region::full(&array.shape))
        };
        Some(records.iter().map(bytes).sum())
    }

    /// The heads of a tile's tile rows: what tiles they have, without their entries.
    ///
    /// # Errors
    /// The file cannot be read, or a head does not agree with its checksum.
    pub fn heads(&self, tile: usize, io: &Io) -> Result<Vec<Vec<u8>>, StoreError> {
        let Origin::File(stamp) = &self.body else {
            return Err(StoreError::Invalid(format!("{}: has no heads", self.name())));
        };
        let file = stamp.open(&self.path, io)?;
        let read = |record: &TileRowRecord| {
            let array = self.head_array(record);
            let region = Region::full(&array.shape);
            let memory = AlignedBuffer::new(array.frame_bytes(&region).max(PAGE));
            let mut frame = memory.map_err(|cause| StoreError::io(&self.path, record.offset, "map memory", cause))?;
            let at = array.read(&file, &region, &mut frame, io)?;
            match head_of(&frame[at..at + array.shape[0] as usize]) {
                Some(head) if crc32c(head) == record.head => Ok(head.to_vec()),
                _ => Err(self.malformed(format!(
                    "the checksum of the head of tile row {} at byte {} does not agree with it",
                    record.number, record.offset
                ))),
            }
        };
        self.records_of(tile).iter().map(read).collect()
    }

    fn check_tile_row(&self, bytes: &[u8], record: &TileRowRecord) -> Result<(), &'static str> {
        let (side, columns, item) = self.shape.layout();
        let rows = side.min(self.shape.rows.saturating_sub(record.number.saturating_mul(side)));
        match check_tile_row(bytes, item, side, rows, columns) {
            Ok(entries) if entries == record.entries => Ok(()),
            Ok(_) => Err("a tile row has other entries than the directory says"),
            Err(Malformed(what)) => Err(what),
        }
    }

    fn records_of(&self, tile: usize) -> &[TileRowRecord] {
        &self.records[self.tiles[tile]..self.tiles[tile + 1]]
    }

    fn array(&self, tile: usize) -> RowMajor {
        RowMajor {
            base: self.records[self.tiles[tile]].offset,
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
        let length = region.shape[1].min(self.lengths[tile]);
        Ok((tile, Region::new(vec![0], vec![length])))
    }
}

impl Source for SparseFile {
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
        Layout::Chunks(vec![1, self.grid[1].max(1)])
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        match &self.body {
            Origin::File(stamp) => stamp.check(&self.path, |stamp| stamp),
            Origin::Rows(rows) => rows.arrays().try_for_each(|array| array.check_unchanged()),
            Origin::Output => Ok(()),
        }
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        match &self.body {
            Origin::File(stamp) => stamp.check(&self.path, Stamp::written),
            Origin::Rows(rows) => rows.arrays().try_for_each(|array| array.check_unwritten()),
            Origin::Output => Ok(()),
        }
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        let (tile, part) = self.part(region)?;
        if let Origin::Rows(rows) = &self.body {
            return rows.cost(&self.records[tile], &self.shape, io);
        }
        let array = self.array(tile);
        // A tile that is smaller than foreseen begins elsewhere, and may share one page more.
        let beyond = match &self.body {
            Origin::Output => PAGE,
            _ => 0,
        };
        Ok(ReadCost {
            read_bytes: array.read_bytes(&part) + beyond as u64,
            frame_bytes: array.frame_bytes(&part) + beyond,
            workspace_bytes: 0,
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let (tile, part) = self.part(region)?;
        let stamp = match &self.body {
            Origin::File(stamp) => stamp,
            Origin::Rows(rows) => {
                rows.read(&self.records[tile], &self.shape, frame, io)?;
                return Ok(0);
            }
            Origin::Output => return Err(StoreError::Invalid(format!("{}: is not made yet", self.name()))),
        };
        let file = stamp.open(&self.path, io)?;
        let offset = self.array(tile).read(&file, &part, frame, io)?;
        debug_assert_eq!(offset as u64 % ALIGN, 0);
        for (record, place) in self.tile_rows(tile) {
            let (bytes, number) = (&frame[offset..][place], record.number);
            if crc32c(bytes) != record.checksum {
                let at = record.offset;
                return Err(self.malformed(format!(
                    "the checksum of tile row {number} at byte {at} does not agree with it"
                )));
            }
            self.check_tile_row(bytes, record)
                .map_err(|what| self.malformed(format!("{what}, in tile row {number}")))?;
        }
        Ok(offset)
    }

    fn listed(&self) -> Option<Arc<[u64]>> {
        Some(self.lengths.clone())
    }

    fn checksums(&self) -> Option<String> {
        let Origin::File(_) = self.body else { return None };
        let of = |record: &TileRowRecord| [record.number, record.bytes, record.entries, record.checksum.into()];
        let words = self.records.iter().flat_map(of).map(|word| format!("{word:x}"));
        Some(format!("{:?} {}", self.shape, words.collect::<Vec<_>>().join(" ")))
    }

    fn goes_with_readers(&self) -> bool {
        self.keeper.is_some()
    }

    fn advice(&self) -> Option<String> {
        match &self.body {
            Origin::File(_) | Origin::Output => None,
            Origin::Rows(rows) => rows.advice(&self.shape),
        }
    }
}
