//! The grid of chunks of a dataset, and the places of chunks on their way to the caller.

use crate::base::{FileView, Hdf5Error};
use crate::objects::{DatasetFacts, StoredChunks};

/// The place of a chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// The number of the chunk in the C order of the grid of chunks.
    pub number: u64,
    /// The first byte, counted from that of the file.
    pub offset: u64,
    /// Bytes as stored.
    pub bytes: u64,
    /// The bit of a filter that was not applied, the first filter's the lowest, is 1.
    pub mask: u32,
}

/// Chunks along the axes of a dataset.
pub(super) struct StoredGrid {
    /// Chunks that the shape has along each axis.
    pub counts: Vec<u64>,
    /// Chunks that the largest shape has; nothing without an end.
    pub most: Vec<Option<u64>>,
}

impl StoredGrid {
    pub fn new(facts: &DatasetFacts, chunks: &StoredChunks) -> StoredGrid {
        // Facts have sides of at least 1, which are as many as the axes.
        let count = |(length, side): (&u64, &u64)| length.div_ceil(*side);
        let most = facts.maximum.iter().zip(&chunks.shape);
        StoredGrid {
            counts: facts.shape.iter().zip(&chunks.shape).map(count).collect(),
            most: most.map(|(most, side)| most.map(|most| most.div_ceil(*side))).collect(),
        }
    }

    /// The number of a chunk; nothing where it is outside of the shape.
    fn number(&self, coordinates: &[u64]) -> Option<u64> {
        let mut number: u64 = 0;
        for (coordinate, count) in coordinates.iter().zip(&self.counts) {
            if coordinate >= count {
                return None;
            }
            number = number.checked_mul(*count)?.checked_add(*coordinate)?;
        }
        Some(number)
    }

    /// Chunks of the largest shape along the axes but the one without an end, if there is one; nothing where 64 bits do
    /// not hold the number.
    pub fn most_chunks(&self) -> Option<u64> {
        self.most
            .iter()
            .flatten()
            .try_fold(1u64, |product, count| product.checked_mul(*count))
    }
}

/// The receiver of places, which are held against grid and file.
pub(super) struct PlaceSink<'s, 'a> {
    pub view: &'s FileView<'a>,
    pub grid: &'s StoredGrid,
    /// Bytes of a chunk before filters.
    pub whole: u64,
    pub is_filtered: bool,
    /// The number of the chunk before, of an index that is in the order of the grid.
    pub last: Option<u64>,
    pub each: &'s mut dyn FnMut(ChunkPlace) -> Result<(), Hdf5Error>,
}

impl PlaceSink<'_, '_> {
    /// Hands on a chunk by its coordinates in the grid.
    pub fn put(&mut self, coordinates: &[u64], place: ChunkPlace) -> Result<(), Hdf5Error> {
        let ChunkPlace { offset, bytes, .. } = place;
        let number = self.grid.number(coordinates);
        let outside = || {
            Hdf5Error::damaged(
                offset,
                format!("chunk {coordinates:?} is outside of {:?}", self.grid.counts),
            )
        };
        let number = number.ok_or_else(outside)?;
        self.view.check(offset, bytes)?;
        if !self.is_filtered && bytes != self.whole {
            let reason = format!("chunk {coordinates:?} has {bytes} bytes, not {}", self.whole);
            return Err(Hdf5Error::damaged(offset, reason));
        }
        (self.each)(ChunkPlace { number, ..place })
    }

    /// The same of an index that must be in the order of the grid.
    pub fn put_in_order(&mut self, coordinates: &[u64], place: ChunkPlace) -> Result<(), Hdf5Error> {
        let number = self.grid.number(coordinates);
        if number.is_some() && number <= self.last {
            return Err(Hdf5Error::damaged(
                place.offset,
                format!("chunk {coordinates:?} comes out of order"),
            ));
        }
        self.last = number;
        self.put(coordinates, place)
    }
}
