//! Pages of a graph that stay in the memory of a session from call to call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outcore_engine::run::Session;
use outcore_store::cache::{CacheOptions, CachedFile, PageCache};
use outcore_store::{GraphFile, Reclaim, PAGE};

/// A smaller cache is not worth its while.
pub const CACHE_LEAST: u64 = 4 << 20;

/// A graph by way of a page cache in one session. The cache is made when there is memory for it; where others need that, it
/// becomes smaller, and goes as a whole unless somebody reads.
#[derive(Default)]
pub struct GraphPages(Mutex<Option<Arc<CachedFile>>>);

impl GraphPages {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<CachedFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache as it is, if there is one.
    pub fn held(&self) -> Option<Arc<CachedFile>> {
        self.slot().clone()
    }

    /// The file by way of the cache, as large as `bytes` if there is so much, or else as large as can be. Without one, if
    /// there is no memory or the file cannot be opened again, reading says why.
    pub fn sized(
        self: &Arc<Self>,
        file: &Arc<GraphFile>,
        session: &Session,
        bytes: u64,
        is_turn: bool,
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
        let made = Arc::new(file.open_in(&cache).ok()?);
        *self.slot() = Some(made.clone());
        let holder: Arc<dyn Reclaim> = self.clone();
        session.ledger().hold_pages(&*cache, Arc::downgrade(&holder));
        Some(made)
    }

    /// Says that it is used: others go first where memory is short.
    pub fn prefer(self: &Arc<Self>, session: &Session) {
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

impl Reclaim for GraphPages {
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

/// Those of a graph, one for each session that it is used in.
#[derive(Default)]
pub struct PagesOfSessions(Mutex<Vec<(Weak<Session>, Arc<GraphPages>)>>);

impl PagesOfSessions {
    pub fn of(&self, session: &Arc<Session>) -> Arc<GraphPages> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(session, _)| session.strong_count() > 0);
        let ours = all
            .iter()
            .find(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        if let Some((_, pages)) = ours {
            return pages.clone();
        }
        let pages = Arc::<GraphPages>::default();
        all.push((Arc::downgrade(session), pages.clone()));
        pages
    }
}
