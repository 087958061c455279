//! Arrays in memory, as sources and as sinks.

use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::region::{checked_elements, copy_lattice, Lattice};
use crate::array::sink::WriteCosts;
use crate::base::identity::identity_of_its_own;
use crate::{
    ClaimedSlice, FramePool, Io, Layout, MemoryView, ReadCost, Region, SharedBuffer, Sink, Source, StoreError,
};

/// An array whose bytes belong to someone else (a NumPy buffer, a `Vec`).
pub struct MemorySource {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    dtype: DType,
    shape: Vec<u64>,
    lattice: Lattice,
    identity: String,
}

impl MemorySource {
    /// `offset` and `strides` are in elements. Every element that the shape reaches must lie in the owner's bytes.
    ///
    /// # Errors
    /// The bytes are not those of the shape and strides.
    pub fn new(
        owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
        dtype: DType,
        offset: usize,
        shape: &[u64],
        strides: &[i64],
    ) -> Result<MemorySource, StoreError> {
        let available = (*owner).as_ref().len() / dtype.size();
        if !reaches_within(available, offset, shape, strides) {
            return Err(StoreError::Invalid(format!(
                "shape {shape:?} with strides {strides:?} from element {offset} leaves a buffer of {available} elements"
            )));
        }
        let lattice = Lattice {
            offset: offset as i64,
            strides: strides.to_vec(),
        };
        Ok(MemorySource {
            owner,
            dtype,
            shape: shape.to_vec(),
            lattice,
            identity: identity_of_its_own("memory"),
        })
    }

    /// The source with a name for what it is, equal in all processes: its elements never change.
    #[must_use]
    pub fn known_as(self, identity: &str) -> MemorySource {
        MemorySource {
            identity: format!("known:{identity}"),
            ..self
        }
    }

    fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }
}

/// Whether the lowest and the highest element that a shape reaches lie in `available` elements.
fn reaches_within(available: usize, offset: usize, shape: &[u64], strides: &[i64]) -> bool {
    if shape.len() != strides.len() || checked_elements(shape).is_none_or(|elements| elements > i64::MAX as u64) {
        return false;
    }
    if shape.contains(&0) {
        return true;
    }
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (extent, stride) in shape.iter().zip(strides) {
        let reach = i128::from(extent - 1) * i128::from(*stride);
        low += reach.min(0);
        high += reach.max(0);
    }
    low >= 0 && high < available as i128
}

impl std::fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory({:?}, {})", self.shape, self.dtype)
    }
}

impl Source for MemorySource {
    fn name(&self) -> String {
        "array in memory".into()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn layout(&self) -> Layout {
        Layout::Memory
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn reshaped(&self, first: u64, shape: &[u64]) -> Option<Arc<dyn Source>> {
        let whole = Region::full(&self.shape);
        let in_order = self.lattice.strides == Lattice::of_box(&self.shape, &vec![0; self.shape.len()]).strides;
        if !in_order || checked_elements(shape)?.checked_add(first)? > whole.elements() {
            return None;
        }
        let lattice = Lattice {
            offset: self.lattice.offset + first as i64,
            ..Lattice::of_box(shape, &vec![0; shape.len()])
        };
        Some(Arc::new(MemorySource {
            owner: self.owner.clone(),
            dtype: self.dtype,
            shape: shape.to_vec(),
            lattice,
            identity: format!("{}+{first}:{shape:?}", self.identity),
        }))
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        Ok(ReadCost {
            frame_bytes: region.elements() as usize * self.dtype.size(),
            ..ReadCost::default()
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], _io: &Io) -> Result<usize, StoreError> {
        region.check_in(&self.shape, &self.name())?;
        let mut from = self.lattice.clone();
        from.offset += region
            .start
            .iter()
            .zip(&from.strides)
            .map(|(start, stride)| *start as i64 * stride)
            .sum::<i64>();
        let to = Lattice::of_box(&region.shape, &vec![0; region.shape.len()]);
        copy_lattice(self.bytes(), &from, frame, &to, &region.shape, self.dtype.size());
        Ok(0)
    }

    fn memory(&self) -> Option<MemoryView<'_>> {
        let Lattice { offset, strides } = &self.lattice;
        Some(MemoryView {
            data: self.bytes(),
            offset: *offset as usize,
            strides,
        })
    }
}

/// A C-ordered result in memory.
pub struct MemorySink {
    buffer: SharedBuffer,
    shape: Vec<u64>,
    tile: Vec<u64>,
    dtype: DType,
}

impl MemorySink {
    /// Reserves the whole result.
    ///
    /// # Errors
    /// `memory`, where the ledger has no room for the result.
    pub fn new(shape: &[u64], dtype: DType, tile: &[u64], pool: &FramePool) -> Result<MemorySink, StoreError> {
        let bytes =
            checked_elements(shape).and_then(|elements| usize::try_from(elements).ok()?.checked_mul(dtype.size()));
        let bytes = bytes.ok_or_else(|| StoreError::Invalid(format!("shape {shape:?} of {dtype} overflows")))?;
        let buffer = SharedBuffer::new(pool.allocate(bytes, "result in memory")?);
        Ok(MemorySink {
            buffer,
            shape: shape.to_vec(),
            tile: tile.to_vec(),
            dtype,
        })
    }

    /// The buffer being filled; `take` it after the last write.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }
}

impl WriteCosts for MemorySink {
    fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn write_bytes(&self, _region: &Region) -> u64 {
        0
    }

    fn overhead_bytes(&self) -> u64 {
        0
    }

    fn workspace_bytes(&self, _region: &Region) -> usize {
        0
    }
}

impl Sink for MemorySink {
    fn name(&self) -> String {
        "result in memory".into()
    }

    fn costs(&self) -> &dyn WriteCosts {
        self
    }

    fn write(&self, region: &Region, data: &[u8], _io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.shape, &self.name())?;
        let item = self.dtype.size();
        let mut done = 0;
        for run in region.runs(&self.shape) {
            let (at, bytes) = (run.start as usize * item, run.length as usize * item);
            let piece = data.get(done..done + bytes);
            let piece = piece.ok_or_else(|| StoreError::Invalid("a tile is shorter than its region".into()))?;
            self.buffer.claim(at..at + bytes)?.copy_from_slice(piece);
            done += bytes;
        }
        Ok(())
    }

    fn borrow(&self, region: &Region) -> Option<ClaimedSlice> {
        region.check_in(&self.shape, "").ok()?;
        let item = self.dtype.size();
        let mut runs = region.runs(&self.shape);
        let run = runs.next()?;
        if runs.next().is_some() {
            return None;
        }
        let at = run.start as usize * item;
        self.buffer.claim(at..at + run.length as usize * item).ok()
    }

    fn seal(&self, _io: &Io) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ledger;

    #[test]
    fn strided_views_are_read_and_bounds_are_checked() {
        let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new((0u8..12).collect::<Vec<u8>>());
        // A 3 by 4 array with its rows reversed and transposed.
        let source = MemorySource::new(owner.clone(), DType::U8, 8, &[4, 3], &[1, -4]).unwrap();
        let mut frame = vec![0; 4];
        let at = source
            .read(&Region::new(vec![1, 0], vec![2, 2]), &mut frame, &Io::memory())
            .unwrap();
        assert_eq!((at, frame), (0, vec![9, 5, 10, 6]));
        assert!(MemorySource::new(owner.clone(), DType::U8, 7, &[4, 3], &[1, -4]).is_err());
        assert!(MemorySource::new(owner.clone(), DType::U8, 0, &[13], &[1]).is_err());
        assert!(MemorySource::new(owner, DType::U8, 0, &[u64::MAX, u64::MAX], &[0, 0]).is_err());
    }

    #[test]
    fn contiguous_tiles_are_written_in_place() {
        let pool = FramePool::new(Ledger::new(1 << 20));
        let sink = MemorySink::new(&[4, 4], DType::U8, &[2, 2], &pool).unwrap();
        let rows = Region::new(vec![2, 0], vec![2, 4]);
        sink.borrow(&rows).unwrap().fill(5);
        let corner = Region::new(vec![0, 2], vec![2, 2]);
        assert!(sink.borrow(&corner).is_none());
        sink.write(&Region::new(vec![0, 0], vec![2, 2]), &[1, 2, 3, 4], &Io::memory())
            .unwrap();
        sink.write(&corner, &[5, 6, 7, 8], &Io::memory()).unwrap();
        let frame = sink.buffer().take().unwrap();
        assert_eq!(frame[..], [1, 2, 5, 6, 3, 4, 7, 8, 5, 5, 5, 5, 5, 5, 5, 5]);
    }
}
