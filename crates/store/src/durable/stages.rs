//! Results of stages that a later run goes on with.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::locked::{remove_at, LockedDir};
use super::owner::{note_owner, OWNER};
use crate::StoreError;

/// Results of stages, in a directory of scratch.
pub(crate) const STAGES: &str = "outcore-resume-";
/// The file in a folder of stages that names what they are for.
pub(crate) const TARGET: &str = "target";

/// Whether a folder of this name is one of stages.
pub(crate) fn is_of_stages(name: &[u8]) -> bool {
    name.starts_with(STAGES.as_bytes())
}

/// A folder for results of stages that may have to be gone on with: it stays until it is removed.
pub struct StagesFolder(LockedDir);

impl StagesFolder {
    /// The folder of this name in the first directory, there already or new, for outputs at `target`.
    ///
    /// # Errors
    /// Another process is at work in it; what the file system reports.
    pub fn hold(dirs: &[PathBuf], name: &str, target: &Path) -> Result<StagesFolder, StoreError> {
        let none = || StoreError::Invalid("scratch needs at least one directory".into());
        let dir = dirs.first().ok_or_else(none)?;
        fs::create_dir_all(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause))?;
        let path = dir.join(format!("{STAGES}{name}"));
        let folder = LockedDir::at(&path)?
            .ok_or_else(|| StoreError::disturbed(&path, "another process is at work on the same outputs"))?;
        let note = path.join(TARGET);
        let noted = fs::write(&note, target.as_os_str().as_bytes());
        noted.map_err(|cause| StoreError::io(&note, 0, "write", cause))?;
        Ok(StagesFolder(folder))
    }

    /// Says that no other process can go on with the work.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn note_owner(&self) -> Result<(), StoreError> {
        note_owner(self.path())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes what is in it, for a new beginning.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn empty(&self) -> Result<(), StoreError> {
        let error = |cause| StoreError::io(self.path(), 0, "empty", cause);
        for entry in fs::read_dir(self.path()).map_err(error)?.flatten() {
            if ![TARGET, OWNER].map(Into::into).contains(&entry.file_name()) {
                let _ = remove_at(self.0.held(), entry.file_name().as_os_str());
            }
        }
        Ok(())
    }

    /// Removes it: what it was for is done.
    pub fn remove(&self) {
        self.0.remove();
    }
}
