//! Removing files that may lie in a volume: the name goes first, then the parts.
//!
//! What a name stands for is opened before the name goes, and its parts go only if no name is left then: one that got
//! another in between stays whole. What cannot be looked at, for want of descriptors say, is not removed.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::description::Description;
use super::disk::{part_path, DiskError};
use super::locate::{find, home_above, home_of};
use super::stub::{Id, Stub};
use crate::base::directory::parent_of;
use crate::StoreError;

/// The disks whose parts go with the names in one directory and below.
pub(crate) struct Removing {
    volume: Id,
    /// Those that are there.
    disks: Vec<PathBuf>,
}

/// A file of a volume whose name is going.
pub(crate) struct HeldParts {
    file: fs::File,
    /// It had one name.
    sole: bool,
    /// Each with its disk.
    parts: Vec<(PathBuf, PathBuf)>,
}

impl Removing {
    /// Of the volume that an open directory lies in, if it does.
    pub(crate) fn of(directory: BorrowedFd<'_>) -> Result<Option<Removing>> {
        // Where there is no /proc, nobody knows.
        let path = fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok();
        let home = path.and_then(|path| home_above(&path));
        home.map_or(Ok(None), |home| Removing::at(&home))
    }

    pub(crate) fn at(home: &Path) -> Result<Option<Removing>> {
        let description = match Description::read(home) {
            Ok(description) => description,
            Err(StoreError::Io { cause, .. }) if cause.kind() != ErrorKind::NotFound => {
                let reason = || Error::new(cause.kind(), cause.to_string());
                return Err(cause.raw_os_error().map_or_else(reason, Error::from_raw_os_error));
            }
            // Gone, or damaged: nobody knows of parts then.
            Err(_) => return Ok(None),
        };
        let mut disks = Vec::new();
        for member in &description.members {
            match find(&description.id, member, &[]) {
                Ok(path) => disks.push(path),
                // What it has is found by `check` when it is back.
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                Err(cause) => return Err(disk_error(&member.path, cause)),
            }
        }
        let volume = description.id;
        Ok(Some(Removing { volume, disks }))
    }

    /// What a name stands for, if that has parts; a copied stub has none.
    pub(crate) fn hold(&self, dir: BorrowedFd<'_>, name: impl Arg) -> Result<Option<HeldParts>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(dir, name, flags, Mode::empty()) {
            Ok(file) => fs::File::from(file),
            // A link, a socket, a device; whether it is there is said when it is removed.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::NOENT) => return Ok(None),
            Err(cause) => return Err(cause.into()),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(None);
        }
        let stub = match Stub::of(&file) {
            Ok(Some(stub)) if stub.volume == self.volume && stub.is_in(&found) => stub,
            Err(cause) if cause.kind() != ErrorKind::InvalidData => return Err(cause),
            _ => return Ok(None),
        };
        let parts = self.disks.iter();
        Ok(Some(HeldParts {
            sole: found.nlink() == 1,
            parts: parts.map(|disk| (disk.clone(), part_path(disk, &stub.file))).collect(),
            file,
        }))
    }
}

impl HeldParts {
    /// Removes the parts, after a name went, if that was the last.
    ///
    /// # Errors
    /// What hinders it, for the first part that stays; the others are gone. `check` finds it.
    pub(crate) fn let_go(&self) -> Result<()> {
        if !self.is_nameless()? {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (disk, part) in &self.parts {
            match fs::remove_file(part) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    outcome = outcome.and(Err(disk_error(disk, cause)));
                }
                _ => {}
            }
        }
        outcome
    }

    fn is_nameless(&self) -> Result<bool> {
        if self.file.metadata()?.nlink() == 0 {
            return Ok(true);
        }
        // NFS and FUSE give a file that is open when its last name goes one of theirs, until it is closed.
        let now = fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).unwrap_or_default();
        let name = now.file_name().unwrap_or_default().to_string_lossy();
        Ok(self.sole && (name.starts_with(".nfs") || name.starts_with(".fuse_hidden")))
    }
}

fn disk_error(disk: &Path, cause: Error) -> Error {
    let disk = disk.to_path_buf();
    Error::new(cause.kind(), DiskError { disk, cause })
}

/// Removes a name that is no directory's, and the parts of what it stood for.
pub(crate) fn unlink<Name: Arg + Copy>(dir: BorrowedFd<'_>, name: Name, within: Option<&Removing>) -> Result<()> {
    let held = within.map_or(Ok(None), |within| within.hold(dir, name))?;
    unlinkat(dir, name, AtFlags::empty())?;
    held.map_or(Ok(()), |held| held.let_go())
}

/// Removes a file. What is given back is still open: the disks have its space again when that goes.
///
/// # Errors
/// What the file system reports.
pub fn remove_file(path: &Path) -> Result<Vec<fs::File>> {
    let within = home_of(path).map_or(Ok(None), |home| Removing::at(&home))?;
    let parent = fs::File::open(parent_of(path))?;
    let name = path.file_name().unwrap_or_default();
    let held = match within {
        Some(within) => within.hold(parent.as_fd(), name)?,
        None => None,
    };
    let parts = held.iter().flat_map(|held| &held.parts).map(|(_, part)| part.as_path());
    let open = std::iter::once(path).chain(parts);
    let open = open.filter_map(|path| fs::File::open(path).ok()).collect();
    unlinkat(&parent, name, AtFlags::empty())?;
    held.map_or(Ok(()), |held| held.let_go())?;
    Ok(open)
}

/// Renames a file within its volume, or where there is none; the parts of what it replaces go.
pub(crate) fn rename_over(from: &Path, to: &Path) -> Result<()> {
    let within = home_of(to).map_or(Ok(None), |home| Removing::at(&home))?;
    let parent = fs::File::open(parent_of(to))?;
    let name = to.file_name().unwrap_or_default();
    let held = within.map_or(Ok(None), |within| within.hold(parent.as_fd(), name))?;
    fs::rename(from, to)?;
    held.map_or(Ok(()), |held| held.let_go())
}
