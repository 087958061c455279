//! Page-aligned anonymous memory. Dropping a buffer gives its memory back at once, so the resident size follows the ledger.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::frames::PAGE;

/// Buffers from this size on share chunks of huge pages: a device takes a bounded number of memory segments per request,
/// and 4 KiB pages cut large transfers into small ones (measured: 1.2 GB/s against 2.9 GB/s in huge pages).
const SHARED_BYTES: usize = 256 << 10;
/// Address space of a chunk; memory is taken only as buffers are touched.
const CHUNK_BYTES: usize = 256 << 20;
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
    fn map(bytes: usize) -> std::io::Result<Chunk> {
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        if bytes >= HUGE_PAGE {
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

/// The chunk that buffers are cut from, and how far it is used.
static CURRENT: Mutex<Option<(Arc<Chunk>, usize)>> = Mutex::new(None);

/// Owned page-aligned memory, zero when fresh. Its length is a multiple of `PAGE`.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
    chunk: Arc<Chunk>,
}

// SAFETY: the range is owned by this value alone and reached through `&self`/`&mut self` only, as a `Box<[u8]>` is.
unsafe impl Send for AlignedBuffer {}
// SAFETY: `&AlignedBuffer` gives `&[u8]` only.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps at least `bytes`, rounded up to whole pages and never empty.
    pub fn new(bytes: usize) -> std::io::Result<AlignedBuffer> {
        let bytes = round_up(bytes).ok_or(std::io::ErrorKind::OutOfMemory)?;
        if !(SHARED_BYTES..=CHUNK_BYTES / 4).contains(&bytes) {
            let chunk = Arc::new(Chunk::map(bytes)?);
            return Ok(AlignedBuffer {
                start: chunk.start,
                bytes,
                chunk,
            });
        }
        let mut current = CURRENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (chunk, used) = match current.take() {
            Some((chunk, used)) if used + bytes <= chunk.bytes => (chunk, used),
            _ => (Arc::new(Chunk::map(CHUNK_BYTES)?), 0),
        };
        // SAFETY: `used + bytes` lies within the chunk, and no other buffer was or will be cut from this range.
        let start = unsafe { chunk.start.add(used) };
        *current = Some((chunk.clone(), used + bytes));
        Ok(AlignedBuffer { start, bytes, chunk })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
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

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.bytes < self.chunk.bytes {
            // SAFETY: the range is this buffer's alone and no borrow outlives it; its memory goes back at once, its
            // addresses when the whole chunk does.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxDontNeed) };
        }
    }
}
