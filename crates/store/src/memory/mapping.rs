//! Page-aligned anonymous memory: chunks of address space, and buffers.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::base::page::PAGE;

pub(super) const HUGE_PAGE: usize = 2 << 20;

/// A range of address space, unmapped when its last buffer is gone.
pub(super) struct Chunk {
    pub start: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: a chunk is only an owner of address space; its bytes are reached through the buffers cut from it.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    pub fn map(bytes: usize, huge: bool) -> std::io::Result<Chunk> {
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
    /// So many bytes of a chunk.
    ///
    /// # Safety
    /// They lie in the chunk, and no other buffer overlaps them.
    pub(super) unsafe fn of_chunk(chunk: Arc<Chunk>, offset: usize, bytes: usize) -> AlignedBuffer {
        // SAFETY: as above.
        let start = unsafe { chunk.start.add(offset) };
        AlignedBuffer {
            start,
            bytes,
            _chunk: chunk,
        }
    }

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

    /// As `new`, as many whole large pages as it has, where the system has them, and then small ones.
    ///
    /// # Errors
    /// Memory that the system does not give.
    pub(crate) fn of_large_pages(bytes: usize) -> std::io::Result<AlignedBuffer> {
        let whole = round_up(bytes).and_then(|bytes| Some((bytes, bytes.checked_add(HUGE_PAGE)?)));
        let (bytes, mapped) = whole.ok_or(std::io::ErrorKind::OutOfMemory)?;
        let chunk = Arc::new(Chunk::map(mapped, false)?);
        let skipped = chunk.start.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
        // SAFETY: less than a large page is skipped, and the chunk has one more than the buffer, which is its only one.
        let buffer = unsafe { AlignedBuffer::of_chunk(chunk, skipped, bytes) };
        let large = bytes / HUGE_PAGE * HUGE_PAGE;
        if large > 0 {
            // SAFETY: within the buffer; a wish that changes no bytes.
            let _ = unsafe { madvise(buffer.start.as_ptr().cast(), large, Advice::LinuxHugepage) };
        }
        Ok(buffer)
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
