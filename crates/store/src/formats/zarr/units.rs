//! What a region needs of each chunk's file: which bytes lie where, and in which windows they are read.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::array::ZarrArray;
use super::inventory::ChunkRecord;
use super::shard::{Shard, ShardCursor, INDEX_WORKSPACE_BYTES};
use crate::array::region::{Cells, Lattice};
use crate::array::rowmajor::{ReadWindow, RowMajor, GAP_BYTES, WINDOW_BYTES};
use crate::base::interval::Interval;
use crate::base::page::PAGE;
use crate::io::{File, Mode};
use crate::{Io, Region, StoreError};

/// Spans that are sorted together: inner chunks may lie in any order in their shard.
const BATCH: usize = 32 << 10;

/// The encoded bytes that a region needs of one unit, in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitSpan {
    pub offset: u64,
    pub bytes: u64,
    /// The unit's number in its chunk.
    pub unit: u64,
}

/// A part of a chunk that a region needs, and how it is read.
pub(super) enum UnitPiece<'a> {
    /// A unit that is all fill value.
    Missing { unit: u64 },
    /// A plain unit large enough that only some of its rows may be read.
    Rows { unit: u64, offset: u64 },
    /// Units that lie close together.
    ReadWindow { window: ReadWindow, spans: &'a [UnitSpan] },
}

/// The file of a chunk at `index` of the grid.
pub(super) struct ChunkFile<'a> {
    array: &'a ZarrArray,
    pub index: &'a [u64],
    number: u64,
    record: &'a ChunkRecord,
    pub bytes: u64,
    file: OnceCell<File>,
}

impl<'a> ChunkFile<'a> {
    /// Nothing where there was no file when the array was opened.
    pub fn find(array: &'a ZarrArray, index: &'a [u64]) -> Option<ChunkFile<'a>> {
        let number = index.iter().zip(&array.strides).map(|(at, stride)| at * stride).sum();
        let record = array.inventory.find(number)?;
        Some(ChunkFile {
            array,
            index,
            number,
            record,
            bytes: array.inventory.bytes(record),
            file: OnceCell::new(),
        })
    }

    pub fn path(&self) -> PathBuf {
        self.array.path(self.index)
    }

    pub fn file(&self, io: &Io) -> Result<&File, StoreError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = io.open(&self.path(), Mode::Read).map_err(|error| match &error {
            StoreError::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => self.changed("it is gone"),
            _ => error,
        })?;
        Ok(self.file.get_or_init(|| file))
    }

    /// What came of using the file, unless the file is not what it was.
    pub fn unless_changed<T>(&self, result: Result<T, StoreError>, io: &Io) -> Result<T, StoreError> {
        let Some(file) = self.file.get() else { return result };
        match self.record.difference(self.bytes, file.stamp()?, io.began_ns()) {
            Some(reason) => Err(self.changed(&reason)),
            None => result,
        }
    }

    /// Refuses a file that is not what it was, by its name.
    pub fn check(&self) -> Result<(), StoreError> {
        let now = std::fs::metadata(self.path()).map_err(|_| self.changed("it is gone"))?;
        match self.record.difference(self.bytes, (&now).into(), i128::MAX) {
            Some(reason) => Err(self.changed(&reason)),
            None => Ok(()),
        }
    }

    fn changed(&self, reason: &str) -> StoreError {
        StoreError::Changed {
            path: self.path(),
            reason: reason.into(),
        }
    }

    /// Gives `each` what the region needs of the chunk, in the order in which it is read.
    pub fn pieces(
        &self,
        region: &Region,
        spare: &mut UnitSpace<'_>,
        io: &Io,
        each: &mut dyn FnMut(UnitPiece<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let array = self.array;
        let UnitSpace { batch, cut } = spare;
        batch.clear();
        let mut add = |unit: u64, range: Option<Interval>| {
            let Some(Interval {
                start: offset,
                length: bytes,
            }) = range
            else {
                return each(UnitPiece::Missing { unit });
            };
            if !array.metadata.chain.is_plain() {
                batch.push(UnitSpan { offset, bytes, unit });
            } else if bytes != array.unit_bytes as u64 {
                let reason = format!("a chunk of {bytes} bytes where {} are expected", array.unit_bytes);
                return Err(StoreError::format(&self.path(), reason));
            } else if array.reads_rows() {
                return each(UnitPiece::Rows { unit, offset });
            } else {
                cut.unit(self.index, unit);
                let span = cut.plain_span();
                let (offset, bytes) = (offset + span.start, span.length);
                batch.push(UnitSpan { offset, bytes, unit });
            }
            if batch.len() >= BATCH {
                windows(batch, self.bytes, each)?;
                batch.clear();
            }
            Ok(())
        };
        match &array.metadata.sharding {
            None => add(0, Some(Interval::new(0, self.bytes)))?,
            Some(sharding) => {
                let shard = Shard {
                    number: self.number,
                    path: self.path(),
                    bytes: self.bytes,
                    count: array.per_chunk.iter().product(),
                    sharding,
                };
                let mut cursor = ShardCursor::default();
                let mut cells = Cells::of(&array.share(region, self.index), &array.unit);
                while let Some(cell) = cells.next() {
                    let unit = array.unit_number(cell, self.index);
                    let range = array.indices.range(&shard, unit, &mut cursor, io, || self.file(io))?;
                    add(unit, range)?;
                }
            }
        }
        windows(batch, self.bytes, each)
    }
}

/// Gives `each` the windows in which spans are read: those close together in one.
fn windows(
    spans: &mut [UnitSpan],
    file_bytes: u64,
    each: &mut dyn FnMut(UnitPiece<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    spans.sort_unstable_by_key(|span| span.offset);
    let (mut from, mut first, mut last) = (0, 0, 0);
    let mut give = |spans: &[UnitSpan], first, last| {
        let window = ReadWindow::of(first, last, file_bytes);
        each(UnitPiece::ReadWindow { window, spans })
    };
    for (at, span) in spans.iter().enumerate() {
        let end = span.offset + span.bytes;
        let far = span.offset.saturating_sub(last) >= GAP_BYTES || end.max(last) - first > WINDOW_BYTES;
        if at > from && far {
            give(&spans[from..at], first, last)?;
            from = at;
        }
        if at == from {
            (first, last) = (span.offset, end);
        }
        last = last.max(end);
    }
    if from < spans.len() {
        give(&spans[from..], first, last)?;
    }
    Ok(())
}

/// What `pieces` works with, the same for all chunks of a region.
pub(super) struct UnitSpace<'a> {
    batch: Vec<UnitSpan>,
    cut: UnitCut<'a>,
}

impl<'a> UnitSpace<'a> {
    pub fn new(array: &'a ZarrArray, region: &'a Region) -> UnitSpace<'a> {
        UnitSpace {
            batch: Vec::with_capacity(array.batch(region)),
            cut: UnitCut::new(array, region),
        }
    }
}

/// Where a region and a unit meet. The same memory serves one unit after the other.
pub(super) struct UnitCut<'a> {
    array: &'a ZarrArray,
    region: &'a Region,
    /// What they share.
    pub shape: Vec<u64>,
    /// Where that begins in the unit.
    local: Vec<u64>,
    /// Where it begins in the region.
    within: Vec<u64>,
    /// Where it lies in the unit's decoded bytes; in those of a plain span it begins at element 0.
    pub source: Lattice,
    /// Where it lies in the region's bytes.
    pub target: Lattice,
}

impl<'a> UnitCut<'a> {
    pub fn new(array: &'a ZarrArray, region: &'a Region) -> UnitCut<'a> {
        let none = vec![0; region.shape.len()];
        UnitCut {
            array,
            region,
            source: array.metadata.chain.lattice(&array.unit),
            target: Lattice::of_box(&region.shape, &none),
            shape: none.clone(),
            local: none.clone(),
            within: none,
        }
    }

    /// The whole chunk at `index`.
    pub fn chunk(&mut self, index: &[u64]) {
        for (axis, at) in index.iter().enumerate() {
            let extent = self.array.metadata.chunk[axis];
            self.along(axis, at * extent, extent);
        }
    }

    /// Unit `unit` of the chunk at `index`.
    pub fn unit(&mut self, index: &[u64], mut unit: u64) {
        for axis in (0..index.len()).rev() {
            let count = self.array.per_chunk[axis];
            let start = (index[axis] * count + unit % count) * self.array.unit[axis];
            unit /= count;
            self.along(axis, start, self.array.unit[axis]);
        }
        let offset = |starts: &[u64], strides: &[i64]| starts.iter().zip(strides).map(|(at, by)| *at as i64 * by).sum();
        self.target.offset = offset(&self.within, &self.target.strides);
        if !self.array.metadata.chain.is_plain() {
            self.source.offset = offset(&self.local, &self.source.strides);
        }
    }

    fn along(&mut self, axis: usize, start: u64, length: u64) {
        let first = self.region.start[axis].max(start);
        self.shape[axis] = self.region.end(axis).min(start + length) - first;
        self.local[axis] = first - start;
        self.within[axis] = first - self.region.start[axis];
    }

    /// The first of the bytes that they share in a plain unit, and how many there are up to the last.
    fn plain_span(&self) -> Interval {
        let item = self.array.metadata.dtype.size() as u64;
        let (mut first, mut last) = (0, 0);
        for (axis, &stride) in self.source.strides.iter().enumerate() {
            first += self.local[axis] * stride as u64;
            last += (self.local[axis] + self.shape[axis] - 1) * stride as u64;
        }
        Interval::between(first * item, (last + 1) * item)
    }

    pub fn local(&self) -> Region {
        Region::new(self.local.clone(), self.shape.clone())
    }

    pub fn within(&self) -> Region {
        Region::new(self.within.clone(), self.shape.clone())
    }
}

impl ZarrArray {
    /// Whether only some rows of a plain unit may be read: a small one is read from the first to the last that is needed.
    pub(super) fn reads_rows(&self) -> bool {
        self.metadata.chain.is_plain() && self.unit_bytes as u64 > GAP_BYTES
    }

    /// A plain unit at `offset` of its file, as an array in it.
    pub(super) fn plain(&self, offset: u64, file_bytes: u64) -> RowMajor {
        RowMajor {
            base: offset,
            shape: self.unit.clone(),
            item: self.metadata.dtype.size(),
            file_bytes,
        }
    }

    /// The part of a region in the chunk at `index`.
    pub(super) fn share(&self, region: &Region, index: &[u64]) -> Region {
        let chunk = &self.metadata.chunk;
        let start = index.iter().zip(chunk).map(|(at, extent)| at * extent).collect();
        let cell = Region::new(start, chunk.clone());
        region
            .intersect(&cell)
            .unwrap_or_else(|| Region::full(&vec![0; index.len()]))
    }

    /// Most spans that are sorted together.
    fn batch(&self, region: &Region) -> usize {
        if self.reads_rows() {
            return 0;
        }
        let axes = region.shape.iter().zip(&self.unit).zip(&self.per_chunk);
        // A region that does not begin with a unit meets one more.
        let units = axes.map(|((length, unit), count)| (length.div_ceil(*unit) + 1).min(*count));
        units.fold(1, u64::saturating_mul).min(BATCH as u64) as usize
    }

    /// Memory that finding the pieces of a region takes.
    pub(super) fn search_bytes(&self, region: &Region) -> usize {
        let index = if self.metadata.sharding.is_some() {
            INDEX_WORKSPACE_BYTES
        } else {
            0
        };
        match self.batch(region) {
            0 | 1 => index,
            spans => index + (spans * size_of::<UnitSpan>()).next_multiple_of(PAGE),
        }
    }

    fn unit_number(&self, cell: &[u64], index: &[u64]) -> u64 {
        let mut number = 0;
        for (axis, count) in self.per_chunk.iter().enumerate() {
            number = number * count + (cell[axis] - index[axis] * count);
        }
        number
    }
}
