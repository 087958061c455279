//! An opened Zarr v3 array: what is known of it before any element is read.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::inventory::Inventory;
use super::listing::list;
use super::metadata::{parse_zarr_json, ArrayMetadata};
use super::shard::Indices;
use crate::array::region::c_strides;
use crate::array::rowmajor::swap_bytes;
use crate::array::source::Opening;
use crate::backend::stamp::{settled, Stamp};
use crate::base::heap::return_freed_memory;
use crate::base::words::JSON_MAX;
use crate::{Region, StoreError};

/// An opened array.
///
/// A *unit* is a chunk, or an inner chunk where there are shards: the smallest part that is decoded alone.
///
/// Invariant: besides one record for each file there is, its memory does not grow with the number of units.
pub struct ZarrArray {
    pub(super) dir: PathBuf,
    pub(super) metadata: ArrayMetadata,
    pub(super) unit: Vec<u64>,
    pub(super) unit_bytes: usize,
    /// Units of a chunk along each axis.
    pub(super) per_chunk: Vec<u64>,
    /// Of the grid of chunks.
    pub(super) strides: Vec<u64>,
    pub(super) stamp: Stamp,
    pub(super) inventory: Inventory,
    pub(super) indices: Indices,
    pub(super) identity: String,
}

impl std::fmt::Debug for ZarrArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "zarr({:?}, {:?}, {})",
            self.dir, self.metadata.shape, self.metadata.dtype
        )
    }
}

/// The document of the array in `dir`, and its stamp.
fn read_metadata(dir: &Path) -> Result<(ArrayMetadata, Stamp), StoreError> {
    let json = dir.join("zarr.json");
    if !json.is_file() {
        let old = [".zarray", ".zgroup"].iter().any(|name| dir.join(name).exists());
        let reason = if old {
            "Zarr format 2 is not supported, only 3"
        } else {
            "not a Zarr array: no zarr.json"
        };
        return Err(StoreError::format(dir, reason));
    }
    let stamp = settled(|| Stamp::of(&json).map(|stamp| (stamp, stamp.modified_ns)))?;
    if stamp.bytes > JSON_MAX {
        return Err(StoreError::format(
            &json,
            format!("{} bytes of metadata are too many", stamp.bytes),
        ));
    }
    let text = std::fs::read(&json).map_err(|cause| StoreError::io(&json, 0, "read", cause))?;
    let metadata = parse_zarr_json(&text).map_err(|reason| StoreError::format(dir, reason))?;
    Ok((metadata, stamp))
}

impl ZarrArray {
    /// Opens the directory of an array. Costs one `stat` per chunk, the only way to know it again: `zarr.json` stays as
    /// it is when a chunk is replaced.
    ///
    /// # Errors
    /// No array of format 3, metadata that are not supported, and the answers of `opening`.
    pub fn open(dir: &Path, opening: &mut dyn Opening) -> Result<ZarrArray, StoreError> {
        let (metadata, stamp) = read_metadata(dir)?;
        let extents = metadata.shape.iter().zip(&metadata.chunk);
        let counts: Vec<u64> = extents.map(|(length, chunk)| length.div_ceil(*chunk)).collect();
        let inventory = list(dir, &metadata.keys, &counts, opening)?;
        if inventory.is_large() {
            return_freed_memory();
        }
        let sharding = metadata.sharding.as_ref();
        let unit = sharding.map_or(&metadata.chunk, |sharding| &sharding.inner).clone();
        Ok(ZarrArray {
            dir: dir.to_path_buf(),
            unit_bytes: unit.iter().product::<u64>() as usize * metadata.dtype.size(),
            per_chunk: metadata
                .chunk
                .iter()
                .zip(&unit)
                .map(|(chunk, unit)| chunk / unit)
                .collect(),
            strides: c_strides(&counts),
            unit,
            identity: format!("{}:{:016x}", stamp.name(&dir.join("zarr.json")), inventory.hash),
            metadata,
            stamp,
            inventory,
            indices: Indices::default(),
        })
    }

    /// The file of the chunk at `index`.
    pub(super) fn path(&self, index: &[u64]) -> PathBuf {
        self.dir.join(self.metadata.keys.name(index))
    }

    pub(super) fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.metadata.dtype.size()
    }

    /// Refuses a chunk that was not there and is.
    pub(super) fn check_absent(&self, index: &[u64]) -> Result<(), StoreError> {
        let path = self.path(index);
        match std::fs::symlink_metadata(&path) {
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            Err(cause) => Err(StoreError::io(&path, 0, "stat", cause)),
            Ok(_) => Err(StoreError::Changed {
                path,
                reason: "it was not there then".into(),
            }),
        }
    }

    /// Fills a box of the frame with the fill value, in the byte order of the file.
    pub(super) fn fill(&self, within: &Region, region: &Region, frame: &mut [u8]) {
        let item = self.metadata.dtype.size();
        let mut element = self.metadata.fill.clone();
        if self.swapped() {
            swap_bytes(&mut element, self.metadata.dtype);
        }
        for filled in within.runs(&region.shape) {
            let at = filled.start as usize * item;
            let run = &mut frame[at..at + filled.length as usize * item];
            if element.iter().all(|byte| *byte == 0) {
                run.fill(0);
            } else {
                run.chunks_exact_mut(item)
                    .for_each(|place| place.copy_from_slice(&element));
            }
        }
    }

    pub(super) fn swapped(&self) -> bool {
        self.metadata.chain.big_endian != cfg!(target_endian = "big") && self.metadata.dtype.size() > 1
    }
}
