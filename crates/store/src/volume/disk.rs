//! A disk of a volume at work: where it is, its thread, and what it has done.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::description::{member_at, Member, PARTS};
use super::flights::{Flights, Meter};
use super::scatter::DiskTask;
use super::stub::{hex, Id};
use super::worker::{Worker, IDLE};
use crate::backend::CallWatch;
use crate::base::locked::locked;

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
    /// Time in which calls were under way.
    pub busy_seconds: f64,
    pub errors: u64,
}

#[derive(Default)]
struct DiskTotals {
    requests: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    busy_ns: AtomicU64,
    /// When a call was over last, after the disk was first looked at.
    over_ns: AtomicU64,
    errors: AtomicU64,
}

pub(crate) struct Disk {
    volume: Id,
    pub(crate) member: Id,
    /// Where it was found, or was last.
    place: Mutex<DiskPlace>,
    worker: OnceLock<Worker>,
    /// That it is elsewhere than written was said.
    told: AtomicBool,
    looked_at: Instant,
    totals: DiskTotals,
}

struct DiskPlace {
    member: Member,
    found: bool,
}

impl Disk {
    /// A disk that is looked for where `member` says, and elsewhere.
    pub(crate) fn new(volume: Id, mut member: Member) -> Disk {
        // What hinders it is said when it is looked for again.
        let place = super::locate::find(&volume, &member, &[]);
        let found = place.is_ok();
        member.path = place.unwrap_or(member.path);
        Disk {
            volume,
            member: member.id,
            place: Mutex::new(DiskPlace { member, found }),
            worker: OnceLock::new(),
            told: AtomicBool::new(false),
            looked_at: Instant::now(),
            totals: DiskTotals::default(),
        }
    }

    /// Its directory, or where that was last.
    pub(crate) fn path(&self) -> PathBuf {
        locked(&self.place).member.path.clone()
    }

    /// Its directory. One that was missing is looked for again.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        let mut place = locked(&self.place);
        if !place.found {
            match super::locate::find(&self.volume, &place.member, &[]) {
                Ok(path) => {
                    place.member.path = path;
                    place.found = true;
                }
                Err(cause) => {
                    drop(place);
                    return Err(self.error(cause));
                }
            }
        }
        Ok(place.member.path.clone())
    }

    /// Its directory, after a look whether it still is; else where it is now.
    pub(crate) fn check(&self) -> Result<PathBuf> {
        let path = self.directory()?;
        if member_at(&path).is_ok_and(|found| found == Some((self.volume, self.member))) {
            return Ok(path);
        }
        locked(&self.place).found = false;
        self.directory()
    }

    /// The path of a file's part on it.
    pub(crate) fn part(&self, file: &Id) -> Result<PathBuf> {
        Ok(part_path(&self.directory()?, file))
    }

    /// Has its thread do some work.
    pub(crate) fn give(&self, task: DiskTask<Flights>) {
        self.worker.get_or_init(|| Worker::new(IDLE)).give(task);
    }

    /// Where it was found, if that is not `recorded`; once.
    pub(crate) fn moved_from(&self, recorded: &Path) -> Option<PathBuf> {
        let place = locked(&self.place);
        let moved = place.found && place.member.path != recorded;
        (moved && !self.told.swap(true, Relaxed)).then(|| place.member.path.clone())
    }

    /// Whether bytes were written to it by this process.
    pub(crate) fn has_written(&self) -> bool {
        self.totals.bytes_written.load(Relaxed) > 0
    }

    pub(crate) fn counters(&self, home: &Path) -> DiskCounters {
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

impl Meter for Disk {
    fn error(&self, cause: Error) -> Error {
        self.totals.errors.fetch_add(1, Relaxed);
        let disk = self.path();
        Error::new(cause.kind(), DiskError { disk, cause })
    }

    fn count(&self, write: bool, begun: Instant, outcome: Result<usize>) -> Result<usize> {
        // Time in which several calls were under way counts once.
        let since = |then: Instant| then.saturating_duration_since(self.looked_at).as_nanos() as u64;
        let now = since(Instant::now());
        let over = self.totals.over_ns.fetch_max(now, Relaxed);
        let busy = now.saturating_sub(over.max(since(begun)));
        self.totals.busy_ns.fetch_add(busy, Relaxed);
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
}

impl CallWatch for Disk {
    fn over(&self, begun: Instant, outcome: Result<usize>) -> Result<usize> {
        self.count(false, begun, outcome)
    }
}

pub(crate) fn part_path(directory: &Path, file: &Id) -> PathBuf {
    directory.join(PARTS).join(hex(file))
}
