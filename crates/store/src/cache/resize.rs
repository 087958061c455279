//! Growing and shrinking, set by set, while the cache is in use (linear hashing: Litwin; SAFS 2.4.1).

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Weak};

use super::address::{partner, set_of, Name};
use super::core::{PageCache, Size, PAGE_OVERHEAD};
use super::set::{ways, Set, ALL, NO_FRAME, WAYS};
use crate::base::locked::locked as lock;
use crate::memory::ledger::Reclaim;
use crate::StoreError;

/// How often dirty pages are written before a set that others keep making dirty is left as it is.
const PATIENCE: usize = 4;

impl PageCache {
    /// Makes the cache as large as `bytes` allow, all told. It grows at once or not at all; it shrinks as far as pages in
    /// use allow, and to the end when the visits that use them are over.
    ///
    /// # Errors
    /// When the ledger refuses; when `bytes` are fewer than the least this cache can have; when a dirty page that has to
    /// go cannot be written. Nothing is lost then: the cache is as large as it has become.
    pub fn resize(&self, bytes: usize) -> Result<(), StoreError> {
        let least = self.bytes_of(self.unit);
        if bytes < least {
            let reason = format!("a page cache of {bytes} bytes: this one cannot have less than {least}");
            return Err(StoreError::Invalid(reason));
        }
        let target = self.unit + (bytes - least) / (WAYS * self.whole());
        let mut size = lock(&self.size);
        self.wanted.store(target, Relaxed);
        self.grow(&mut size, target)?;
        self.shrink(&mut size, target)
    }

    /// Bytes that the cache holds in the ledger.
    pub fn bytes(&self) -> usize {
        lock(&self.size).reservation.bytes()
    }

    fn whole(&self) -> usize {
        self.options.page_bytes + PAGE_OVERHEAD
    }

    fn bytes_of(&self, sets: usize) -> usize {
        let spare = self.options.request_bytes.div_ceil(self.options.page_bytes) + 1;
        (spare + sets * WAYS) * self.whole()
    }

    /// Says that it is there, and used: where memory is short, other caches of the ledger give theirs first.
    pub fn register(self: &Arc<Self>) {
        let held: Arc<dyn Reclaim> = self.clone();
        let held: Weak<dyn Reclaim> = Arc::downgrade(&held);
        self.ledger.add_pages(held);
    }

    /// Goes on shrinking once pages that were in use may not be any more.
    pub(super) fn shrink_if_wanted(&self) {
        let wanted = self.wanted.load(Relaxed);
        if wanted < self.sets.load(Relaxed) {
            if let Ok(mut size) = self.size.try_lock() {
                // Dirty pages that cannot be written stay, and with them their sets.
                let _ = self.shrink(&mut size, wanted);
            }
        }
    }

    fn grow(&self, size: &mut Size, target: usize) -> Result<(), StoreError> {
        let sets = self.sets.load(Relaxed);
        let more = target.saturating_sub(sets) * WAYS;
        let reused = more.min(size.free.len());
        let charged: usize = size.free.iter().rev().take(reused).map(|(_, charged)| charged).sum();
        let need = more * self.whole() - charged;
        if more == 0 {
            return Ok(());
        }
        size.reservation.join(self.ledger.reserve(need, "the page cache")?);
        for _ in sets..target {
            if let Err(cause) = self.grow_by_one(size) {
                let made = self.sets.load(Relaxed);
                self.wanted.store(made, Relaxed);
                // What is charged for what did not come: pages of the sets missing.
                size.reservation
                    .give_back((target - made) * WAYS * self.options.page_bytes);
                return Err(StoreError::io("the page cache".as_ref(), 0, "map memory", cause));
            }
        }
        Ok(())
    }

    /// Adds a set: its partner's pages that belong to it now move there, with their frames.
    fn grow_by_one(&self, size: &mut Size) -> std::io::Result<()> {
        let sets = self.sets.load(Relaxed);
        let mut frames = [0; WAYS];
        for frame in &mut frames {
            *frame = match size.free.pop() {
                Some((frame, _)) => frame,
                None => {
                    self.memory.make(size.frames)?;
                    size.frames += 1;
                    NO_FRAME
                }
            };
        }
        self.make_lines(sets);
        let policy = self.options.policy;
        let mut from = lock(&self.line(partner(self.unit, sets)).0);
        let mut to = lock(&self.line(sets).0);
        *to = Set::new(policy.fresh(), frames);
        for way in ways(from.held) {
            let name = Name(self.memory.name(from.frames[way]));
            if set_of(name, self.unit, sets + 1) == sets {
                let empty = ways(!to.held & ALL).next().expect("a set's pages fit in a set");
                from.exchange(way, &mut to, empty);
            }
        }
        policy.merge_uses(&mut from);
        policy.merge_uses(&mut to);
        self.sets.store(sets + 1, Release);
        Ok(())
    }

    fn shrink(&self, size: &mut Size, target: usize) -> Result<(), StoreError> {
        let mut patience = PATIENCE;
        while self.sets.load(Relaxed) > target.max(self.unit) {
            if self.shrink_by_one(size) {
                patience = PATIENCE;
                continue;
            }
            let (dirty, writing) = self.unwritten_of_last();
            if dirty.is_empty() && writing.is_empty() || patience == 0 {
                return Ok(());
            }
            patience -= 1;
            self.write_out(dirty)?;
            // Who writes them needs nothing that is held here.
            writing.into_iter().for_each(|name| self.wait_until_written(name));
        }
        Ok(())
    }

    /// Pages of the last set and its partner that are dirty, and those that somebody writes.
    fn unwritten_of_last(&self) -> (BTreeSet<(u32, u64)>, Vec<Name>) {
        let last = self.sets.load(Relaxed) - 1;
        let (mut dirty, mut writing) = (BTreeSet::new(), Vec::new());
        for at in [partner(self.unit, last), last] {
            let set = lock(&self.line(at).0);
            dirty.extend(self.dirty_of(&set).iter().map(|name| (name.file(), name.page())));
            writing.extend(ways(set.writing).map(|way| Name(self.memory.name(set.frames[way]))));
        }
        (dirty, writing)
    }

    /// Gives the last set up: the best pages of it and of its partner stay. Whether that could be done.
    fn shrink_by_one(&self, size: &mut Size) -> bool {
        let last = self.sets.load(Relaxed) - 1;
        let policy = self.options.policy;
        let mut to = lock(&self.line(partner(self.unit, last)).0);
        let mut from = lock(&self.line(last).0);
        // Bits 0 to 11 are the pages of `to`, bits 12 to 23 those of `from`.
        let clean = |set: &Set| u32::from(set.held & !(set.loading | set.dirty | set.writing));
        let mut allowed = clean(&to) | clean(&from) << WAYS;
        while to.held.count_ones() + from.held.count_ones() > WAYS as u32 {
            let uses = |way: usize| {
                if way < WAYS {
                    to.uses[way]
                } else {
                    from.uses[way - WAYS]
                }
            };
            let all = (0..2 * WAYS).filter(|way| allowed & (1 << way) != 0);
            let Some(way) = all.min_by_key(|&way| policy.rank(uses(way))) else {
                return false;
            };
            allowed &= !(1 << way);
            let (set, at) = if way < WAYS {
                (&mut to, way)
            } else {
                (&mut from, way - WAYS)
            };
            if self.memory.own(set.frames[at]).is_some() {
                set.clear(at);
                self.totals.evictions.fetch_add(1, Relaxed);
            }
        }
        for way in ways(from.held) {
            let empty = ways(!to.held & ALL).next().expect("no more pages than ways");
            from.exchange(way, &mut to, empty);
        }
        policy.merge_uses(&mut to);
        for frame in from.frames {
            let discarded = match frame {
                NO_FRAME => self.options.page_bytes,
                _ => self.memory.own(frame).map_or(0, |mut page| page.discard()),
            };
            size.reservation.give_back(discarded);
            size.free.push((frame, self.whole() - discarded));
        }
        self.sets.store(last, Release);
        true
    }
}

impl Reclaim for PageCache {
    /// What it could do without.
    fn bytes(&self) -> usize {
        // What is known of pages stays charged, for those that come again.
        let more = self.sets.load(Relaxed).saturating_sub(self.unit);
        more * WAYS * self.options.page_bytes
    }

    fn shrink_to(&self, allowed: usize) {
        let mut size = lock(&self.size);
        let target = self.unit + allowed / (WAYS * self.options.page_bytes);
        self.wanted.fetch_min(target, Relaxed);
        // Dirty pages that cannot be written stay; so do pages in use until the visits that use them are over.
        let _ = self.shrink(&mut size, target);
    }

    fn reserved(&self) -> usize {
        self.bytes()
    }

    fn untouched(&self) -> usize {
        self.reserved()
            .saturating_sub(self.memory.used() * self.options.page_bytes)
    }
}
