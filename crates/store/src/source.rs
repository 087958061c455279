//! Arrays to read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use crate::{npy, zarr, Frame, Io, Region, StoreError};

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

/// An immutable array that can be read region by region, from several threads at once.
///
/// What it promises: `read_bytes` is exact, `frame_bytes` and `workspace_bytes` are enough, and none of the three
/// changes while `check_unchanged` succeeds. What it does not promise: that `frame[..]` outside of the region's bytes
/// keeps its contents.
pub trait Source: Send + Sync + std::fmt::Debug {
    fn name(&self) -> String;
    fn shape(&self) -> &[u64];
    fn dtype(&self) -> DType;
    fn layout(&self) -> Layout;
    /// Equal identities hold equal bytes.
    fn identity(&self) -> &str;
    /// # Errors
    /// `changed`, when the files are not what they were when opened.
    fn check_unchanged(&self) -> Result<(), StoreError>;
    /// As `check_unchanged`, of the bytes alone: a link or a permission that changed under way is no reason to throw away
    /// what was computed.
    ///
    /// # Errors
    /// `changed`, when the files were written to or replaced since they were opened.
    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.check_unchanged()
    }
    /// The bytes that `read` transfers from disk for this region.
    fn read_bytes(&self, region: &Region) -> Result<u64, StoreError>;
    /// The capacity that the frame needs: the data and the slack of alignment.
    fn frame_bytes(&self, region: &Region) -> usize;
    /// Memory that one `read` of this region uses besides the frame, while it runs.
    fn workspace_bytes(&self, region: &Region) -> usize;
    /// Fills `frame[offset..]` with the region, C-contiguous and in native order, and returns `offset`, a multiple of
    /// the element size. The frame starts on a page.
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError>;
    /// The bytes that `read_group` transfers; nothing where neighbours are not read together.
    fn group_bytes(&self, _regions: &[Region]) -> Option<u64> {
        None
    }
    /// Reads regions that are neighbours along the last axis, and equal along the others, in one go: rows that each of
    /// them would read in pieces are read whole. Fills the front of each frame, C-contiguous and in native order.
    /// `staging` is `GROUP_STAGING_BYTES` of whole pages.
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
    /// The array itself, when it is in memory.
    fn memory(&self) -> Option<MemoryView<'_>> {
        None
    }
}

/// An opened array. `transposed` says that its axes are those of the file reversed (Fortran order).
#[derive(Clone, Debug)]
pub struct Opened {
    pub source: Arc<dyn Source>,
    pub transposed: bool,
}

/// Opens a `.npy` file or the directory of a Zarr v3 array.
///
/// # Errors
/// One line with the path: not found, not an array, or something in it that is not supported.
pub fn open(path: &Path, io: &Io) -> Result<Opened, StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let metadata = std::fs::metadata(path).map_err(|cause| StoreError::io(path, 0, "open", cause))?;
    if metadata.is_dir() {
        let source = zarr::ZarrArray::open(&absolute, io)?;
        return Ok(Opened {
            source: Arc::new(source),
            transposed: false,
        });
    }
    if !metadata.is_file() {
        return Err(StoreError::format(path, "is neither a file nor a directory"));
    }
    let file = npy::open_npy(&absolute, io)?;
    Ok(Opened {
        source: file.source,
        transposed: file.transposed,
    })
}
