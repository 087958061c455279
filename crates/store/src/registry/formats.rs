//! The list of formats.

use std::path::Path;

use crate::array::format::{Ability, Format, UpdatableArray};
use crate::formats::hdf5::Hdf5;
use crate::formats::netcdf3::NetCdf3;
use crate::formats::npy::Npy;
use crate::formats::zarr::Zarr;
use crate::StoreError;

/// All formats of arrays, in the order in which they are asked. The last one refuses what none of them knows.
pub(super) static FORMATS: [&dyn Format; 4] = [&Zarr, &Hdf5, &NetCdf3, &Npy];

/// A format and what it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatFacts {
    /// The short name, which opened arrays carry.
    pub name: &'static str,
    /// The end of the names of outputs.
    pub suffix: Option<&'static str>,
    pub abilities: &'static [Ability],
}

/// The formats of arrays.
pub fn formats() -> Vec<FormatFacts> {
    let facts = FORMATS.iter().map(|format| FormatFacts {
        name: format.name(),
        suffix: format.suffix(),
        abilities: format.abilities(),
    });
    facts.collect()
}

/// Whether a name ends as those of arrays do.
pub(super) fn is_array_name(path: &Path) -> bool {
    let suffixes = FORMATS.iter().filter_map(|format| format.suffix());
    path.extension()
        .is_some_and(|end| suffixes.into_iter().any(|suffix| end == suffix))
}

/// The array at `path`, if parts of it can be written, and its format.
pub(super) fn updatable(path: &Path) -> Result<(&'static dyn Format, UpdatableArray), StoreError> {
    let mut refusal = None;
    for format in FORMATS {
        if format.abilities().contains(&Ability::Region) {
            match format.find_updatable(path) {
                Ok(array) => return Ok((format, array)),
                Err(reason) => refusal = refusal.or(Some(reason)),
            }
        }
    }
    Err(refusal.unwrap_or_else(|| StoreError::unsupported(path, "no format is written in parts")))
}

/// The array at `path`, if parts of it can be written.
///
/// # Errors
/// Nothing is there; a format that is written whole; a member of the format that is not written, by name; a volume.
pub fn find_updatable(path: &Path) -> Result<UpdatableArray, StoreError> {
    updatable(path).map(|(_, array)| array)
}
