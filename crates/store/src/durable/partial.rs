//! Outputs while they are written: in a locked directory beside their name, and swapped in when complete.
//!
//! Of the directory `.outcore-partial-<pid>-<random>` an output takes three names:
//! - `new`, the output. When names are exchanged, what the output replaces comes to stand here.
//! - `old`, what is replaced, on file systems that cannot exchange names.
//! - `name`, the name that `old` had, written before it is moved: who cleans up after a dead process gives it back.
//!
//! An output that comes with a companion, a file of another name beside it, takes more: `with-new` and `with-old`, the companion
//! and what that replaces; `with` or `with-brings`, the name of these, written before anything is moved, `with-brings` if there
//! is a new one. Such an output gets its name last, so that as long as it is `new` all can be put back.
//!
//! So a name leads to what it led to before, or to the finished output, whenever the process dies; the name of a directory
//! may be free for a moment where names cannot be exchanged, until the next clean-up.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{
    chmodat, fsync, linkat, openat, renameat, renameat_with, statat, unlinkat, AtFlags, Mode, OFlags, RenameFlags,
    Stat, CWD,
};
use rustix::io::Errno;

use crate::base::directory::{id_at, open_dir, parent_of, unique, FileId};
use crate::base::words::JSON_MAX;
use crate::durable::locked::{clean_where, Cleaned, LockedDir};
use crate::{Io, StoreError};

const MARK: &str = ".outcore-partial-";
const REPLACED: &str = "outcore-replaced-";
pub(crate) const NEW: &str = "new";
const OLD: &str = "old";
const NAME: &str = "name";
const WITH: &str = "with";
const WITH_BRINGS: &str = "with-brings";
const WITH_NEW: &str = "with-new";
const WITH_OLD: &str = "with-old";
const NAME_BYTES_MAX: u64 = 255;

/// An output that has not got its name yet, with what it replaces until that is settled. Removed on drop unless published.
pub struct Partial {
    folder: LockedDir,
    target: PathBuf,
    overwrite: bool,
    path: PathBuf,
    /// What was made as `new`.
    made: FileId,
    /// What is unfinished is left for whoever goes on with it.
    stays: bool,
    /// The same, open, if it is a directory.
    directory: Option<OwnedFd>,
    state: Mutex<PartialState>,
}

/// Where the output is, and what it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartialState {
    /// In its folder.
    Written,
    /// In its folder; what it replaces is `old`, and the name is free.
    Between,
    /// Under its name, which was free.
    Fresh,
    /// Under its name; what it replaced is `new`.
    Exchanged,
    /// Under its name; what it replaced is `old`.
    Replaced,
    /// Published, removed, or left to the user.
    Gone,
}

impl Partial {
    /// A place for an output beside `target`, whose file or directory `make` makes.
    pub(crate) fn new<T>(
        target: &Path,
        overwrite: bool,
        make: impl FnOnce(&Path) -> Result<T, StoreError>,
    ) -> Result<(Partial, T), StoreError> {
        let folder = LockedDir::make(&parent_of(target), MARK)?;
        Partial::within(folder, target, overwrite, false, make)
    }

    /// As `new`; within `folder`, if there is one, which then stays unless the output is published.
    pub(crate) fn new_in<T>(
        folder: Option<LockedDir>,
        target: &Path,
        overwrite: bool,
        make: impl FnOnce(&Path) -> Result<T, StoreError>,
    ) -> Result<(Partial, T), StoreError> {
        match folder {
            Some(folder) => Partial::within(folder, target, overwrite, true, make),
            None => Partial::new(target, overwrite, make),
        }
    }

    /// As `new`, in a folder that may hold the output already, and that stays if `stays` says so unless the output is
    /// published.
    pub(crate) fn within<T>(
        folder: LockedDir,
        target: &Path,
        overwrite: bool,
        stays: bool,
        make: impl FnOnce(&Path) -> Result<T, StoreError>,
    ) -> Result<(Partial, T), StoreError> {
        let path = folder.path().join(NEW);
        let look = |made| {
            let stat = statat(folder.held(), NEW, AtFlags::SYMLINK_NOFOLLOW)?;
            let directory = is_directory(&stat).then(|| open_dir(folder.held(), NEW)).transpose()?;
            Ok((made, FileId::from(&stat), directory))
        };
        let look = |made| look(made).map_err(|cause: Errno| StoreError::io(&path, 0, "look at", cause));
        let (result, made, directory) = make(&path).and_then(look).inspect_err(|_| {
            if !stays {
                folder.remove();
            }
        })?;
        let partial = Partial {
            target: target.to_path_buf(),
            overwrite,
            path,
            made,
            directory,
            state: Mutex::new(PartialState::Written),
            stays,
            folder,
        };
        Ok((partial, result))
    }

    /// Where the output is written.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn state(&self) -> MutexGuard<'_, PartialState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn name(&self) -> &OsStr {
        self.target.file_name().unwrap_or_default()
    }

    fn error(&self, action: &'static str) -> impl Fn(Errno) -> StoreError + '_ {
        move |cause| StoreError::io(&self.target, 0, action, cause)
    }

    /// Where the output will be.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Refuses an output that is not where it was made; the directory it will appear in, open.
    pub(crate) fn check(&self) -> Result<OwnedFd, StoreError> {
        let parent = self.folder.check().map_err(|error| error.at_output(&self.target))?;
        if id_at(self.folder.held(), NEW) != Ok(self.made) {
            let error = StoreError::disturbed(&self.path, "it was moved, removed or replaced");
            return Err(error.at_output(&self.target));
        }
        Ok(parent)
    }

    /// The output's directory, open, if it is one.
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.directory.as_ref().map(AsFd::as_fd)
    }

    /// Gives the output its name, atomically where the file system can, and keeps what had it.
    pub(crate) fn place(&self, io: &Io) -> Result<(), StoreError> {
        let parent = self.check()?;
        let there = statat(&parent, self.name(), AtFlags::SYMLINK_NOFOLLOW).ok();
        if let Some(there) = &there {
            if !self.overwrite {
                return Err(self.exists());
            }
            // Hours may have passed since this was checked first.
            check_replaceable(&self.target, self.directory.is_some())?;
            self.take_mode(there)?;
        }
        io.before_rename()
            .map_err(|cause| StoreError::io(&self.target, 0, "rename into place", cause))?;
        let (flags, done) = match there {
            Some(_) => (RenameFlags::EXCHANGE, PartialState::Exchanged),
            None => (RenameFlags::NOREPLACE, PartialState::Fresh),
        };
        match renameat_with(self.folder.held(), NEW, &parent, self.name(), flags) {
            Ok(()) => *self.state() = done,
            Err(Errno::INVAL | Errno::NOSYS) => self.place_plainly(&parent)?,
            Err(Errno::EXIST) => return Err(self.exists()),
            Err(cause) => return Err(self.error("rename into place")(cause)),
        }
        Ok(())
    }

    fn exists(&self) -> StoreError {
        StoreError::Exists {
            path: self.target.clone(),
        }
    }

    /// The permissions of what is replaced, where the file system has them. The owner's own stay for a directory, which
    /// could not be moved without.
    fn take_mode(&self, there: &Stat) -> Result<(), StoreError> {
        let own = if self.directory.is_some() {
            Mode::RWXU
        } else {
            Mode::empty()
        };
        let mode = Mode::from_raw_mode(there.st_mode) | own;
        match chmodat(self.folder.held(), NEW, mode, AtFlags::empty()) {
            Ok(()) | Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(cause) => Err(self.error("set the permissions of")(cause)),
        }
    }

    /// For file systems without exchange: files are replaced atomically, directories in two steps.
    fn place_plainly(&self, parent: &OwnedFd) -> Result<(), StoreError> {
        let error = self.error("rename into place");
        let folder = self.folder.held();
        let into_place = || renameat(folder, NEW, parent, self.name()).map_err(&error);
        let Ok(there) = statat(parent, self.name(), AtFlags::SYMLINK_NOFOLLOW) else {
            into_place()?;
            *self.state() = PartialState::Fresh;
            return Ok(());
        };
        if !self.overwrite {
            return Err(self.exists());
        }
        let linked = !is_directory(&there) && linkat(parent, self.name(), folder, OLD, AtFlags::empty()).is_ok();
        if !linked {
            note(&self.folder, NAME, self.name())
                .map_err(|cause| StoreError::io(&self.target, 0, "rename into place", cause))?;
            renameat(parent, self.name(), folder, OLD).map_err(&error)?;
            *self.state() = PartialState::Between;
        }
        into_place()?;
        *self.state() = PartialState::Replaced;
        Ok(())
    }

    /// Where the companion of the output is written, if it has one.
    pub(crate) fn companion(&self) -> PathBuf {
        self.folder.path().join(WITH_NEW)
    }

    /// Gives the output its name, durably, and its companion the name `beside`, if it `brings` one; that of the output which is
    /// replaced goes with it. As long as a process that dies has not given the last name, who cleans up puts all back. `false`
    /// where neither has a companion: nothing is done then.
    ///
    /// # Errors
    /// A name is taken, or cannot be given. Everything is as it was then, or will be once somebody cleans up.
    pub(crate) fn publish_with(&self, beside: &Path, brings: bool, io: &Io) -> Result<bool, StoreError> {
        let parent = self.check()?;
        let (name, with) = (self.name(), beside.file_name().unwrap_or_default());
        let look = |name: &OsStr| statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let (there, with_there) = (look(name), look(with));
        let refuse = |path: &Path| {
            let path = path.to_path_buf();
            if self.overwrite {
                check_replaceable(&path, false)
            } else {
                Err(StoreError::Exists { path })
            }
        };
        if let Some(there) = &there {
            refuse(&self.target)?;
            self.take_mode(there)?;
        }
        if brings && with_there.is_some() {
            refuse(beside)?;
        }
        // A file of that name beside no output is nobody's companion.
        let goes = with_there.is_some_and(|stat| !is_directory(&stat)) && (brings || there.is_some());
        if !brings && !goes {
            return Ok(false);
        }
        let error = |cause| StoreError::io(&self.target, 0, "rename into place", cause);
        note(&self.folder, NAME, name).map_err(error)?;
        note(&self.folder, if brings { WITH_BRINGS } else { WITH }, with).map_err(error)?;
        let (folder, parent) = (self.folder.held(), parent.as_fd());
        let steps = [
            there.map(|_| ((parent, name), (folder, OLD.as_ref()))),
            goes.then(|| ((parent, with), (folder, WITH_OLD.as_ref()))),
            brings.then(|| ((folder, WITH_NEW.as_ref()), (parent, with))),
            Some(((folder, NEW.as_ref()), (parent, name))),
        ];
        let mut done = vec![];
        let mut placed = Ok(());
        for (from, to) in steps.into_iter().flatten() {
            let moved = io
                .before_rename()
                .and_then(|()| Ok(move_to(&from.0, from.1, &to.0, to.1)?));
            match moved {
                Ok(()) => done.push((from, to)),
                Err(cause) => {
                    placed = Err(error(cause));
                    break;
                }
            }
        }
        let placed = placed.and_then(|()| self.sync_name(io));
        let Err(cause) = placed else {
            self.discard_replaced();
            return Ok(true);
        };
        let back = |((from, name), (to, new)): &((BorrowedFd<'_>, &OsStr), (BorrowedFd<'_>, &OsStr))| {
            move_to(to, new, from, name).is_ok()
        };
        if !done.iter().rev().all(back) {
            // It stays for who cleans up.
            *self.state() = PartialState::Gone;
        }
        Err(cause)
    }

    /// Where what it replaced is while it stands under its name.
    pub(crate) fn replaced(&self) -> Option<PathBuf> {
        let old = match *self.state() {
            PartialState::Exchanged => NEW,
            PartialState::Replaced => OLD,
            _ => return None,
        };
        Some(self.folder.path().join(old))
    }

    /// Makes the name durable.
    pub(crate) fn sync_name(&self, io: &Io) -> Result<(), StoreError> {
        io.sync_names(&self.folder.parent()?, &parent_of(&self.target))
    }

    /// Undoes `place`: the name leads to what it led to before.
    pub(crate) fn take_back(&self, io: &Io) -> Result<(), StoreError> {
        let mut state = self.state();
        if matches!(*state, PartialState::Written | PartialState::Gone) {
            return Ok(());
        }
        let parent = self.folder.parent()?;
        let (folder, name, error) = (self.folder.held(), self.name(), self.error("take back"));
        if *state != PartialState::Between {
            if id_at(&parent, name) != Ok(self.made) {
                return Err(StoreError::disturbed(&self.target, "it is not the output any more"));
            }
            io.before_rename()
                .map_err(|cause| StoreError::io(&self.target, 0, "take back", cause))?;
        }
        match *state {
            PartialState::Exchanged => {
                renameat_with(folder, NEW, &parent, name, RenameFlags::EXCHANGE).map_err(&error)?;
            }
            PartialState::Fresh => renameat(&parent, name, folder, NEW).map_err(&error)?,
            PartialState::Replaced if self.directory.is_none() => {
                renameat(folder, OLD, &parent, name).map_err(&error)?
            }
            PartialState::Replaced => {
                renameat(&parent, name, folder, NEW).map_err(&error)?;
                *state = PartialState::Between;
                renameat(folder, OLD, &parent, name).map_err(&error)?;
            }
            _ => renameat(folder, OLD, &parent, name).map_err(&error)?,
        }
        *state = PartialState::Written;
        Ok(())
    }

    /// Where what the output replaced is left, when it cannot be taken back.
    pub(crate) fn leave(&self) -> (PathBuf, Option<PathBuf>) {
        let mut state = self.state();
        let old = match *state {
            PartialState::Exchanged => Some(NEW),
            PartialState::Between | PartialState::Replaced => Some(OLD),
            _ => None,
        };
        let left = old.map(|old| {
            let folder = self.folder.give_up(&format!("{REPLACED}{}", unique()));
            let folder = folder.unwrap_or_else(|_| {
                // Still under a name that cleaners know: it stays locked as long as the process lives.
                let _ = self.folder.held().try_clone_to_owned().map(IntoRawFd::into_raw_fd);
                self.folder.path().to_path_buf()
            });
            folder.join(old)
        });
        if left.is_none() {
            self.folder.remove();
        }
        *state = PartialState::Gone;
        (self.target.clone(), left)
    }

    /// Lets go of what the output replaced: it is published.
    pub(crate) fn discard_replaced(&self) {
        *self.state() = PartialState::Gone;
        // A part of it must not get its name back.
        let _ = unlinkat(self.folder.held(), NAME, AtFlags::empty());
        self.folder.remove();
    }

    /// Removes what was written.
    pub(crate) fn discard(&self) {
        self.let_go(self.stays);
    }

    /// Removes it, also where others could go on with it.
    pub(crate) fn give_up(&self) {
        self.let_go(false);
    }

    fn let_go(&self, stays: bool) {
        let mut state = self.state();
        if *state == PartialState::Written {
            if !stays {
                self.folder.remove_soon();
            }
            *state = PartialState::Gone;
        }
    }
}

/// Writes down a name, durably.
fn note(folder: &LockedDir, file: &str, name: &OsStr) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mut file = fs::File::from(openat(folder.held(), file, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    Ok(fsync(folder.held())?)
}

/// Gives a file a name that nothing has.
fn move_to<A: AsFd, B: AsFd>(from: &A, name: &OsStr, to: &B, new: &OsStr) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // Where names cannot be kept from being replaced, it is looked at first.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(_) => renameat(from, name, to, new),
        },
        done => done,
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.discard();
    }
}

fn is_directory(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Removes the unfinished outputs that dead processes left in `dir`; what they had put aside gets its name back, where
/// nothing has taken it.
///
/// # Errors
/// The directory cannot be listed, or an output that was replaced cannot be put back.
pub fn clean_partials(dir: &Path) -> Result<Cleaned, StoreError> {
    clean_where(
        dir,
        |name| name.starts_with('.') && name.contains(MARK),
        |folder| restore(dir, folder),
    )
}

/// Gives `old` the name it had, where that is free, and companions theirs.
fn restore(dir: &Path, folder: &Path) -> Result<(), StoreError> {
    let is_there = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let (brought, goes) = (noted_name(folder, WITH_BRINGS), noted_name(folder, WITH));
    if let Some(with) = brought.as_ref().or(goes.as_ref()).filter(|_| is_there(NEW)) {
        let error = |cause| StoreError::io(&dir.join(with), 0, "restore", cause);
        if brought.is_some() && !is_there(WITH_NEW) {
            renameat(CWD, dir.join(with), CWD, folder.join(WITH_NEW)).map_err(error)?;
        }
        if is_there(WITH_OLD) {
            move_to(
                &CWD,
                folder.join(WITH_OLD).as_os_str(),
                &CWD,
                dir.join(with).as_os_str(),
            )
            .map_err(error)?;
        }
    }
    let old = folder.join(OLD);
    let Some(name) = noted_name(folder, NAME).filter(|_| is_there(OLD)) else {
        return Ok(());
    };
    let target = dir.join(name);
    match renameat_with(CWD, &old, CWD, &target, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) if target.symlink_metadata().is_ok() => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) => renameat(CWD, &old, CWD, &target),
        Err(cause) => Err(cause),
    }
    .map_err(|cause| StoreError::io(&target, 0, "restore", cause))
}

fn noted_name(folder: &Path, file: &str) -> Option<OsString> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(openat(CWD, folder.join(file), flags, Mode::empty()).ok()?);
    let mut name = Vec::new();
    file.take(NAME_BYTES_MAX).read_to_end(&mut name).ok()?;
    let plain = !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
    plain.then(|| OsString::from_vec(name))
}

/// Refuses to put an output in the place of something else: a `.npy` file in that of a directory, an array's directory in
/// that of anything but an array's.
pub(crate) fn check_replaceable(target: &Path, by_directory: bool) -> Result<(), StoreError> {
    if !by_directory {
        let is_directory = target.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let refused = StoreError::format(target, "is a directory; it is not replaced by a .npy file");
        return if is_directory { Err(refused) } else { Ok(()) };
    }
    let json = target.join("zarr.json");
    let small = fs::metadata(&json).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= JSON_MAX);
    let text = if small {
        fs::read(&json).unwrap_or_default()
    } else {
        vec![]
    };
    let document: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    match document["node_type"].as_str() {
        Some("array") => Ok(()),
        Some("group") => Err(StoreError::format(
            target,
            "is a Zarr group; it is not replaced by an array",
        )),
        _ => Err(StoreError::format(
            target,
            "is not a Zarr array; it is not replaced by one",
        )),
    }
}

#[cfg(test)]
mod tests;
