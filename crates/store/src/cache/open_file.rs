//! A file that pages may be of.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use crate::io::File;
use crate::StoreError;

/// Says whether a page is what it should be, once when it has been read: by its offset in the file, and its bytes.
pub type PageCheck = dyn Fn(u64, &[u8]) -> Result<(), StoreError> + Send + Sync;

/// A file that pages may be of.
pub(super) struct OpenFile {
    pub(super) number: u32,
    pub(super) file: File,
    pub(super) check: Option<Box<PageCheck>>,
    pub(super) writable: bool,
    /// Those that are open, and how often the file was opened: both change under the lock of the cache's files where the
    /// last handle may go.
    pub(super) handles: AtomicUsize,
    pub(super) opened: AtomicUsize,
    /// Bytes that it has for who reads, written out or not.
    pub(super) bytes: AtomicU64,
    /// Bytes up to which the file itself has been written. What is beyond reads as zeros.
    pub(super) on_disk: AtomicU64,
    /// Held to write pages, and exclusively to cut off what whole pages wrote too much.
    pub(super) extent: RwLock<()>,
    /// Why pages could not be written, where nobody heard of it yet.
    pub(super) untold: Mutex<Option<StoreError>>,
}

impl OpenFile {
    pub(super) fn len(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// How many of `bytes` bytes at `offset` the file itself has.
    pub(super) fn readable(&self, offset: u64, bytes: usize) -> usize {
        let end = self.on_disk.load(Ordering::Acquire).min(self.len());
        end.saturating_sub(offset).min(bytes as u64) as usize
    }

    /// Says whether a page is what it should be, where the file is one whose pages are looked at.
    pub(super) fn check_page(&self, page: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let check = self.check.as_ref();
        check.map_or(Ok(()), |check| check(page * bytes.len() as u64, bytes))
    }

    /// Checks that a range lies in the file.
    pub(super) fn check(&self, offset: u64, bytes: u64) -> Result<(), StoreError> {
        let length = self.len();
        let end = offset.saturating_add(bytes);
        if end <= length {
            return Ok(());
        }
        let reason = format!("the file ends {} bytes early", end - length);
        let cause = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, reason);
        Err(StoreError::io(self.file.path(), length.max(offset), "read", cause))
    }
}
