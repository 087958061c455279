//! What a file was when it was opened: equal stamps mean equal bytes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::StoreError;

/// Inode, modification time and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    modified_ns: i128,
    pub bytes: u64,
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Result<Stamp, StoreError> {
        Ok(Stamp::from(
            &std::fs::metadata(path).map_err(|cause| StoreError::io(path, 0, "stat", cause))?,
        ))
    }

    /// `path@stamp`, the identity of a source.
    pub(crate) fn name(&self, path: &Path) -> String {
        let Stamp {
            device,
            inode,
            modified_ns,
            bytes,
        } = self;
        format!("{}@{device}:{inode}:{modified_ns}:{bytes}", path.display())
    }

    /// Refuses a path that is no longer what it was.
    pub(crate) fn check(&self, path: &Path) -> Result<(), StoreError> {
        let changed = |reason: &str| StoreError::Changed {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let now = Stamp::of(path).map_err(|_| changed("it is gone"))?;
        if now.bytes != self.bytes {
            return Err(changed(&format!("{} bytes then, {} now", self.bytes, now.bytes)));
        }
        if now != *self {
            return Err(changed("modified or replaced"));
        }
        Ok(())
    }
}

impl From<&std::fs::Metadata> for Stamp {
    fn from(metadata: &std::fs::Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
            bytes: metadata.len(),
        }
    }
}
