//! A disk of a volume at work: its queue, the thread that empties it, and what it has done.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::description::{member_at, Member, PARTS};
use super::scatter::Task;
use super::stub::{hex, Id};
use crate::io::Watch;
use crate::process::locked;

/// A failure of a disk: it has the kind of its cause, and its number.
#[derive(Debug)]
pub struct DiskError {
    pub disk: PathBuf,
    pub cause: Error,
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.disk.display(), self.cause)
    }
}

impl std::error::Error for DiskError {}

/// The system's number of an error, also of one that a disk is named in.
pub fn errno(cause: &Error) -> Option<i32> {
    let within = cause.get_ref().and_then(|inner| inner.downcast_ref::<DiskError>());
    cause.raw_os_error().or_else(|| within?.cause.raw_os_error())
}

/// What a disk has done for an `Io`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskCounters {
    /// The volume's directory, and the disk's.
    pub volume: PathBuf,
    pub disk: PathBuf,
    /// Calls to the system; neighbouring blocks are one.
    pub requests: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub busy_seconds: f64,
    pub errors: u64,
}

#[derive(Default)]
struct Totals {
    requests: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    busy_ns: AtomicU64,
    errors: AtomicU64,
}

pub(crate) struct Disk {
    volume: Id,
    pub(super) member: Id,
    /// Where it was found, or was last.
    place: Mutex<Place>,
    /// The process whose thread it is, and the thread's queue: a forked child has only its copy of the queue.
    queue: OnceLock<(u32, Mutex<Sender<Task>>)>,
    totals: Totals,
}

struct Place {
    member: Member,
    found: bool,
}

impl Disk {
    /// A disk that was found where `member` says, or was not.
    pub(super) fn new(volume: Id, member: Member, found: bool) -> Disk {
        Disk {
            volume,
            member: member.id,
            place: Mutex::new(Place { member, found }),
            queue: OnceLock::new(),
            totals: Totals::default(),
        }
    }

    /// Its directory, or where that was last.
    pub(super) fn path(&self) -> PathBuf {
        locked(&self.place).member.path.clone()
    }

    /// An error of this disk, which is counted.
    pub(super) fn error(&self, cause: Error) -> Error {
        self.totals.errors.fetch_add(1, Relaxed);
        let disk = self.path();
        Error::new(cause.kind(), DiskError { disk, cause })
    }

    /// Its directory. One that was missing is looked for again.
    pub(super) fn directory(&self) -> Result<PathBuf> {
        let mut place = locked(&self.place);
        if !place.found {
            match super::locate::find(&self.volume, &place.member, &[]) {
                Some(path) => {
                    place.member.path = path;
                    place.found = true;
                }
                None => {
                    drop(place);
                    return Err(self.error(gone()));
                }
            }
        }
        Ok(place.member.path.clone())
    }

    /// Its directory, after a look whether it still is; else where it is now.
    pub(super) fn check(&self) -> Result<PathBuf> {
        let path = self.directory()?;
        if member_at(&path) == Some((self.volume, self.member)) {
            return Ok(path);
        }
        locked(&self.place).found = false;
        self.directory()
    }

    /// The path of a file's part on it.
    pub(super) fn part(&self, file: &Id) -> Result<PathBuf> {
        Ok(part_path(&self.directory()?, file))
    }

    /// Queues work for its thread; where there is none, and none can be had, it is done here.
    pub(super) fn give(&self, task: Task) {
        let process = std::process::id();
        let (owner, queue) = self.queue.get_or_init(|| (process, Mutex::new(self.start())));
        if *owner != process {
            return task();
        }
        let sent = locked(queue).send(task);
        if let Err(unsent) = sent {
            (unsent.0)();
        }
    }

    fn start(&self) -> Sender<Task> {
        let (sender, receiver) = channel::<Task>();
        let thread = std::thread::Builder::new().name("outcore-disk".into());
        // Without a thread the receiver is gone, and sending says so.
        let _ = thread.spawn(move || {
            for task in receiver {
                // Who waits for it finds no outcome, and says so.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
            }
        });
        sender
    }

    /// One call to the system, counted and named.
    pub(super) fn call(&self, write: bool, mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
        loop {
            let begun = Instant::now();
            match self.count(write, begun, call()) {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Counts a call that was made elsewhere, and names the disk in its error.
    fn count(&self, write: bool, begun: Instant, outcome: Result<usize>) -> Result<usize> {
        self.totals
            .busy_ns
            .fetch_add(begun.elapsed().as_nanos() as u64, Relaxed);
        self.totals.requests.fetch_add(1, Relaxed);
        let bytes = if write {
            &self.totals.bytes_written
        } else {
            &self.totals.bytes_read
        };
        let done = outcome.map_err(|cause| match cause.kind() {
            // Made again, not failed.
            ErrorKind::WouldBlock | ErrorKind::Interrupted => cause,
            _ => self.error(cause),
        })?;
        bytes.fetch_add(done as u64, Relaxed);
        Ok(done)
    }

    pub(super) fn counters(&self, home: &Path) -> DiskCounters {
        let totals = &self.totals;
        DiskCounters {
            volume: home.to_path_buf(),
            disk: self.path(),
            requests: totals.requests.load(Relaxed),
            bytes_read: totals.bytes_read.load(Relaxed),
            bytes_written: totals.bytes_written.load(Relaxed),
            busy_seconds: totals.busy_ns.load(Relaxed) as f64 / 1e9,
            errors: totals.errors.load(Relaxed),
        }
    }
}

impl Watch for Disk {
    fn over(&self, begun: Instant, outcome: Result<usize>) -> Result<usize> {
        self.count(false, begun, outcome)
    }
}

pub(super) fn part_path(directory: &Path, file: &Id) -> PathBuf {
    directory.join(PARTS).join(hex(file))
}

pub(super) fn gone() -> Error {
    Error::new(
        ErrorKind::NotFound,
        "this directory of the volume is gone, or is no part of it any more",
    )
}
