//! Arrays in scratch files that go away when nobody reads them any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::source::{as_inner, Layout, MemoryView, ReadCost, Source};
use crate::durable::scratch::ScratchFolder;
use crate::formats::factor::FactorFile;
use crate::formats::sparse::SparseFile;
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
    inner: Arc<dyn Source>,
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
        let inner = crate::registry::open::open(path, io)?.source;
        Ok(Held { inner, file })
    }
}

/// A sparse matrix in a file of a folder of scratch, which from now on lives as long as the matrix does.
pub fn hold_sparse(folder: Arc<ScratchFolder>, file: &SparseFile) -> Arc<SparseFile> {
    let keeper = HeldFile {
        path: file.path().to_path_buf(),
        folder,
    };
    Arc::new(file.clone().kept_by(Arc::new(keeper)))
}

/// As [`hold_sparse`], of a factor.
pub fn hold_factor(folder: Arc<ScratchFolder>, file: FactorFile) -> Arc<FactorFile> {
    let keeper = HeldFile {
        path: file.path().to_path_buf(),
        folder,
    };
    Arc::new(file.kept_by(Arc::new(keeper)))
}

impl Source for Held {
    as_inner!();

    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> &[u64] {
        self.inner.shape()
    }
    fn layout(&self) -> Layout {
        self.inner.layout()
    }
    fn identity(&self) -> &str {
        self.inner.identity()
    }
    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        self.inner.check_region(region)
    }
    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        self.inner.cost(region, io)
    }
    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        self.inner.read(region, frame, io)
    }
    fn group_bytes(&self, regions: &[Region]) -> Option<u64> {
        self.inner.group_bytes(regions)
    }
    fn read_group(
        &self,
        regions: &[Region],
        frames: &mut [Frame],
        staging: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        self.inner.read_group(regions, frames, staging, io)
    }
    fn reshaped(&self, first: u64, shape: &[u64]) -> Option<Arc<dyn Source>> {
        let inner = self.inner.reshaped(first, shape)?;
        Some(Arc::new(Held {
            inner,
            file: self.file.clone(),
        }))
    }
    fn goes_with_readers(&self) -> bool {
        true
    }
    fn memory(&self) -> Option<MemoryView<'_>> {
        self.inner.memory()
    }
}
