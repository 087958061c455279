//! Arrays whose chunks are all in one file, as one cell.

use std::path::{Path, PathBuf};

use super::manifest::{CellFile, Manifest, UnitPlace};
use crate::backend::stamp::Stamp;
use crate::io::File;
use crate::{Io, StoreError};

/// Where the units of an array are in its file.
pub(crate) trait UnitPlaces: Send + Sync {
    /// Nothing where the unit is all fill value.
    fn place(&self, unit: u64) -> Option<UnitPlace>;
    /// Whether nothing is stored at all.
    fn is_empty(&self) -> bool;
}

/// An array of a file that holds several. Invariant: all of its units lie in the file.
pub(crate) struct OneFile<P> {
    path: PathBuf,
    /// The path of the array in the file.
    member: String,
    stamp: Stamp,
    identity: String,
    origin: String,
    units: P,
}

impl<P> std::fmt::Debug for OneFile<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in {:?}", self.member, self.path)
    }
}

impl<P> OneFile<P> {
    pub fn new(path: &Path, member: &str, stamp: Stamp, units: P) -> OneFile<P> {
        let (identity, origin) = member_identity(path, member, stamp);
        OneFile {
            path: path.to_path_buf(),
            member: member.into(),
            stamp,
            identity,
            origin,
            units,
        }
    }
}

/// The identity of an array of a file, and that of the file.
pub(crate) fn member_identity(path: &Path, member: &str, stamp: Stamp) -> (String, String) {
    let origin = stamp.name(path);
    (format!("{origin}:{member}"), origin)
}

impl<P: UnitPlaces> Manifest for OneFile<P> {
    type Cursor = ();

    fn path(&self) -> &Path {
        &self.path
    }

    fn member(&self) -> Option<&str> {
        Some(&self.member)
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
        (!self.units.is_empty()).then_some(CellFile { number: 0, bytes })
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

    fn locate<'f>(
        &self,
        _cell: CellFile,
        _index: &[u64],
        unit: u64,
        (): &mut (),
        _io: &Io,
        _open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<UnitPlace>, StoreError> {
        Ok(self.units.place(unit))
    }
}
