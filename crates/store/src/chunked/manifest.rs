//! An array of chunks as a format tells of it: its grid, how a chunk is encoded, and where each one is.

use std::path::{Path, PathBuf};

use outcore_dtype::DType;

use super::chain::CodecChain;
use crate::array::region::{Cells, Lattice};
use crate::array::rowmajor::{swap_bytes, RowMajor, GAP_BYTES, STAGED_BYTES};
use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::io::File;
use crate::{Io, Region, StoreError};

/// How an array is cut and encoded.
///
/// A *unit* is the smallest part that is decoded alone: a chunk, or an inner chunk of a shard. A *cell* is the part of the array that
/// is in one file: a chunk, a shard, or all of the array.
///
/// Invariants, kept by whoever makes one: no product of lengths overflows, and cells are whole units.
#[derive(Clone, Debug)]
pub(crate) struct ChunkGrid {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub cell: Vec<u64>,
    pub unit: Vec<u64>,
    /// One element, native order.
    pub fill: Vec<u8>,
    pub chain: CodecChain,
    /// Whether units end where the array does, and not behind it: along one axis, before which units have length 1.
    pub is_cut: bool,
}

impl ChunkGrid {
    pub fn unit_bytes(&self) -> usize {
        self.unit.iter().product::<u64>() as usize * self.dtype.size()
    }

    /// The bytes of a unit of the cell at `index`.
    pub fn bytes_of(&self, index: &[u64], mut unit: u64) -> usize {
        if !self.is_cut {
            return self.unit_bytes();
        }
        let mut elements = 1;
        for axis in (0..self.unit.len()).rev() {
            let (count, length) = (self.per_cell(axis), self.unit[axis]);
            let start = (index[axis] * count + unit % count) * length;
            unit /= count;
            elements *= self.shape[axis].saturating_sub(start).min(length);
        }
        elements as usize * self.dtype.size()
    }

    /// Units of a cell along an axis.
    pub fn per_cell(&self, axis: usize) -> u64 {
        self.cell[axis] / self.unit[axis]
    }

    /// Whether only some rows of a plain unit may be read: a small one is read from the first to the last that is needed.
    pub fn reads_rows(&self) -> bool {
        self.chain.is_plain() && self.unit_bytes() as u64 > GAP_BYTES
    }

    /// Whether one plain unit holds all of the region: then it is read without a further copy.
    pub fn is_sole(&self, region: &Region) -> bool {
        self.reads_rows() && Cells::of(region, &self.unit).count() == 1
    }

    /// Whether a plain unit that is needed whole is read together with those close to it.
    pub fn joins_units(&self) -> bool {
        self.chain.is_plain() && self.unit_bytes() as u64 <= STAGED_BYTES
    }

    /// A plain unit at `offset` of its file, as an array in it.
    pub fn plain(&self, offset: u64, file_bytes: u64) -> RowMajor {
        RowMajor {
            base: offset,
            shape: self.unit.clone(),
            item: self.dtype.size(),
            file_bytes,
        }
    }

    /// Where elements of a unit are in its decoded bytes.
    pub fn lattice(&self) -> Lattice {
        self.chain.lattice(&self.unit)
    }

    pub fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.dtype.size()
    }

    pub fn swapped(&self) -> bool {
        self.chain.big_endian != cfg!(target_endian = "big") && self.dtype.size() > 1
    }

    /// Fills a box of the frame with the fill value, in the byte order of the file.
    pub fn fill(&self, within: &Region, region: &Region, frame: &mut [u8]) {
        let item = self.dtype.size();
        let mut element = self.fill.clone();
        if self.swapped() {
            swap_bytes(&mut element, self.dtype);
        }
        for filled in within.runs(&region.shape) {
            let at = filled.start as usize * item;
            let run = &mut frame[at..at + filled.length as usize * item];
            if element.iter().all(|byte| *byte == 0) {
                run.fill(0);
            } else {
                run.chunks_exact_mut(item)
                    .for_each(|place| place.copy_from_slice(&element));
            }
        }
    }
}

/// The file of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellFile {
    /// The number of the cell, in C order of the grid of cells.
    pub number: u64,
    pub bytes: u64,
}

/// The encoded bytes of a unit in the file of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitPlace {
    pub at: Interval,
    /// Stages that this unit goes without, as bits in the order of the chain.
    pub skipped: u32,
}

/// Where the units of an array are.
pub(crate) trait Manifest: Send + Sync + std::fmt::Debug {
    /// A memory between one unit of a file and the next.
    type Cursor: Default;

    /// The file or the folder by which the array is opened.
    fn path(&self) -> &Path;
    /// The path of the array in that, where there are several in a file.
    fn member(&self) -> Option<&str> {
        None
    }
    /// The array, as messages name it.
    fn name(&self) -> String {
        match self.member() {
            Some(member) => format!("{}/{member}", self.path().display()),
            None => self.path().display().to_string(),
        }
    }
    /// Equal identities hold equal bytes.
    fn identity(&self) -> &str;
    /// The identity of the file, where it holds other arrays too.
    fn origin(&self) -> &str {
        self.identity()
    }
    /// Holds what all cells share against what it was, by the part of the stamps that is given.
    ///
    /// # Errors
    /// `changed`, when it is something else.
    fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError>;
    /// The file of the cell at `index`; nothing where there was none, and the cell is all fill value.
    fn find(&self, index: &[u64]) -> Option<CellFile>;
    /// The path of that file.
    fn path_of(&self, index: &[u64]) -> PathBuf;
    /// Opens the file of a cell.
    ///
    /// # Errors
    /// `changed`, when it is gone; a file that cannot be opened.
    fn open(&self, index: &[u64], io: &Io) -> Result<File, StoreError>;
    /// What is different about the file of a cell; changes of status alone do not count from `since_ns` on.
    fn difference(&self, cell: CellFile, now: Stamp, since_ns: i128) -> Option<String>;
    /// Refuses a cell that had no file and has one.
    ///
    /// # Errors
    /// `changed`, when there is one; a folder that cannot be looked into.
    fn check_absent(&self, _index: &[u64]) -> Result<(), StoreError> {
        self.check(|stamp| stamp)
    }
    /// Where a unit of a cell is, within the file; nothing where it is all fill value. `open` gives the file, where that must be read.
    ///
    /// # Errors
    /// The file cannot be read, or says that the unit is somewhere else than in it.
    fn locate<'f>(
        &self,
        cell: CellFile,
        index: &[u64],
        unit: u64,
        cursor: &mut Self::Cursor,
        io: &Io,
        open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<UnitPlace>, StoreError>;
    /// Memory that locating takes.
    fn search_bytes(&self) -> usize {
        0
    }
}
