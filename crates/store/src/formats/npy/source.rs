//! `.npy` files, read past the page cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use super::header::{header_bytes, parse_npy_header};
use crate::array::region::checked_elements;
use crate::array::rowmajor::{normalize_bools, swap_bytes, RowMajor};
use crate::array::source::{Layout, RawArray, ReadCost, Source};
use crate::backend::stamp::{settled, Stamp};
use crate::base::page::PAGE;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Frame, Io, Region, StoreError};

/// An opened file. The source has the shape as stored in C order; `transposed` says that the array is its transpose.
pub struct NpyFile {
    pub source: Arc<dyn Source>,
    pub transposed: bool,
}

/// Holds no file open: any number of arrays can be, and each is read by the I/O of the session that reads.
#[derive(Clone)]
struct NpySource {
    path: PathBuf,
    array: RowMajor,
    dtype: DType,
    swapped: bool,
    stamp: Stamp,
    identity: String,
    /// The identity of the file's whole array.
    origin: String,
}

impl std::fmt::Debug for NpySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "npy({:?}, {:?}, {})", self.path, self.array.shape, self.dtype)
    }
}

/// Opens a `.npy` file.
///
/// # Errors
/// One line: not a `.npy` file, a type that is not supported, or a file shorter than its header says.
pub fn open_npy(path: &Path, io: &Io) -> Result<NpyFile, StoreError> {
    let stamp = settled(|| Stamp::of(path).map(|stamp| (stamp, stamp.modified_ns)))?;
    let file = stamp.open(path, io)?;
    let bytes = read_header(&file, stamp.bytes, io)?;
    let header = parse_npy_header(&bytes).map_err(|reason| StoreError::format(path, reason))?;
    let data = header.shape.iter().product::<u64>() * header.dtype.size() as u64;
    let (have, need) = (stamp.bytes, header.data_start + data);
    if have < need {
        let reason = format!(
            "truncated: shape {:?} of {} needs {need} bytes, the file has {have}",
            header.shape, header.dtype
        );
        return Err(StoreError::format(path, reason));
    }
    let transposed = header.fortran && header.shape.len() > 1;
    let mut shape = header.shape;
    if transposed {
        shape.reverse();
    }
    let array = RowMajor {
        base: header.data_start,
        shape,
        item: header.dtype.size(),
        file_bytes: stamp.bytes,
    };
    let identity = stamp.name(path);
    let source = NpySource {
        path: path.to_path_buf(),
        array,
        dtype: header.dtype,
        swapped: header.swapped,
        stamp,
        origin: identity.clone(),
        identity,
    };
    Ok(NpyFile {
        source: Arc::new(source),
        transposed,
    })
}

/// Opens a part of a file that has no header, or whose header is somebody else's. The data of a whole `.npy` file is
/// the same source that `open_npy` gives.
///
/// # Errors
/// The file cannot be opened, or ends before the array does.
pub fn open_raw(path: &Path, raw: RawArray, io: &Io) -> Result<Arc<dyn Source>, StoreError> {
    let stamp = settled(|| Stamp::of(path).map(|stamp| (stamp, stamp.modified_ns)))?;
    let file = stamp.open(path, io)?;
    let need = checked_elements(&raw.shape)
        .and_then(|elements| elements.checked_mul(raw.dtype.size() as u64)?.checked_add(raw.start));
    if need.is_none_or(|need| stamp.bytes < need) {
        let reason = format!(
            "shape {:?} of {} from byte {} does not fit into {} bytes",
            raw.shape, raw.dtype, raw.start, stamp.bytes
        );
        return Err(StoreError::format(path, reason));
    }
    let mut identity = stamp.name(path);
    if !is_npy_data(&file, stamp.bytes, &raw, io) {
        identity += &format!(":{}:{:?}:{}:{}", raw.start, raw.shape, raw.dtype, raw.swapped);
    }
    Ok(Arc::new(NpySource {
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
    }))
}

/// Whether the file is a `.npy` file of just this array.
fn is_npy_data(file: &File, file_bytes: u64, raw: &RawArray, io: &Io) -> bool {
    let header = read_header(file, file_bytes, io)
        .ok()
        .and_then(|bytes| parse_npy_header(&bytes).ok());
    header.is_some_and(|mut header| {
        if header.fortran {
            header.shape.reverse();
        }
        (header.data_start, header.dtype, header.swapped) == (raw.start, raw.dtype, raw.swapped)
            && header.shape == raw.shape
    })
}

/// The pages that hold the header.
fn read_header(file: &File, file_bytes: u64, io: &Io) -> Result<Vec<u8>, StoreError> {
    let read = |bytes: usize| -> Result<Vec<u8>, StoreError> {
        let map = |cause| StoreError::io(file.path(), 0, "map memory", cause);
        let mut pages = AlignedBuffer::new(bytes).map_err(map)?;
        let present = (pages.len() as u64).min(file_bytes) as usize;
        io.read_metadata(file, &mut pages, 0, present)?;
        Ok(pages[..present].to_vec())
    };
    let first = read(PAGE)?;
    let bytes = header_bytes(&first).map_err(|reason| StoreError::format(file.path(), reason))?;
    if bytes > first.len() {
        return read(bytes);
    }
    Ok(first)
}

impl NpySource {
    fn make_native(&self, data: &mut [u8]) {
        if self.swapped {
            swap_bytes(data, self.dtype);
        }
        if self.dtype == DType::Bool {
            normalize_bools(data);
        }
    }
}

impl Source for NpySource {
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
        Some(Arc::new(NpySource {
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
        self.make_native(&mut frame[offset..offset + region.elements() as usize * self.array.item]);
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
            self.make_native(&mut frame[..region.elements() as usize * self.array.item]);
        }
        Ok(())
    }
}
