//! The files of an array, each a chunk or a shard, and what of them is in a box of the array.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inventory::Inventory;
use super::keys::KeyEncoding;
use super::metadata::Sharding;
use super::shard::{Indices, Shard, ShardCursor, INDEX_WORKSPACE_BYTES};
use crate::backend::remote::place_of;
use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::chunked::manifest::{CellFile, Manifest, UnitPlace};
use crate::io::{File, Mode};
use crate::{Io, StoreError};

/// The files of an array.
///
/// Invariant: besides one record for each file there is, its memory does not grow with the number of units.
pub(super) struct ZarrFiles {
    pub dir: PathBuf,
    pub keys: KeyEncoding,
    pub sharding: Option<Sharding>,
    /// Of the grid of files.
    pub strides: Vec<u64>,
    /// The file that says all this, as it was then.
    pub document: PathBuf,
    pub stamp: Stamp,
    pub inventory: Inventory,
    pub indices: Indices,
    pub identity: String,
}

impl std::fmt::Debug for ZarrFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "zarr({:?})", self.dir)
    }
}

impl ZarrFiles {
    /// The shape that is decoded alone, where files are of the shape `cell`.
    pub(super) fn unit(&self, cell: &[u64]) -> Vec<u64> {
        let inner = self.sharding.as_ref().map(|sharding| &sharding.inner[..]);
        inner.unwrap_or(cell).to_vec()
    }

    /// Holds the document against what it was.
    ///
    /// # Errors
    /// `changed`, when it is something else.
    pub(super) fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        self.stamp.check(&self.document, part)
    }
}

/// The files of a box of an array, in which all have one shape.
#[derive(Debug)]
pub(super) struct ZarrManifest {
    files: Arc<ZarrFiles>,
    /// The first file of the box, in the grid of all.
    first: Vec<u64>,
    /// Inner chunks of a shard.
    per_shard: u64,
}

impl ZarrManifest {
    /// The files from `first` on, of the shape `cell`.
    pub(super) fn new(files: Arc<ZarrFiles>, first: Vec<u64>, cell: &[u64]) -> ZarrManifest {
        let units = cell.iter().zip(files.unit(cell));
        ZarrManifest {
            per_shard: units.map(|(cell, unit)| cell / unit).product(),
            files,
            first,
        }
    }
}

impl Manifest for ZarrManifest {
    type Cursor = ShardCursor;

    fn path(&self) -> &Path {
        &self.files.dir
    }

    fn identity(&self) -> &str {
        &self.files.identity
    }

    fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        self.files.check(part)
    }

    fn find(&self, index: &[u64]) -> Option<CellFile> {
        let axes = index.iter().zip(&self.first).zip(&self.files.strides);
        let number = axes.map(|((at, first), stride)| (first + at) * stride).sum();
        let inventory = &self.files.inventory;
        let bytes = inventory.bytes(inventory.find(number)?);
        Some(CellFile { number, bytes })
    }

    fn path_of(&self, index: &[u64]) -> PathBuf {
        let index: Vec<u64> = index.iter().zip(&self.first).map(|(at, first)| first + at).collect();
        self.files.dir.join(self.files.keys.name(&index))
    }

    fn open(&self, index: &[u64], io: &Io) -> Result<File, StoreError> {
        let path = self.path_of(index);
        io.open(&path, Mode::Read).map_err(|error| match &error {
            StoreError::Io { cause, .. } if cause.kind() == ErrorKind::NotFound => StoreError::Changed {
                path: path.clone(),
                reason: "it is gone".into(),
            },
            _ => error,
        })
    }

    fn difference(&self, cell: CellFile, now: Stamp, since_ns: i128) -> Option<String> {
        let record = self.files.inventory.find(cell.number)?;
        record.difference(cell.bytes, now, since_ns)
    }

    fn check_absent(&self, index: &[u64]) -> Result<(), StoreError> {
        let path = self.path_of(index);
        let now = match place_of(&path) {
            Some(place) => place.store.facts(&place.key).map(|_| ()),
            None => std::fs::symlink_metadata(&path).map(|_| ()),
        };
        match now {
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            Err(cause) => Err(StoreError::io(&path, 0, "stat", cause)),
            Ok(()) => Err(StoreError::Changed {
                path,
                reason: "it was not there then".into(),
            }),
        }
    }

    fn locate<'f>(
        &self,
        cell: CellFile,
        index: &[u64],
        unit: u64,
        cursor: &mut ShardCursor,
        io: &Io,
        open: &mut dyn FnMut() -> Result<&'f File, StoreError>,
    ) -> Result<Option<UnitPlace>, StoreError> {
        let at = match &self.files.sharding {
            None => Some(Interval::new(0, cell.bytes)),
            Some(sharding) => {
                let shard = Shard {
                    number: cell.number,
                    path: &|| self.path_of(index),
                    bytes: cell.bytes,
                    count: self.per_shard,
                    sharding,
                };
                self.files.indices.range(&shard, unit, cursor, io, open)?
            }
        };
        Ok(at.map(|at| UnitPlace { at, skipped: 0 }))
    }

    fn search_bytes(&self) -> usize {
        match self.files.sharding {
            Some(_) => INDEX_WORKSPACE_BYTES,
            None => 0,
        }
    }
}
