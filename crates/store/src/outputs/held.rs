//! Arrays in scratch files that go away when nobody reads them any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::source::{Layout, MemoryView, ReadCost, Source};
use crate::durable::scratch::ScratchFolder;
use crate::{Frame, Io, Region, StoreError};

/// A file in a folder of scratch, removed when the last reader is gone.
#[derive(Debug)]
struct HeldFile {
    path: PathBuf,
    /// It is there for as long as its files are read.
    folder: Arc<ScratchFolder>,
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.folder.remove_file(&self.path);
    }
}

/// An array in a file of scratch; the file's name is its owner's alone.
#[derive(Clone, Debug)]
pub struct Held {
    array: Arc<dyn Source>,
    file: Arc<HeldFile>,
}

impl Held {
    /// Opens a `.npy` file of a folder. From now on it lives as long as this array does.
    ///
    /// # Errors
    /// As for opening any file; it is removed then, too.
    pub fn open(folder: Arc<ScratchFolder>, path: &Path, io: &Io) -> Result<Held, StoreError> {
        let file = Arc::new(HeldFile {
            path: path.to_path_buf(),
            folder,
        });
        let array = crate::registry::open::open(path, io)?.source;
        Ok(Held { array, file })
    }
}

impl Source for Held {
    fn name(&self) -> String {
        self.array.name()
    }
    fn shape(&self) -> &[u64] {
        self.array.shape()
    }
    fn dtype(&self) -> DType {
        self.array.dtype()
    }
    fn layout(&self) -> Layout {
        self.array.layout()
    }
    fn identity(&self) -> &str {
        self.array.identity()
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.array.check_unchanged()
    }
    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.array.check_unwritten()
    }
    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        self.array.check_region(region)
    }
    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        self.array.cost(region, io)
    }
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        self.array.read(region, frame, io)
    }
    fn group_bytes(&self, regions: &[Region]) -> Option<u64> {
        self.array.group_bytes(regions)
    }
    fn read_group(
        &self,
        regions: &[Region],
        frames: &mut [Frame],
        staging: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        self.array.read_group(regions, frames, staging, io)
    }
    fn origin(&self) -> &str {
        self.array.origin()
    }
    fn reshaped(&self, first: u64, shape: &[u64]) -> Option<Arc<dyn Source>> {
        let array = self.array.reshaped(first, shape)?;
        Some(Arc::new(Held {
            array,
            file: self.file.clone(),
        }))
    }
    fn goes_with_readers(&self) -> bool {
        true
    }
    fn memory(&self) -> Option<MemoryView<'_>> {
        self.array.memory()
    }
}
