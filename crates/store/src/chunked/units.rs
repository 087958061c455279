//! What a region needs of each file: which bytes lie where, and in which windows they are read.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::manifest::{CellFile, ChunkGrid, Manifest, UnitPlace};
use crate::array::region::{Cells, Lattice};
use crate::array::rowmajor::{ReadWindow, GAP_BYTES, STAGED_BYTES, WINDOW_BYTES};
use crate::backend::remote::is_remote;
use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::base::page::PAGE;
use crate::io::File;
use crate::{Io, Region, StoreError};

/// Spans that are sorted together: inner chunks may lie in any order in their file.
const BATCH: usize = 32 << 10;

/// The encoded bytes that a region needs of one unit, in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitSpan {
    pub offset: u64,
    pub bytes: u64,
    /// The unit's number in its cell.
    pub unit: u64,
    /// Stages that it goes without.
    pub skipped: u32,
}

/// A part of a cell that a region needs, and how it is read.
pub(super) enum UnitPiece<'a> {
    /// A unit that is all fill value.
    Missing { unit: u64 },
    /// A large plain unit, or one of which some rows are needed.
    Rows { unit: u64, offset: u64 },
    /// Units that lie close together.
    ReadWindow { window: ReadWindow, spans: &'a [UnitSpan] },
}

/// The cell at `index` of an array, and its file.
pub(super) struct Cell<'a, M> {
    grid: &'a ChunkGrid,
    manifest: &'a M,
    pub index: &'a [u64],
    pub of: CellFile,
    file: OnceCell<File>,
}

impl<'a, M: Manifest> Cell<'a, M> {
    /// Nothing where there was no file when the array was opened.
    pub fn find(grid: &'a ChunkGrid, manifest: &'a M, index: &'a [u64]) -> Option<Cell<'a, M>> {
        Some(Cell {
            grid,
            manifest,
            index,
            of: manifest.find(index)?,
            file: OnceCell::new(),
        })
    }

    pub fn path(&self) -> PathBuf {
        self.manifest.path_of(self.index)
    }

    pub fn file(&self, io: &Io) -> Result<&File, StoreError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.manifest.open(self.index, io)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// What came of using the file, unless the file is not what it was.
    pub fn unless_changed<T>(&self, result: Result<T, StoreError>, io: &Io) -> Result<T, StoreError> {
        let Some(file) = self.file.get() else { return result };
        match self.manifest.difference(self.of, file.stamp()?, io.began_ns()) {
            Some(reason) => Err(self.changed(reason)),
            None => result,
        }
    }

    /// Refuses a file that is not what it was, by its name.
    pub fn check(&self) -> Result<(), StoreError> {
        let now = match Stamp::of(&self.path()) {
            Err(error) if is_remote(&self.path()) && error.code() != "missing" => return Err(error),
            now => now.map_err(|_| self.changed("it is gone".into()))?,
        };
        match self.manifest.difference(self.of, now, i128::MAX) {
            Some(reason) => Err(self.changed(reason)),
            None => Ok(()),
        }
    }

    /// A unit that does not decode, by its place in the file.
    pub fn damaged(&self, span: &UnitSpan, reason: &str) -> StoreError {
        let path = self.path();
        match span.offset {
            0 => StoreError::format(&path, reason),
            offset => StoreError::format(&path, format!("byte {offset}: {reason}")),
        }
    }

    fn changed(&self, reason: String) -> StoreError {
        StoreError::Changed {
            path: self.path(),
            reason,
        }
    }

    /// Gives `each` what the region needs of the cell, in the order in which it is read.
    pub fn pieces(
        &self,
        region: &Region,
        spare: &mut UnitSpace<'_>,
        io: &Io,
        each: &mut dyn FnMut(UnitPiece<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (grid, bytes) = (self.grid, self.of.bytes);
        // What is decoded needs memory for that besides.
        let most = if grid.chain.is_plain() {
            STAGED_BYTES
        } else {
            WINDOW_BYTES
        };
        let UnitSpace { batch, cut, joins } = spare;
        batch.clear();
        let mut add = |unit: u64, place: Option<UnitPlace>| {
            let Some(UnitPlace { at, skipped }) = place else {
                return each(UnitPiece::Missing { unit });
            };
            if !grid.chain.is_plain() {
                batch.push(UnitSpan {
                    offset: at.start,
                    bytes: at.length,
                    unit,
                    skipped,
                });
            } else if at.length != grid.bytes_of(self.index, unit) as u64 {
                let expected = grid.bytes_of(self.index, unit);
                let reason = format!("a chunk of {} bytes where {expected} are expected", at.length);
                return Err(StoreError::format(&self.path(), reason));
            } else {
                cut.unit(self.index, unit);
                if grid.reads_rows() && !(*joins && cut.shape == grid.unit) {
                    return each(UnitPiece::Rows { unit, offset: at.start });
                }
                let span = cut.plain_span();
                batch.push(UnitSpan {
                    offset: at.start + span.start,
                    bytes: span.length,
                    unit,
                    skipped,
                });
            }
            if batch.len() >= BATCH {
                windows(batch, bytes, most, each)?;
                batch.clear();
            }
            Ok(())
        };
        let mut cursor = M::Cursor::default();
        let share = grid.share(region, self.index);
        let mut units = Cells::of(&share, &grid.unit);
        while let Some(at) = units.next() {
            let unit = grid.unit_number(at, self.index);
            let mut open = || self.file(io);
            let place = self
                .manifest
                .locate(self.of, self.index, unit, &mut cursor, io, &mut open)?;
            add(unit, place)?;
        }
        windows(batch, bytes, most, each)
    }
}

/// Gives `each` the windows in which spans are read: those close together in one, of `most` bytes where it has several.
fn windows(
    spans: &mut [UnitSpan],
    file_bytes: u64,
    most: u64,
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
        let far = span.offset.saturating_sub(last) >= GAP_BYTES || end.max(last) - first > most;
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
    /// Whether plain units that are needed whole are read together.
    joins: bool,
}

impl<'a> UnitSpace<'a> {
    pub fn new(grid: &'a ChunkGrid, region: &'a Region) -> UnitSpace<'a> {
        UnitSpace {
            batch: Vec::with_capacity(grid.batch(region)),
            cut: UnitCut::new(grid, region),
            joins: grid.joins_units() && !grid.is_sole(region),
        }
    }
}

/// Where a region and a unit meet. The same memory serves one unit after the other.
pub(super) struct UnitCut<'a> {
    grid: &'a ChunkGrid,
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
    pub fn new(grid: &'a ChunkGrid, region: &'a Region) -> UnitCut<'a> {
        let none = vec![0; region.shape.len()];
        UnitCut {
            grid,
            region,
            source: grid.lattice(),
            target: Lattice::of_box(&region.shape, &none),
            shape: none.clone(),
            local: none.clone(),
            within: none,
        }
    }

    /// The whole cell at `index`.
    pub fn cell(&mut self, index: &[u64]) {
        for (axis, at) in index.iter().enumerate() {
            let extent = self.grid.cell[axis];
            self.along(axis, at * extent, extent);
        }
    }

    /// Unit `unit` of the cell at `index`.
    pub fn unit(&mut self, index: &[u64], mut unit: u64) {
        for axis in (0..index.len()).rev() {
            let count = self.grid.per_cell(axis);
            let start = (index[axis] * count + unit % count) * self.grid.unit[axis];
            unit /= count;
            self.along(axis, start, self.grid.unit[axis]);
        }
        let offset = |starts: &[u64], strides: &[i64]| starts.iter().zip(strides).map(|(at, by)| *at as i64 * by).sum();
        self.target.offset = offset(&self.within, &self.target.strides);
        if !self.grid.chain.is_plain() {
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
        let item = self.grid.dtype.size() as u64;
        let (mut first, mut last) = (0, 0);
        for (axis, &stride) in self.source.strides.iter().enumerate() {
            first += self.local[axis] * stride as u64;
            last += (self.local[axis] + self.shape[axis] - 1) * stride as u64;
        }
        Interval::between(first * item, (last + 1) * item)
    }

    /// The place of a whole unit in the region's elements, where the unit lies there as it is decoded: as one run.
    pub fn run(&self) -> Option<Interval> {
        if self.shape != self.grid.unit || !self.grid.chain.is_c_order() {
            return None;
        }
        let within = self.within();
        let mut runs = within.runs(&self.region.shape);
        let run = runs.next()?;
        runs.next().is_none().then_some(run)
    }

    pub fn local(&self) -> Region {
        Region::new(self.local.clone(), self.shape.clone())
    }

    pub fn within(&self) -> Region {
        Region::new(self.within.clone(), self.shape.clone())
    }
}

impl ChunkGrid {
    /// The part of a region in the cell at `index`.
    fn share(&self, region: &Region, index: &[u64]) -> Region {
        let start = index.iter().zip(&self.cell).map(|(at, extent)| at * extent).collect();
        let cell = Region::new(start, self.cell.clone());
        region
            .intersect(&cell)
            .unwrap_or_else(|| Region::full(&vec![0; index.len()]))
    }

    /// Most spans that are sorted together.
    fn batch(&self, region: &Region) -> usize {
        if self.is_sole(region) || self.reads_rows() && !self.joins_units() {
            return 0;
        }
        let axes = region.shape.iter().zip(&self.unit).enumerate();
        // A region that does not begin with a unit meets one more.
        let units = axes.map(|(axis, (length, unit))| (length.div_ceil(*unit) + 1).min(self.per_cell(axis)));
        units.fold(1, u64::saturating_mul).min(BATCH as u64) as usize
    }

    /// Memory that spans of a region take.
    pub(super) fn span_bytes(&self, region: &Region) -> usize {
        match self.batch(region) {
            0 | 1 => 0,
            spans => (spans * size_of::<UnitSpan>()).next_multiple_of(PAGE),
        }
    }

    fn unit_number(&self, unit: &[u64], index: &[u64]) -> u64 {
        let axes = unit.iter().zip(index).enumerate();
        axes.fold(0, |number, (axis, (at, cell))| {
            number * self.per_cell(axis) + (at - cell * self.per_cell(axis))
        })
    }
}
