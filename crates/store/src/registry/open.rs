//! Opening arrays of any format.

use std::path::{Path, PathBuf};

use crate::array::source::{Opened, Opening};
use crate::formats::{npy, zarr};
use crate::{Io, Reservation, StoreError};

/// Opens a `.npy` file or the directory of a Zarr v3 array.
///
/// # Errors
/// One line with the path: not found, not an array, or something in it that is not supported.
pub fn open(path: &Path, io: &Io) -> Result<Opened, StoreError> {
    open_for(path, io, &mut Unwatched)
}

struct Unwatched;

impl Opening for Unwatched {
    fn look(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
    fn keep(&mut self, _bytes: usize) -> Result<Option<Reservation>, StoreError> {
        Ok(None)
    }
}

/// As `open`, for somebody who may end it or refuse its memory.
///
/// # Errors
/// As `open`, and what `opening` answers.
pub fn open_for(path: &Path, io: &Io, opening: &mut dyn Opening) -> Result<Opened, StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let metadata = std::fs::metadata(path).map_err(|cause| StoreError::io(path, 0, "open", cause))?;
    if metadata.is_dir() {
        let source = zarr::open_zarr(&absolute, opening)?;
        return Ok(Opened {
            source,
            transposed: false,
        });
    }
    if !metadata.is_file() {
        return Err(StoreError::format(path, "is neither a file nor a directory"));
    }
    let file = npy::open_npy(&absolute, io)?;
    Ok(Opened {
        source: file.source,
        transposed: file.transposed,
    })
}
