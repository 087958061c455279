//! Directories that belong to a living process: made, locked, and removed by whoever comes after its death.
//!
//! Invariant: what is in such a directory is written by the holder of its lock only, and removed under the lock only.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{flock, fstat, stat, unlinkat, AtFlags, Dir, FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::base::directory::{id_at, open_dir, parent_of, size_of, unique, FileId};
use crate::volume::{unlink, Removing};
use crate::StoreError;

/// How often a cleaner may take what has just been made before its maker gives up.
const ATTEMPTS_MAX: usize = 100;
/// How long a caller waits for a directory to be removed that is not wanted any more, and the entries that go in any case.
const PATIENCE: Duration = Duration::from_millis(250);
const ENTRIES_MIN: u32 = 128;

/// What a clean-up removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub count: u64,
    pub bytes: u64,
}

/// A directory that this process made and holds the lock of.
pub(crate) struct LockedDir {
    path: PathBuf,
    held: File,
}

impl LockedDir {
    /// A new directory in `parent`, for the eyes of its owner only.
    pub(crate) fn make(parent: &Path, prefix: &str) -> Result<LockedDir, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let path = parent.join(format!("{prefix}{}", unique()));
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|cause| StoreError::io(&path, 0, "create", cause))?;
            // Until it is locked it looks dead: a cleaner may hold it or have removed it, and then it is the cleaner's.
            if let Some(held) = lock(&path).map_err(|cause| StoreError::io(&path, 0, "lock", cause))? {
                return Ok(LockedDir { path, held });
            }
        }
        let reason = format!("{ATTEMPTS_MAX} new directories were removed by others before they could be locked");
        Err(StoreError::disturbed(parent, reason))
    }

    /// The directory of this name, there already or new; nothing when another process is at work in it.
    pub(crate) fn at(path: &Path) -> Result<Option<LockedDir>, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            match fs::DirBuilder::new().mode(0o700).create(path) {
                Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(StoreError::io(path, 0, "create", cause));
                }
                _ => {}
            }
            let held = lock(path).map_err(|cause| StoreError::io(path, 0, "lock", cause))?;
            if let Some(held) = held {
                let path = path.to_path_buf();
                return Ok(Some(LockedDir { path, held }));
            }
            // Removed between the two calls, or held by another.
            if path.symlink_metadata().is_ok() {
                return Ok(None);
            }
        }
        Err(StoreError::disturbed(path, "it is removed again and again"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn held(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// The directory it is in now, wherever its path leads.
    pub(crate) fn parent(&self) -> Result<OwnedFd, StoreError> {
        open_dir(&self.held, "..").map_err(|cause| StoreError::io(&self.path, 0, "open the directory of", cause))
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    fn is_in(&self, parent: &OwnedFd) -> bool {
        let own = fstat(&self.held).map(|own| FileId::from(&own));
        own.is_ok_and(|own| id_at(parent, self.name()) == Ok(own))
    }

    /// Its parent, open, when both are still where they were made.
    pub(crate) fn check(&self) -> Result<OwnedFd, StoreError> {
        let parent = self.parent()?;
        if !self.is_in(&parent) {
            return Err(StoreError::disturbed(&self.path, "it was moved or removed"));
        }
        let named = parent_of(&self.path);
        let same = fstat(&parent).and_then(|held| Ok(FileId::from(&held) == FileId::from(&stat(&named)?)));
        if same != Ok(true) {
            return Err(StoreError::disturbed(&named, "this directory was moved or removed"));
        }
        Ok(parent)
    }

    /// Leaves it to the user under another name, which cleaners do not know. It is nobody's then.
    pub(crate) fn give_up(&self, name: &str) -> Result<PathBuf, StoreError> {
        let parent = self.parent()?;
        rustix::fs::renameat(&parent, self.name(), &parent, name)
            .map_err(|cause| StoreError::io(&self.path, 0, "rename", cause))?;
        Ok(self.path.with_file_name(name))
    }

    /// Removes it with what is in it, also where its parent has been renamed.
    pub(crate) fn remove(&self) {
        if let Ok(parent) = self.parent() {
            if self.is_in(&parent) {
                let _ = remove_at(parent.as_fd(), self.name());
            }
        }
    }

    /// As `remove`. Of many files the rest is removed by a thread of its own, which has the lock until all are gone; the rest
    /// that a process leaves at its end is removed by the next that cleans up.
    pub(crate) fn remove_soon(&self) {
        let Ok(parent) = self.parent() else { return };
        if !self.is_in(&parent) {
            return;
        }
        let (begin, mut entries) = (Instant::now(), 0);
        let mut goes_on = || {
            entries += 1;
            entries <= ENTRIES_MIN || begin.elapsed() < PATIENCE
        };
        match remove_while(parent.as_fd(), self.name(), &mut goes_on) {
            Err(cause) if cause.kind() == ErrorKind::TimedOut => {}
            _ => return,
        }
        if let Ok(held) = self.held.try_clone() {
            let name = self.name().to_os_string();
            let rest = move || {
                let _held = held;
                let _ = remove_at(parent.as_fd(), name.as_os_str());
            };
            let _ = std::thread::Builder::new().name("outcore-remove".into()).spawn(rest);
        }
    }
}

/// Locks what is at `path` for this process; nothing when another holds it or has removed it.
pub(crate) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // The name may have gone, or gone on to another, between opening and locking.
            let held = FileId::from(&fstat(&file)?);
            Ok((id_at(rustix::fs::CWD, path) == Ok(held)).then_some(file))
        }
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

/// Removes a file, or a directory with everything in it; what another removes meanwhile is gone as well.
///
/// Parts that a volume has of a file go with it.
pub(crate) fn remove_at<Name: Arg + Copy>(dir: BorrowedFd<'_>, name: Name) -> std::io::Result<()> {
    remove_while(dir, name, &mut || true)
}

/// As `remove_at`, asking before each entry.
///
/// # Errors
/// `TimedOut` where it does not go on.
pub(crate) fn remove_while<Name: Arg + Copy>(
    dir: BorrowedFd<'_>,
    name: Name,
    goes_on: &mut dyn FnMut() -> bool,
) -> std::io::Result<()> {
    remove_within(dir, name, Removing::of(dir)?.as_ref(), goes_on)
}

fn remove_within<Name: Arg + Copy>(
    dir: BorrowedFd<'_>,
    name: Name,
    volume: Option<&Removing>,
    goes_on: &mut dyn FnMut() -> bool,
) -> std::io::Result<()> {
    if !goes_on() {
        return Err(ErrorKind::TimedOut.into());
    }
    match unlink(dir, name, volume) {
        Err(cause) if matches!(Errno::from_io_error(&cause), Some(Errno::ISDIR | Errno::PERM)) => {}
        done => return done,
    }
    let below = open_dir(dir, name)?;
    for entry in Dir::read_from(&below)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            match remove_within(below.as_fd(), entry.file_name(), volume, goes_on) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                done => done?,
            }
        }
    }
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

/// Removes what dead processes left in `dir`, of the names that `ours` picks, after `rescue` has taken from each what
/// must stay. A live process holds its lock.
pub(crate) fn clean_where(
    dir: &Path,
    ours: impl Fn(&str) -> bool,
    rescue: impl Fn(&Path) -> Result<(), StoreError>,
) -> Result<Cleaned, StoreError> {
    let mut cleaned = Cleaned::default();
    let list = |cause| StoreError::io(dir, 0, "list", cause);
    let held = File::open(dir).map_err(list)?;
    for entry in fs::read_dir(dir).map_err(list)?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if !name.to_str().is_some_and(&ours) {
            continue;
        }
        if let Ok(Some(_held)) = lock(&path) {
            rescue(&path)?;
            let bytes = size_of(&path);
            if remove_at(held.as_fd(), name.as_os_str()).is_ok() {
                cleaned.count += 1;
                cleaned.bytes += bytes;
            }
        }
    }
    Ok(cleaned)
}

/// Removes a file, or a directory with everything in it.
///
/// # Errors
/// What the file system reports.
pub fn remove_tree(path: &Path) -> Result<(), StoreError> {
    let parent = File::open(parent_of(path)).map_err(|cause| StoreError::io(path, 0, "remove", cause))?;
    let name = path.file_name().unwrap_or_default();
    remove_at(parent.as_fd(), name).map_err(|cause| StoreError::io(path, 0, "remove", cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(files: usize) -> (tempfile::TempDir, PathBuf, LockedDir) {
        let dir = tempfile::tempdir().unwrap();
        let folder = LockedDir::make(dir.path(), ".test-").unwrap();
        for number in 0..files {
            let below = folder.path().join(format!("{}", number % 7));
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join(format!("{number}")), "x").unwrap();
        }
        let path = folder.path().to_path_buf();
        (dir, path, folder)
    }

    #[test]
    fn removal_ends_where_it_is_told_and_goes_on_from_there() {
        let (dir, path, folder) = folder_of(100);
        let (parent, mut left) = (File::open(dir.path()).unwrap(), 30);
        let mut goes_on = || {
            left -= 1;
            left >= 0
        };
        let ended = remove_while(parent.as_fd(), folder.name(), &mut goes_on).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::TimedOut);
        assert!(path.exists());
        remove_at(parent.as_fd(), folder.name()).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn few_files_are_gone_when_the_caller_goes_on() {
        let (_dir, path, folder) = folder_of(ENTRIES_MIN as usize / 2);
        folder.remove_soon();
        assert!(!path.exists());
    }

    #[test]
    fn cleaners_leave_what_is_being_removed() {
        let (dir, path, folder) = folder_of(10);
        let held = folder.held.try_clone().unwrap();
        drop(folder);
        let ours = |name: &str| name.starts_with(".test-");
        assert_eq!(clean_where(dir.path(), ours, |_| Ok(())).unwrap().count, 0);
        drop(held);
        assert_eq!(clean_where(dir.path(), ours, |_| Ok(())).unwrap().count, 1);
        assert!(!path.exists());
    }
}
