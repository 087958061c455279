//! An arena of tiles' memory: buffers cut from chunks, given back, and let go of in whole huge pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rustix::mm::{madvise, Advice};

use crate::base::page::PAGE;
use crate::memory::mapping::{AlignedBuffer, Chunk, HUGE_PAGE};

/// Buffers of like sizes share chunks, so that neighbours that are freed together make room for larger ones.
struct Class {
    /// Largest buffer of the class.
    most_bytes: usize,
    chunk_bytes: usize,
    /// A device takes a bounded number of memory segments per request, and 4 KiB pages cut large transfers into small
    /// ones (measured: 1.2 GB/s against 2.9 GB/s in huge pages). A huge page for a small buffer is a waste.
    huge: bool,
}

const CLASSES: [Class; 3] = [
    Class {
        most_bytes: 256 << 10,
        chunk_bytes: 16 << 20,
        huge: false,
    },
    Class {
        most_bytes: 1 << 20,
        chunk_bytes: 256 << 20,
        huge: true,
    },
    Class {
        most_bytes: usize::MAX,
        chunk_bytes: 256 << 20,
        huge: true,
    },
];

fn class_of(bytes: usize) -> usize {
    CLASSES
        .iter()
        .position(|class| bytes <= class.most_bytes)
        .unwrap_or(CLASSES.len() - 1)
}

/// Disjoint ranges of addresses; neighbours are one.
#[derive(Default)]
struct Extents {
    by_address: BTreeMap<usize, usize>,
    by_length: BTreeSet<(usize, usize)>,
    bytes: usize,
}

impl Extents {
    fn remove(&mut self, address: usize) -> Option<usize> {
        let bytes = self.by_address.remove(&address)?;
        self.by_length.remove(&(bytes, address));
        self.bytes -= bytes;
        Some(bytes)
    }

    fn insert(&mut self, mut address: usize, mut bytes: usize) {
        if let Some((&before, &length)) = self.by_address.range(..address).next_back() {
            if before + length == address {
                self.remove(before);
                (address, bytes) = (before, length + bytes);
            }
        }
        if let Some(length) = self.remove(address + bytes) {
            bytes += length;
        }
        self.by_address.insert(address, bytes);
        self.by_length.insert((bytes, address));
        self.bytes += bytes;
    }

    /// Cuts `bytes` off the front of an extent.
    fn cut(&mut self, address: usize, bytes: usize) -> usize {
        if let Some(length) = self.remove(address).filter(|length| *length > bytes) {
            self.insert(address + bytes, length - bytes);
        }
        address
    }

    /// Cuts what there is up to an address off the front of the extent that begins at another. Returns how many bytes.
    fn cut_to(&mut self, address: usize, end: usize) -> usize {
        let there = self.by_address.get(&address).copied().unwrap_or(0);
        let bytes = there.min(end - address);
        if bytes > 0 {
            self.cut(address, bytes);
        }
        bytes
    }

    /// From the smallest extent that is large enough.
    fn take_smallest(&mut self, bytes: usize) -> Option<usize> {
        let &(_, address) = self.by_length.range((bytes, 0)..).next()?;
        Some(self.cut(address, bytes))
    }

    fn largest(&self) -> Option<(usize, usize)> {
        self.by_length.last().map(|&(bytes, address)| (address, bytes))
    }
}

/// Memory cut into buffers of any size. A buffer that is given back keeps its pages, so that the kernel need not clear them anew,
/// and serves any size: neighbours grow together.
///
/// Invariants:
/// 1. Live buffers, `touched` and `untouched` are disjoint and lie in `chunks`. Chunks never adjoin: each ends in a page that
///    belongs to none of them.
/// 2. No page of `untouched` is resident, nor becomes so when a buffer is written to: the kernel makes huge pages resident as a
///    whole, so one that a buffer ends in has its rest in `touched`. One that was broken up is not made whole again behind our back.
#[derive(Default)]
pub(crate) struct Arena {
    chunks: BTreeMap<usize, (Arc<Chunk>, usize)>,
    /// Given back; resident.
    touched: Extents,
    /// Never used, or let go of; by class.
    untouched: [Extents; CLASSES.len()],
    /// Huge pages of which a part was let go of.
    broken: BTreeSet<usize>,
}

impl Arena {
    /// Resident bytes that no buffer holds.
    pub fn cached(&self) -> usize {
        self.touched.bytes
    }

    /// A buffer of `bytes`, a multiple of `PAGE`, out of what was given back.
    pub fn reuse(&mut self, bytes: usize) -> Option<AlignedBuffer> {
        self.touched
            .take_smallest(bytes)
            .map(|address| self.buffer(address, bytes))
    }

    /// A buffer of `bytes`, a multiple of `PAGE`, of fresh memory. More may be kept then than before: the rest of a huge page.
    pub fn fresh(&mut self, bytes: usize) -> std::io::Result<AlignedBuffer> {
        let class = class_of(bytes);
        // The largest extent is the one least likely to lie in huge pages that were broken up.
        let found = self.untouched[class].largest().filter(|(_, length)| *length >= bytes);
        let address = match found {
            Some((address, _)) => address,
            None => self.map(class, bytes)?,
        };
        self.untouched[class].cut(address, bytes);
        self.mend(address..address + bytes);
        let mut buffer = self.buffer(address, bytes);
        let end = address + bytes;
        if CLASSES[class].huge && !end.is_multiple_of(HUGE_PAGE) {
            // The huge page is made resident now, so that letting go of its rest is for good.
            buffer[bytes - 1] = 0;
            let rest = self.untouched[class].cut_to(end, end.next_multiple_of(HUGE_PAGE));
            if rest > 0 {
                self.touched.insert(end, rest);
            }
        }
        Ok(buffer)
    }

    fn map(&mut self, class: usize, bytes: usize) -> std::io::Result<usize> {
        let room = bytes.checked_add(PAGE).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let chunk = Arc::new(Chunk::map(room.max(CLASSES[class].chunk_bytes), CLASSES[class].huge)?);
        let address = chunk.start.as_ptr() as usize;
        self.untouched[class].insert(address, chunk.bytes - PAGE);
        self.chunks.insert(address, (chunk, class));
        Ok(address)
    }

    fn chunk_of(&self, address: usize) -> &(Arc<Chunk>, usize) {
        let found = self.chunks.range(..=address).next_back();
        found.map(|(_, chunk)| chunk).expect("extents lie in chunks")
    }

    /// The buffer over a range that has just been cut out of the extents.
    fn buffer(&self, address: usize, bytes: usize) -> AlignedBuffer {
        let chunk = self.chunk_of(address).0.clone();
        let offset = address - chunk.start.as_ptr() as usize;
        // SAFETY: extents lie in their chunk, and the range in none of them any more.
        unsafe { AlignedBuffer::of_chunk(chunk, offset, bytes) }
    }

    /// Takes back a buffer of this arena.
    pub fn give(&mut self, buffer: AlignedBuffer) {
        self.touched.insert(buffer.start().as_ptr() as usize, buffer.len());
    }

    /// Lets the kernel have pages back until at most `allowed` bytes are kept, in whole huge pages where there are any.
    pub fn shrink_to(&mut self, allowed: usize) {
        while self.touched.bytes > allowed {
            let excess = (self.touched.bytes - allowed).next_multiple_of(PAGE);
            let Some((address, range)) = self.whole_pages(excess).or_else(|| self.broken_pages(excess)) else {
                return;
            };
            self.let_go(address, range);
        }
    }

    /// A range of whole huge pages that was given back, or of pages where there are no huge ones, and the extent it lies in.
    fn whole_pages(&self, excess: usize) -> Option<(usize, Range<usize>)> {
        self.touched.by_length.iter().rev().find_map(|&(length, address)| {
            let end = address + length;
            if !CLASSES[self.chunk_of(address).1].huge {
                let from = end.saturating_sub(excess) / HUGE_PAGE * HUGE_PAGE;
                return Some((address, from.max(address)..end));
            }
            let (first, last) = (address.next_multiple_of(HUGE_PAGE), end / HUGE_PAGE * HUGE_PAGE);
            let from = last.saturating_sub(excess) / HUGE_PAGE * HUGE_PAGE;
            (first < last).then(|| (address, from.max(first)..last))
        })
    }

    /// A range in huge pages that buffers have parts of. The kernel is told to leave such pages broken: it would make whole ones of
    /// them again some minutes later, with what was let go of.
    fn broken_pages(&mut self, excess: usize) -> Option<(usize, Range<usize>)> {
        let (address, length) = self.touched.largest()?;
        let end = address + length;
        let range = end.saturating_sub(excess).max(address)..end;
        let pages = range.start / HUGE_PAGE..range.end.div_ceil(HUGE_PAGE);
        for page in pages.map(|page| page * HUGE_PAGE) {
            if self.broken.insert(page) {
                self.advise(page.max(range.start), page..page + HUGE_PAGE, Advice::LinuxNoHugepage);
            }
        }
        Some((address, range))
    }

    fn let_go(&mut self, address: usize, range: Range<usize>) {
        let class = self.chunk_of(address).1;
        self.advise(address, range.clone(), Advice::LinuxDontNeed);
        let length = self.touched.remove(address).unwrap_or(0);
        for kept in [address..range.start, range.end..address + length] {
            if !kept.is_empty() {
                self.touched.insert(kept.start, kept.len());
            }
        }
        self.untouched[class].insert(range.start, range.len());
    }

    /// Advice for pages, as far as the chunk of an address has them: what was given back may be let go of, and other advice changes
    /// no bytes.
    fn advise(&self, address: usize, range: Range<usize>, advice: Advice) {
        let (chunk, _) = self.chunk_of(address);
        let base = chunk.start.as_ptr() as usize;
        let (from, end) = (range.start.max(base), range.end.min(base + chunk.bytes));
        // SAFETY: the range lies in the chunk; no buffer overlaps what is let go of.
        let _ = unsafe { madvise(chunk.start.as_ptr().add(from - base).cast(), end - from, advice) };
    }

    /// Huge pages that a new buffer has whole are to be such again.
    fn mend(&mut self, range: Range<usize>) {
        let whole = range.start.next_multiple_of(HUGE_PAGE)..range.end / HUGE_PAGE * HUGE_PAGE;
        if whole.is_empty() {
            return;
        }
        let pages: Vec<usize> = self.broken.range(whole).copied().collect();
        for page in pages {
            self.broken.remove(&page);
            self.advise(page, page..page + HUGE_PAGE, Advice::LinuxHugepage);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_given_back_serve_a_larger_buffer() {
        let mut arena = Arena::default();
        let small: Vec<AlignedBuffer> = (0..4).map(|_| arena.fresh(PAGE).unwrap()).collect();
        let first = small[0].start();
        assert!(arena.reuse(PAGE).is_none());
        small.into_iter().for_each(|buffer| arena.give(buffer));
        let large = arena.reuse(3 * PAGE).unwrap();
        assert_eq!((large.start(), arena.cached()), (first, PAGE));
        arena.give(large);
        arena.shrink_to(PAGE);
        assert!(arena.cached() <= PAGE);
        arena.shrink_to(0);
        assert_eq!(arena.cached(), 0);
        assert!(arena.fresh(PAGE).unwrap().iter().all(|&byte| byte == 0));
    }

    /// Resident bytes of the arena's chunks, as the kernel tells them page by page.
    fn resident(arena: &Arena) -> usize {
        let pages = std::fs::File::open("/proc/self/pagemap").unwrap();
        let of_chunk = |(&address, (chunk, _)): (&usize, &(Arc<Chunk>, usize))| {
            let mut entries = vec![0u8; chunk.bytes / PAGE * 8];
            pages.read_exact_at(&mut entries, (address / PAGE * 8) as u64).unwrap();
            let is_present = |entry: &&[u8]| entry[7] >> 7 == 1;
            entries.chunks_exact(8).filter(is_present).count() * PAGE
        };
        arena.chunks.iter().map(of_chunk).sum()
    }

    #[test]
    fn pages_that_are_resident_are_counted() {
        let (mut arena, mut live, mut state) = (Arena::default(), Vec::<AlignedBuffer>::new(), 1u32);
        for _ in 0..600 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = (state >> 8) as usize;
            // Sizes of tiles of fronts: whole ones, triangles and those at edges.
            let bytes = [512 * PAGE, 257 * PAGE, (65 + random % 600) * PAGE][random % 3];
            let mut buffer = arena.reuse(bytes).unwrap_or_else(|| arena.fresh(bytes).unwrap());
            buffer.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
            live.push(buffer);
            while live.iter().map(|buffer| buffer.len()).sum::<usize>() > 48 << 20 {
                let buffer = live.swap_remove(random % live.len());
                arena.give(buffer);
            }
            let held: usize = live.iter().map(|buffer| buffer.len()).sum();
            arena.shrink_to((56 << 20) - held);
            assert!(
                resident(&arena) <= held + arena.cached(),
                "{held} and {}",
                arena.cached()
            );
        }
        live.into_iter().for_each(|buffer| arena.give(buffer));
        arena.shrink_to(0);
        assert_eq!(resident(&arena), 0);
    }

    #[test]
    fn huge_pages_of_which_a_part_was_let_go_of_stay_broken() {
        let mut arena = Arena::default();
        let mut buffers: Vec<AlignedBuffer> = (0..12).map(|_| arena.fresh(700 * PAGE).unwrap()).collect();
        buffers.iter_mut().for_each(|buffer| buffer.fill(1));
        let mut number = 0;
        buffers.retain_mut(|buffer| {
            number += 1;
            if number % 2 == 0 {
                let given = std::mem::replace(buffer, AlignedBuffer::new(PAGE).unwrap());
                arena.give(given);
            }
            number % 2 == 1
        });
        arena.shrink_to(PAGE);
        // Each huge page that a buffer has a part of, and `untouched` another.
        let shared: Vec<usize> = arena.untouched[2]
            .by_address
            .iter()
            .flat_map(|(&address, &length)| [address, address + length])
            .filter(|end| !end.is_multiple_of(HUGE_PAGE))
            .map(|end| end / HUGE_PAGE * HUGE_PAGE)
            .filter(|page| {
                buffers.iter().any(|own| {
                    let start = own.start().as_ptr() as usize;
                    start < page + HUGE_PAGE && *page < start + own.len()
                })
            })
            .collect();
        assert!(!shared.is_empty());
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut flags: Vec<(Range<usize>, bool)> = vec![];
        for line in maps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            if let Some((start, end)) = range {
                if let (Ok(start), Ok(end)) = (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16)) {
                    flags.push((start..end, false));
                }
            }
            if let (Some(own), Some(last)) = (line.strip_prefix("VmFlags:"), flags.last_mut()) {
                last.1 = own.contains(" nh");
            }
        }
        for page in shared {
            let own = flags.iter().find(|(range, _)| range.contains(&page)).unwrap();
            assert!(own.1, "{page:x} may be made whole again");
        }
        let page = *arena.broken.first().unwrap();
        buffers.into_iter().for_each(|buffer| arena.give(buffer));
        arena.shrink_to(0);
        assert_eq!(resident(&arena), 0);
        let _all = arena.fresh(24 << 20).unwrap();
        assert!(!arena.broken.contains(&page));
    }

    proptest! {
        #[test]
        fn buffers_never_overlap(steps in proptest::collection::vec((0usize..3, 1usize..900, 0usize..40), 1..120)) {
            let mut arena = Arena::default();
            let mut live: Vec<(AlignedBuffer, u8)> = Vec::new();
            for (number, (what, pages, which)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        let bytes = pages * PAGE;
                        let found = arena.reuse(bytes);
                        let mut buffer = match found { Some(buffer) => buffer, None => arena.fresh(bytes).unwrap() };
                        prop_assert_eq!(buffer.len(), bytes);
                        let mark = number as u8;
                        buffer.iter_mut().step_by(PAGE / 2).for_each(|byte| *byte = mark);
                        live.push((buffer, mark));
                    }
                    _ if !live.is_empty() => {
                        let (buffer, mark) = live.swap_remove(which % live.len());
                        prop_assert!(buffer.iter().step_by(PAGE / 2).all(|&byte| byte == mark));
                        arena.give(buffer);
                        if which % 4 == 0 {
                            arena.shrink_to(pages * PAGE);
                            prop_assert!(arena.cached() <= pages * PAGE);
                        }
                    }
                    _ => {}
                }
            }
            for (buffer, mark) in live {
                prop_assert!(buffer.iter().step_by(PAGE / 2).all(|&byte| byte == mark));
            }
        }
    }
}
