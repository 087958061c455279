//! What a file was when it was opened: equal stamps mean equal bytes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::statfs;

use super::remote::{is_remote, place_of, RemoteFacts, RemotePlace};
use crate::base::directory::random;
use crate::StoreError;

pub(crate) const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// Whether a path is on a file system that is memory itself: stores through a map of a file move none of its times there,
/// so that equal stamps say nothing of its bytes.
pub(crate) fn in_memory(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&stat.f_type))
}

/// How long a file system's clock may stand still: two changes within it may carry the same time.
const TICK: Duration = Duration::from_millis(10);
/// How often the clock is waited for: a file that is being written all the time is as it is.
pub(crate) const WAITS_MAX: usize = 3;

/// Inode, times of modification and of status change, and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) modified_ns: i128,
    pub(crate) changed_ns: i128,
    pub(crate) bytes: u64,
}

/// What `stamp` finds, and the time of its last modification, once that has passed: what is changed from then on has
/// another stamp.
pub(crate) fn settled<T>(stamp: impl Fn() -> Result<(T, i128), StoreError>) -> Result<T, StoreError> {
    for _ in 0..WAITS_MAX {
        let (found, modified_ns) = stamp()?;
        let left = unsettled(modified_ns);
        if left.is_zero() {
            return Ok(found);
        }
        std::thread::sleep(left);
    }
    stamp().map(|(found, _)| found)
}

/// How long it takes until a file that is changed again has another time of modification.
pub(crate) fn unsettled(modified_ns: i128) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = modified_ns + TICK.as_nanos() as i128 - now.as_nanos() as i128;
    // A time in the future is another machine's.
    if left <= 0 || left > TICK.as_nanos() as i128 {
        return Duration::ZERO;
    }
    Duration::from_nanos(left as u64)
}

impl Stamp {
    /// The stamp of a file that is not being written to any more.
    pub(crate) fn settled(path: &Path) -> Result<Stamp, StoreError> {
        settled(|| Stamp::of(path).map(|stamp| (stamp, stamp.modified_ns)))
    }

    /// Of an object of a store that costs a request.
    pub(crate) fn of(path: &Path) -> Result<Stamp, StoreError> {
        let stamp = match place_of(path) {
            Some(place) => place
                .store
                .facts(&place.key)
                .map(|facts| Stamp::of_object(&place, facts)),
            None => std::fs::metadata(path).map(|metadata| Stamp::from(&metadata)),
        };
        stamp.map_err(|cause| StoreError::io(path, 0, "stat", cause))
    }

    /// The stamp of an object: its store, its tag and its length.
    pub(crate) fn of_object(place: &RemotePlace, facts: RemoteFacts) -> Stamp {
        Stamp {
            device: place.store_number(),
            inode: facts.tag,
            ..Stamp::of_bytes(facts.bytes)
        }
    }

    /// Whether it is of the same file with the same bytes, which may have got another name between the two.
    pub(crate) fn is_renamed(&self, other: &Stamp) -> bool {
        let changed_ns = self.changed_ns;
        *self == Stamp { changed_ns, ..*other }
    }

    /// `path@stamp`, the identity of a source. Where times do not tell of changes, no two of them are equal.
    pub(crate) fn name(&self, path: &Path) -> String {
        let Stamp {
            device,
            inode,
            modified_ns,
            changed_ns,
            bytes,
        } = self;
        let mut name = format!("{}@{device}:{inode}:{modified_ns}:{changed_ns}:{bytes}", path.display());
        if in_memory(path) {
            name += &format!(":{:016x}", random());
        }
        name
    }

    /// Without the time of status change, which links and permissions move too.
    pub(crate) fn written(self) -> Stamp {
        Stamp { changed_ns: 0, ..self }
    }

    /// Hashes over what tells that the bytes were written to or replaced, and over the time of status change, which
    /// tells of more.
    pub(crate) fn hashes(self) -> (u64, u32) {
        let (mut written, mut changed) = (DefaultHasher::new(), DefaultHasher::new());
        self.written().hash(&mut written);
        self.changed_ns.hash(&mut changed);
        (written.finish(), changed.finish() as u32)
    }

    /// The stamp of something without inode or times.
    pub(crate) fn of_bytes(bytes: u64) -> Stamp {
        Stamp {
            device: 0,
            inode: 0,
            modified_ns: 0,
            changed_ns: 0,
            bytes,
        }
    }

    /// What is different about the file now; changes of status alone do not count from `since_ns` on.
    pub(crate) fn difference(&self, now: Stamp, since_ns: i128) -> Option<String> {
        if now.bytes != self.bytes {
            return Some(format!("{} bytes then, {} now", self.bytes, now.bytes));
        }
        let is_same =
            now.written() == self.written() && (now.changed_ns == self.changed_ns || now.changed_ns > since_ns);
        (!is_same).then(|| "modified or replaced".into())
    }

    /// Refuses a path that is no longer what it was, by what `part` takes of the stamps.
    pub(crate) fn check(&self, path: &Path, part: fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        let changed = |reason: &str| StoreError::Changed {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let now = match Stamp::of(path) {
            Err(error) if is_remote(path) && error.code() != "missing" => return Err(error),
            now => now.map_err(|_| changed("it is gone"))?,
        };
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

impl From<&rustix::fs::Stat> for Stamp {
    #[allow(clippy::unnecessary_cast)] // the fields' types differ between machines
    fn from(stat: &rustix::fs::Stat) -> Stamp {
        Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            bytes: stat.st_size as u64,
        }
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}
