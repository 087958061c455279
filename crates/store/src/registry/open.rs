//! Opening arrays and groups of any format.

use std::path::{Path, PathBuf};

use super::formats::FORMATS;
use super::remote::find_remote;
use crate::array::format::{Ability, Evidence, Format};
use crate::array::source::{Opened, Opening};
use crate::array::stored::StoredObject;
use crate::backend::remote::is_remote;
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
        StoredObject::Records(records) => Err(records.no_numbers()),
        StoredObject::Group(group) => Err(group.no_array()),
    }
}

/// As `open_for`, where a path may lead to a group as well.
///
/// # Errors
/// Those of `open_for`.
pub fn find_for(path: &Path, io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
    if is_remote(path) {
        return find_remote(path, find_in_file, io, opening);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) => {
            // A path that leads into a file of several arrays.
            let inside = match file_above(&absolute) {
                Some((file, member)) => container(&file, io)?.map(|format| (format, file, member)),
                None => None,
            };
            return match inside {
                Some((format, file, member)) => format.find(&file, &member, io, opening),
                None => Err(StoreError::io(path, 0, "open", cause)),
            };
        }
    };
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(StoreError::format(path, "is neither a file nor a directory"));
    }
    if metadata.is_dir() {
        let format = known(Evidence::Folder).unwrap_or(FORMATS[0]);
        return format.find(&absolute, "", io, opening);
    }
    find_in_file(&absolute, "", io, opening)
}

/// The array or the group in a file that is there.
pub(super) fn find_in_file(
    path: &Path,
    member: &str,
    io: &Io,
    opening: &mut dyn Opening,
) -> Result<StoredObject, StoreError> {
    let format = match known(Evidence::Name(path)) {
        Some(format) => format,
        None => container(path, io)?.unwrap_or(FORMATS[FORMATS.len() - 1]),
    };
    if !member.is_empty() && !format.abilities().contains(&Ability::Groups) {
        let reason = format!("{member:?} is in no file of several arrays");
        return Err(StoreError::format(path, reason));
    }
    format.find(path, member, io, opening)
}

/// The format that a path is of by some evidence.
fn known(evidence: Evidence<'_>) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.sniff(evidence))
}

/// The file that a path leads into, and the rest of the path.
fn file_above(path: &Path) -> Option<(PathBuf, String)> {
    let above = path.ancestors().skip(1).find(|above| above.exists())?;
    let rest = path.strip_prefix(above).ok()?.to_str()?;
    above.is_file().then(|| (above.to_path_buf(), rest.to_string()))
}

/// The format of a file of several arrays, by how its first page begins; nothing for other files.
fn container(path: &Path, io: &Io) -> Result<Option<&'static dyn Format>, StoreError> {
    let file = io.open(path, Mode::Read)?;
    let present = file.len()?.min(PAGE as u64) as usize;
    let mut page = AlignedBuffer::new(PAGE).map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
    io.read_metadata(&file, &mut page, 0, present)?;
    let format = known(Evidence::Head(&page[..present]));
    Ok(format.filter(|format| format.abilities().contains(&Ability::Groups)))
}
