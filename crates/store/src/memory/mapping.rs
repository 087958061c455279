//! Page-aligned anonymous memory: single buffers, and the arena that frames are cut from.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::base::page::PAGE;

const HUGE_PAGE: usize = 2 << 20;

/// A range of address space, unmapped when its last buffer is gone.
struct Chunk {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a chunk is only an owner of address space; its bytes are reached through the buffers cut from it.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn map(bytes: usize, huge: bool) -> std::io::Result<Chunk> {
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        if huge {
            // SAFETY: the range is the mapping just made. Huge pages are a wish; a refusal changes nothing.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Chunk { start, bytes })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map`, is owned here, and every buffer cut from it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Owned page-aligned memory. Its length is a multiple of `PAGE`.
///
/// Invariant: no other buffer overlaps it, whether it is a chunk of its own or was cut from an arena's.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
    /// Keeps the address space.
    _chunk: Arc<Chunk>,
}

// SAFETY: the range is owned by this value alone and reached through `&self`/`&mut self` only, as a `Box<[u8]>` is.
unsafe impl Send for AlignedBuffer {}
// SAFETY: `&AlignedBuffer` gives `&[u8]` only.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps at least `bytes`, zeroed, rounded up to whole pages and never empty.
    ///
    /// # Errors
    /// Memory that the system does not give.
    pub fn new(bytes: usize) -> std::io::Result<AlignedBuffer> {
        let bytes = round_up(bytes).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let chunk = Arc::new(Chunk::map(bytes, bytes >= HUGE_PAGE)?);
        Ok(AlignedBuffer {
            start: chunk.start,
            bytes,
            _chunk: chunk,
        })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Cuts the buffer in two: the first has so many bytes, a multiple of `PAGE`, of those that there are. Either may have none.
    /// The memory is given back when both are gone.
    ///
    /// # Panics
    /// There are fewer bytes, or they are not whole pages.
    pub fn split_at(self, bytes: usize) -> (AlignedBuffer, AlignedBuffer) {
        assert!(
            bytes <= self.bytes && bytes.is_multiple_of(PAGE),
            "a cut at byte {bytes}"
        );
        // SAFETY: within the range that this value owns, or at its end.
        let start = unsafe { self.start.add(bytes) };
        let behind = AlignedBuffer {
            start,
            bytes: self.bytes - bytes,
            _chunk: self._chunk.clone(),
        };
        (AlignedBuffer { bytes, ..self }, behind)
    }

    /// Undoes `split_at`.
    ///
    /// # Panics
    /// The buffers were not cut from one, or do not follow on each other.
    pub fn join(self, behind: AlignedBuffer) -> AlignedBuffer {
        let end = self.start.as_ptr().wrapping_add(self.bytes);
        let is_one = Arc::ptr_eq(&self._chunk, &behind._chunk) && end == behind.start.as_ptr();
        assert!(is_one, "two buffers that follow on each other");
        AlignedBuffer {
            bytes: self.bytes + behind.bytes,
            ..self
        }
    }
}

/// What zeros are a value of, and what needs not be dropped.
///
/// # Safety
/// Both are so.
pub unsafe trait Blank {}

// SAFETY: numbers, of which zeros are 0.
unsafe impl Blank for f64 {}
// SAFETY: as above.
unsafe impl Blank for AtomicU32 {}
// SAFETY: as above.
unsafe impl Blank for AtomicU64 {}

/// An empty vector with room for so many values, in large pages where the system has them: those of some megabytes are there
/// after a few faults instead of thousands, and what is read at random is found sooner.
pub fn large_vec<T>(count: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    let spare = values.spare_capacity_mut();
    let begin = spare.as_mut_ptr().cast::<u8>();
    let skip = begin.align_offset(PAGE);
    let whole = size_of_val(spare).saturating_sub(skip) / PAGE * PAGE;
    if whole >= HUGE_PAGE {
        // SAFETY: pages within the vector's allocation; the advice is a wish that changes no bytes.
        let _ = unsafe { madvise(begin.add(skip).cast(), whole, Advice::LinuxHugepage) };
    }
    values
}

/// Values in memory of their own, zeros at first, in large pages where the system has them: what is read at random is found
/// sooner. A virtual machine looks through two tables for each page that the processor does not remember.
pub struct LargePages<T: Blank> {
    memory: AlignedBuffer,
    count: usize,
    _values: PhantomData<T>,
}

impl<T: Blank> LargePages<T> {
    /// So many of them.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(count: usize) -> std::io::Result<LargePages<T>> {
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(LargePages {
            memory: AlignedBuffer::new(bytes)?,
            count,
            _values: PhantomData,
        })
    }
}

impl<T: Blank> Deref for LargePages<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        const { assert!(align_of::<T>() <= PAGE) };
        // SAFETY: the memory begins at a page, and so is aligned; it holds `count` values, of which zeros are (`Blank`), and
        // belongs to this value alone.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().cast(), self.count) }
    }
}

impl<T: Blank> DerefMut for LargePages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr().cast(), self.count) }
    }
}

/// `bytes` rounded up to whole pages, at least one.
pub(crate) fn round_up(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(PAGE)
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `bytes` initialized (zeroed by the kernel) bytes while `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

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

/// Memory cut into buffers of any size. What is given back keeps its pages, so that the kernel need not clear them anew,
/// and serves any size: neighbours grow together.
///
/// Invariants:
/// 1. Live buffers, `touched` and `untouched` are disjoint and lie in `chunks`. Chunks never adjoin: each ends in a page that
///    belongs to none of them.
/// 2. No page of `untouched` is resident, nor becomes so when a buffer is written to: the kernel makes huge pages resident as a
///    whole, so one that a buffer ends in has its rest in `touched`.
#[derive(Default)]
pub(crate) struct Arena {
    chunks: BTreeMap<usize, (Arc<Chunk>, usize)>,
    /// Given back; resident.
    touched: Extents,
    /// Never used, or let go of; by class.
    untouched: [Extents; CLASSES.len()],
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
        // SAFETY: extents lie in their chunk, so the offset does.
        let start = unsafe { chunk.start.add(offset) };
        AlignedBuffer {
            start,
            bytes,
            _chunk: chunk,
        }
    }

    /// Takes back a buffer of this arena.
    pub fn give(&mut self, buffer: AlignedBuffer) {
        self.touched.insert(buffer.start.as_ptr() as usize, buffer.bytes);
    }

    /// Lets the kernel have pages back until at most `allowed` bytes are kept, in whole huge pages where possible.
    pub fn shrink_to(&mut self, allowed: usize) {
        while self.touched.bytes > allowed {
            let Some((address, length)) = self.touched.largest() else {
                return;
            };
            let excess = self.touched.bytes - allowed;
            let end = address + length;
            let from = end.saturating_sub(excess) / HUGE_PAGE * HUGE_PAGE;
            let from = from.max(address);
            let (chunk, class) = self.chunk_of(address);
            let (base, class) = (chunk.start, *class);
            // SAFETY: the range lies in the chunk and in `touched`, so no buffer overlaps it.
            let _ = unsafe {
                let start = base.as_ptr().add(from - base.as_ptr() as usize);
                madvise(start.cast(), end - from, Advice::LinuxDontNeed)
            };
            self.touched.remove(address);
            if from > address {
                self.touched.insert(address, from - address);
            }
            self.untouched[class].insert(from, end - from);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_buffer_that_was_cut_is_joined_again_and_no_other() {
        let mut whole = AlignedBuffer::new(5 * PAGE).unwrap();
        whole
            .chunks_mut(PAGE)
            .zip(1..)
            .for_each(|(page, number)| page[0] = number);
        let start = whole.as_ptr();
        let (front, behind) = whole.split_at(2 * PAGE);
        let (middle, back) = behind.split_at(0);
        assert_eq!((front.len(), middle.len(), back.len()), (2 * PAGE, 0, 3 * PAGE));
        assert_eq!((front[PAGE], back[0]), (2, 3));
        let other = AlignedBuffer::new(PAGE).unwrap();
        let wrong = std::panic::catch_unwind(|| front.join(other));
        assert!(wrong.is_err());
        let whole = middle.join(back);
        assert_eq!((whole.len(), whole[2 * PAGE]), (3 * PAGE, 5));
        assert_eq!(whole.as_ptr(), start.wrapping_add(2 * PAGE));
        assert!(std::panic::catch_unwind(|| whole.split_at(4 * PAGE)).is_err());
    }

    #[test]
    fn large_vectors_are_vectors() {
        for count in [0, 1, 1000, 3 << 20] {
            let mut values = large_vec(count);
            assert!(values.is_empty() && values.capacity() >= count);
            values.extend(0..count);
            assert!(values.iter().copied().eq(0..count));
        }
    }

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
