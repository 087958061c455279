//! Where the records of a variable are: one a chunk, at equal distances in one file.

use std::path::{Path, PathBuf};

use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::chunked::manifest::{CellFile, Manifest, UnitPlace};
use crate::io::File;
use crate::{Io, StoreError};

/// The records of a variable. Invariant: all of them lie in the file.
#[derive(Debug)]
pub(super) struct RecordManifest {
    pub path: PathBuf,
    /// The name of the variable.
    pub member: String,
    pub stamp: Stamp,
    pub identity: String,
    pub origin: String,
    pub begin: u64,
    /// Bytes of a record of this variable, and from one to the next.
    pub bytes: u64,
    pub distance: u64,
}

impl Manifest for RecordManifest {
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
        Some(CellFile { number: 0, bytes })
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
        Ok(Some(UnitPlace {
            at: Interval::new(self.begin + unit * self.distance, self.bytes),
            skipped: 0,
        }))
    }

    fn search_bytes(&self) -> usize {
        0
    }
}
