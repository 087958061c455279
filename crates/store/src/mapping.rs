//! Page-aligned anonymous memory. Unmapping gives it back to the system at once, so the resident size follows the ledger.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::frames::PAGE;

/// Mappings from this size on ask for huge pages.
const HUGE_BYTES: usize = 2 << 20;

/// Owned page-aligned memory, zero when fresh. Its length is a multiple of `PAGE`.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone and reached through `&self`/`&mut self` only, as a `Box<[u8]>` is.
unsafe impl Send for AlignedBuffer {}
// SAFETY: `&AlignedBuffer` gives `&[u8]` only.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps at least `bytes`, rounded up to whole pages and never empty.
    pub fn new(bytes: usize) -> std::io::Result<AlignedBuffer> {
        let bytes = round_up(bytes).ok_or(std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        if bytes >= HUGE_BYTES {
            // SAFETY: the range is the mapping just made. Huge pages are a wish; a refusal changes nothing.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(AlignedBuffer { start, bytes })
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
        // SAFETY: the mapping was made in `new`, is owned here, and no borrow outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
