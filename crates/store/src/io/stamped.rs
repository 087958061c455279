//! Opening the file that was stamped.

use std::io::ErrorKind;
use std::path::Path;

use super::{File, Io};
use crate::backend::stamp::Stamp;
use crate::backend::Mode;
use crate::StoreError;

impl Stamp {
    /// Opens a file for reading, and says what it was then.
    pub(crate) fn opened(path: &Path, io: &Io) -> Result<(Stamp, File), StoreError> {
        let stamp = Stamp::settled(path)?;
        let file = stamp.open(path, io)?;
        Ok((stamp, file))
    }

    /// Opens the file at `path` for reading, if that still is the file that was stamped; its bytes are not looked at.
    pub(crate) fn open(&self, path: &Path, io: &Io) -> Result<File, StoreError> {
        let changed = |reason: &str| StoreError::Changed {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        if let Some(file) = io.open_remote(path, Some(*self)) {
            return Ok(file);
        }
        match io.open(path, Mode::Read) {
            Ok(file) if file.identity() == Some((self.device, self.inode)) => Ok(file),
            Ok(_) => Err(changed("replaced")),
            Err(StoreError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Err(changed("it is gone")),
            Err(error) => Err(error),
        }
    }
}
