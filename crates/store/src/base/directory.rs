//! Names in directories, and what they lead to.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use rustix::fs::{openat, statat, statvfs, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::error::StoreError;

/// Device and inode: the same file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> FileId {
        FileId(stat.st_dev, stat.st_ino)
    }
}

/// What a name in a directory leads to; links are not followed.
pub(crate) fn id_at(dir: impl AsFd, name: impl Arg) -> Result<FileId, Errno> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| FileId::from(&found))
}

/// `<pid>-<random>`: a suffix no other process or call uses.
pub(crate) fn unique() -> String {
    format!("{}-{:016x}", std::process::id(), random())
}

/// A number that no other call in any process is likely to draw.
pub(crate) fn random() -> u64 {
    // A fork inherits the keys of its thread.
    RandomState::new().hash_one((process::id(), SystemTime::now()))
}

/// Opens a directory in another.
pub(crate) fn open_dir(dir: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// The directory that holds `path`.
pub(crate) fn parent_of(path: &Path) -> PathBuf {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// Bytes of a file, or of everything in a directory.
pub(crate) fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}

/// The device of a directory, and the bytes free on it.
pub(crate) fn device_of(directory: &Path) -> Result<(u64, u64), StoreError> {
    let error = |cause| StoreError::io(directory, 0, "stat the file system", cause);
    let device = std::fs::metadata(directory).map_err(error)?.dev();
    let space = statvfs(directory).map_err(|cause| StoreError::io(directory, 0, "stat the file system", cause))?;
    Ok((device, space.f_bavail.saturating_mul(space.f_frsize)))
}
