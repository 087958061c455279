//! Frames: the memory that holds tiles, reused by exact size.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::ledger::Reclaim;
use crate::mapping::{round_up, AlignedBuffer};
use crate::{Ledger, Reservation, StoreError};

/// The unit of alignment for memory and for direct I/O.
pub const PAGE: usize = 4096;

/// Allocates frames from one ledger.
///
/// Invariant: what is cached for reuse plus what the ledger has granted never exceeds the ledger's limit once an
/// `allocate` or `reserve` has returned; the ledger asks the pool to shrink.
#[derive(Clone)]
pub struct FramePool(Arc<Pool>);

struct Pool {
    ledger: Ledger,
    free: Mutex<Free>,
}

/// Unused mappings, the oldest first.
#[derive(Default)]
struct Free {
    mappings: VecDeque<AlignedBuffer>,
    bytes: usize,
}

impl Pool {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self, bytes: usize) -> Option<AlignedBuffer> {
        let mut free = self.free();
        let newest = free.mappings.iter().rposition(|mapping| mapping.len() == bytes)?;
        free.bytes -= bytes;
        free.mappings.remove(newest)
    }

    fn give(&self, mapping: AlignedBuffer) {
        let mut free = self.free();
        free.bytes += mapping.len();
        free.mappings.push_back(mapping);
    }
}

impl Reclaim for Pool {
    fn shrink_to(&self, allowed: usize) {
        let mut free = self.free();
        while free.bytes > allowed {
            let Some(oldest) = free.mappings.pop_front() else {
                break;
            };
            free.bytes -= oldest.len();
        }
    }
}

impl FramePool {
    pub fn new(ledger: Ledger) -> FramePool {
        let pool = Arc::new(Pool {
            ledger: ledger.clone(),
            free: Mutex::default(),
        });
        let as_reclaimer: Arc<dyn Reclaim> = pool.clone();
        ledger.set_reclaimer(Arc::downgrade(&as_reclaimer));
        FramePool(pool)
    }

    /// What the ledger is charged for a frame of this capacity: whole pages, at least one.
    pub fn frame_bytes(capacity: usize) -> usize {
        round_up(capacity).unwrap_or(usize::MAX)
    }

    /// A frame of `capacity` bytes. Its contents are unspecified.
    pub fn allocate(&self, capacity: usize, what: &str) -> Result<Frame, StoreError> {
        let bytes = FramePool::frame_bytes(capacity);
        let reused = self.0.take(bytes);
        let reservation = match self.0.ledger.reserve(bytes, what) {
            Ok(reservation) => reservation,
            Err(error) => {
                reused.into_iter().for_each(|mapping| self.0.give(mapping));
                return Err(error);
            }
        };
        let mapping = match reused {
            Some(mapping) => mapping,
            None => {
                AlignedBuffer::new(bytes).map_err(|cause| StoreError::io(Path::new(what), 0, "map memory", cause))?
            }
        };
        Ok(Frame {
            mapping: Some(mapping),
            capacity,
            pool: self.0.clone(),
            _reservation: reservation,
        })
    }

    /// Unmaps everything kept for reuse.
    pub fn trim(&self) {
        self.0.shrink_to(0);
    }

    /// Bytes kept for reuse.
    pub fn cached(&self) -> usize {
        self.0.free().bytes
    }

    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }
}

/// Page-aligned memory of one tile; it owns its reservation.
pub struct Frame {
    mapping: Option<AlignedBuffer>,
    capacity: usize,
    pool: Arc<Pool>,
    _reservation: Reservation,
}

impl Frame {
    /// The frame with its slack up to whole pages, as direct writes want it.
    pub fn padded(&self) -> &[u8] {
        self.mapping.as_deref().unwrap_or_default()
    }

    pub(crate) fn start(&self) -> Option<std::ptr::NonNull<u8>> {
        self.mapping.as_ref().map(AlignedBuffer::start)
    }
}

impl Deref for Frame {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.padded()[..self.capacity]
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        let capacity = self.capacity;
        &mut self.mapping.as_deref_mut().unwrap_or_default()[..capacity]
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            self.pool.give(mapping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_page_aligned_and_charged_in_pages() {
        let pool = FramePool::new(Ledger::new(1 << 20));
        let mut frame = pool.allocate(5000, "t").unwrap();
        assert_eq!(frame.as_ptr() as usize % PAGE, 0);
        assert_eq!(
            (frame.len(), frame.padded().len(), pool.ledger().used()),
            (5000, 8192, 8192)
        );
        frame[4999] = 7;
        drop(frame);
        assert_eq!((pool.ledger().used(), pool.cached()), (0, 8192));
        pool.trim();
        assert_eq!(pool.cached(), 0);
    }

    #[test]
    fn cached_memory_gives_way_to_any_reservation() {
        let pool = FramePool::new(Ledger::new(4 * PAGE));
        drop(pool.allocate(3 * PAGE, "a").unwrap());
        let workspace = pool.ledger().reserve(2 * PAGE, "workspace").unwrap();
        assert_eq!(pool.cached(), 0);
        assert!(pool.allocate(3 * PAGE, "b").is_err());
        drop(workspace);
        let first = pool.allocate(PAGE, "c").unwrap();
        let address = first.as_ptr();
        drop(first);
        assert_eq!(pool.allocate(PAGE, "d").unwrap().as_ptr(), address);
    }
}
