//! Facts for the registry about `.npy` files.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::header::MAGIC;
use super::sink::NpyPlan;
use super::source::open_npy;
use crate::array::annotations::Annotations;
use crate::array::format::{Ability, Evidence, Format};
use crate::array::sink::OutputPlan;
use crate::array::source::{Opened, Opening};
use crate::array::stored::StoredObject;
use crate::{Io, StoreError};

pub(crate) struct Npy;

impl Format for Npy {
    fn name(&self) -> &'static str {
        "npy"
    }

    fn abilities(&self) -> &'static [Ability] {
        &[Ability::Write]
    }

    fn sniff(&self, evidence: Evidence<'_>) -> bool {
        match evidence {
            Evidence::Folder => false,
            Evidence::Name(path) => self.takes(path),
            Evidence::Head(head) => head.starts_with(MAGIC),
        }
    }

    fn find(
        &self,
        path: &Path,
        _member: &str,
        io: &Io,
        _opening: &mut dyn Opening,
    ) -> Result<StoredObject, StoreError> {
        let file = open_npy(path, io)?;
        Ok(StoredObject::Array(Opened {
            source: file.source,
            transposed: file.transposed,
            format: self.name(),
            annotations: Annotations::default(),
        }))
    }

    fn suffix(&self) -> Option<&'static str> {
        Some("npy")
    }

    fn plan_sink(&self, shape: &[u64], dtype: DType, tile: &[u64]) -> Result<Arc<dyn OutputPlan>, StoreError> {
        Ok(Arc::new(NpyPlan::new(shape, dtype, tile)))
    }
}
