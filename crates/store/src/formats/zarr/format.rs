//! Facts for the registry about Zarr.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::array::find_zarr;
use super::document::is_in_group;
use super::sink::ZarrPlan;
use super::updatable::find_updatable;
use super::update::ZarrUpdatePlan;
use crate::array::format::{Ability, ArrayUpdate, Evidence, Format, UpdatableArray};
use crate::array::sink::OutputPlan;
use crate::array::source::Opening;
use crate::array::stored::StoredObject;
use crate::{Io, StoreError};

/// Folders: the path of a member is that of a folder of its own.
pub(crate) struct Zarr;

impl Format for Zarr {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn abilities(&self) -> &'static [Ability] {
        use Ability::{Append, Attributes, Groups, Region, Write};
        &[Write, Append, Region, Attributes, Groups]
    }

    fn sniff(&self, evidence: Evidence<'_>) -> bool {
        matches!(evidence, Evidence::Folder)
    }

    fn find(&self, path: &Path, member: &str, _io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
        match member {
            "" => find_zarr(path, opening),
            member => find_zarr(&path.join(member), opening),
        }
    }

    fn suffix(&self) -> Option<&'static str> {
        Some("zarr")
    }

    /// A member of a group needs no suffix.
    fn takes(&self, path: &Path) -> bool {
        match path.extension() {
            Some(end) => end == "zarr",
            None => is_in_group(path),
        }
    }

    fn find_updatable(&self, path: &Path) -> Result<UpdatableArray, StoreError> {
        find_updatable(path)
    }

    fn plan_update(
        &self,
        path: &Path,
        update: &ArrayUpdate,
        shape: &[u64],
        dtype: DType,
    ) -> Result<Arc<dyn OutputPlan>, StoreError> {
        Ok(Arc::new(ZarrUpdatePlan::new(path, update, shape, dtype)?))
    }

    fn plan_sink(&self, shape: &[u64], dtype: DType, tile: &[u64]) -> Result<Arc<dyn OutputPlan>, StoreError> {
        Ok(Arc::new(ZarrPlan::new(shape, dtype, tile)?))
    }
}
