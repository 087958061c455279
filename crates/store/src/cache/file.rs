//! Files that are read and written through a cache.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::address::{FILES_MAX, PAGES_MAX};
use super::ahead::run;
use super::core::PageCache;
use super::open_file::{OpenFile, PageCheck};
use crate::base::locked::locked as lock;
use crate::io::Mode;
use crate::StoreError;

/// A file in a cache. Clones, and files opened by the same name or inode, share its pages.
///
/// The cache must be the only one to change the file. What was written and not flushed is written when the last handle
/// is dropped, but then nobody hears of errors: call `flush`.
pub struct CachedFile {
    pub(super) cache: Arc<PageCache>,
    pub(super) file: Arc<OpenFile>,
}

impl PageCache {
    /// Opens a file, by the cache's own `Io`.
    ///
    /// # Errors
    /// When it cannot be opened; when its alignment is more than a page; when it is open already and the other way of
    /// opening it allows less.
    pub fn open(self: &Arc<Self>, path: &Path, mode: Mode) -> Result<CachedFile, StoreError> {
        self.open_with(path, mode, None)
    }

    /// Opens a file for reading, whose pages `check` looks at when they come: what the cache holds of it is what it let pass.
    ///
    /// # Errors
    /// Those of `open`; when the file is open in the cache already.
    pub fn open_checked(self: &Arc<Self>, path: &Path, check: Box<PageCheck>) -> Result<CachedFile, StoreError> {
        self.open_with(path, Mode::Read, Some(check))
    }

    fn open_with(
        self: &Arc<Self>,
        path: &Path,
        mode: Mode,
        check: Option<Box<PageCheck>>,
    ) -> Result<CachedFile, StoreError> {
        let refuse = |reason: String| Err(StoreError::unsupported(path, reason));
        let file = self.io.open(path, mode)?;
        let (alignment, page_bytes) = (file.alignment(), self.options.page_bytes);
        if alignment > page_bytes {
            return refuse(format!(
                "it is read in units of {alignment} bytes, and pages have {page_bytes}"
            ));
        }
        let bytes = file.len()?;
        if bytes / page_bytes as u64 >= PAGES_MAX {
            return refuse(format!(
                "{bytes} bytes are more pages of {page_bytes} bytes than can be told apart"
            ));
        }
        let writable = mode != Mode::Read;
        let mut files = lock(&self.files);
        let same = |other: &OpenFile| match (other.file.identity(), file.identity()) {
            (Some(mine), Some(its)) => mine == its,
            _ => other.file.path() == path,
        };
        if let Some(open) = files.open.values().find(|other| same(other)) {
            if writable && !open.writable {
                return refuse("it is open in the page cache for reading only".into());
            }
            if check.is_some() {
                return refuse("it is open in the page cache, and its pages were not looked at".into());
            }
            open.handles.fetch_add(1, Ordering::Relaxed);
            open.opened.fetch_add(1, Ordering::Relaxed);
            return Ok(CachedFile {
                cache: self.clone(),
                file: open.clone(),
            });
        }
        if u64::from(files.next) >= FILES_MAX {
            return refuse(format!("{FILES_MAX} files have been opened in this page cache"));
        }
        let number = files.next;
        files.next += 1;
        let open = Arc::new(OpenFile {
            number,
            file,
            check,
            writable,
            handles: AtomicUsize::new(1),
            opened: AtomicUsize::new(1),
            bytes: AtomicU64::new(bytes),
            on_disk: AtomicU64::new(bytes),
            extent: RwLock::default(),
            untold: Mutex::default(),
        });
        files.open.insert(number, open.clone());
        if writable && self.options.flush_percent < 100 {
            let cache = Arc::downgrade(self);
            self.flusher.start(move |alarm| run(alarm, &cache));
        }
        Ok(CachedFile {
            cache: self.clone(),
            file: open,
        })
    }

    pub(super) fn file(&self, number: u32) -> Option<Arc<OpenFile>> {
        lock(&self.files).open.get(&number).cloned()
    }
}

impl CachedFile {
    /// Bytes in the file, with those not flushed yet.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes what the file has not yet, and closes it. As `flush`, for who wants to hear of errors.
    ///
    /// # Errors
    /// Those of `flush`; the file is closed then too, and what could not be written stays in the cache.
    pub fn close(self) -> Result<(), StoreError> {
        self.flush()
    }

    /// Whether its pages are looked at when they come.
    pub fn is_checked(&self) -> bool {
        self.file.check.is_some()
    }

    /// The cache it is open in.
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }
}

impl Clone for CachedFile {
    fn clone(&self) -> CachedFile {
        self.file.handles.fetch_add(1, Ordering::Relaxed);
        CachedFile {
            cache: self.cache.clone(),
            file: self.file.clone(),
        }
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        let (handles, mut flushed) = (&self.file.handles, None);
        loop {
            // Of several that go at once one finds itself the last; it can become another only by `open`.
            let mut files = lock(&self.cache.files);
            let opened = self.file.opened.load(Ordering::Relaxed);
            let is_last = handles.load(Ordering::Relaxed) == 1;
            if !is_last || flushed == Some(opened) {
                handles.fetch_sub(1, Ordering::Relaxed);
                if is_last {
                    files.open.remove(&self.file.number);
                }
                return;
            }
            drop(files);
            // A file whose pages could not be written stays known: they may be yet, when others need their room.
            if self.cache.flush_file(&self.file).is_err() {
                handles.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            flushed = Some(opened);
        }
    }
}

thread_local! {
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// While it lives this thread is in a call of a cache, and may make no other: a task that waited for pages while it holds
/// some could wait for ever.
pub(super) struct BusyThread(());

impl BusyThread {
    pub(super) fn enter() -> Result<BusyThread, StoreError> {
        if BUSY.replace(true) {
            let reason = "a task that a page cache runs may not call a page cache: ask in the next visit";
            return Err(StoreError::Invalid(reason.into()));
        }
        Ok(BusyThread(()))
    }
}

impl Drop for BusyThread {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}
