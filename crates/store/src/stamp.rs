//! What a file was when it was opened: equal stamps mean equal bytes.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::io::{File, Mode};
use crate::{Io, StoreError};

/// How long a file system's clock may stand still: two changes within it may carry the same time.
const TICK: Duration = Duration::from_millis(10);
/// How often the clock is waited for: a file that is being written all the time is as it is.
const WAITS_MAX: usize = 3;

/// Inode, times of modification and of status change, and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub modified_ns: i128,
    changed_ns: i128,
    pub bytes: u64,
}

/// What `stamp` finds, and the time of its last modification, once that has passed: what is changed from then on has
/// another stamp.
pub(crate) fn settled<T>(stamp: impl Fn() -> Result<(T, i128), StoreError>) -> Result<T, StoreError> {
    for _ in 0..WAITS_MAX {
        let (found, modified_ns) = stamp()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let left = modified_ns + TICK.as_nanos() as i128 - now.as_nanos() as i128;
        // A time in the future is another machine's.
        if left <= 0 || left > TICK.as_nanos() as i128 {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_nanos(left as u64));
    }
    stamp().map(|(found, _)| found)
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
            changed_ns,
            bytes,
        } = self;
        format!("{}@{device}:{inode}:{modified_ns}:{changed_ns}:{bytes}", path.display())
    }

    /// Opens the file at `path` for reading, if that still is the file that was stamped; its bytes are not looked at.
    pub(crate) fn open(&self, path: &Path, io: &Io) -> Result<File, StoreError> {
        let changed = |reason: &str| StoreError::Changed {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        match io.open(path, Mode::Read) {
            Ok(file) if file.identity() == Some((self.device, self.inode)) => Ok(file),
            Ok(_) => Err(changed("replaced")),
            Err(StoreError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Err(changed("it is gone")),
            Err(error) => Err(error),
        }
    }

    /// Without the time of status change, which links and permissions move too.
    pub(crate) fn written(self) -> Stamp {
        Stamp { changed_ns: 0, ..self }
    }

    /// Refuses a path that is no longer what it was, by what `part` takes of the stamps.
    pub(crate) fn check(&self, path: &Path, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        let changed = |reason: &str| StoreError::Changed {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let now = Stamp::of(path).map_err(|_| changed("it is gone"))?;
        if now.bytes != self.bytes {
            return Err(changed(&format!("{} bytes then, {} now", self.bytes, now.bytes)));
        }
        if part(now) != part(*self) {
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
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            bytes: metadata.len(),
        }
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}
