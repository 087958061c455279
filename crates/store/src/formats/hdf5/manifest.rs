//! Where the chunks of a dataset are: all in one file, as one cell.

use std::path::{Path, PathBuf};

use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::chunked::manifest::{CellFile, Manifest, UnitPlace};
use crate::io::File;
use crate::{Io, Reservation, StoreError};

/// A chunk that is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredChunk {
    /// In C order of the grid of chunks.
    pub number: u64,
    pub offset: u64,
    pub bytes: u32,
    /// Filters that it goes without.
    pub mask: u32,
}

/// The chunks of a dataset. Invariant: they ascend by number, and lie in the file.
pub(super) struct DatasetManifest {
    pub path: PathBuf,
    /// The path of the dataset in the file.
    pub member: String,
    pub stamp: Stamp,
    pub identity: String,
    pub origin: String,
    pub chunks: Vec<StoredChunk>,
    pub _granted: Vec<Reservation>,
}

impl std::fmt::Debug for DatasetManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hdf5({:?}, {:?})", self.path, self.member)
    }
}

impl DatasetManifest {
    fn chunk(&self, number: u64) -> Option<&StoredChunk> {
        // Where all are stored, the number is the place.
        let as_place = usize::try_from(number).ok().and_then(|at| self.chunks.get(at));
        if let Some(chunk) = as_place.filter(|chunk| chunk.number == number) {
            return Some(chunk);
        }
        let at = self.chunks.binary_search_by_key(&number, |chunk| chunk.number);
        at.ok().map(|at| &self.chunks[at])
    }
}

impl Manifest for DatasetManifest {
    type Cursor = ();

    fn path(&self) -> &Path {
        &self.path
    }

    fn member(&self) -> Option<&str> {
        Some(&self.member)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.path.display(), self.member)
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        self.stamp.check(&self.path, part)
    }

    fn find(&self, _index: &[u64]) -> Option<CellFile> {
        let bytes = self.stamp.bytes;
        (!self.chunks.is_empty()).then_some(CellFile { number: 0, bytes })
    }

    fn path_of(&self, _index: &[u64]) -> PathBuf {
        self.path.clone()
    }

    fn open(&self, _index: &[u64], io: &Io) -> Result<File, StoreError> {
        self.stamp.open(&self.path, io)
    }

    fn difference(&self, _cell: CellFile, now: Stamp, since_ns: i128) -> Option<String> {
        self.stamp.difference(now, since_ns)
    }

    fn check_absent(&self, _index: &[u64]) -> Result<(), StoreError> {
        self.check(|stamp| stamp)
    }

    fn locate<'f>(
        &self,
        _cell: CellFile,
        _index: &[u64],
        unit: u64,
        (): &mut (),
        _io: &Io,
        _open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<UnitPlace>, StoreError> {
        Ok(self.chunk(unit).map(|chunk| UnitPlace {
            at: Interval::new(chunk.offset, chunk.bytes.into()),
            skipped: chunk.mask,
        }))
    }

    fn search_bytes(&self) -> usize {
        0
    }
}
