//! Opening what a URL leads to: a prefix of Zarr, an object that is a file, or a member of either.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::array::source::Opening;
use crate::array::stored::StoredObject;
use crate::backend::remote::place_of;
use crate::formats::zarr;
use crate::{Io, StoreError};

/// Suffixes of files, which are looked for before folders of Zarr are: each look is a request.
const OF_FILES: [&str; 6] = ["npy", "nc", "nc4", "h5", "hdf5", "h5ad"];

/// Opens a file, or a member of one.
type FindInFile = fn(&Path, &str, &Io, &mut dyn Opening) -> Result<StoredObject, StoreError>;

/// The array or the group at a path that begins with the URL of a store.
///
/// # Errors
/// As those of `find_for`.
pub(super) fn find_remote(
    path: &Path,
    find_in_file: FindInFile,
    io: &Io,
    opening: &mut dyn Opening,
) -> Result<StoredObject, StoreError> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let is_file = suffix.is_some_and(|suffix| OF_FILES.contains(&suffix));
    if is_file && is_object(path)? {
        return find_in_file(path, "", io, opening);
    }
    match zarr::find_zarr(path, opening) {
        Err(error) if is_undocumented(&error) => {}
        other => return other,
    }
    if !is_file && is_object(path)? {
        return find_in_file(path, "", io, opening);
    }
    match file_above(path)? {
        Some((file, member)) => find_in_file(&file, &member, io, opening),
        None => Err(StoreError::io(path, 0, "open", ErrorKind::NotFound)),
    }
}

/// Whether nothing is there that Zarr writes.
fn is_undocumented(error: &StoreError) -> bool {
    matches!(error, StoreError::Format { reason, .. } if reason == zarr::NO_DOCUMENT)
}

fn is_object(path: &Path) -> Result<bool, StoreError> {
    let Some(place) = place_of(path).filter(|place| !place.key.is_empty()) else {
        return Ok(false);
    };
    match place.store.facts(&place.key) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(StoreError::io(path, 0, "open", cause)),
    }
}

/// The object that a path leads into, by the suffix of a file, and the rest of the path.
fn file_above(path: &Path) -> Result<Option<(PathBuf, String)>, StoreError> {
    let text = path.to_str().unwrap_or_default();
    for suffix in OF_FILES {
        let end = format!(".{suffix}/");
        for (at, _) in text.match_indices(&end) {
            let (file, member) = (&text[..at + end.len() - 1], &text[at + end.len()..]);
            if is_object(Path::new(file))? {
                return Ok(Some((PathBuf::from(file), member.to_string())));
            }
        }
    }
    Ok(None)
}
