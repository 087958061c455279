//! A sparse matrix as the output of a program: tiles in any order, each of which says where it goes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use outcore_dtype::DType;

use super::header::{SparseShape, TileRowRecord, RECORD_BYTES};
use super::output::SparseOutput;
use super::pending::{placed, FIRST_OFFSET};
use super::writer::complete;
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::base::locked::locked;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::{Io, Region, StoreError};

/// The plan of such an output.
#[derive(Clone, Debug)]
pub(crate) struct SparsePlan {
    output: SparseOutput,
    grid: [u64; 2],
    tile: [u64; 2],
}

impl SparsePlan {
    pub(crate) fn new(output: &SparseOutput) -> SparsePlan {
        let longest = output.lengths.iter().copied().max().unwrap_or(1).max(1);
        SparsePlan {
            grid: [output.lengths.len() as u64, longest],
            tile: [1, longest],
            output: output.clone(),
        }
    }

    /// Bytes of the whole file, at most.
    pub(crate) fn bytes(&self) -> u64 {
        let tiles = 0..self.output.rows.len();
        tiles
            .fold(0u64, |sum, tile| sum.saturating_add(self.output.stored(tile)))
            .saturating_add(FIRST_OFFSET)
            .saturating_add(self.overhead_bytes())
    }
}

impl WriteCosts for SparsePlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }
    fn write_bytes(&self, region: &Region) -> u64 {
        self.output.stored(region.start[0] as usize)
    }
    fn overhead_bytes(&self) -> u64 {
        let rows: u64 = self.output.rows.iter().map(|rows| rows.len() as u64).sum();
        FIRST_OFFSET + rows * RECORD_BYTES as u64
    }
    fn workspace_bytes(&self, _region: &Region) -> usize {
        0
    }
}

impl OutputPlan for SparsePlan {
    fn shape(&self) -> &[u64] {
        &self.grid
    }
    fn dtype(&self) -> DType {
        DType::U8
    }
    fn create(
        &self,
        folder: Option<LockedDir>,
        path: &Path,
        overwrite: bool,
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let make = |partial: &Path| io.open(partial, Mode::CreateUnaligned);
        let (partial, file) = Partial::new_in(folder, path, overwrite, make)?;
        Ok(Arc::new(SparseSink {
            plan: self.clone(),
            name: path.display().to_string(),
            file: file.named(path.to_path_buf()),
            partial,
            records: Mutex::default(),
        }))
    }
    fn is_exact(&self) -> bool {
        self.output.is_exact
    }
}

struct SparseSink {
    plan: SparsePlan,
    name: String,
    file: File,
    partial: Partial,
    records: Mutex<Vec<TileRowRecord>>,
}

impl Sink for SparseSink {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }
    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.grid, &self.name)?;
        let most = self.plan.output.rows[region.start[0] as usize].len();
        let Some((offset, rows, records)) = placed(data, most) else {
            let reason = format!("{}: a tile of {} bytes is too short", self.name, data.len());
            return Err(StoreError::Invalid(reason));
        };
        if !rows.is_empty() {
            io.write(&self.file, rows, offset)?;
        }
        locked(&self.records).extend(records);
        Ok(())
    }
    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync(&self.file)
    }
    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        let mut records = std::mem::take(&mut *locked(&self.records));
        records.sort_unstable_by_key(|record| record.number);
        let shape = SparseShape {
            entries: records.iter().map(|record| record.entries).sum(),
            ..self.plan.output.shape.clone()
        };
        let end = records.iter().map(|record| record.offset + record.bytes).max();
        complete(&self.file, &shape, &records, end.unwrap_or(FIRST_OFFSET), io)?;
        self.file.drop_cache();
        Ok(())
    }
    fn check(&self) -> Result<(), StoreError> {
        self.partial.check()?;
        Ok(())
    }
    fn partial(&self) -> Option<&Partial> {
        Some(&self.partial)
    }
}
