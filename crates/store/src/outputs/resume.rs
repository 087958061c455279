//! Outputs that can be gone on with: what is durable of them is in a journal beside them, in a folder of a name of its own.
//!
//! Of the folder `.outcore-resume-<name>` beside the target an output takes four names: `new`, the output as it is written;
//! `journal`, its tiles that are durable; `target`, the path it is meant for; `process`, who alone can go on with it, where that is
//! so. A process at work in it holds its lock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crc32c::crc32c;

use crate::array::sink::{Sink, WriteCosts};
use crate::base::directory::size_of;
use crate::base::locked::locked;
use crate::durable::journal::{Journal, JournalContent, JournalKey, JournalRecord, HEADER_BYTES, RECORD_BYTES};
use crate::durable::locked::{remove_while, LockedDir};
use crate::durable::mark;
use crate::durable::owner::{is_lost, note_owner, OWNER};
use crate::durable::partial::{Partial, NEW};
use crate::durable::stages::{STAGES, TARGET};
use crate::outputs::durable_tiles::{durable_tiles, Look};
use crate::outputs::sums::{has_sums, keep_sums};
use crate::registry::create::SinkPlan;
use crate::{ClaimedSlice, Io, Region, StoreError};

const MARK: &str = ".outcore-resume-";
const JOURNAL: &str = "journal";
/// What may be written, and how long may go by, before tiles are made durable and recorded.
const FLUSH_BYTES: u64 = 64 << 20;
const FLUSH_AFTER: Duration = Duration::from_millis(500);

/// The name of the folder in which the output for a target is gone on with.
pub fn resume_name(target: &Path) -> OsString {
    let name = target.file_name().unwrap_or_default();
    let mut folder = OsString::from(MARK);
    folder.push(name);
    folder
}

/// An output, held to be begun or gone on with.
pub struct Resumable {
    plan: SinkPlan,
    key: JournalKey,
    state: Mutex<Option<ResumeState>>,
    done: Vec<u64>,
    /// The records of them in the journal.
    records: Vec<JournalRecord>,
    /// Bytes of the output that were read to believe the journal.
    pub verified_bytes: u64,
    /// Why what was there could not be gone on with.
    pub anew: Option<String>,
    /// It has its name already.
    stands: bool,
    /// No other process can go on with it.
    is_own: bool,
    /// It is there for what goes on with other outputs, and for nobody else.
    is_beside: bool,
}

struct ResumeState {
    folder: LockedDir,
    journal: Option<Journal>,
}

impl std::fmt::Debug for Resumable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Resumable({}, {} tiles)",
            self.plan.path().display(),
            self.done.len()
        )
    }
}

impl Resumable {
    /// Holds the output and finds what is durable of it: tiles that the journal names and whose bytes are those that it
    /// says. What belongs to other work is removed.
    ///
    /// # Errors
    /// Another process is at work on it; what the file system reports; the first of `look`, and all stays as it is.
    pub fn hold(plan: SinkPlan, key: JournalKey, io: &Io, look: Look<'_>) -> Result<Resumable, StoreError> {
        let path = plan.directory().join(resume_name(plan.target()));
        let folder = LockedDir::at(&path)?
            .ok_or_else(|| StoreError::disturbed(&path, "another process is at work on the same output"))?;
        let mut found = Resumable {
            plan,
            key,
            state: Mutex::new(None),
            done: vec![],
            records: vec![],
            verified_bytes: 0,
            anew: None,
            stands: false,
            is_own: false,
            is_beside: false,
        };
        let new = path.join(NEW);
        let journal = match Journal::read(&path.join(JOURNAL), &key, io)? {
            JournalContent::Nothing => None,
            JournalContent::Other => {
                found.anew = Some("it was begun for another computation, or its journal cannot be read".into());
                None
            }
            JournalContent::Records(journal, records) => {
                let before = io.counters().bytes_read;
                let durable = durable_tiles(&found.plan, &new, &records, io, look);
                found.verified_bytes = io.counters().bytes_read - before;
                // Who does not wait for the tiles says nothing of them.
                look()?;
                match durable {
                    Ok(durable) => {
                        found.done = durable.iter().map(|record| record.tile).collect();
                        found.records = durable;
                        Some(journal)
                    }
                    Err(error) => {
                        found.anew = Some(format!("it cannot be read: {error}"));
                        None
                    }
                }
            }
        };
        if journal.is_none() {
            for name in [NEW, JOURNAL, TARGET, OWNER] {
                // Whatever was there is gone on with by nobody.
                let _ = remove_while(folder.held(), name, &mut || look().is_ok());
                look()?;
            }
        }
        *locked(&found.state) = Some(ResumeState { folder, journal });
        Ok(found)
    }

    /// Whether an output that was begun, or is there, is of this key; nothing where there is none.
    pub fn is_begun_for(plan: &SinkPlan, key: &JournalKey) -> Option<bool> {
        let folder = plan.directory().join(resume_name(plan.target()));
        let begun = Journal::key_at(&folder.join(JOURNAL)).map(|found| found == *key);
        begun.or_else(|| plan.target().exists().then(|| mark::is_made_by(plan.target(), key)))
    }

    /// Whether the output is there because a process was killed when it had published it, and before it had cleaned up:
    /// the journal names every tile, and all of them are as it says. It is made unfinished again then, so that it can be
    /// held, and published together with others that are not there yet.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn take_back(plan: &SinkPlan, key: &JournalKey, io: &Io, look: Look<'_>) -> Result<bool, StoreError> {
        let path = plan.directory().join(resume_name(plan.target()));
        let (new, journal) = (path.join(NEW), path.join(JOURNAL));
        if !journal.exists() || new.symlink_metadata().is_ok() {
            return Ok(false);
        }
        // Under its lock no other process changes what is looked at.
        let Some(_held) = LockedDir::at(&path)? else {
            return Ok(false);
        };
        let JournalContent::Records(_, records) = Journal::read(&journal, key, io)? else {
            return Ok(false);
        };
        let durable = durable_tiles(plan, plan.target(), &records, io, look);
        look()?;
        match durable {
            Ok(durable) if durable.len() as u64 == tiles_of(plan) => {}
            _ => return Ok(false),
        }
        let renamed = fs::rename(plan.target(), &new);
        renamed.map_err(|cause| StoreError::io(plan.target(), 0, "rename", cause))?;
        Ok(true)
    }

    /// An output that has its name: the same computation made it, and nothing is left of its journal.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn standing(plan: SinkPlan) -> Result<Resumable, StoreError> {
        let path = plan.directory().join(resume_name(plan.target()));
        if path.symlink_metadata().is_ok() {
            // Killed while it was being removed. One that another process works in is no rest of this output.
            LockedDir::at(&path)?.into_iter().for_each(|rest| rest.remove_soon());
        }
        Ok(Resumable {
            done: (0..tiles_of(&plan)).collect(),
            records: vec![],
            plan,
            key: JournalKey::default(),
            state: Mutex::new(None),
            verified_bytes: 0,
            anew: None,
            stands: true,
            is_own: false,
            is_beside: false,
        })
    }

    /// The same, with which no other process can go on where `is_own`: work of a process that has ended is lost then.
    pub fn of_process(mut self, is_own: bool) -> Resumable {
        self.is_own = is_own;
        self
    }

    /// The same, of which only the tiles count that other outputs are made of.
    pub fn beside(mut self) -> Resumable {
        self.is_beside = true;
        self
    }

    pub fn is_beside(&self) -> bool {
        self.is_beside
    }

    pub fn plan(&self) -> &SinkPlan {
        &self.plan
    }

    /// The tiles that are durable, ascending.
    pub fn done(&self) -> &[u64] {
        &self.done
    }

    /// Whether every tile is durable.
    pub fn is_complete(&self) -> bool {
        self.done.len() as u64 == tiles_of(&self.plan)
    }

    /// Whether nothing is written to it and nothing read of it: it is complete, and nobody's but its reader's.
    pub fn is_left_alone(&self) -> bool {
        self.is_complete() && !self.is_beside
    }

    fn goes_on(&self) -> bool {
        locked(&self.state)
            .as_ref()
            .is_some_and(|state| state.journal.is_some())
    }

    /// Bytes that creating, recording and finishing transfer when `tiles` more are written.
    pub fn overhead_bytes(&self, tiles: u64) -> u64 {
        let begun = match (self.stands, self.goes_on()) {
            (true, _) => 0,
            (false, true) => self.plan.finish_bytes(),
            (false, false) => self.plan.overhead_bytes() + HEADER_BYTES as u64,
        };
        begun + tiles * RECORD_BYTES as u64
    }

    /// Creates the output, or opens what there is of it. Once.
    ///
    /// # Errors
    /// It was asked for before; what the file system reports.
    pub fn create(&self, io: &Io) -> Result<Arc<dyn Sink>, StoreError> {
        if self.stands {
            return Ok(Arc::new(OutputStanding(self.plan.clone())));
        }
        let state = locked(&self.state).take();
        let ResumeState { folder, journal } =
            state.ok_or_else(|| StoreError::Invalid(format!("{}: already begun", self.plan.path().display())))?;
        let path = folder.path().to_path_buf();
        let (inner, journal) = match journal {
            Some(journal) => (self.plan.reopen_in(folder, &self.records, io)?, journal),
            None => {
                let target = path.join(TARGET);
                let named = fs::write(&target, self.plan.target().as_os_str().as_bytes());
                named.map_err(|cause| StoreError::io(&target, 0, "write", cause))?;
                if self.is_own {
                    note_owner(&path)?;
                }
                let inner = self.plan.create_in(folder, io)?;
                // The journal comes last: without it nothing is believed.
                inner.flush(io)?;
                (inner, Journal::begin(&path.join(JOURNAL), &self.key, io)?)
            }
        };
        Ok(Arc::new(Journaled {
            shape: self.plan.shape().to_vec(),
            tile: self.plan.tile().to_vec(),
            plan: self.plan.clone(),
            inner,
            target: self.plan.target().to_path_buf(),
            journal_path: path.join(JOURNAL),
            head: crc32c(&self.plan.head()),
            key: self.key,
            pending: Mutex::new(PendingTiles {
                records: vec![],
                bytes: 0,
                since: Instant::now(),
            }),
            journal: Mutex::new(journal),
        }))
    }
}

impl Drop for Resumable {
    /// A folder in which nothing was begun is of no use.
    fn drop(&mut self) {
        if let Some(ResumeState { folder, journal: None }) = locked(&self.state).take() {
            folder.remove();
        }
    }
}

fn tiles_of(plan: &SinkPlan) -> u64 {
    let counts = plan.shape().iter().zip(plan.tile());
    counts.map(|(length, tile)| length.div_ceil(*tile)).product()
}

struct PendingTiles {
    records: Vec<JournalRecord>,
    bytes: u64,
    since: Instant,
}

/// A sink that records what is durable.
struct Journaled {
    shape: Vec<u64>,
    tile: Vec<u64>,
    plan: SinkPlan,
    inner: Arc<dyn Sink>,
    target: PathBuf,
    journal_path: PathBuf,
    /// The checksum of what is in front of the tiles.
    head: u32,
    key: JournalKey,
    pending: Mutex<PendingTiles>,
    journal: Mutex<Journal>,
}

impl Journaled {
    fn index(&self, region: &Region) -> u64 {
        (0..self.shape.len()).fold(0, |index, axis| {
            index * self.shape[axis].div_ceil(self.tile[axis]) + region.start[axis] / self.tile[axis]
        })
    }

    /// Makes durable and records what has been written so far.
    fn record(&self, io: &Io) -> Result<(), StoreError> {
        let mut journal = locked(&self.journal);
        let records = {
            let mut pending = locked(&self.pending);
            (pending.bytes, pending.since) = (0, Instant::now());
            std::mem::take(&mut pending.records)
        };
        if records.is_empty() {
            return Ok(());
        }
        self.inner.flush(io)?;
        journal.append(&records, io)
    }

    /// Says what the tiles are known by, where the output has its sums beside it: the last that was recorded of each.
    fn keep_sums(&self, io: &Io) -> Result<(), StoreError> {
        let _journal = locked(&self.journal);
        let JournalContent::Records(_, records) = Journal::read(&self.journal_path, &self.key, io)? else {
            let reason = "the journal of an output is gone";
            return Err(StoreError::disturbed(&self.journal_path, reason));
        };
        let said: BTreeMap<u64, u32> = records.iter().map(|record| (record.tile, record.checksum)).collect();
        let checksums: Vec<u32> = said.into_values().collect();
        keep_sums(&self.target, (&self.shape, &self.tile), self.head, &checksums)
    }
}

impl Sink for Journaled {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn costs(&self) -> &dyn WriteCosts {
        self.inner.costs()
    }
    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        self.inner.write(region, data, io)?;
        // Data goes on to the end of a page: what belongs to the tile is as long as its elements.
        let bytes = self.plan.tile_bytes(region) as usize;
        let record = JournalRecord {
            tile: self.index(region),
            checksum: crc32c(&data[..bytes]),
        };
        let due = {
            let mut pending = locked(&self.pending);
            pending.records.push(record);
            pending.bytes += bytes as u64;
            pending.bytes >= FLUSH_BYTES || pending.since.elapsed() >= FLUSH_AFTER
        };
        if due {
            self.record(io)?;
        }
        Ok(())
    }
    fn read_back(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<(), StoreError> {
        self.inner.read_back(region, frame, io)
    }
    fn borrow(&self, region: &Region) -> Option<ClaimedSlice> {
        self.inner.borrow(region)
    }
    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        self.record(io)?;
        if has_sums(&self.target) {
            self.keep_sums(io)?;
        }
        self.inner.seal(io)?;
        if let Some(partial) = self.inner.partial() {
            mark::put(partial.path(), &self.key);
        }
        Ok(())
    }
    fn check(&self) -> Result<(), StoreError> {
        self.inner.check()
    }
    fn partial(&self) -> Option<&Partial> {
        self.inner.partial()
    }
    fn abort(&self, io: &Io) {
        // As much as can be gone on with; the error that ended the run is the one to tell.
        let _ = self.record(io);
        self.inner.abort(io);
    }
}

/// An output that is there: nothing of it is left to be written.
struct OutputStanding(SinkPlan);

impl WriteCosts for OutputStanding {
    fn tile(&self) -> &[u64] {
        self.0.tile()
    }
    fn write_bytes(&self, region: &Region) -> u64 {
        self.0.write_bytes(region)
    }
    fn overhead_bytes(&self) -> u64 {
        0
    }
    fn workspace_bytes(&self, region: &Region) -> usize {
        self.0.workspace_bytes(region)
    }
}

impl Sink for OutputStanding {
    fn name(&self) -> String {
        self.0.path().display().to_string()
    }
    fn costs(&self) -> &dyn WriteCosts {
        self
    }
    fn write(&self, _region: &Region, _data: &[u8], _io: &Io) -> Result<(), StoreError> {
        Err(StoreError::Invalid(format!("{}: is complete", self.name())))
    }
    fn seal(&self, _io: &Io) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Work that can be gone on with.
#[derive(Clone, Debug)]
pub struct Unfinished {
    pub folder: PathBuf,
    pub target: PathBuf,
    pub bytes: u64,
    pub age: Duration,
    /// A process is at work on it.
    pub busy: bool,
    /// The process that alone could go on with it has ended.
    pub lost: bool,
}

/// The outputs in `dir` that can be gone on with.
///
/// # Errors
/// The directory cannot be listed.
pub fn list_unfinished(dir: &Path) -> Result<Vec<Unfinished>, StoreError> {
    let entries = fs::read_dir(dir).map_err(|cause| StoreError::io(dir, 0, "list", cause))?;
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default();
        let ours = [MARK, STAGES]
            .iter()
            .any(|mark| name.as_bytes().starts_with(mark.as_bytes()));
        ours && path.is_dir()
    });
    let mut found = Vec::new();
    for folder in folders {
        let busy = fs::symlink_metadata(&folder).is_ok() && LockedDir::at(&folder)?.is_none();
        let target = fs::read(folder.join(TARGET)).unwrap_or_default();
        let written = [JOURNAL, NEW, "."]
            .iter()
            .filter_map(|name| fs::metadata(folder.join(name)).ok()?.modified().ok());
        let age = written
            .max()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        found.push(Unfinished {
            bytes: size_of(&folder),
            target: PathBuf::from(OsString::from_vec(target)),
            age: age.unwrap_or_default(),
            busy,
            lost: !busy && is_lost(&folder),
            folder,
        });
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

/// Removes one of them. False when a process is at work on it.
///
/// # Errors
/// What the file system reports.
pub fn remove_unfinished(unfinished: &Unfinished) -> Result<bool, StoreError> {
    let Some(folder) = LockedDir::at(&unfinished.folder)? else {
        return Ok(false);
    };
    folder.remove();
    Ok(true)
}
