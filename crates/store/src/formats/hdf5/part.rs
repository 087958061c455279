//! A contiguous data set as an output: elements in C order, from an offset of a file on that is there.
//!
//! Who made the file, with its metadata and room for the elements, gives it its name when all parts are sealed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::base::page::PAGE;
use crate::durable::locked::LockedDir;
use crate::io::{File, Mode};
use crate::{Io, Region, StoreError};

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePart {
    pub file: PathBuf,
    pub offset: u64,
}

/// Shape, type and grid of a data set, and where its elements begin.
#[derive(Clone, Debug)]
pub(crate) struct PartPlan {
    part: FilePart,
    shape: Vec<u64>,
    dtype: DType,
    tile: Vec<u64>,
    /// Every tile is one run of the file that starts on a page.
    is_aligned: bool,
}

impl PartPlan {
    pub(crate) fn new(part: &FilePart, shape: &[u64], dtype: DType, tile: &[u64]) -> PartPlan {
        let whole_rows = shape.len() < 2 || tile[1..] == shape[1..];
        let tile_bytes = tile.iter().product::<u64>() * dtype.size() as u64;
        let single = shape.first().is_none_or(|extent| tile[0] >= *extent);
        let is_page = |bytes: u64| bytes.is_multiple_of(PAGE as u64);
        PartPlan {
            part: part.clone(),
            shape: shape.to_vec(),
            dtype,
            tile: tile.to_vec(),
            is_aligned: whole_rows && is_page(part.offset) && (single || is_page(tile_bytes)),
        }
    }

    fn end(&self) -> u64 {
        self.part.offset + self.tile_bytes(&Region::full(&self.shape))
    }
}

impl WriteCosts for PartPlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn write_bytes(&self, region: &Region) -> u64 {
        self.tile_bytes(region)
    }

    fn overhead_bytes(&self) -> u64 {
        0
    }
}

impl OutputPlan for PartPlan {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn create(
        &self,
        _folder: Option<LockedDir>,
        path: &Path,
        _overwrite: bool,
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let file = |mode| Ok::<_, StoreError>(io.open(&self.part.file, mode)?.named(path.to_path_buf()));
        let sink = PartSink {
            direct: self.is_aligned.then(|| file(Mode::Reopen)).transpose()?,
            cached: file(Mode::ReopenUnaligned)?,
            name: path.display().to_string(),
            plan: self.clone(),
        };
        sink.check_length()?;
        sink.cached.allocate(self.end())?;
        Ok(Arc::new(sink))
    }
}

struct PartSink {
    plan: PartPlan,
    name: String,
    /// For whole pages, where tiles start on them.
    direct: Option<File>,
    cached: File,
}

impl PartSink {
    fn check_length(&self) -> Result<(), StoreError> {
        let (length, end) = (self.cached.len()?, self.plan.end());
        match length >= end {
            true => Ok(()),
            false => {
                let reason = format!("it has {length} bytes, and a data set in it ends at {end}");
                Err(StoreError::disturbed(&self.plan.part.file, reason))
            }
        }
    }
}

impl Sink for PartSink {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }

    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.shape, &self.name)?;
        let item = self.plan.dtype.size();
        let mut done = 0;
        for run in region.runs(&self.plan.shape) {
            let (offset, bytes) = (
                self.plan.part.offset + run.start * item as u64,
                run.length as usize * item,
            );
            let piece = data.get(done..done + bytes).ok_or_else(|| {
                StoreError::Invalid(format!("{}: a tile of {} bytes is too short", self.name, data.len()))
            })?;
            done += bytes;
            let direct = self.direct.as_ref();
            // Bytes behind the last element may be another's.
            let whole = direct.map_or(0, |_| bytes / PAGE * PAGE);
            let (pages, tail) = piece.split_at(whole);
            if let Some(file) = direct.filter(|_| whole > 0) {
                io.write(file, pages, offset)?;
            }
            if !tail.is_empty() {
                io.write(&self.cached, tail, offset + whole as u64)?;
            }
        }
        Ok(())
    }

    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync(&self.cached)
    }

    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        io.sync(&self.cached)?;
        self.cached.drop_cache();
        Ok(())
    }

    fn check(&self) -> Result<(), StoreError> {
        self.check_length()
    }

    fn is_durable(&self) -> bool {
        true
    }
}
