//! Groups of entries into a stored matrix: threads read, sort and encode group after group, and one
//! puts what comes of them behind each other and writes it.
//!
//! **Invariant.** Groups are written in their order, and equal places are in the order of their entries: the bytes of
//! the file do not depend on groups, threads or memory.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outcore_store::{Io, SparseShape};

use crate::expr::Expr;
use crate::sort::{group_bytes, GroupSpace, Parts};
use crate::sparse::{Assembler, Encoded, EntryEncoder};
use crate::EngineError;

/// Entries of a group, where memory has room: what is sorted stays near the processor, and pieces of runs are long.
const GROUP: u64 = 1 << 20;
/// Groups are about a multiple of so many entries.
const UNIT: u64 = 1 << 12;
/// Bytes of an entry that is alone in its tile, beside its value.
const ENCODED: u64 = 24;
/// How long the thread that writes waits before it looks for signals.
const POLL: Duration = Duration::from_millis(50);

/// How the memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Entries of a group that all threads have room for.
    pub wanted: u64,
    /// Entries of a group that one thread has room for.
    pub most: u64,
}

/// Groups of entries with these keys and values in so much memory.
///
/// # Errors
/// As [`crate::sort::sort_by`].
pub(super) fn groups_within(keys: &Expr, values: &[Expr], memory: u64, threads: usize) -> Result<Groups, EngineError> {
    let item: usize = values.iter().map(|values| values.dtype.size()).sum();
    let each = group_bytes(keys, values, UNIT)? + (ENCODED + item as u64) * UNIT;
    let within = |workers: u64| memory / (each + each * workers) * UNIT;
    // What is there of wide places and of single runs may be a little more.
    Ok(Groups {
        wanted: within(threads as u64).clamp(UNIT, GROUP),
        most: (within(1) / 8 * 7).max(UNIT),
    })
}

/// Threads that work at groups, and what they take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crew {
    workers: u64,
    /// Bytes that a group is read and sorted in.
    space: u64,
    /// Bytes of what is made of a group.
    encoded: u64,
}

impl Crew {
    /// As many threads as have room in so much memory, and one at least.
    pub fn within(memory: u64, parts: &Parts, item: u64, threads: usize) -> Crew {
        let largest = (0..parts.groups()).map(|group| parts.elements(group)).max();
        let of = |workers| Crew {
            workers,
            space: parts.space_bytes(),
            encoded: (ENCODED + item) * largest.unwrap_or(0),
        };
        // One more than compute at once: while it waits for its group to be read, they go on.
        let most = (threads as u64 + 1).min(parts.groups().max(1));
        let fits = (1..=most).rev().map(of).find(|crew| crew.bytes() <= memory);
        fits.unwrap_or(of(1))
    }

    pub fn workers(&self) -> usize {
        self.workers as usize
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.workers * self.space + self.encoded_bytes()
    }

    /// Of which so many are of what is made, until it is written: a group of each, and one that waits.
    fn encoded_bytes(&self) -> u64 {
        (self.workers + 1) * self.encoded
    }

    /// With one thread less, where there are several.
    fn fewer(self) -> Option<Crew> {
        let workers = self.workers - 1;
        (workers > 0).then_some(Crew { workers, ..self })
    }
}

/// The turns of the threads.
#[derive(Default)]
struct Turns {
    /// The group that is begun next.
    next: u64,
    /// Groups that are written.
    written: u64,
    ready: BTreeMap<u64, Result<Encoded, EngineError>>,
    /// Threads that are there, and how many of them are to go.
    present: u64,
    leaving: u64,
    /// No group is begun any more.
    is_over: bool,
}

#[derive(Default)]
struct IngestState {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl IngestState {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next group to work at, once those before it are few enough.
    fn begin(&self, groups: u64) -> Option<u64> {
        let mut turns = self.turns();
        loop {
            if turns.is_over || turns.next == groups {
                return None;
            }
            if turns.leaving > 0 {
                turns.leaving -= 1;
                return None;
            }
            if turns.next < turns.written + turns.present + 1 {
                turns.next += 1;
                return Some(turns.next - 1);
            }
            turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Has a thread go, and waits until it has given its memory back.
    fn dismiss(&self) {
        let mut turns = self.turns();
        let left = turns.present.saturating_sub(1);
        turns.leaving += 1;
        self.changed.notify_all();
        while turns.present > left {
            turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What was made of a group; nothing yet after a while.
    fn wait_for(&self, group: u64) -> Option<Result<Encoded, EngineError>> {
        let mut turns = self.turns();
        if !turns.ready.contains_key(&group) && !turns.is_over {
            let waited = self.changed.wait_timeout(turns, POLL);
            turns = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let gone = || EngineError::Internal("sparse: a thread that encodes is gone".into());
        let encoded = turns.ready.remove(&group);
        encoded.or_else(|| turns.is_over.then(|| Err(gone())))
    }
}

/// Ends the work of all when its thread panics, or has written.
struct Ending<'a> {
    shared: &'a IngestState,
    is_early: bool,
    /// It is one of those that encode.
    is_present: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut turns = self.shared.turns();
        turns.is_over |= self.is_early;
        turns.present -= u64::from(self.is_present);
        drop(turns);
        self.shared.changed.notify_all();
    }
}

/// Entries that are written: the first `count` of `parts`, whose first `keys` columns are their places.
#[derive(Clone, Copy)]
pub struct Ingest<'a> {
    pub parts: &'a Parts,
    pub keys: usize,
    pub count: u64,
}

impl Ingest<'_> {
    /// A thread's part.
    fn work(self, encoding: &EntryEncoder, shared: &IngestState, io: &Io) {
        let mut ending = Ending {
            shared,
            is_early: true,
            is_present: true,
        };
        let mut space = GroupSpace::default();
        while let Some(group) = shared.begin(self.parts.groups()) {
            let encoded = self.encode(group, encoding, &mut space, io);
            shared.turns().ready.insert(group, encoded);
            shared.changed.notify_all();
        }
        ending.is_early = false;
    }

    fn encode(
        self,
        group: u64,
        encoding: &EntryEncoder,
        space: &mut GroupSpace,
        io: &Io,
    ) -> Result<Encoded, EngineError> {
        let columns = self.parts.read(group, space, io)?;
        let (before, all) = (self.parts.before(group), self.parts.elements(group));
        let kept = self.count.saturating_sub(before).min(all) as usize;
        let words = |column: usize| &bytemuck::cast_slice::<u8, u64>(columns[column])[..kept];
        let values = columns.get(self.keys).map_or(&[][..], |values| {
            let item = values.len() / (all as usize).max(1);
            &values[..kept * item]
        });
        let tile_rows = (self.keys > 1).then(|| words(0));
        encoding.encode(tile_rows, words(self.keys - 1), values)
    }
}

/// The answer to a request for memory.
pub(super) enum MemoryGrant {
    Enough,
    /// There is not so much memory.
    Refused(EngineError),
}

/// How far an ingest is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assembled {
    /// Entries that are done.
    pub entries: u64,
    /// Memory that is taken.
    pub bytes: u64,
}

/// Writes entries by so many threads, or fewer. `watch` hears of it again and again,
/// and may end the work. Where it refuses memory for the file, of which a tile row is in it at a time, threads go.
///
/// # Errors
/// Files that cannot be read or written, entries that are refused, what `watch` says. No file is left behind then.
pub(super) fn assemble(
    ingest: Ingest<'_>,
    mut assembler: Assembler,
    mut crew: Crew,
    io: &Io,
    watch: &mut dyn FnMut(Assembled) -> Result<MemoryGrant, EngineError>,
) -> Result<SparseShape, EngineError> {
    let (shared, encoding) = (IngestState::default(), assembler.encoding());
    let (parts, workers) = (ingest.parts, crew.workers);
    shared.turns().present = workers;
    assembler.keep_spare(crew.encoded_bytes());
    let mut tell = |done: u64, assembler: &mut Assembler| loop {
        let refused = match watch(Assembled {
            entries: done,
            bytes: crew.bytes() + assembler.held_bytes() as u64,
        })? {
            MemoryGrant::Enough => return Ok::<_, EngineError>(()),
            MemoryGrant::Refused(error) => error,
        };
        crew = crew.fewer().ok_or(refused)?;
        shared.dismiss();
        assembler.keep_spare(crew.encoded_bytes());
    };
    std::thread::scope(|scope| {
        let _ending = Ending {
            shared: &shared,
            is_early: true,
            is_present: false,
        };
        for _ in 0..workers {
            scope.spawn(|| ingest.work(&encoding, &shared, io));
        }
        for group in 0..parts.groups() {
            let encoded = loop {
                match shared.wait_for(group) {
                    Some(encoded) => break encoded?,
                    None => tell(parts.before(group), &mut assembler)?,
                }
            };
            assembler.take(encoded, io)?;
            shared.turns().written = group + 1;
            shared.changed.notify_all();
            tell(parts.before(group + 1), &mut assembler)?;
        }
        Ok::<_, EngineError>(())
    })?;
    assembler.finish(io)
}
