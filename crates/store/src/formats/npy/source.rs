//! `.npy` files, read past the page cache.

use std::path::Path;
use std::sync::Arc;

use super::header::{header_bytes, parse_npy_header};
use crate::array::raw::RawSource;
use crate::array::source::{RawArray, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, StoreError};

/// An opened file. The source has the shape as stored in C order; `transposed` says that the array is its transpose.
pub struct NpyFile {
    pub source: Arc<dyn Source>,
    pub transposed: bool,
}

/// Opens a `.npy` file.
///
/// # Errors
/// One line: not a `.npy` file, a type that is not supported, or a file shorter than its header says.
pub fn open_npy(path: &Path, io: &Io) -> Result<NpyFile, StoreError> {
    let (stamp, file) = Stamp::opened(path, io)?;
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
    let raw = RawArray {
        start: header.data_start,
        shape,
        dtype: header.dtype,
        swapped: header.swapped,
    };
    let source = RawSource::new(path, stamp, raw, stamp.name(path))?;
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
    let (stamp, file) = Stamp::opened(path, io)?;
    let source = match is_npy_data(&file, stamp.bytes, &raw, io) {
        true => RawSource::new(path, stamp, raw, stamp.name(path)),
        false => RawSource::placed(path, stamp, raw),
    };
    Ok(Arc::new(source?))
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
