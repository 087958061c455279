//! Where an output will be, and the room for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::base::directory::{device_of, parent_of};
use crate::volume::free_bytes;
use crate::StoreError;

/// Links that are followed to a target, as many as the system follows.
const LINKS_MAX: usize = 40;

/// Where the output of this path will be: the same for all its spellings.
///
/// # Errors
/// Links in a circle.
pub fn target_of(path: &Path) -> Result<PathBuf, StoreError> {
    resolve(&whole(path)?)
}

/// The path from the root, without detours.
pub(crate) fn whole(path: &Path) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(path).map_err(|cause| StoreError::io(path, 0, "resolve", cause))?;
    Ok(path.components().collect())
}

/// Where an absolute path leads, link by link, up to a name that may be free. What cannot be followed stays as it is.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let (Some(name), Ok(parent)) = (target.file_name(), parent_of(&target).canonicalize()) else {
            return Ok(target.canonicalize().unwrap_or(target));
        };
        let here = parent.join(name);
        match std::fs::read_link(&here) {
            Ok(link) => target = parent.join(link),
            Err(_) => return Ok(here),
        }
    }
    Err(StoreError::io(path, 0, "resolve", Errno::LOOP))
}

/// Checks that each file system has room for all that is to be written to it: paths, there or not yet, and bytes.
///
/// # Errors
/// `space`, naming the first path that does not fit with those before it.
pub fn check_space(needs: &[(PathBuf, u64)]) -> Result<(), StoreError> {
    let mut taken: HashMap<u64, u64> = HashMap::new();
    for (path, bytes) in needs {
        let (device, free) = disk_of(path)?;
        let need = taken.entry(device).or_default();
        *need = need.saturating_add(*bytes);
        if free < *need {
            return Err(StoreError::Space {
                path: path.clone(),
                need: *need,
                free,
            });
        }
    }
    Ok(())
}

/// The file system that holds a path, there or not yet, and the bytes free on it.
pub(crate) fn disk_of(path: &Path) -> Result<(u64, u64), StoreError> {
    let there = path.ancestors().find(|directory| directory.is_dir());
    let directory = there.unwrap_or(Path::new("."));
    match free_bytes(directory)? {
        Some(volume) => Ok(volume),
        None => device_of(directory),
    }
}
