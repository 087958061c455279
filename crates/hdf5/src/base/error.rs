//! The one error of this crate.

use std::fmt;

/// The reasons for which metadata of a file is not read.
#[derive(Debug)]
pub enum Hdf5Error {
    /// The bytes of the file could not be read.
    Read(std::io::Error),
    /// Bytes that the format does not allow, at an offset from the first byte of the file.
    Damaged {
        /// The byte, counted from the first of the file.
        offset: u64,
        /// The rule that the bytes break.
        reason: String,
    },
    /// A part of the format that this crate refuses, by its name.
    Unsupported(String),
    /// A path that names no object.
    NotFound(String),
    /// The caller of [`crate::FileBytes::keep`] ended the work: no memory, or a user who interrupts.
    Interrupted(String),
}

impl Hdf5Error {
    /// Bytes at `offset` that the format does not allow.
    pub(crate) fn damaged(offset: u64, reason: impl Into<String>) -> Hdf5Error {
        let reason = reason.into();
        Hdf5Error::Damaged { offset, reason }
    }

    /// A part of the format that is refused.
    pub(crate) fn unsupported(part: impl Into<String>) -> Hdf5Error {
        Hdf5Error::Unsupported(part.into())
    }
}

impl fmt::Display for Hdf5Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hdf5Error::Read(cause) => write!(to, "HDF5: {cause}"),
            Hdf5Error::Damaged { offset, reason } => write!(to, "HDF5: damaged at byte {offset}: {reason}"),
            Hdf5Error::Unsupported(part) => write!(to, "HDF5: {part}: not supported"),
            Hdf5Error::NotFound(path) => write!(to, "HDF5: no object {path:?}"),
            Hdf5Error::Interrupted(reason) => write!(to, "HDF5: interrupted: {reason}"),
        }
    }
}

impl std::error::Error for Hdf5Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Hdf5Error::Read(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Hdf5Error {
    fn from(cause: std::io::Error) -> Hdf5Error {
        Hdf5Error::Read(cause)
    }
}
