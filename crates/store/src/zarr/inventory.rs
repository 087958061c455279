//! What a Zarr array's directory held when it was opened.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use crate::stamp::Stamp;
use crate::StoreError;

/// What the files of an array were, whatever order they are listed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Inventory {
    /// A hash over their names and stamps.
    pub hash: u64,
    /// The same without times of status change.
    pub written: u64,
    pub modified_ns: i128,
}

impl Inventory {
    /// Costs one `stat` per chunk: the only way to notice that a chunk was replaced, since `zarr.json` stays as it is.
    pub fn of(dir: &Path, depth: usize) -> Result<Inventory, StoreError> {
        let error = |cause| StoreError::io(dir, 0, "list", cause);
        let mut all = Inventory::default();
        for entry in std::fs::read_dir(dir).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let metadata = std::fs::metadata(&path).map_err(|cause| StoreError::io(&path, 0, "stat", cause))?;
            let (mut hasher, mut written) = (DefaultHasher::new(), DefaultHasher::new());
            path.hash(&mut hasher);
            path.hash(&mut written);
            if !metadata.is_dir() {
                let stamp = Stamp::from(&metadata);
                stamp.hash(&mut hasher);
                stamp.written().hash(&mut written);
                all.modified_ns = all.modified_ns.max(stamp.modified_ns);
            } else if depth > 0 {
                let below = Inventory::of(&path, depth - 1)?;
                below.hash.hash(&mut hasher);
                below.written.hash(&mut written);
                all.modified_ns = all.modified_ns.max(below.modified_ns);
            }
            all.hash = all.hash.wrapping_add(hasher.finish());
            all.written = all.written.wrapping_add(written.finish());
        }
        Ok(all)
    }
}
