//! An opened Zarr array: where its chunks are, before any element is read.

use std::path::Path;
use std::sync::Arc;

use super::document::{self, group_in, ZarrDocument, ZarrNode};
use super::files::{ZarrFiles, ZarrManifest};
use super::listing::list;
use super::rectilinear::RectilinearArray;
use super::shard::Indices;
use crate::array::region::c_strides;
use crate::array::source::{Opened, Opening, Source};
use crate::array::stored::StoredObject;
use crate::backend::remote::is_remote;
use crate::backend::stamp::Stamp;
use crate::base::heap::return_freed_memory;
use crate::chunked::manifest::ChunkGrid;
use crate::chunked::source::ChunkArray;
use crate::StoreError;

/// How often an array is listed whose folder is replaced meanwhile.
const ATTEMPTS_MAX: usize = 10;

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
    let counts = metadata.counts();
    let inventory = list(dir, &metadata.keys, &counts, opening)?;
    if inventory.is_large() {
        return_freed_memory();
    }
    let files = Arc::new(ZarrFiles {
        dir: dir.to_path_buf(),
        keys: metadata.keys,
        sharding: metadata.sharding,
        strides: c_strides(&counts),
        identity: format!("{}:{:016x}", stamp.name(&file), inventory.hash),
        document: file,
        stamp,
        inventory,
        indices: Indices::default(),
    });
    let unit = files.unit(&metadata.chunk);
    if let Some(axes) = metadata.edges {
        return Ok(Arc::new(RectilinearArray {
            shape: metadata.shape,
            dtype: metadata.dtype,
            fill: metadata.fill,
            chain: metadata.chain,
            axes,
            unit,
            files,
        }));
    }
    let grid = ChunkGrid {
        shape: metadata.shape,
        dtype: metadata.dtype,
        cell: metadata.chunk,
        unit,
        fill: metadata.fill,
        chain: metadata.chain,
        is_cut: false,
    };
    let manifest = ZarrManifest::new(files, vec![0; counts.len()], &grid.cell);
    Ok(Arc::new(ChunkArray { grid, manifest }))
}
