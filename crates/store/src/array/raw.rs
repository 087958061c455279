//! An array in C order within a file, read past the page cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::region::checked_elements;
use crate::array::rowmajor::{make_native, RowMajor};
use crate::array::source::{Layout, RawArray, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::{Frame, Io, Region, StoreError};

/// Holds no file open: any number of arrays can be, and each is read by the I/O of the session that reads.
#[derive(Clone)]
pub(crate) struct RawSource {
    path: PathBuf,
    array: RowMajor,
    dtype: DType,
    swapped: bool,
    stamp: Stamp,
    identity: String,
    /// The identity of the whole array, of which this is a part or another shape.
    origin: String,
}

impl std::fmt::Debug for RawSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "raw({:?}, {:?}, {})", self.path, self.array.shape, self.dtype)
    }
}

impl RawSource {
    /// An array within the file that has this stamp, known by its place.
    ///
    /// # Errors
    /// A file that is too short for it.
    pub fn placed(path: &Path, stamp: Stamp, raw: RawArray) -> Result<RawSource, StoreError> {
        let name = stamp.name(path);
        let identity = format!("{name}:{}:{:?}:{}:{}", raw.start, raw.shape, raw.dtype, raw.swapped);
        RawSource::new(path, stamp, raw, identity)
    }

    /// The same by another identity; equal identities hold equal bytes.
    ///
    /// # Errors
    /// A file that is too short for it.
    pub fn new(path: &Path, stamp: Stamp, raw: RawArray, identity: String) -> Result<RawSource, StoreError> {
        let need = checked_elements(&raw.shape)
            .and_then(|elements| elements.checked_mul(raw.dtype.size() as u64)?.checked_add(raw.start));
        if need.is_none_or(|need| stamp.bytes < need) {
            let reason = format!(
                "shape {:?} of {} from byte {} does not fit into {} bytes",
                raw.shape, raw.dtype, raw.start, stamp.bytes
            );
            return Err(StoreError::format(path, reason));
        }
        Ok(RawSource {
            path: path.to_path_buf(),
            array: RowMajor {
                base: raw.start,
                shape: raw.shape,
                item: raw.dtype.size(),
                file_bytes: stamp.bytes,
            },
            dtype: raw.dtype,
            swapped: raw.swapped,
            stamp,
            origin: identity.clone(),
            identity,
        })
    }
}

impl Source for RawSource {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn shape(&self) -> &[u64] {
        &self.array.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn layout(&self) -> Layout {
        Layout::RowMajor
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn raw(&self) -> Option<RawArray> {
        Some(RawArray {
            start: self.array.base,
            shape: self.array.shape.clone(),
            dtype: self.dtype,
            swapped: self.swapped,
        })
    }

    fn reshaped(&self, first: u64, shape: &[u64]) -> Option<Arc<dyn Source>> {
        let wanted = checked_elements(shape)?.checked_add(first)?;
        if wanted > checked_elements(&self.array.shape)? {
            return None;
        }
        let array = RowMajor {
            base: self.array.base + first * self.array.item as u64,
            shape: shape.to_vec(),
            ..self.array.clone()
        };
        Some(Arc::new(RawSource {
            identity: format!("{}+{first}:{shape:?}", self.identity),
            array,
            ..self.clone()
        }))
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.path, |stamp| stamp)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.path, Stamp::written)
    }

    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        region.check_in(self.shape(), &self.name())?;
        Ok(ReadCost {
            read_bytes: self.array.read_bytes(region),
            frame_bytes: self.array.frame_bytes(region),
            workspace_bytes: 0,
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        region.check_in(self.shape(), &self.name())?;
        let file = self.stamp.open(&self.path, io)?;
        let offset = self.array.read(&file, region, frame, io)?;
        let data = &mut frame[offset..offset + region.elements() as usize * self.array.item];
        make_native(data, self.dtype, self.swapped);
        Ok(offset)
    }

    fn group_bytes(&self, regions: &[Region]) -> Option<u64> {
        let checked = regions
            .iter()
            .try_for_each(|region| region.check_in(self.shape(), &self.name()));
        checked.ok().and_then(|()| self.array.group_bytes(regions))
    }

    fn read_group(
        &self,
        regions: &[Region],
        frames: &mut [Frame],
        staging: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        for region in regions {
            region.check_in(self.shape(), &self.name())?;
        }
        let file = self.stamp.open(&self.path, io)?;
        self.array.read_group(&file, regions, frames, staging, io)?;
        for (region, frame) in regions.iter().zip(frames) {
            let data = &mut frame[..region.elements() as usize * self.array.item];
            make_native(data, self.dtype, self.swapped);
        }
        Ok(())
    }
}
