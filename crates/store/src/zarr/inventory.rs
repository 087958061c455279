//! What a Zarr array's directory held when it was opened.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use crate::stamp::Stamp;
use crate::StoreError;

/// A hash over the names and stamps of every file below `dir`, whatever order they are listed in.
///
/// Costs one `stat` per chunk: the only way to notice that a chunk was replaced, since `zarr.json` stays as it is.
pub(super) fn fingerprint(dir: &Path, depth: usize) -> Result<u64, StoreError> {
    let error = |cause| StoreError::io(dir, 0, "list", cause);
    let mut sum = 0u64;
    for entry in std::fs::read_dir(dir).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let metadata = std::fs::metadata(&path).map_err(|cause| StoreError::io(&path, 0, "stat", cause))?;
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        if !metadata.is_dir() {
            Stamp::from(&metadata).hash(&mut hasher);
        } else if depth > 0 {
            fingerprint(&path, depth - 1)?.hash(&mut hasher);
        }
        sum = sum.wrapping_add(hasher.finish());
    }
    Ok(sum)
}
