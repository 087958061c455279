//! `.npy` output: one page of header, then the data.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::header::header_page;
use crate::array::rowmajor::bytes_within;
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::base::page::PAGE;
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::memory::mapping::AlignedBuffer;
use crate::{Interval, Io, Region, StoreError};

/// Shape, type and grid of an output, and whether its tiles can be written past the page cache.
#[derive(Clone, Debug)]
pub(crate) struct NpyPlan {
    shape: Vec<u64>,
    dtype: DType,
    tile: Vec<u64>,
    /// Every tile is whole rows that start on a page; only the last may end inside one.
    aligned: bool,
}

impl NpyPlan {
    pub(crate) fn new(shape: &[u64], dtype: DType, tile: &[u64]) -> NpyPlan {
        let whole_rows = shape.len() < 2 || tile[1..] == shape[1..];
        let tile_bytes = tile.iter().product::<u64>() * dtype.size() as u64;
        let single = shape.first().is_none_or(|extent| tile[0] >= *extent);
        let aligned = whole_rows && (single || tile_bytes.is_multiple_of(PAGE as u64));
        NpyPlan {
            shape: shape.to_vec(),
            dtype,
            tile: tile.to_vec(),
            aligned,
        }
    }

    fn data_bytes(&self, region: &Region) -> u64 {
        region.elements() * self.dtype.size() as u64
    }

    fn file_bytes(&self) -> u64 {
        PAGE as u64 + self.data_bytes(&Region::full(&self.shape))
    }
}

impl WriteCosts for NpyPlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn write_bytes(&self, region: &Region) -> u64 {
        let bytes = self.data_bytes(region);
        if self.aligned {
            bytes.next_multiple_of(PAGE as u64)
        } else {
            bytes
        }
    }

    fn overhead_bytes(&self) -> u64 {
        PAGE as u64
    }
}

impl OutputPlan for NpyPlan {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn is_begun_at(&self, path: &Path, io: &Io) -> Result<bool, StoreError> {
        Ok(first_page(path, io)? == self.head())
    }

    fn head(&self) -> Vec<u8> {
        header_page(&self.shape, self.dtype)
    }

    fn reopen(
        &self,
        folder: LockedDir,
        path: &Path,
        overwrite: bool,
        _done: &[JournalRecord],
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let mode = if self.aligned {
            Mode::Reopen
        } else {
            Mode::ReopenUnaligned
        };
        let (partial, file) = Partial::within(folder, path, overwrite, true, |partial| io.open(partial, mode))?;
        let file = file.named(path.to_path_buf());
        Ok(Arc::new(NpySink {
            plan: self.clone(),
            name: path.display().to_string(),
            file,
            partial,
        }))
    }

    fn create(
        &self,
        folder: Option<LockedDir>,
        path: &Path,
        overwrite: bool,
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let mode = if self.aligned {
            Mode::Create
        } else {
            Mode::CreateUnaligned
        };
        let make = |partial: &Path| io.open(partial, mode);
        let (partial, file) = Partial::new_in(folder, path, overwrite, make)?;
        let file = file.named(path.to_path_buf());
        let mut page = AlignedBuffer::new(PAGE).map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
        page.copy_from_slice(&header_page(&self.shape, self.dtype));
        file.allocate(self.file_bytes())?;
        io.write(&file, &page, 0)?;
        Ok(Arc::new(NpySink {
            plan: self.clone(),
            name: path.display().to_string(),
            file,
            partial,
        }))
    }
}

/// The header of a file, with what is behind it up to the end of its page; nothing of a shorter one.
pub(crate) fn first_page(path: &Path, io: &Io) -> Result<Vec<u8>, StoreError> {
    let file = io.open(path, Mode::Read)?;
    let file_bytes = file.len()?;
    if file_bytes < PAGE as u64 {
        return Ok(vec![]);
    }
    bytes_within(&file, Interval::new(0, PAGE as u64), file_bytes, io)
}

struct NpySink {
    plan: NpyPlan,
    name: String,
    file: File,
    partial: Partial,
}

impl NpySink {
    /// Refuses a file that is shorter than it was made, or longer than `most`: writing on would fill what is missing with
    /// zeros.
    fn check_length(&self, most: u64) -> Result<(), StoreError> {
        let (length, made) = (self.file.len()?, self.plan.file_bytes());
        if (made..=most).contains(&length) {
            return Ok(());
        }
        let reason = format!("it has {length} bytes where {made} were written");
        Err(StoreError::disturbed(self.partial.path(), reason).at_output(self.partial.target()))
    }

    /// The length while tiles of whole pages are written.
    fn padded_bytes(&self) -> u64 {
        self.plan.file_bytes().next_multiple_of(PAGE as u64)
    }
}

impl Sink for NpySink {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }

    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.shape, &self.name)?;
        self.check_length(self.padded_bytes())?;
        let item = self.plan.dtype.size();
        let mut done = 0;
        for run in region.runs(&self.plan.shape) {
            let offset = PAGE as u64 + run.start * item as u64;
            let bytes = if self.plan.aligned {
                self.plan.write_bytes(region) as usize
            } else {
                run.length as usize * item
            };
            let piece = data.get(done..done + bytes).ok_or_else(|| {
                StoreError::Invalid(format!("{}: a tile of {} bytes is too short", self.name, data.len()))
            })?;
            io.write(&self.file, piece, offset)?;
            done += bytes;
        }
        Ok(())
    }

    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync(&self.file)
    }

    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        self.check_length(self.padded_bytes())?;
        self.file.set_len(self.plan.file_bytes())?;
        io.sync(&self.file)?;
        self.file.drop_cache();
        Ok(())
    }

    fn check(&self) -> Result<(), StoreError> {
        self.partial.check()?;
        self.check_length(self.plan.file_bytes())
    }

    fn partial(&self) -> Option<&Partial> {
        Some(&self.partial)
    }
}
