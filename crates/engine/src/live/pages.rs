//! Pages of a file that stay in the memory of a session from call to call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outcore_store::cache::{CacheOptions, CachedFile, PageCache};
use outcore_store::{Reclaim, StoreError, PAGE};

use super::memory::{CacheShare, CACHE_LEAST};
use crate::run::Session;

/// A file that live work reads page by page.
pub trait Paged: Sync {
    /// Its pages in the sessions that read it.
    fn pages(&self) -> &PagesOfSessions;

    /// Bytes of all of its pages.
    fn pages_bytes(&self) -> u64;

    /// The file by way of a cache.
    ///
    /// # Errors
    /// It cannot be opened, or is not what it was.
    fn open_in(&self, cache: &Arc<PageCache>) -> Result<CachedFile, StoreError>;

    /// The file by way of the session's cache of it, if there is memory for one, of so many bytes. Its pages stay for the next
    /// call, until others in the session need the memory. The cache of a run becomes as large as that; else a larger one
    /// stays as it is.
    fn by_cache(&self, session: &Arc<Session>, bytes: u64, share: CacheShare) -> Option<Arc<CachedFile>> {
        let (pages, is_turn) = (self.pages().of(session), share != CacheShare::Beside);
        let is_there = |file: &Arc<CachedFile>| share != CacheShare::Run && file.cache().bytes() as u64 >= bytes;
        if let Some(held) = pages.held().filter(is_there) {
            pages.prefer(session);
            return Some(held);
        }
        pages.sized(session, bytes, is_turn, |cache| self.open_in(cache))
    }
}

/// A file by way of a page cache in one session. The cache is made when there is memory for it; where others need that, it
/// becomes smaller, and goes as a whole unless somebody reads.
#[derive(Default)]
struct FilePages(Mutex<Option<Arc<CachedFile>>>);

impl FilePages {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<CachedFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache as it is, if there is one.
    fn held(&self) -> Option<Arc<CachedFile>> {
        self.slot().clone()
    }

    /// The file by way of the cache, as large as `bytes` if there is so much, or else as large as can be. Without one, if
    /// there is no memory or the file cannot be opened again, reading says why.
    fn sized(
        self: &Arc<Self>,
        session: &Session,
        bytes: u64,
        is_turn: bool,
        open: impl FnOnce(&Arc<PageCache>) -> Result<CachedFile, StoreError>,
    ) -> Option<Arc<CachedFile>> {
        if bytes < CACHE_LEAST {
            *self.slot() = None;
            return None;
        }
        self.prefer(session);
        // Who holds it keeps it from going meanwhile.
        if let Some(held) = self.held() {
            session.resize_pages(held.cache(), &**self, bytes, is_turn);
            return Some(held);
        }
        let bytes = session.make_way(bytes, None, is_turn) as usize;
        let options = CacheOptions {
            request_bytes: PAGE,
            ..CacheOptions::default()
        };
        let cache = PageCache::new(session.io(), session.ledger(), bytes, options).ok()?;
        let made = Arc::new(open(&cache).ok()?);
        *self.slot() = Some(made.clone());
        let holder: Arc<dyn Reclaim> = self.clone();
        session.ledger().hold_pages(&*cache, Arc::downgrade(&holder));
        Some(made)
    }

    /// Says that it is used: others go first where memory is short.
    fn prefer(self: &Arc<Self>, session: &Session) {
        let holder: Arc<dyn Reclaim> = self.clone();
        session.ledger().add_pages(Arc::downgrade(&holder));
    }
}

/// What of a cache could go, and whether that is all of it: nobody else has it.
fn reclaimable(held: &Arc<CachedFile>) -> (usize, bool) {
    match Arc::strong_count(held) {
        1 => (held.cache().bytes(), true),
        _ => (Reclaim::bytes(&**held.cache()), false),
    }
}

impl Reclaim for FilePages {
    fn bytes(&self) -> usize {
        self.slot().as_ref().map_or(0, |held| reclaimable(held).0)
    }

    fn shrink_to(&self, allowed: usize) {
        let mut slot = self.slot();
        let Some(held) = &*slot else { return };
        let (bytes, is_whole) = reclaimable(held);
        if allowed >= bytes {
            return;
        }
        let rest = bytes - Reclaim::bytes(&**held.cache());
        match is_whole && (allowed as u64) < CACHE_LEAST {
            true => *slot = None,
            false => held.cache().shrink_to(allowed.saturating_sub(rest)),
        }
    }

    fn reserved(&self) -> usize {
        self.slot().as_ref().map_or(0, |held| held.cache().bytes())
    }

    fn untouched(&self) -> usize {
        self.slot().as_ref().map_or(0, |held| held.cache().untouched())
    }
}

/// The pages of a file, for each session that it is read in.
#[derive(Default)]
pub struct PagesOfSessions(Mutex<Vec<(Weak<Session>, Arc<FilePages>)>>);

impl PagesOfSessions {
    /// Whether a session has a cache of them.
    pub fn is_read_in(&self, session: &Session) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = all.iter().find(|(other, _)| std::ptr::eq(other.as_ptr(), session));
        ours.is_some_and(|(_, pages)| pages.held().is_some())
    }

    fn of(&self, session: &Arc<Session>) -> Arc<FilePages> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(session, _)| session.strong_count() > 0);
        let ours = all
            .iter()
            .find(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        if let Some((_, pages)) = ours {
            return pages.clone();
        }
        let pages = Arc::<FilePages>::default();
        all.push((Arc::downgrade(session), pages.clone()));
        pages
    }
}
