//! The cache itself: sets, their memory, and what happens to one page under its set's lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::address::{even, set_of, Name};
use super::flusher::Flusher;
use super::join::{Joins, Joint};
use super::open_file::OpenFile;
use super::policy::{CachePolicy, SWEEPS};
use super::set::{ways, Line, Set, ALL, NO_FRAME, WAYS};
use crate::base::locked::locked as lock;
use crate::memory::pages::{locate, part_len, PageMemory, PageMut, PageRef, RECORD_BYTES};
use crate::{Io, Ledger, Reservation, StoreError};

/// How a cache is made.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Bytes of a page: a power of two, 512 at least, and no less than the alignment of the files that are opened.
    pub page_bytes: usize,
    /// Which page goes when another comes.
    pub policy: CachePolicy,
    /// Bytes of the largest request, a page at least, reserved besides the pages: a request that finds no room in the cache is served from
    /// there, one at a time.
    pub request_bytes: usize,
    /// Pages that one visit holds at once, where the cache is large enough.
    pub window_pages: usize,
    /// Dirty pages of a set (of 12) above which they are written out.
    pub dirty_most: usize,
    /// Dirty pages of a hundred above which a thread of the cache's own writes them out, neighbours together; 100 for none.
    pub flush_percent: usize,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            page_bytes: 4096,
            policy: CachePolicy::default(),
            request_bytes: 1 << 20,
            window_pages: 512,
            dirty_most: 8,
            flush_percent: 25,
        }
    }
}

/// What a cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Pages that were there when asked for.
    pub hits: u64,
    /// Pages that had to be read.
    pub misses: u64,
    /// Pages that somebody was reading already.
    pub joins: u64,
    /// Pages that gave way to others.
    pub evictions: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
}

#[derive(Default)]
pub(super) struct CacheTotals {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) joins: AtomicU64,
    pub(super) evictions: AtomicU64,
    pub(super) bytes_read: AtomicU64,
    pub(super) bytes_written: AtomicU64,
}

/// Pages of files in memory, in sets of twelve that are managed each on its own (SAFS: Zheng, 2.4).
///
/// Invariants:
/// 1. Pages, what is known of them, and the memory for requests that find no room are reserved in the ledger.
/// 2. A thread that waits for another's reading has none of its own under way, and a task is run under no lock but that
///    of the spare memory, which is taken with nothing under way: so somebody always goes on.
/// 3. Where a page belongs changes only while the set it leaves and the set it comes to are locked.
/// 4. There are as many ways without a frame, given up ones among them, as frames from `fresh` on. A way has its frame with its
///    first page: pages that come one after the other lie side by side, and memory that no page needs is not touched.
pub struct PageCache {
    pub(super) io: Io,
    pub(super) ledger: Ledger,
    pub(super) options: CacheOptions,
    pub(super) unit: usize,
    /// Sets now, and those that are meant to be once pages in use are let go of.
    pub(super) sets: AtomicUsize,
    pub(super) wanted: AtomicUsize,
    base: usize,
    lines: [OnceLock<Box<[Line]>>; 32],
    pub(super) memory: Arc<PageMemory>,
    /// The first frame that no way has yet.
    fresh: AtomicU32,
    /// The number of the sweep that is under way, and `LARGER` with it.
    sweep: AtomicU8,
    sweeps: Mutex<Sweeps>,
    pub(super) joins: Joins,
    pub(super) totals: CacheTotals,
    pub(super) files: Mutex<Files>,
    pub(super) size: Mutex<Size>,
    pub(super) spare: Mutex<Vec<PageMut>>,
    pub(super) flusher: Flusher,
}

/// Of a sweep that is larger than the cache.
const LARGER: u8 = 1 << 7;
const _: () = assert!(SWEEPS <= LARGER);

/// The last sweep that was larger than the cache.
#[derive(Default)]
struct Sweeps {
    number: u8,
    kind: usize,
}

/// Files by their numbers, which are not given twice.
#[derive(Default)]
pub(super) struct Files {
    pub(super) next: u32,
    pub(super) open: HashMap<u32, Arc<OpenFile>>,
}

/// What resizing needs, one at a time.
pub(super) struct Size {
    pub(super) reservation: Reservation,
    pub(super) frames: u32,
    /// Frames of no set, with the bytes that they are charged still.
    pub(super) free: Vec<(u32, usize)>,
}

/// What became of a wish for a page.
pub(super) enum Claim<'a> {
    /// It is there.
    Hit(PageRef<'a>),
    /// It is the caller's to read, and to publish.
    Load(PageMut),
    /// Somebody is reading it.
    Joined(Arc<Joint>),
    /// All pages of its set are in use.
    Full,
    /// Pages of its set must be written before it can come.
    Dirty,
}

/// A place for a page.
pub(super) enum CacheRoom {
    Way(usize, PageMut),
    Full,
    Dirty,
}

/// Bytes that are charged for a page besides its own: its record, its share of its set and of one that may be made ahead
/// (`part_len` doubles), its place in a list to flush and in the flusher's.
pub(super) const PAGE_OVERHEAD: usize = RECORD_BYTES + 2 * (size_of::<Line>() / WAYS + 1) + 2 * size_of::<u64>();

impl PageCache {
    /// A cache of at most `bytes` bytes, all told, reserved in the ledger now.
    ///
    /// # Errors
    /// When the ledger has less, or the bytes make no set besides the memory for one request.
    pub fn new(io: &Io, ledger: &Ledger, bytes: usize, options: CacheOptions) -> Result<Arc<PageCache>, StoreError> {
        let page_bytes = options.page_bytes;
        let request_bytes = options.request_bytes.max(page_bytes);
        let options = CacheOptions {
            request_bytes,
            ..options
        };
        if !page_bytes.is_power_of_two() || page_bytes < 512 {
            let reason = format!("a page of {page_bytes} bytes: a power of two from 512 on is needed");
            return Err(StoreError::Invalid(reason));
        }
        let whole = page_bytes + PAGE_OVERHEAD;
        let spare = request_bytes.div_ceil(page_bytes) + 1;
        let least = (spare + WAYS) * whole;
        let Some(room) = bytes.checked_sub(spare * whole).filter(|_| bytes >= least) else {
            let reason = format!("a page cache of {bytes} bytes: requests of {request_bytes} bytes need {least}");
            return Err(StoreError::Invalid(reason));
        };
        let (unit, sets) = even(room / (WAYS * whole));
        let frames = spare + sets * WAYS;
        let reservation = ledger.reserve(frames * whole, "the page cache")?;
        let memory = Arc::new(PageMemory::new(page_bytes, frames));
        let map = |cause| StoreError::io("the page cache".as_ref(), 0, "map memory", cause);
        memory.make(0).map_err(map)?;
        let spare_pages = (0..spare as u32).filter_map(|frame| memory.own(frame)).collect();
        let cache = Arc::new(PageCache {
            io: io.clone(),
            ledger: ledger.clone(),
            options,
            unit,
            sets: AtomicUsize::new(sets),
            wanted: AtomicUsize::new(sets),
            base: sets,
            lines: [const { OnceLock::new() }; 32],
            memory,
            fresh: AtomicU32::new(spare as u32),
            sweep: AtomicU8::new(0),
            sweeps: Mutex::default(),
            joins: Joins::default(),
            totals: CacheTotals::default(),
            files: Mutex::default(),
            size: Mutex::new(Size {
                reservation,
                frames: frames as u32,
                free: Vec::new(),
            }),
            spare: Mutex::new(spare_pages),
            flusher: Flusher::default(),
        });
        cache.make_lines(0);
        cache.register();
        Ok(cache)
    }

    /// A sweep begins. Where it asks for each of its pages once, of the `kind` of pages that it is about, and has more of them than
    /// there is room for, and the next of its kind goes the other way, Gclock lets go of pages that it has asked for before those
    /// that the last one did and that it may still come to. `None`: any other sweep.
    pub fn sweep(&self, kind: Option<usize>) {
        let mut now = lock(&self.sweeps);
        if let Some(kind) = kind {
            // Of those of another kind none is the last one.
            now.number = (now.number + 1 + u8::from(kind != now.kind)) % SWEEPS;
            now.kind = kind;
        }
        let is_larger = if kind.is_some() { LARGER } else { 0 };
        self.sweep.store(now.number | is_larger, Ordering::Relaxed);
    }

    /// The number of the sweep, and whether it is larger than the cache.
    #[inline]
    fn now(&self) -> (u8, bool) {
        let sweep = self.sweep.load(Ordering::Relaxed);
        (sweep % SWEEPS, sweep & LARGER != 0)
    }

    /// A way's page was used.
    #[inline]
    pub(super) fn touch(&self, set: &mut Set, way: usize) {
        self.options.policy.touch(set, way, self.now().0);
    }

    /// Counted since the cache was made.
    pub fn counters(&self) -> CacheCounters {
        let totals = &self.totals;
        let of = |total: &AtomicU64| total.load(Ordering::Relaxed);
        CacheCounters {
            hits: of(&totals.hits),
            misses: of(&totals.misses),
            joins: of(&totals.joins),
            evictions: of(&totals.evictions),
            bytes_read: of(&totals.bytes_read),
            bytes_written: of(&totals.bytes_written),
        }
    }

    /// Pages that there is room for now.
    pub fn pages(&self) -> usize {
        self.sets.load(Ordering::Relaxed) * WAYS
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.options.page_bytes
    }

    /// Bytes of the largest request.
    pub fn request_bytes(&self) -> usize {
        self.options.request_bytes
    }

    /// Pages that a visit may hold at once: a part of the cache, so that several visits find room.
    pub(super) fn window(&self) -> usize {
        self.options.window_pages.min(self.pages() / 4).max(1)
    }

    /// Sees to it that set `set` can be used. Not from two threads at once.
    pub(super) fn make_lines(&self, set: usize) {
        let (part, _) = locate(self.base, set);
        let fresh = || Line(Mutex::new(Set::new(self.options.policy.fresh(), [NO_FRAME; WAYS])));
        self.lines[part].get_or_init(|| (0..part_len(self.base, part)).map(|_| fresh()).collect());
    }

    pub(super) fn line(&self, set: usize) -> &Line {
        let (part, at) = locate(self.base, set);
        &self.lines[part].get().expect("sets are made before they are used")[at]
    }

    /// Says that the page's set will be looked at soon.
    #[inline]
    pub(super) fn expect(&self, name: Name) {
        let line = self.line(set_of(name, self.unit, self.sets.load(Ordering::Relaxed)));
        line.expect();
    }

    /// Runs `job` on the page's set.
    #[inline]
    pub(super) fn locked<R>(&self, name: Name, job: impl FnOnce(&mut Set) -> R) -> R {
        loop {
            let sets = self.sets.load(Ordering::Acquire);
            let at = set_of(name, self.unit, sets);
            let mut set = lock(&self.line(at).0);
            // Where the page belongs cannot change any more if it has not (invariant 3).
            let now = self.sets.load(Ordering::Acquire);
            if now == sets || set_of(name, self.unit, now) == at {
                return job(&mut set);
            }
        }
    }

    /// The frame that very likely has the page, which is taken for used; `pin_named` makes sure.
    #[inline]
    pub(super) fn glimpse(&self, name: Name) -> Option<u32> {
        self.locked(name, |set| {
            let way = set.find(name.tag(), |_| true)?;
            self.touch(set, way);
            let frame = set.frames[way];
            self.memory.expect(frame);
            Some(frame)
        })
    }

    #[inline]
    pub(super) fn find(&self, set: &Set, name: Name) -> Option<usize> {
        set.find(name.tag(), |frame| self.memory.name(frame) == name.0)
    }

    /// The page, pinned, or what to do to have it.
    pub(super) fn claim(&self, name: Name) -> Claim<'_> {
        self.locked(name, |set| {
            if let Some(there) = self.present(set, name) {
                return there;
            }
            match self.room(set) {
                CacheRoom::Full => Claim::Full,
                CacheRoom::Dirty => Claim::Dirty,
                CacheRoom::Way(way, page) => {
                    self.enter(set, way, name);
                    set.loading |= 1 << way;
                    Claim::Load(page)
                }
            }
        })
    }

    /// As `claim`, but writes the pages of its set where none can go before. Others may make them dirty anew: after some tries
    /// that is what is told.
    ///
    /// # Errors
    /// Those of a write.
    pub(super) fn claim_cleaning(&self, name: Name) -> Result<Claim<'_>, StoreError> {
        let mut claim = self.claim(name);
        for _ in 0..3 {
            if let Claim::Dirty = claim {
                self.clean_set(name)?;
                claim = self.claim(name);
            }
        }
        Ok(claim)
    }

    /// As `claim`, but only if the page is there or on its way.
    pub(super) fn look(&self, name: Name) -> Option<Claim<'_>> {
        self.locked(name, |set| self.present(set, name))
    }

    #[inline]
    fn present(&self, set: &mut Set, name: Name) -> Option<Claim<'_>> {
        let way = self.find(set, name)?;
        if set.loading & (1 << way) != 0 {
            return Some(Claim::Joined(self.joins.join(name)));
        }
        self.touch(set, way);
        let page = self.memory.pin(set.frames[way]);
        Some(page.map_or(Claim::Full, Claim::Hit))
    }

    /// A frame for a page to come: one without page, or that of the page the policy can do without.
    pub(super) fn room(&self, set: &mut Set) -> CacheRoom {
        for way in ways(!set.held & ALL) {
            if set.frames[way] == NO_FRAME {
                // Who made the frame is known to who had the one before.
                set.frames[way] = self.fresh.fetch_add(1, Ordering::AcqRel);
            }
            if let Some(page) = self.memory.own(set.frames[way]) {
                page.use_it();
                return CacheRoom::Way(way, page);
            }
        }
        let mut clean = set.held & !(set.loading | set.dirty | set.writing);
        let ((sweep, is_larger), policy) = (self.now(), self.options.policy);
        let victim = |set: &mut Set, clean| match is_larger {
            true => policy.victim_of_sweep(set, clean, sweep),
            false => policy.victim(set, clean),
        };
        while let Some(way) = victim(set, clean) {
            if let Some(page) = self.memory.own(set.frames[way]) {
                set.clear(way);
                self.totals.evictions.fetch_add(1, Ordering::Relaxed);
                return CacheRoom::Way(way, page);
            }
            clean &= !(1 << way);
        }
        let idle = |way: usize| self.memory.own(set.frames[way]).is_some();
        if ways(set.dirty & !set.writing).any(idle) {
            CacheRoom::Dirty
        } else {
            CacheRoom::Full
        }
    }

    pub(super) fn enter(&self, set: &mut Set, way: usize, name: Name) {
        set.tags[way] = name.tag();
        set.held |= 1 << way;
        self.memory.set_name(set.frames[way], name.0);
        self.options.policy.enter(set, way, self.now().0);
    }

    /// Ends the reading of a page that `claim` gave to read; pins it if it has been read, else the page is absent. All that
    /// joined are told the outcome.
    pub(super) fn publish(&self, name: Name, page: PageMut, outcome: &Result<(), StoreError>) -> Option<PageRef<'_>> {
        self.locked(name, |set| {
            let way = self
                .find(set, name)
                .expect("a page that is being read stays in its set");
            let frame = page.frame();
            if outcome.is_err() {
                page.forget();
            }
            drop(page);
            set.loading &= !(1 << way);
            let pinned = match outcome {
                Ok(()) => self.memory.pin(frame),
                Err(_) => {
                    set.clear(way);
                    None
                }
            };
            self.joins.finish(name, outcome);
            pinned
        })
    }

    /// Gives back a page that `claim` gave to read, unread. Whoever joined claims it anew.
    pub(super) fn abandon(&self, name: Name, page: PageMut) {
        self.locked(name, |set| {
            let way = self
                .find(set, name)
                .expect("a page that is being read stays in its set");
            page.forget();
            drop(page);
            set.clear(way);
            self.joins.finish(name, &Ok(()));
        });
    }
}
