//! One result buffer that several tasks fill at once, each its own range.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Frame, StoreError};

/// A frame whose disjoint ranges can be claimed for writing at the same time.
///
/// Invariants, checked when a claim is made, not trusted:
/// 1. Live claims are disjoint and lie within the frame.
/// 2. The frame is taken out only when no claim lives, and none is made afterwards.
#[derive(Clone)]
pub struct SharedBuffer(Arc<BufferClaims>);

struct BufferClaims {
    start: NonNull<u8>,
    bytes: usize,
    state: Mutex<ClaimState>,
}

struct ClaimState {
    frame: Option<Frame>,
    /// Start and end of each live claim.
    claims: BTreeMap<usize, usize>,
}

// SAFETY: `start` points into `state.frame`, which moves with the value; all access goes through claims.
unsafe impl Send for BufferClaims {}
// SAFETY: claims are handed out under the mutex and are disjoint (invariant 1).
unsafe impl Sync for BufferClaims {}

impl BufferClaims {
    fn state(&self) -> MutexGuard<'_, ClaimState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl SharedBuffer {
    pub fn new(frame: Frame) -> SharedBuffer {
        let start = frame.start().unwrap_or(NonNull::dangling());
        let bytes = frame.len();
        SharedBuffer(Arc::new(BufferClaims {
            start,
            bytes,
            state: Mutex::new(ClaimState {
                frame: Some(frame),
                claims: BTreeMap::new(),
            }),
        }))
    }

    pub fn len(&self) -> usize {
        self.0.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.0.bytes == 0
    }

    /// Exclusive access to a range until the claim is dropped.
    ///
    /// # Errors
    /// When the range leaves the buffer, meets a live claim, or the buffer has been taken.
    pub fn claim(&self, range: Range<usize>) -> Result<ClaimedSlice, StoreError> {
        let refuse = |why: &str| Err(StoreError::Invalid(format!("result bytes {range:?}: {why}")));
        let mut state = self.0.state();
        if state.frame.is_none() {
            return refuse("the result has been taken");
        }
        if range.start > range.end || range.end > self.0.bytes {
            return refuse("outside of the result");
        }
        let before = state.claims.range(..range.end).next_back();
        if !range.is_empty() && before.is_some_and(|(_, end)| *end > range.start) {
            return refuse("being written already");
        }
        if !range.is_empty() {
            state.claims.insert(range.start, range.end);
        }
        drop(state);
        Ok(ClaimedSlice {
            buffer: self.0.clone(),
            range,
        })
    }

    /// Takes the filled frame out; `None` while claims live or when it has been taken.
    pub fn take(&self) -> Option<Frame> {
        let mut state = self.0.state();
        if state.claims.is_empty() {
            state.frame.take()
        } else {
            None
        }
    }
}

/// Exclusive access to a range of a `SharedBuffer`.
pub struct ClaimedSlice {
    buffer: Arc<BufferClaims>,
    range: Range<usize>,
}

impl Deref for ClaimedSlice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.range.is_empty() {
            return &[];
        }
        // SAFETY: the range lies in the frame, which stays while this claim lives (invariant 2); no other claim
        // overlaps it (invariant 1), and this one lends it out by its own borrow rules.
        unsafe { std::slice::from_raw_parts(self.buffer.start.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl DerefMut for ClaimedSlice {
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.range.is_empty() {
            return &mut [];
        }
        // SAFETY: as above; `&mut self` makes the access exclusive within the claim.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl Drop for ClaimedSlice {
    fn drop(&mut self) {
        if !self.range.is_empty() {
            self.buffer.state().claims.remove(&self.range.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FramePool, Ledger};

    #[test]
    fn claims_are_disjoint_and_end_with_their_drop() {
        let pool = FramePool::new(Ledger::new(1 << 20));
        let buffer = SharedBuffer::new(pool.allocate(100, "result").unwrap());
        let mut low = buffer.claim(0..50).unwrap();
        let mut high = buffer.claim(50..100).unwrap();
        low.fill(1);
        high.fill(2);
        for overlapping in [0..1, 49..51, 99..100, 0..100] {
            assert!(buffer.claim(overlapping).is_err());
        }
        assert!(buffer.claim(90..101).is_err());
        assert!(buffer.take().is_none());
        drop(low);
        assert!(buffer.claim(0..50).is_ok());
        drop(high);
        let frame = buffer.take().unwrap();
        assert_eq!((frame[49], frame[50]), (1, 2));
        assert!(buffer.claim(0..1).is_err());
    }
}
