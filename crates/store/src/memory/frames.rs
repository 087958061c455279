//! Frames: the memory that holds tiles, reused.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::base::page::PAGE;
use crate::memory::arena::Arena;
use crate::memory::ledger::Reclaim;
use crate::memory::mapping::{round_up, AlignedBuffer};
use crate::{Ledger, Reservation, StoreError};

/// Allocates frames from one ledger.
///
/// Invariant: what is cached for reuse plus what the ledger has granted never exceeds the ledger's limit once an
/// `allocate` or `reserve` has returned; the ledger asks the pool to shrink.
#[derive(Clone)]
pub struct FramePool(Arc<Pool>);

struct Pool {
    ledger: Ledger,
    arena: Mutex<Arena>,
    closed: AtomicBool,
}

impl Pool {
    fn arena(&self) -> MutexGuard<'_, Arena> {
        self.arena.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Reclaim for Pool {
    fn bytes(&self) -> usize {
        self.arena().cached()
    }

    fn shrink_to(&self, allowed: usize) {
        self.arena().shrink_to(allowed);
    }
}

impl FramePool {
    pub fn new(ledger: Ledger) -> FramePool {
        let pool = Arc::new(Pool {
            ledger: ledger.clone(),
            arena: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let cache: Arc<dyn Reclaim> = pool.clone();
        ledger.set_cache(Arc::downgrade(&cache));
        FramePool(pool)
    }

    /// What the ledger is charged for a frame of this capacity: whole pages, at least one.
    pub fn frame_bytes(capacity: usize) -> usize {
        round_up(capacity).unwrap_or(usize::MAX)
    }

    /// A frame of `capacity` bytes. Its contents are unspecified.
    ///
    /// # Errors
    /// `memory`, where the ledger has no room; memory that the system does not give.
    pub fn allocate(&self, capacity: usize, what: &str) -> Result<Frame, StoreError> {
        let bytes = FramePool::frame_bytes(capacity);
        let reused = self.0.arena().reuse(bytes);
        let reservation = match self.0.ledger.reserve(bytes, what) {
            Ok(reservation) => reservation,
            Err(error) => {
                reused.into_iter().for_each(|buffer| self.0.arena().give(buffer));
                return Err(error);
            }
        };
        let untouched = reused.is_none();
        let buffer = match reused {
            Some(buffer) => buffer,
            None => {
                let fresh = self.0.arena().fresh(bytes);
                let fresh = fresh.map_err(|cause| StoreError::io(Path::new(what), 0, "map memory", cause))?;
                self.0.ledger.reclaim();
                fresh
            }
        };
        Ok(Frame {
            buffer: Some(buffer),
            capacity,
            untouched,
            pool: self.0.clone(),
            _reservation: reservation,
        })
    }

    /// Gives back to the system what is kept for reuse beyond so many bytes.
    pub fn keep_idle(&self, bytes: usize) {
        self.0.shrink_to(bytes);
    }

    /// Gives everything kept for reuse back to the system.
    pub fn trim(&self) {
        self.0.shrink_to(0);
    }

    /// Gives everything kept back, and from now on each frame as soon as it is dropped.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.trim();
    }

    /// Bytes kept for reuse.
    pub fn cached(&self) -> usize {
        self.0.bytes()
    }

    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }
}

/// Page-aligned memory of one tile; it owns its reservation.
pub struct Frame {
    buffer: Option<AlignedBuffer>,
    capacity: usize,
    /// Fresh memory, which the kernel has yet to find and to clear.
    untouched: bool,
    pool: Arc<Pool>,
    _reservation: Reservation,
}

impl Frame {
    /// The frame with its slack up to whole pages, as direct writes want it.
    pub fn padded(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or_default()
    }

    /// Whether the first use of the frame waits for the kernel to find and clear its pages.
    pub fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// Has the kernel find and clear the pages of an untouched frame now.
    pub fn touch(&mut self) {
        if std::mem::take(&mut self.untouched) {
            self.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
        }
    }

    pub(crate) fn start(&self) -> Option<std::ptr::NonNull<u8>> {
        self.buffer.as_ref().map(AlignedBuffer::start)
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
        &mut self.buffer.as_deref_mut().unwrap_or_default()[..capacity]
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let mut arena = self.pool.arena();
            arena.give(buffer);
            if self.pool.closed.load(Ordering::SeqCst) {
                arena.shrink_to(0);
            }
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
    fn a_closed_pool_keeps_nothing() {
        let pool = FramePool::new(Ledger::new(1 << 20));
        let frame = pool.allocate(PAGE, "a result").unwrap();
        drop(pool.allocate(PAGE, "a tile").unwrap());
        pool.close();
        assert_eq!((pool.cached(), pool.ledger().used()), (0, PAGE));
        drop(frame);
        assert_eq!((pool.cached(), pool.ledger().used()), (0, 0));
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
