//! The files of an array's folder: whether they are still what they were, and links to those that stay.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::backend::stamp::Stamp;
use crate::StoreError;

/// Which files a folder has, and what they are: names, identities, lengths, and times of their last writing.
///
/// Invariant: the order of listing does not count, and nothing that a hard link changes does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeSum {
    files: u64,
    sum: u64,
}

impl TreeSum {
    /// Adds a file by its name below the folder.
    pub(super) fn add(&mut self, name: &Path, stamp: Stamp) {
        let mut hasher = DefaultHasher::new();
        (name.as_os_str().as_bytes(), stamp.written()).hash(&mut hasher);
        self.files += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// What a folder has below it.
pub(super) struct TreeEntry<'a> {
    pub path: &'a Path,
    /// Below the folder.
    pub name: &'a Path,
    pub is_directory: bool,
    pub stamp: Stamp,
    pub mode: u32,
}

/// Calls `each` with all that is below a folder, directories before what they hold.
///
/// # Errors
/// Links, devices and other file systems; what cannot be listed; those of `each`.
pub(super) fn walk(
    folder: &Path,
    each: &mut dyn FnMut(&TreeEntry<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let top = fs::metadata(folder).map_err(|cause| unlisted(folder, cause))?;
    let mut due = vec![folder.to_path_buf()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).map_err(|cause| unlisted(&directory, cause))? {
            let path = entry.map_err(|cause| unlisted(&directory, cause))?.path();
            let metadata = path.symlink_metadata().map_err(|cause| unlisted(&path, cause))?;
            if !(metadata.is_dir() || metadata.is_file()) || metadata.dev() != top.dev() {
                let reason = "is neither a file nor a folder of the array's own file system; such an array is not \
                              written in parts";
                return Err(StoreError::unsupported(&path, reason));
            }
            each(&TreeEntry {
                path: &path,
                name: path.strip_prefix(folder).unwrap_or(&path),
                is_directory: metadata.is_dir(),
                stamp: Stamp::from(&metadata),
                mode: metadata.mode(),
            })?;
            if metadata.is_dir() {
                due.push(path);
            }
        }
    }
    Ok(())
}

/// The files of a folder.
pub(super) fn sum_of(folder: &Path, is_counted: impl Fn(&Path) -> bool) -> Result<TreeSum, StoreError> {
    let mut sum = TreeSum::default();
    walk(folder, &mut |entry| {
        if !entry.is_directory && is_counted(entry.name) {
            sum.add(entry.name, entry.stamp);
        }
        Ok(())
    })?;
    Ok(sum)
}

fn unlisted(path: &Path, cause: std::io::Error) -> StoreError {
    match cause.kind() {
        std::io::ErrorKind::NotFound => changed(path, "it is gone"),
        _ => StoreError::io(path, 0, "list", cause),
    }
}

pub(super) fn changed(path: &Path, reason: &str) -> StoreError {
    StoreError::Changed {
        path: PathBuf::from(path),
        reason: reason.into(),
    }
}
