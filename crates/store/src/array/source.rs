//! Arrays to read.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::annotations::Annotations;
use crate::backend::stamp::in_memory;
use crate::{Frame, Io, Region, Reservation, StoreError};

/// How an array lies in its store, which is what the planner chooses tiles by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// C order: whole rows are cheapest.
    RowMajor,
    /// The shape of the smallest unit that is read whole, or of a plain chunk.
    Chunks(Vec<u64>),
    /// In memory: borrowed, never read.
    Memory,
}

/// An array in memory, as it lies there.
#[derive(Clone, Copy, Debug)]
pub struct MemoryView<'a> {
    pub data: &'a [u8],
    /// Where element (0, 0, ...) is, in elements from the start of `data`.
    pub offset: usize,
    /// In elements; may be negative or zero. Every element that the shape can reach lies in `data`.
    pub strides: &'a [i64],
}

/// An array in C order within any file, as whoever mapped the file into memory sees it.
#[derive(Clone, Debug)]
pub struct RawArray {
    /// Where its first byte is.
    pub start: u64,
    pub shape: Vec<u64>,
    pub dtype: DType,
    /// Bytes of an element are in the order opposite to this machine's.
    pub swapped: bool,
}

/// What reading a region costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    /// Bytes that are transferred from disk.
    pub read_bytes: u64,
    /// The capacity that the frame needs: the data and the slack of alignment.
    pub frame_bytes: usize,
    /// Memory besides the frame, while it runs.
    pub workspace_bytes: usize,
}

/// An immutable array that can be read region by region, from several threads at once.
///
/// What it promises: `cost` says exactly what `read` transfers and enough of what it takes, and that stays so while the
/// files are what they were; bytes that `read` gives are those of the files as they were opened, or it fails. What it
/// does not promise: that `frame[..]` outside of the region's bytes keeps its contents.
pub trait Source: Send + Sync + std::fmt::Debug {
    fn name(&self) -> String;
    fn shape(&self) -> &[u64];
    fn dtype(&self) -> DType;
    fn layout(&self) -> Layout;
    /// Equal identities hold equal bytes.
    fn identity(&self) -> &str;
    /// Looks at what all regions share: the file, or the metadata where each part of an array has a file of its own.
    ///
    /// # Errors
    /// `changed`, when that is not what it was when opened.
    fn check_unchanged(&self) -> Result<(), StoreError>;
    /// As `check_unchanged`, of the bytes alone: a link or a permission that changed under way is no reason to throw away
    /// what was computed.
    ///
    /// # Errors
    /// `changed`, when the file was written to or replaced since it was opened.
    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.check_unchanged()
    }
    /// Looks at every file that holds part of a region and that `check_unchanged` does not look at: for regions that are
    /// used without being read.
    ///
    /// # Errors
    /// `changed`, when one was added, removed, or is not what it was when opened.
    fn check_region(&self, _region: &Region) -> Result<(), StoreError> {
        Ok(())
    }
    /// What a `read` of this region moves and takes. What must be read to know that is counted as metadata.
    ///
    /// # Errors
    /// The region leaves the array; an index that must be read for it cannot be.
    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError>;
    /// Fills `frame[offset..]` with the region, C-contiguous and in native order, and returns `offset`, a multiple of
    /// the element size. The frame starts on a page.
    ///
    /// # Errors
    /// The file cannot be read, is not what it was when opened, or has bytes that are no elements.
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError>;
    /// The bytes that `read_group` transfers; nothing where neighbours are not read together.
    fn group_bytes(&self, _regions: &[Region]) -> Option<u64> {
        None
    }
    /// Reads regions that are neighbours along the last axis, and equal along the others, in one go: rows that each of
    /// them would read in pieces are read whole. Fills the front of each frame, C-contiguous and in native order.
    /// `staging` is `GROUP_STAGING_BYTES` of whole pages.
    ///
    /// # Errors
    /// Those of `read`; an array whose tiles are read one by one.
    fn read_group(
        &self,
        _regions: &[Region],
        _frames: &mut [Frame],
        _staging: &mut [u8],
        _io: &Io,
    ) -> Result<(), StoreError> {
        Err(StoreError::Invalid(format!(
            "{}: tiles are read one by one",
            self.name()
        )))
    }
    /// The `identity` of the array that this one is a part or another shape of: their files are the same.
    fn origin(&self) -> &str {
        self.identity()
    }
    /// The elements from `first` on, in C order, as an array of another shape: for arrays that lie as one run. Nothing
    /// where that is not so; the shape must not leave the array.
    fn reshaped(&self, _first: u64, _shape: &[u64]) -> Option<Arc<dyn Source>> {
        None
    }
    /// Bytes of each tile where tiles differ in size: the array has one row for each, as long as the largest, of which the
    /// front alone is there. `cost` and `read` of a whole row are about that front.
    fn listed(&self) -> Option<Arc<[u64]>> {
        None
    }
    /// The file or folder that it is opened by.
    fn path(&self) -> Option<&Path> {
        None
    }
    /// The path of the array in its file, where that holds several: `path/member` opens it.
    fn member(&self) -> Option<&str> {
        None
    }
    /// What of the file it is, where it is one run of it.
    fn raw(&self) -> Option<RawArray> {
        None
    }
    /// A text for its values in any process, where checksums of all of them are at hand: equal texts are equal values.
    fn checksums(&self) -> Option<String> {
        None
    }
    /// Whether it is gone when its last reader is, so that none but its readers can ask for what was made of it.
    fn goes_with_readers(&self) -> bool {
        false
    }
    /// What whoever reads it often should know.
    fn advice(&self) -> Option<String> {
        None
    }
    /// The array itself, when it is in memory.
    fn memory(&self) -> Option<MemoryView<'_>> {
        None
    }
    /// The source in its own type, for the room that it comes from.
    fn typed(&self) -> Option<&dyn Any> {
        None
    }
    /// The same, shared.
    fn shared(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

/// Whether the bytes of an array may change without a trace: its file is on a file system that is memory, where stores
/// through a map move no times. What is kept of such an array may be stale.
pub fn may_change_unseen(source: &dyn Source) -> bool {
    !source.goes_with_readers() && source.path().is_some_and(in_memory)
}

/// An opened array. `transposed` says that its axes are those of the file reversed (Fortran order).
#[derive(Clone, Debug)]
pub struct Opened {
    pub source: Arc<dyn Source>,
    pub transposed: bool,
    /// The format, by its short name.
    pub format: &'static str,
    /// Of the axes as they are in the source.
    pub annotations: Annotations,
}

/// Whom an array is opened for.
pub trait Opening {
    /// Asked now and then; an error ends the opening.
    ///
    /// # Errors
    /// Why the opening ends.
    fn look(&mut self) -> Result<(), StoreError>;
    /// Asked before memory is taken that the opened array keeps: the grant is given back with it.
    ///
    /// # Errors
    /// `memory`, where there is none for it.
    fn keep(&mut self, bytes: usize) -> Result<Option<Reservation>, StoreError>;
}

/// Of a source that is made of another one, `self.inner`: the answers that are the other's.
macro_rules! as_inner {
    () => {
        fn name(&self) -> String {
            self.inner.name()
        }
        fn origin(&self) -> &str {
            self.inner.origin()
        }
        fn check_unchanged(&self) -> Result<(), StoreError> {
            self.inner.check_unchanged()
        }
        fn check_unwritten(&self) -> Result<(), StoreError> {
            self.inner.check_unwritten()
        }
    };
}
pub(crate) use as_inner;
