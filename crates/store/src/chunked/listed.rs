//! Chunks that are listed one by one.

use super::manifest::UnitPlace;
use super::one_file::Placement;
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
    fn chunk(&self, number: u64) -> Option<&StoredChunk> {
        // Where all are stored, the number is the place.
        let as_place = usize::try_from(number).ok().and_then(|at| self.chunks.get(at));
        if let Some(chunk) = as_place.filter(|chunk| chunk.number == number) {
            return Some(chunk);
        }
        let at = self.chunks.binary_search_by_key(&number, |chunk| chunk.number);
        at.ok().map(|at| &self.chunks[at])
    }
}

impl Placement for ListedChunks {
    fn place(&self, unit: u64) -> Option<UnitPlace> {
        self.chunk(unit).map(|chunk| UnitPlace {
            at: Interval::new(chunk.offset, chunk.bytes.into()),
            skipped: chunk.mask,
        })
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}
