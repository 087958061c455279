//! Opening stored arrays: what a large one keeps in memory is part of the limit.

use std::path::Path;

use outcore_store::{
    find_for, open_listing, ChunkListing, Opened, Opening, Reservation, StoreError, StoredObject, Turn,
};

use crate::run::session::nesting;
use crate::run::session::{Session, POLL};
use crate::EngineError;

/// What smaller arrays keep is covered by the allowances beside the ledger.
const SMALL: u64 = 8 << 20;

impl Session {
    /// Opens the array or the group at `path`, through this session's I/O. `watch` is asked now and then whether it is still wanted: an
    /// error of its is returned at once.
    ///
    /// # Errors
    /// What the store says of the files; a record of its chunks too large for the limit.
    pub fn find(
        &self,
        path: &Path,
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<StoredObject, EngineError> {
        self.opened(watch, |opening| find_for(path, &self.io, opening))
    }

    /// Opens an array by a list of its chunks; `watch` is asked as by `find`.
    ///
    /// # Errors
    /// Errors of the store about the list and the files; a list too large for the limit.
    pub fn open_listing(
        &self,
        listing: &ChunkListing<'_>,
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<Opened, EngineError> {
        self.opened(watch, |opening| open_listing(listing, opening))
    }

    fn opened<T>(
        &self,
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
        open: impl FnOnce(&mut dyn Opening) -> Result<T, StoreError>,
    ) -> Result<T, EngineError> {
        let mut opening = InSession {
            session: self,
            watch,
            nested: nesting::is_inside(),
            asked: 0,
            granted: 0,
            refused: None,
        };
        let result = open(&mut opening);
        match opening.refused {
            Some(error) => Err(error),
            None => Ok(result?),
        }
    }
}

struct InSession<'a> {
    session: &'a Session,
    watch: &'a mut dyn FnMut() -> Result<(), EngineError>,
    /// Whether the caller works for a run: waiting for that run's turn to end would be waiting for itself.
    nested: bool,
    asked: u64,
    granted: u64,
    /// Why opening was ended; the store is only told that it was.
    refused: Option<EngineError>,
}

impl InSession<'_> {
    fn ended<T>(&mut self, result: Result<T, EngineError>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let said = StoreError::Invalid(error.to_string());
            self.refused = Some(error);
            said
        })
    }

    /// Reserves memory that stays when the turn is over: kept tiles and idle frames of all sessions give way to it.
    fn reserve(&mut self, bytes: u64) -> Result<Reservation, EngineError> {
        let session = self.session;
        let ledger = session.ledger();
        if self.nested {
            return Err(EngineError::Plan(
                "an array of very many chunks was opened inside a running computation (by a function over tiles or a \
                 progress callback)"
                    .into(),
            ));
        }
        let turn = Turn::queue(ledger);
        while !turn.has_come(POLL) {
            (self.watch)()?;
        }
        let held = session.held();
        let need = held.here + bytes;
        let limit = session.claim_room(need);
        if need > limit {
            return Err(EngineError::Memory {
                operator: "the record of an array's chunks".into(),
                need: self.asked,
                available: (limit + self.granted).saturating_sub(held.here),
                smallest: session.limit_for(bytes, held),
                exact: false,
                detail: session.describe_limit(held),
                planning: false,
            });
        }
        session.give_way(limit - need);
        ledger.set_limit(limit as usize);
        Ok(ledger.reserve(bytes as usize, "the record of an array's chunks")?)
    }
}

impl Opening for InSession<'_> {
    fn look(&mut self) -> Result<(), StoreError> {
        let wanted = (self.watch)();
        self.ended(wanted)
    }

    fn keep(&mut self, bytes: usize) -> Result<Option<Reservation>, StoreError> {
        self.asked += bytes as u64;
        if self.asked <= SMALL {
            return Ok(None);
        }
        let missing = self.asked - self.granted;
        let reserved = self.reserve(missing);
        self.granted = self.asked;
        self.ended(reserved).map(Some)
    }
}
