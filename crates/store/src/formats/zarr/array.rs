//! An opened Zarr array: where its chunks are, before any element is read.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::document::{self, group_in, ZarrDocument, ZarrNode};
use super::inventory::Inventory;
use super::keys::KeyEncoding;
use super::listing::list;
use super::metadata::Sharding;
use super::shard::{Indices, Shard, ShardCursor, INDEX_WORKSPACE_BYTES};
use crate::array::region::c_strides;
use crate::array::source::{Opened, Opening, Source};
use crate::array::stored::StoredObject;
use crate::backend::remote::{is_remote, place_of};
use crate::backend::stamp::Stamp;
use crate::base::heap::return_freed_memory;
use crate::base::interval::Interval;
use crate::chunked::manifest::{CellFile, ChunkGrid, Manifest, UnitPlace};
use crate::chunked::source::ChunkArray;
use crate::io::{File, Mode};
use crate::{Io, StoreError};

/// How often an array is listed whose folder is replaced meanwhile.
const ATTEMPTS_MAX: usize = 10;

/// The files of an array, each a chunk or a shard.
///
/// Invariant: besides one record for each file there is, its memory does not grow with the number of units.
struct ZarrManifest {
    dir: PathBuf,
    keys: KeyEncoding,
    sharding: Option<Sharding>,
    /// Inner chunks of a shard.
    per_shard: u64,
    /// Of the grid of files.
    strides: Vec<u64>,
    /// The file that says all this, as it was then.
    document: PathBuf,
    stamp: Stamp,
    inventory: Inventory,
    indices: Indices,
    identity: String,
}

impl std::fmt::Debug for ZarrManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "zarr({:?})", self.dir)
    }
}

/// Opens the folder of an array or a group. An array costs one `stat` per chunk, the only way to know it again: its document stays as
/// it is when a chunk is replaced.
///
/// # Errors
/// Neither an array nor a group, metadata that are not supported, and the answers of `opening`.
pub(crate) fn find_zarr(dir: &Path, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
    if is_remote(dir) {
        // Prefixes have no identity; each object is held against its own.
        return find_once(dir, opening);
    }
    let mut before = Stamp::of(dir).ok();
    for _ in 1..ATTEMPTS_MAX {
        let found = find_once(dir, opening);
        let after = Stamp::of(dir).ok();
        if before == after {
            return found;
        }
        // Another folder took the name: the document and the chunks may be of two arrays.
        opening.look()?;
        before = after;
    }
    find_once(dir, opening)
}

fn find_once(dir: &Path, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
    match document::read(dir)? {
        ZarrNode::Array(document) => Ok(StoredObject::Array(Opened {
            annotations: document.annotations.clone(),
            source: open_array(dir, *document, opening)?,
            transposed: false,
            format: "zarr",
        })),
        ZarrNode::Group(attributes) => Ok(StoredObject::Group(group_in(dir, attributes)?)),
    }
}

fn open_array(dir: &Path, document: ZarrDocument, opening: &mut dyn Opening) -> Result<Arc<dyn Source>, StoreError> {
    let ZarrDocument {
        metadata, file, stamp, ..
    } = document;
    let extents = metadata.shape.iter().zip(&metadata.chunk);
    let counts: Vec<u64> = extents.map(|(length, chunk)| length.div_ceil(*chunk)).collect();
    let inventory = list(dir, &metadata.keys, &counts, opening)?;
    if inventory.is_large() {
        return_freed_memory();
    }
    let sharding = metadata.sharding;
    let unit = sharding
        .as_ref()
        .map_or(&metadata.chunk, |sharding| &sharding.inner)
        .clone();
    let manifest = ZarrManifest {
        dir: dir.to_path_buf(),
        keys: metadata.keys,
        sharding,
        per_shard: metadata
            .chunk
            .iter()
            .zip(&unit)
            .map(|(chunk, unit)| chunk / unit)
            .product(),
        strides: c_strides(&counts),
        identity: format!("{}:{:016x}", stamp.name(&file), inventory.hash),
        document: file,
        stamp,
        inventory,
        indices: Indices::default(),
    };
    let grid = ChunkGrid {
        shape: metadata.shape,
        dtype: metadata.dtype,
        cell: metadata.chunk,
        unit,
        fill: metadata.fill,
        chain: metadata.chain,
        is_cut: false,
    };
    Ok(Arc::new(ChunkArray { grid, manifest }))
}

impl Manifest for ZarrManifest {
    type Cursor = ShardCursor;

    fn path(&self) -> &Path {
        &self.dir
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check(&self, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        self.stamp.check(&self.document, part)
    }

    fn find(&self, index: &[u64]) -> Option<CellFile> {
        let number = index.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        let bytes = self.inventory.bytes(self.inventory.find(number)?);
        Some(CellFile { number, bytes })
    }

    fn path_of(&self, index: &[u64]) -> PathBuf {
        self.dir.join(self.keys.name(index))
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
        let record = self.inventory.find(cell.number)?;
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
        let at = match &self.sharding {
            None => Some(Interval::new(0, cell.bytes)),
            Some(sharding) => {
                let shard = Shard {
                    number: cell.number,
                    path: &|| self.path_of(index),
                    bytes: cell.bytes,
                    count: self.per_shard,
                    sharding,
                };
                self.indices.range(&shard, unit, cursor, io, open)?
            }
        };
        Ok(at.map(|at| UnitPlace { at, skipped: 0 }))
    }

    fn search_bytes(&self) -> usize {
        match self.sharding {
            Some(_) => INDEX_WORKSPACE_BYTES,
            None => 0,
        }
    }
}
