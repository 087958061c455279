//! Single elements of an array, wherever they are: of each page or chunk that holds some, one read.

use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::source::{as_inner, Layout, ReadCost, Source};
use crate::base::page::PAGE;
use crate::{Io, Region, StoreError};

/// Bytes of the elements from the first to the last that are read together, at most.
const PIECE_BYTES: u64 = 1 << 18;

/// The elements of `inner` at some positions, in their order.
///
/// Invariant: every position lies in `inner`.
#[derive(Debug)]
pub struct Picked {
    inner: Arc<dyn Source>,
    positions: Vec<u64>,
    shape: [u64; 1],
    identity: String,
}

/// A box of the inner array that is read in one go.
struct PickedPiece {
    region: Region,
    cost: ReadCost,
    /// Which of the positions lie in it: these of those in order.
    from: usize,
    end: usize,
}

impl Picked {
    /// `positions` are in C order; `named` says which they are: those of equal names are equal.
    ///
    /// # Errors
    /// `invalid`, for positions outside of the array.
    pub fn new(inner: Arc<dyn Source>, positions: Vec<u64>, named: &str) -> Result<Picked, StoreError> {
        let elements: u64 = inner.shape().iter().product();
        if let Some(outside) = positions.iter().find(|position| **position >= elements) {
            return Err(StoreError::Invalid(format!(
                "{}: position {outside} leaves shape {:?}",
                inner.name(),
                inner.shape()
            )));
        }
        Ok(Picked {
            identity: format!("{}@{named}", inner.identity()),
            // Of an array that lies as one run, elements of several rows may be neighbours.
            inner: inner.reshaped(0, &[elements]).unwrap_or(inner),
            shape: [positions.len() as u64],
            positions,
        })
    }

    fn at(&self, position: u64) -> Vec<u64> {
        let mut rest = position;
        let mut at: Vec<u64> = self
            .inner
            .shape()
            .iter()
            .rev()
            .map(|length| {
                let place = rest % length;
                rest /= length;
                place
            })
            .collect();
        at.reverse();
        at
    }

    /// The chunk of an element, where elements of several chunks have nothing in common.
    fn chunk(&self, at: &[u64]) -> Vec<u64> {
        match self.inner.layout() {
            Layout::Chunks(chunk) => at.iter().zip(&chunk).map(|(at, side)| at / (*side).max(1)).collect(),
            Layout::RowMajor | Layout::Memory => vec![],
        }
    }

    /// The places of a region's elements, ordered by where they are in the file, and the reads that bring them.
    fn pieces(&self, region: &Region, io: &Io) -> Result<(Vec<usize>, Vec<PickedPiece>), StoreError> {
        region.check_in(&self.shape, &self.name())?;
        let first = region.start[0] as usize;
        let chosen = &self.positions[first..first + region.shape[0] as usize];
        let mut places: Vec<usize> = (0..chosen.len()).collect();
        places.sort_by_cached_key(|place| (self.chunk(&self.at(chosen[*place])), chosen[*place]));
        let mut pieces: Vec<PickedPiece> = vec![];
        for (from, place) in places.iter().enumerate() {
            let at = self.at(chosen[*place]);
            let alone = Region::new(at.clone(), vec![1; at.len()]);
            let cost = self.inner.cost(&alone, io)?;
            if let Some(last) = pieces.last_mut() {
                let same = self.chunk(&last.region.start) == self.chunk(&at);
                let hull = hull(&last.region, &at);
                if same && hull.elements().saturating_mul(self.dtype().size() as u64) <= PIECE_BYTES {
                    let together = self.inner.cost(&hull, io)?;
                    if together.read_bytes <= last.cost.read_bytes + cost.read_bytes {
                        *last = PickedPiece {
                            region: hull,
                            cost: together,
                            from: last.from,
                            end: from + 1,
                        };
                        continue;
                    }
                }
            }
            pieces.push(PickedPiece {
                region: alone,
                cost,
                from,
                end: from + 1,
            });
        }
        Ok((places, pieces))
    }

    fn data_bytes(&self, region: &Region) -> usize {
        (region.elements() as usize * self.dtype().size()).next_multiple_of(PAGE)
    }
}

/// The smallest box with both.
fn hull(region: &Region, at: &[u64]) -> Region {
    let start: Vec<u64> = region.start.iter().zip(at).map(|(start, at)| *start.min(at)).collect();
    let ends = region.start.iter().zip(&region.shape).zip(at);
    let shape = ends
        .zip(&start)
        .map(|(((from, length), at), start)| (from + length).max(at + 1) - start)
        .collect();
    Region::new(start, shape)
}

impl Source for Picked {
    as_inner!();

    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(self.shape.to_vec())
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        region.check_in(&self.shape, &self.name())?;
        let first = region.start[0] as usize;
        self.positions[first..first + region.shape[0] as usize]
            .iter()
            .try_for_each(|position| {
                let at = self.at(*position);
                let shape = vec![1; at.len()];
                self.inner.check_region(&Region::new(at, shape))
            })
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        let mut all = ReadCost::default();
        for PickedPiece { cost, .. } in self.pieces(region, io)?.1 {
            all.read_bytes += cost.read_bytes;
            all.frame_bytes = all.frame_bytes.max(cost.frame_bytes);
            all.workspace_bytes = all.workspace_bytes.max(cost.workspace_bytes);
        }
        // The data, and behind it the piece that is being read.
        all.frame_bytes += self.data_bytes(region);
        Ok(all)
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let item = self.dtype().size();
        let first = region.start[0] as usize;
        let (places, pieces) = self.pieces(region, io)?;
        let (data, staging) = frame.split_at_mut(self.data_bytes(region));
        for piece in pieces {
            let from = self.inner.read(&piece.region, staging, io)?;
            for place in &places[piece.from..piece.end] {
                let at = self.at(self.positions[first + place]);
                let offsets = at.iter().zip(&piece.region.start).zip(&piece.region.shape);
                let within = offsets.fold(0, |index, ((at, start), length)| index * length + (at - start));
                let source = from + within as usize * item;
                data[place * item..][..item].copy_from_slice(&staging[source..source + item]);
            }
        }
        Ok(0)
    }
}
