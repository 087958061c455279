//! Formats as the registry sees them.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::sink::OutputPlan;
use super::source::Opening;
use super::stored::StoredObject;
use crate::{Io, StoreError};

/// Abilities of a format beside reading its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ability {
    /// Arrays are outputs.
    Write,
    /// Arrays that are there grow along an axis.
    Append,
    /// Parts of arrays that are there are written anew.
    Region,
    /// Names of axes and attributes are kept.
    Attributes,
    /// A file or folder holds several arrays, by their paths in it.
    Groups,
}

/// Evidence at a path for the format of the file or folder there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evidence<'a> {
    Folder,
    /// The name of a file, before any byte of it is read.
    Name(&'a Path),
    /// The first page of a file.
    Head(&'a [u8]),
}

/// The part of an existing array that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayUpdate {
    /// The shape that the array has now.
    pub shape: Vec<u64>,
    /// The shape that it gets.
    pub grown: Vec<u64>,
    /// Where the part begins: at the front of a chunk.
    pub start: Vec<u64>,
}

/// An existing array of which parts can be written.
#[derive(Clone, Debug)]
pub struct UpdatableArray {
    pub shape: Vec<u64>,
    pub chunk: Vec<u64>,
    pub dtype: DType,
}

/// A format of files or folders that hold arrays of any dtype and shape.
///
/// Contract: `sniff` reads nothing; `find` reads metadata alone and checks every number of them; an output plan creates nothing.
pub(crate) trait Format: Sync {
    /// The short name, which opened arrays and groups carry.
    fn name(&self) -> &'static str;
    fn abilities(&self) -> &'static [Ability];
    fn sniff(&self, evidence: Evidence<'_>) -> bool;
    /// The array or group `member` of a file or folder, which itself has the empty name.
    ///
    /// # Errors
    /// No such object, metadata that are damaged or not supported, and what `opening` answers.
    fn find(&self, path: &Path, member: &str, io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError>;
    /// The end of the names of outputs; nothing where none are written.
    fn suffix(&self) -> Option<&'static str> {
        None
    }
    /// Whether an output of this name is of the format.
    fn takes(&self, path: &Path) -> bool {
        self.suffix()
            .is_some_and(|suffix| path.extension().is_some_and(|end| end == suffix))
    }
    /// The array at `path`, if parts of it can be written.
    ///
    /// # Errors
    /// Nothing is there; an array that is written whole, with the reason.
    fn find_updatable(&self, path: &Path) -> Result<UpdatableArray, StoreError> {
        Err(StoreError::unsupported(
            path,
            format!("{} is written whole", self.name()),
        ))
    }
    /// An output of a part of the array at `path`: whole chunks of it, in an array of `shape`.
    ///
    /// # Errors
    /// As `find_updatable`; an array that is not the one that the update is for.
    fn plan_update(
        &self,
        path: &Path,
        _update: &ArrayUpdate,
        _shape: &[u64],
        _dtype: DType,
    ) -> Result<Arc<dyn OutputPlan>, StoreError> {
        Err(StoreError::unsupported(
            path,
            format!("{} is written whole", self.name()),
        ))
    }
    /// An output whose writes come in the grid of `tile`.
    ///
    /// # Errors
    /// Shapes and types that the format has no place for.
    fn plan_sink(&self, _shape: &[u64], _dtype: DType, _tile: &[u64]) -> Result<Arc<dyn OutputPlan>, StoreError> {
        Err(StoreError::Invalid(format!("{} is not written", self.name())))
    }
}
