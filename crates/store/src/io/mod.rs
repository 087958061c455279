//! Reads and writes: backends, retries, exact counters and injected faults.
//!
//! Uses `volume` and the rooms below. Start with `Io` below; many requests at once are `queue.rs`.

mod faults;
mod parts;
mod queue;
mod stamped;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

pub use faults::{FaultKind, Faults};
pub use parts::PlacedPart;
pub use queue::{Done, Queue};

use rustix::time::{clock_gettime, ClockId};

use crate::backend::object::RemoteObject;
use crate::backend::remote::place_of;
use crate::backend::stamp::Stamp;
pub use crate::backend::{Backend, Backing, Blob, Buffered, CallWatch, Direct, Memory, Mode, Stable, StableMut};
use crate::memory::workspace::{WorkBuffer, Workspaces, BUFFERS};
use crate::volume::{is_stray, refuse_stray, DiskCounters, Volumes};
use crate::StoreError;
use faults::{FaultState, Injected};

/// One process's way to its disks: a backend, counters and fault settings. Clones share all of them; a scoped one has counters
/// of its own.
///
/// Invariant: a call that succeeds adds exactly the bytes it was asked to transfer to the counters of its scope and of all
/// around it; a call that fails adds none.
#[derive(Clone)]
pub struct Io {
    shared: Arc<IoShared>,
    scope: Arc<IoScope>,
}

struct IoShared {
    backend: Arc<dyn Backend>,
    volumes: Volumes,
    faults: FaultState,
    /// When the last run began, by the clock that files' times are taken from.
    began_ns: AtomicI64,
}

#[derive(Default)]
struct IoTotals {
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    read_calls: AtomicU64,
    write_calls: AtomicU64,
    metadata_bytes_read: AtomicU64,
}

/// Counters, and those of the scope around them.
#[derive(Default)]
struct IoScope {
    totals: IoTotals,
    outer: Option<Arc<IoScope>>,
    /// Where reads leave their memory for the next ones, of scopes within too.
    workspaces: Option<Workspaces>,
}

impl IoScope {
    fn add(&self, count: impl Fn(&IoTotals)) {
        let mut scope = Some(self);
        while let Some(counted) = scope {
            count(&counted.totals);
            scope = counted.outer.as_deref();
        }
    }

    /// The workspaces of the innermost scope around that has any.
    fn workspaces(&self) -> Option<&Workspaces> {
        let outer = || self.outer.as_ref().and_then(|outer| outer.workspaces());
        self.workspaces.as_ref().or_else(outer)
    }

    fn add_read(&self, calls: u64, bytes: u64) {
        self.add(|totals| {
            totals.read_calls.fetch_add(calls, Relaxed);
            totals.bytes_read.fetch_add(bytes, Relaxed);
        });
    }

    fn add_write_calls(&self, calls: u64) {
        self.add(|totals| {
            totals.write_calls.fetch_add(calls, Relaxed);
        });
    }

    fn add_written(&self, bytes: u64) {
        self.add(|totals| {
            totals.bytes_written.fetch_add(bytes, Relaxed);
        });
    }
}

/// A snapshot of what has been transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Shard indices and headers, read while planning; not part of `bytes_read`.
    pub metadata_bytes_read: u64,
}

impl Counters {
    /// What was transferred after `earlier` was taken.
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_written: self.bytes_written - earlier.bytes_written,
            read_calls: self.read_calls - earlier.read_calls,
            write_calls: self.write_calls - earlier.write_calls,
            metadata_bytes_read: self.metadata_bytes_read - earlier.metadata_bytes_read,
        }
    }
}

/// An open file with its name for error messages.
#[derive(Clone)]
pub struct File {
    blob: Arc<dyn Blob>,
    path: PathBuf,
}

impl File {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same file, called by another name in errors: the one that callers know.
    pub(crate) fn named(self, path: PathBuf) -> File {
        File { path, ..self }
    }

    /// Bytes in the file now.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn len(&self) -> Result<u64, StoreError> {
        self.blob
            .len()
            .map_err(|cause| StoreError::io(&self.path, 0, "stat", cause))
    }

    /// What the file is now.
    pub(crate) fn stamp(&self) -> Result<Stamp, StoreError> {
        self.blob
            .stamp()
            .map_err(|cause| StoreError::io(&self.path, 0, "stat", cause))
    }

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }

    /// What offsets and lengths must be multiples of.
    pub(crate) fn alignment(&self) -> usize {
        self.blob.alignment()
    }

    /// Device and inode, where it has them.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.blob.identity()
    }

    /// Makes the file `bytes` long.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn set_len(&self, bytes: u64) -> Result<(), StoreError> {
        self.blob
            .set_len(bytes)
            .map_err(|cause| StoreError::io(&self.path, bytes, "set the length", cause))
    }

    /// Makes the file `bytes` long with its space set aside: writes inside it need not wait for one another, and a full
    /// disk is met before they start.
    ///
    /// # Errors
    /// A full disk, or what the file system reports.
    pub fn allocate(&self, bytes: u64) -> Result<(), StoreError> {
        self.blob
            .allocate(bytes)
            .map_err(|cause| StoreError::io(&self.path, 0, "set space aside", cause))
    }

    pub fn drop_cache(&self) {
        self.blob.drop_cache();
    }
}

impl Io {
    pub fn new(backend: Box<dyn Backend>) -> Io {
        Io {
            shared: Arc::new(IoShared {
                backend: Arc::from(backend),
                volumes: Volumes::default(),
                faults: FaultState::default(),
                began_ns: AtomicI64::new(i64::MAX),
            }),
            scope: Arc::default(),
        }
    }

    /// The same disks with counters of their own, which begin at zero: whatever else this `Io` is used for meanwhile, they
    /// count the transfers of the scope alone. The counters here count these too.
    #[must_use]
    pub fn scoped(&self) -> Io {
        Io {
            shared: self.shared.clone(),
            scope: Arc::new(IoScope {
                outer: Some(self.scope.clone()),
                ..IoScope::default()
            }),
        }
    }

    /// As `scoped`, for a run that has set aside what its reading threads work in: the memory stays with the scope from
    /// one read to the next, and is given back with it.
    #[must_use]
    pub fn scoped_with_workspaces(&self) -> Io {
        Io {
            shared: self.shared.clone(),
            scope: Arc::new(IoScope {
                outer: Some(self.scope.clone()),
                workspaces: Some(Workspaces::default()),
                ..IoScope::default()
            }),
        }
    }

    /// Memory for a read of an array, by its identity.
    pub(crate) fn work_buffers(&self, array: &str) -> [WorkBuffer; BUFFERS] {
        self.scope
            .workspaces()
            .map(|spaces| spaces.take(array))
            .unwrap_or_default()
    }

    /// Takes the memory of a read that is over.
    pub(crate) fn keep_buffers(&self, array: &str, buffers: [WorkBuffer; BUFFERS]) {
        if let Some(spaces) = self.scope.workspaces() {
            spaces.put(array, buffers);
        }
    }

    /// Past the page cache, where the file system allows it.
    pub fn direct() -> Io {
        Io::new(Box::new(Direct))
    }

    pub fn buffered() -> Io {
        Io::new(Box::new(Buffered))
    }

    /// Files in memory: for tests of what only reads and writes.
    pub fn memory() -> Io {
        Io::new(Box::<Memory>::default())
    }

    /// Direct I/O with faults: for tests.
    pub fn with_faults(faults: Faults) -> Io {
        let io = Io::direct();
        io.set_faults(Some(faults));
        io
    }

    /// Replaces the faults to come; calls are counted from here.
    pub fn set_faults(&self, faults: Option<Faults>) {
        self.shared.faults.set(faults);
    }

    pub fn counters(&self) -> Counters {
        let totals = &self.scope.totals;
        Counters {
            bytes_read: totals.bytes_read.load(Relaxed),
            bytes_written: totals.bytes_written.load(Relaxed),
            read_calls: totals.read_calls.load(Relaxed),
            write_calls: totals.write_calls.load(Relaxed),
            metadata_bytes_read: totals.metadata_bytes_read.load(Relaxed),
        }
    }

    /// Says that a run begins: a link or a permission of a file that is changed from now on changes nothing for it.
    pub fn begin_run(&self) {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let now_ns = now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec);
        self.shared.began_ns.store(now_ns, Relaxed);
    }

    /// When the last run began; no time is later before there was one.
    pub(crate) fn began_ns(&self) -> i128 {
        i128::from(self.shared.began_ns.load(Relaxed))
    }

    /// What the disks of volumes have done.
    pub fn disks(&self) -> Vec<DiskCounters> {
        self.shared.volumes.counters()
    }

    /// What users should know of the disks of volumes, each once.
    pub fn notes(&self) -> Vec<String> {
        self.shared.volumes.notes()
    }

    /// Opens a file, within a volume or not.
    ///
    /// # Errors
    /// What the file system reports; a stub of a volume that is not where it was written.
    pub fn open(&self, path: &Path, mode: Mode) -> Result<File, StoreError> {
        if let Some(file) = self.open_remote(path, None) {
            return match mode {
                Mode::Read => Ok(file),
                _ => Err(StoreError::unsupported(
                    path,
                    "objects of stores are not written in place",
                )),
            };
        }
        if self.shared.backend.volume_alignment().is_none() {
            return self.open_plain(path, mode);
        }
        let volumes = &self.shared.volumes;
        let within = |blob| File {
            blob,
            path: path.to_path_buf(),
        };
        if volumes.was_outside(path) {
            match self.open_plain(path, mode) {
                // By a link, or there is a volume now.
                Err(StoreError::Io { cause, .. }) if is_stray(&cause) => {}
                opened => return opened,
            }
        }
        match volumes.open(path, mode, &self.shared.backend)? {
            Some(blob) => Ok(within(blob)),
            None => self.open_plain(path, mode),
        }
    }

    /// An object of a store, for reading; nothing for paths that lead to none. With a stamp, reads of any other version of it
    /// are refused as `changed`.
    pub(crate) fn open_remote(&self, path: &Path, stamp: Option<Stamp>) -> Option<File> {
        Some(File {
            blob: Arc::new(RemoteObject::new(place_of(path)?, stamp)),
            path: path.to_path_buf(),
        })
    }

    /// As `open`, of a file that is plain also in a volume: one that is read and written otherwise, too.
    pub(crate) fn open_plain(&self, path: &Path, mode: Mode) -> Result<File, StoreError> {
        let action = match mode {
            Mode::Create | Mode::CreateUnaligned => "create",
            Mode::Read | Mode::Reopen | Mode::ReopenUnaligned => "open",
        };
        let error = |cause| StoreError::io(path, 0, action, cause);
        let blob = self.shared.backend.open(path, mode).map_err(error)?;
        if action == "open" && self.shared.backend.volume_alignment().is_some() {
            refuse_stray(&*blob).map_err(error)?;
        }
        Ok(File {
            blob,
            path: path.to_path_buf(),
        })
    }

    /// Reads `expected` bytes at `offset` into the front of `buffer`.
    ///
    /// For direct I/O `offset`, the buffer's address and its length are multiples of `PAGE`, and `expected` is the
    /// buffer's length unless the file ends before.
    ///
    /// # Errors
    /// The file cannot be read, or ends before; nothing is counted then.
    pub fn read(&self, file: &File, buffer: &mut [u8], offset: u64, expected: usize) -> Result<(), StoreError> {
        let calls = self.read_fully(file, buffer, offset, expected)?;
        self.scope.add_read(calls, expected as u64);
        Ok(())
    }

    /// As `read`, counted as metadata.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_metadata(
        &self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        expected: usize,
    ) -> Result<(), StoreError> {
        self.read_fully(file, buffer, offset, expected)?;
        self.scope.add(|totals| {
            totals.metadata_bytes_read.fetch_add(expected as u64, Relaxed);
        });
        Ok(())
    }

    /// Counts bytes that came another way than through a file of ours, so that forecast and counters speak of the same.
    pub fn count_read(&self, bytes: u64) {
        self.scope.add_read(1, bytes);
    }

    fn read_fully(&self, file: &File, buffer: &mut [u8], offset: u64, expected: usize) -> Result<u64, StoreError> {
        let error =
            |done: usize, cause: std::io::Error| StoreError::io(&file.path, offset + done as u64, "read", cause);
        let (mut done, mut calls) = (0, 0);
        while done < expected {
            calls += 1;
            let shortened = match self.shared.faults.before_read() {
                Injected::Fail(cause) => return Err(error(done, cause)),
                Injected::Short | Injected::Torn(_) => true,
                Injected::Nothing => false,
            };
            let read = match file.blob.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(read) if shortened => read / 2,
                Ok(read) => read,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(error(done, cause)),
            };
            // A direct read resumes on a page; one that ends inside a page has met the end of the file.
            let whole = read - read % file.blob.alignment();
            if done + read >= expected {
                break;
            }
            if whole == 0 && !shortened {
                let missing = expected - done - read;
                let reason = format!("the file ends {missing} bytes early");
                return Err(error(
                    done + read,
                    std::io::Error::new(std::io::ErrorKind::UnexpectedEof, reason),
                ));
            }
            done += whole;
        }
        Ok(calls)
    }

    /// Writes all of `data` at `offset`; the same alignment rules as for `read`.
    ///
    /// # Errors
    /// The file cannot be written; nothing is counted then.
    pub fn write(&self, file: &File, data: &[u8], offset: u64) -> Result<(), StoreError> {
        let error =
            |done: usize, cause: std::io::Error| StoreError::io(&file.path, offset + done as u64, "write", cause);
        let mut done = 0;
        while done < data.len() {
            self.scope.add_write_calls(1);
            let mut rest = &data[done..];
            let half = rest.len() / 2 / file.blob.alignment() * file.blob.alignment();
            let torn = match self.shared.faults.before_write() {
                Injected::Fail(cause) => return Err(error(done, cause)),
                Injected::Torn(cause) => Some(cause),
                Injected::Short if half > 0 => {
                    rest = &rest[..half];
                    None
                }
                Injected::Short | Injected::Nothing => None,
            };
            if let Some(cause) = torn {
                let _ = file.blob.write_at(&rest[..half], offset + done as u64);
                return Err(error(done, cause));
            }
            match file.blob.write_at(rest, offset + done as u64) {
                Ok(written) if done + written >= data.len() => break,
                Ok(written) => match written - written % file.blob.alignment() {
                    0 => return Err(error(done + written, std::io::ErrorKind::WriteZero.into())),
                    whole => done += whole,
                },
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(error(done, cause)),
            }
        }
        self.scope.add_written(data.len() as u64);
        Ok(())
    }

    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn sync(&self, file: &File) -> Result<(), StoreError> {
        let injected = self.shared.faults.before_sync();
        injected
            .and_then(|()| file.blob.sync())
            .map_err(|cause| StoreError::io(&file.path, 0, "sync", cause))
    }

    /// Where tests make the naming of a finished output fail.
    pub(crate) fn before_rename(&self) -> std::io::Result<()> {
        self.shared.faults.before_rename()
    }

    /// Makes the names in an open directory durable.
    pub(crate) fn sync_names(&self, directory: impl AsFd, path: &Path) -> Result<(), StoreError> {
        let injected = self.shared.faults.before_sync();
        injected
            .and_then(|()| Ok(rustix::fs::fsync(directory)?))
            .map_err(|cause| StoreError::io(path, 0, "sync", cause))
    }

    /// Makes everything written to the file system that holds `path` durable.
    ///
    /// # Errors
    /// What the file system reports, of the disks of a volume too.
    pub fn sync_file_system(&self, path: &Path) -> Result<(), StoreError> {
        let error = |cause| StoreError::io(path, 0, "sync", cause);
        self.shared.faults.before_sync().map_err(error)?;
        self.shared.volumes.sync(path)?;
        let sync = || Ok(rustix::fs::syncfs(std::fs::File::open(path)?)?);
        sync().map_err(error)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod queue_tests;
