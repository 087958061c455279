//! Removing files that may lie in a volume: the name goes first, then the parts.

use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::description::Description;
use super::disk::part_path;
use super::locate::{find, home_above, home_of};
use super::stub::Stub;
use crate::locked::{id_at, parent_of, remove_at};
use crate::StoreError;

/// The disks whose parts go with the names in one directory and below.
pub(crate) struct Removing {
    home: PathBuf,
    description: Description,
    directories: Vec<Option<PathBuf>>,
}

impl Removing {
    /// Of the volume that an open directory lies in, if it does.
    pub(crate) fn of(directory: BorrowedFd<'_>) -> Option<Removing> {
        let path = fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok()?;
        Removing::at(&home_above(&path)?)
    }

    fn at(home: &Path) -> Option<Removing> {
        let description = Description::read(home).ok()?;
        let members = description.members.iter();
        Some(Removing {
            home: home.to_path_buf(),
            directories: members.map(|member| find(&description.id, member, &[])).collect(),
            description,
        })
    }

    /// The parts that go when this name does: none while the file has another name, and none of a copied stub.
    fn parts(&self, dir: BorrowedFd<'_>, name: impl Arg) -> Vec<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(dir, name, flags, Mode::empty()).map(fs::File::from) else {
            return vec![];
        };
        let Ok(found) = file.metadata() else {
            return vec![];
        };
        let sole = found.is_file() && found.nlink() == 1;
        match Stub::of(&file) {
            Ok(Some(stub)) if sole && stub.volume == self.description.id && stub.is_in(&found) => {
                let directories = self.directories.iter().flatten();
                directories.map(|directory| part_path(directory, &stub.file)).collect()
            }
            _ => vec![],
        }
    }
}

/// Removes a name that is no directory's, and the parts of what it stood for.
pub(crate) fn unlink<Name: Arg + Copy>(
    dir: BorrowedFd<'_>,
    name: Name,
    within: Option<&Removing>,
) -> std::result::Result<(), Errno> {
    let parts = within.map_or_else(Vec::new, |within| within.parts(dir, name));
    unlinkat(dir, name, AtFlags::empty())?;
    for part in parts {
        // One that stays has no stub any more: `check` finds it.
        let _ = fs::remove_file(part);
    }
    Ok(())
}

/// Removes a file. What is given back is still open: the disks have its space again when that goes.
///
/// # Errors
/// What the file system reports.
pub fn remove_file(path: &Path) -> Result<Vec<fs::File>> {
    let home = home_of(path);
    let removing = home.and_then(|home| Removing::at(&home));
    let parent = fs::File::open(parent_of(path))?;
    let name = path.file_name().unwrap_or_default();
    let parts = removing
        .as_ref()
        .map_or_else(Vec::new, |within| within.parts(parent.as_fd(), name));
    let open = std::iter::once(path).chain(parts.iter().map(PathBuf::as_path));
    let open = open.filter_map(|path| fs::File::open(path).ok()).collect();
    unlink(parent.as_fd(), name, removing.as_ref())?;
    Ok(open)
}

/// Renames a file within its volume, or where there is none; the parts of what it replaces go.
pub(super) fn rename_over(from: &Path, to: &Path) -> Result<()> {
    let removing = home_of(to).and_then(|home| Removing::at(&home));
    let parent = fs::File::open(parent_of(to))?;
    let name = to.file_name().unwrap_or_default();
    let mut parts = removing.map_or_else(Vec::new, |within| within.parts(parent.as_fd(), name));
    if id_at(rustix::fs::CWD, from) == id_at(&parent, name) {
        // It replaces itself.
        parts.clear();
    }
    fs::rename(from, to)?;
    for part in parts {
        let _ = fs::remove_file(part);
    }
    Ok(())
}

/// Removes a file, or a directory with everything in it.
///
/// # Errors
/// What the file system reports.
pub fn remove_tree(path: &Path) -> std::result::Result<(), StoreError> {
    let parent = fs::File::open(parent_of(path)).map_err(|cause| StoreError::io(path, 0, "remove", cause))?;
    let name = path.file_name().unwrap_or_default();
    remove_at(parent.as_fd(), name).map_err(|cause| StoreError::io(path, 0, "remove", cause))
}

impl std::fmt::Debug for Removing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Removing({})", self.home.display())
    }
}
