//! Memory that reads work in, kept from one read to the next: fresh pages cost more than the copies made through them.

use std::sync::{Mutex, MutexGuard};

use super::mapping::{AlignedBuffer, HUGE_PAGE};
use crate::base::page::PAGE;

/// Buffers of one read.
pub(crate) const BUFFERS: usize = 3;

/// Memory that grows when more of it is asked for; its bytes are unspecified.
#[derive(Default)]
pub(crate) struct WorkBuffer(Option<AlignedBuffer>);

/// What fits in small pages that a disk takes at once.
const LARGE_BYTES: usize = 480 << 10;

/// Memory that so many bytes for transfers take. Requests into scattered small pages are split where a disk takes no more of
/// them (254 for virtio), and their rests are sent late and by another thread: those of some length have large pages.
pub(crate) fn transfer_bytes(bytes: usize) -> usize {
    match bytes > LARGE_BYTES && bytes < HUGE_PAGE {
        true => HUGE_PAGE,
        false => bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX),
    }
}

impl WorkBuffer {
    /// So many bytes, on a page.
    ///
    /// # Errors
    /// Memory that the system does not give.
    pub fn bytes(&mut self, bytes: usize) -> std::io::Result<&mut [u8]> {
        self.grown(bytes, AlignedBuffer::new)
    }

    /// So many bytes that are read from disk: it takes `transfer_bytes` of them.
    ///
    /// # Errors
    /// Memory that the system does not give.
    pub fn for_transfer(&mut self, bytes: usize) -> std::io::Result<&mut [u8]> {
        self.grown(bytes, |bytes| match bytes > LARGE_BYTES {
            true => AlignedBuffer::of_large_pages(transfer_bytes(bytes)),
            false => AlignedBuffer::new(bytes),
        })
    }

    fn grown(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> std::io::Result<AlignedBuffer>,
    ) -> std::io::Result<&mut [u8]> {
        if self.0.as_ref().is_none_or(|buffer| buffer.len() < bytes) {
            // Before the larger one comes.
            self.0 = None;
        }
        let buffer = match &mut self.0 {
            Some(buffer) => buffer,
            none => none.insert(map(bytes)?),
        };
        Ok(&mut buffer[..bytes])
    }

    /// The first bytes, as `bytes` left them.
    pub fn held(&self, bytes: usize) -> &[u8] {
        self.0.as_ref().map_or(&[], |buffer| &buffer[..bytes])
    }
}

/// Buffers that are not in use.
///
/// Invariant: there are no more sets than there were reads at the same time, and a set was grown for one array alone. So
/// all of them take at most the readers' number times the most that a read of one array takes.
#[derive(Default)]
pub(crate) struct Workspaces(Mutex<Vec<(String, [WorkBuffer; BUFFERS])>>);

impl Workspaces {
    fn sets(&self) -> MutexGuard<'_, Vec<(String, [WorkBuffer; BUFFERS])>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Buffers for a read of an array, by its identity: those of an earlier read of it, where there are any.
    pub fn take(&self, array: &str) -> [WorkBuffer; BUFFERS] {
        let mut sets = self.sets();
        if let Some(at) = sets.iter().position(|(owner, _)| owner == array) {
            return sets.swap_remove(at).1;
        }
        // In place of another's, which are given back to the system.
        sets.pop();
        Default::default()
    }

    /// Keeps the buffers of a read that is over.
    pub fn put(&self, array: &str, buffers: [WorkBuffer; BUFFERS]) {
        self.sets().push((array.to_string(), buffers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_for_transfers_is_what_it_is_said_to_take() {
        for bytes in [1, 5000, LARGE_BYTES, LARGE_BYTES + 1, HUGE_PAGE, HUGE_PAGE + 1] {
            let mut buffer = WorkBuffer::default();
            let start = buffer.for_transfer(bytes).unwrap().as_ptr().addr();
            assert_eq!(buffer.0.as_ref().unwrap().len(), transfer_bytes(bytes));
            assert!(bytes <= LARGE_BYTES || start.is_multiple_of(HUGE_PAGE));
        }
    }

    #[test]
    fn buffers_return_to_their_array_and_replace_those_of_others() {
        let spaces = Workspaces::default();
        let mut buffers = spaces.take("a");
        let start = buffers[0].bytes(5000).unwrap().as_ptr();
        spaces.put("a", buffers);
        let mut again = spaces.take("a");
        assert_eq!(again[0].bytes(100).unwrap().as_ptr(), start);
        spaces.put("a", again);
        assert!(spaces.take("b")[0].0.is_none());
        assert!(spaces.sets().is_empty());
    }
}
