//! Arrays whose chunks are listed, in one file or in several: anybody's list, as that of TIFF's pages or of references.

use std::path::{Path, PathBuf};

use super::listed::ListedChunks;
use super::manifest::{CellFile, Manifest, UnitPlace};
use crate::backend::stamp::Stamp;
use crate::io::File;
use crate::{Io, StoreError};

/// A file and what it was when the array was opened.
#[derive(Clone, Debug)]
pub(crate) struct StampedFile {
    pub path: PathBuf,
    pub stamp: Stamp,
}

/// Chunks in files. One file is one cell; of several, each chunk is a cell.
///
/// Invariants: chunks lie in their files; `file_of` has one entry a chunk where there are several files, and else none.
pub(crate) struct SeveralFiles {
    /// The file by which the array is opened, which need not hold chunks.
    pub opened: StampedFile,
    /// The path of the array in that; empty where there is only one.
    pub member: String,
    pub identity: String,
    pub files: Vec<StampedFile>,
    pub file_of: Vec<u32>,
    pub listed: ListedChunks,
    /// Of the grid of cells.
    pub strides: Vec<u64>,
}

impl std::fmt::Debug for SeveralFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {:?}", self.member, self.opened.path)
    }
}

impl SeveralFiles {
    fn is_one(&self) -> bool {
        self.file_of.is_empty()
    }

    fn number(&self, index: &[u64]) -> u64 {
        index.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }

    /// The file of a cell; nothing where all of it is fill value.
    fn file(&self, number: u64) -> Option<&StampedFile> {
        let file = match self.is_one() {
            true => 0,
            false => self.file_of[self.listed.find(number)?] as usize,
        };
        self.files.get(file)
    }
}

impl Manifest for SeveralFiles {
    type Cursor = ();

    fn path(&self) -> &Path {
        &self.opened.path
    }

    fn member(&self) -> Option<&str> {
        (!self.member.is_empty()).then_some(&self.member)
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        self.opened.stamp.check(&self.opened.path, part)?;
        match &self.files[..] {
            [file] => file.stamp.check(&file.path, part),
            _ => Ok(()),
        }
    }

    fn find(&self, index: &[u64]) -> Option<CellFile> {
        let number = self.number(index);
        let bytes = self.file(number)?.stamp.bytes;
        Some(CellFile { number, bytes })
    }

    fn path_of(&self, index: &[u64]) -> PathBuf {
        let file = self.file(self.number(index)).unwrap_or(&self.opened);
        file.path.clone()
    }

    fn open(&self, index: &[u64], io: &Io) -> Result<File, StoreError> {
        let file = self.file(self.number(index)).unwrap_or(&self.opened);
        file.stamp.open(&file.path, io)
    }

    fn difference(&self, cell: CellFile, now: Stamp, since_ns: i128) -> Option<String> {
        self.file(cell.number)?.stamp.difference(now, since_ns)
    }

    fn locate<'f>(
        &self,
        cell: CellFile,
        _index: &[u64],
        unit: u64,
        (): &mut (),
        _io: &Io,
        _open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<UnitPlace>, StoreError> {
        let number = if self.is_one() { unit } else { cell.number };
        Ok(self.listed.find(number).map(|at| self.listed.chunks[at].place()))
    }
}
