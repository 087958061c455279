//! Opening arrays and groups of any format.

use std::path::{Path, PathBuf};

use crate::array::annotations::Annotations;
use crate::array::source::{Opened, Opening};
use crate::array::stored::StoredObject;
use crate::formats::{hdf5, netcdf3, npy, zarr};
use crate::io::Mode;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Reservation, StoreError, PAGE};

/// Opens a `.npy` file, the directory of a Zarr v3 array, or a dataset of an HDF5 file or variable of a
/// NetCDF-3 file, by the path of the file and of the member in it.
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
/// As `open`, and what `opening` answers; a group.
pub fn open_for(path: &Path, io: &Io, opening: &mut dyn Opening) -> Result<Opened, StoreError> {
    match find_for(path, io, opening)? {
        StoredObject::Array(opened) => Ok(opened),
        StoredObject::Group(group) => Err(group.no_array()),
    }
}

/// As `open_for`, where a path may lead to a group as well.
///
/// # Errors
/// Those of `open_for`.
pub fn find_for(path: &Path, io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) => {
            return match file_above(&absolute) {
                Some((file, member)) => match find_member(&file, &member, io, opening)? {
                    Some(object) => Ok(object),
                    None => Err(StoreError::io(path, 0, "open", cause)),
                },
                None => Err(StoreError::io(path, 0, "open", cause)),
            }
        }
    };
    if metadata.is_dir() {
        return zarr::find_zarr(&absolute, opening);
    }
    if !metadata.is_file() {
        return Err(StoreError::format(path, "is neither a file nor a directory"));
    }
    if path.extension().is_none_or(|suffix| suffix != "npy") {
        if let Some(object) = find_member(&absolute, "", io, opening)? {
            return Ok(object);
        }
    }
    let file = npy::open_npy(&absolute, io)?;
    Ok(StoredObject::Array(Opened {
        source: file.source,
        transposed: file.transposed,
        format: "npy",
        annotations: Annotations::default(),
    }))
}

/// The file that a path leads into, and the rest of the path.
fn file_above(path: &Path) -> Option<(PathBuf, String)> {
    let above = path.ancestors().skip(1).find(|above| above.exists())?;
    let rest = path.strip_prefix(above).ok()?.to_str()?;
    above.is_file().then(|| (above.to_path_buf(), rest.to_string()))
}

/// What has a name in a file of several arrays, by how its first page begins; nothing for other files.
fn find_member(
    path: &Path,
    member: &str,
    io: &Io,
    opening: &mut dyn Opening,
) -> Result<Option<StoredObject>, StoreError> {
    let file = io.open(path, Mode::Read)?;
    let present = file.len()?.min(PAGE as u64) as usize;
    let mut page = AlignedBuffer::new(PAGE).map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
    io.read_metadata(&file, &mut page, 0, present)?;
    let head = &page[..present];
    if hdf5::is_begun_by(head) {
        return hdf5::find_hdf5(path, member, io, opening).map(Some);
    }
    if netcdf3::is_begun_by(head) {
        return netcdf3::find_netcdf3(path, member, io, opening).map(Some);
    }
    Ok(None)
}
