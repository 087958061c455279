//! Outputs while they are written: beside their name, locked, and swapped in when complete.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{flock, renameat_with, FlockOperation, RenameFlags, CWD};

use crate::zarr::JSON_MAX;
use crate::StoreError;

const MARK: &str = ".outcore-partial-";
const REPLACED: &str = ".outcore-replaced-";

/// What a clean-up removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub count: u64,
    pub bytes: u64,
}

/// The name of a file or directory that is being written, with its lock. Removed on drop unless put in place.
pub(crate) struct Partial {
    path: PathBuf,
    target: PathBuf,
    overwrite: bool,
    lock: Option<File>,
}

/// `<pid>-<random>`: a suffix no other process or call uses.
pub(crate) fn unique() -> String {
    format!(
        "{}-{:016x}",
        std::process::id(),
        RandomState::new().build_hasher().finish()
    )
}

/// Locks what is at `path` for this process; false when another holds it.
pub(crate) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // A cleaner may have removed the name between its creation and the lock.
            let same = fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|held| held.ino() == now.ino()));
            Ok(same.then_some(file))
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

impl Partial {
    /// A fresh name beside `target`, made by `make`.
    pub(crate) fn new(
        target: &Path,
        overwrite: bool,
        make: impl Fn(&Path) -> Result<(), StoreError>,
    ) -> Result<Partial, StoreError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let path = target.with_file_name(format!(".{name}{MARK}{}", unique()));
            make(&path)?;
            let error = |cause| StoreError::io(&path, 0, "lock", cause);
            if let Some(held) = lock(&path).map_err(error)? {
                return Ok(Partial {
                    path,
                    target: target.to_path_buf(),
                    overwrite,
                    lock: Some(held),
                });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the finished output its name, atomically, and makes the name durable.
    pub(crate) fn put_in_place(&mut self) -> Result<(), StoreError> {
        let error = |cause: rustix::io::Errno| match cause {
            rustix::io::Errno::EXIST => StoreError::Exists {
                path: self.target.clone(),
            },
            cause => StoreError::io(&self.target, 0, "rename into place", cause),
        };
        let swapped = self.overwrite && self.target.symlink_metadata().is_ok();
        if swapped {
            // Hours may have passed since this was checked first.
            check_replaceable(&self.target, self.path.is_dir())?;
        }
        let flags = if swapped {
            RenameFlags::EXCHANGE
        } else {
            RenameFlags::NOREPLACE
        };
        match renameat_with(CWD, &self.path, CWD, &self.target, flags) {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => self.rename_plainly()?,
            Err(cause) => return Err(error(cause)),
            Ok(()) if swapped => remove(&self.path),
            Ok(()) => {}
        }
        self.lock = None;
        let parent = parent_of(&self.target);
        let sync = || File::open(&parent)?.sync_all();
        sync().map_err(|cause| StoreError::io(&parent, 0, "sync", cause))
    }

    /// For file systems without exchange: files are replaced atomically, directories in two steps.
    fn rename_plainly(&self) -> Result<(), StoreError> {
        let exists = self.target.symlink_metadata();
        if exists.is_ok() && !self.overwrite {
            return Err(StoreError::Exists {
                path: self.target.clone(),
            });
        }
        let rename = |from: &Path, to: &Path| {
            fs::rename(from, to).map_err(|cause| StoreError::io(&self.target, 0, "rename into place", cause))
        };
        if !exists.is_ok_and(|metadata| metadata.is_dir()) {
            return rename(&self.path, &self.target);
        }
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        let aside = self.target.with_file_name(format!(".{name}{REPLACED}{}", unique()));
        // While it is aside it is this process's; should that die, a cleaner gives it its name back.
        let held = lock(&self.target).map_err(|cause| StoreError::io(&self.target, 0, "lock", cause))?;
        rename(&self.target, &aside)?;
        if let Err(error) = rename(&self.path, &self.target) {
            rename(&aside, &self.target)?;
            return Err(error);
        }
        remove(&aside);
        drop(held);
        Ok(())
    }

    /// Removes what was written.
    pub(crate) fn discard(&mut self) {
        if self.lock.take().is_some() {
            remove(&self.path);
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.discard();
    }
}

/// The directory that holds `path`.
pub(crate) fn parent_of(path: &Path) -> PathBuf {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

fn remove(path: &Path) {
    let _ = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

/// Bytes of a file, or of everything in a directory.
fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| size_of(&entry.path()))
        .sum()
}

/// Removes what dead processes left in `dir`, of the names that `ours` picks. A live process holds its lock.
pub(crate) fn clean_where(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<Cleaned, StoreError> {
    let mut cleaned = Cleaned::default();
    let entries = fs::read_dir(dir).map_err(|cause| StoreError::io(dir, 0, "list", cause))?;
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if !name.to_str().is_some_and(&ours) || path.is_symlink() {
            continue;
        }
        if let Ok(Some(_held)) = lock(&path) {
            cleaned.count += 1;
            cleaned.bytes += size_of(&path);
            remove(&path);
        }
    }
    Ok(cleaned)
}

/// Removes the unfinished outputs that dead processes left in `dir`; what they had put aside gets its name back, where
/// nothing has taken it.
pub fn clean_partials(dir: &Path) -> Result<Cleaned, StoreError> {
    restore_replaced(dir)?;
    clean_where(dir, |name| {
        name.starts_with('.') && (name.contains(MARK) || name.contains(REPLACED))
    })
}

fn restore_replaced(dir: &Path) -> Result<(), StoreError> {
    let entries = fs::read_dir(dir).map_err(|cause| StoreError::io(dir, 0, "list", cause))?;
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some((target, _)) = name
            .to_str()
            .and_then(|name| name.strip_prefix('.')?.split_once(REPLACED))
        else {
            continue;
        };
        let target = dir.join(target);
        if let (Ok(Some(_held)), Err(_)) = (lock(&path), target.symlink_metadata()) {
            fs::rename(&path, &target).map_err(|cause| StoreError::io(&target, 0, "restore", cause))?;
        }
    }
    Ok(())
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
mod tests {
    use super::*;

    fn array(path: &Path, content: &str) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("zarr.json"), r#"{"node_type": "array"}"#).unwrap();
        fs::write(path.join("c"), content).unwrap();
    }

    fn content(path: &Path) -> String {
        fs::read_to_string(path.join("c")).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_directory_is_replaced_in_two_steps_where_names_cannot_be_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.zarr");
        array(&target, "old");
        let mut partial = Partial::new(&target, true, |path| {
            array(path, "new");
            Ok(())
        })
        .unwrap();
        partial.rename_plainly().unwrap();
        partial.lock = None;
        assert_eq!(
            (content(&target), names(dir.path())),
            ("new".into(), vec!["x.zarr".into()])
        );
    }

    #[test]
    fn what_a_dead_process_put_aside_gets_its_name_back() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.zarr");
        array(&dir.path().join(format!(".x.zarr{REPLACED}1-a")), "old");
        clean_partials(dir.path()).unwrap();
        assert_eq!(content(&target), "old");
        // One whose name has been taken since is superfluous.
        array(&dir.path().join(format!(".x.zarr{REPLACED}1-b")), "older");
        clean_partials(dir.path()).unwrap();
        assert_eq!(
            (content(&target), names(dir.path())),
            ("old".into(), vec!["x.zarr".into()])
        );
    }

    #[test]
    fn only_an_array_is_replaced_by_an_array() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.zarr");
        array(&target, "old");
        assert!(check_replaceable(&target, true).is_ok());
        for json in [r#"{"node_type": "group"}"#, "{", ""] {
            fs::write(target.join("zarr.json"), json).unwrap();
            let error = check_replaceable(&target, true).unwrap_err();
            assert_eq!(error.code(), "format", "{error}");
        }
        assert!(check_replaceable(&target, false).is_err());
    }
}
