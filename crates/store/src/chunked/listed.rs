//! Chunks that are listed one by one.

use super::manifest::UnitPlace;
use super::one_file::UnitPlaces;
use crate::base::interval::Interval;
use crate::Reservation;

/// A chunk that is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredChunk {
    /// In C order of the grid of chunks.
    pub number: u64,
    pub offset: u64,
    pub bytes: u32,
    /// Filters that it goes without.
    pub mask: u32,
}

/// Chunks by their numbers. Invariant: they ascend.
pub(crate) struct ListedChunks {
    pub chunks: Vec<StoredChunk>,
    pub _granted: Vec<Reservation>,
}

impl ListedChunks {
    /// The place of a chunk in the list.
    pub fn find(&self, number: u64) -> Option<usize> {
        // Where all are stored, the number is the place.
        let as_place = usize::try_from(number).ok();
        let is_of = |at: &usize| self.chunks.get(*at).is_some_and(|chunk| chunk.number == number);
        as_place.filter(is_of).or_else(|| {
            let at = self.chunks.binary_search_by_key(&number, |chunk| chunk.number);
            at.ok()
        })
    }
}

impl StoredChunk {
    pub fn place(&self) -> UnitPlace {
        UnitPlace {
            at: Interval::new(self.offset, self.bytes.into()),
            skipped: self.mask,
        }
    }
}

impl UnitPlaces for ListedChunks {
    fn place(&self, unit: u64) -> Option<UnitPlace> {
        self.find(unit).map(|at| self.chunks[at].place())
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}
