//! A factor as the output of a program: tiles in any order, each at its place.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crc32c::crc32c;
use outcore_dtype::DType;

use super::header::{
    directory_bytes, each_piece, offsets, record_checksum, record_size, FactorHeader, TileRecord, TILE_BYTES,
};
use super::output::FactorOutput;
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::base::interval::Interval;
use crate::base::locked::locked;
use crate::base::page::PAGE;
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

/// Bytes of a record that are written in one go.
const PIECE_BYTES: usize = 1 << 20;

/// The plan of such an output.
#[derive(Clone, Debug)]
pub(crate) struct FactorPlan {
    output: FactorOutput,
    offsets: Arc<[u64]>,
    grid: [u64; 2],
    tile: [u64; 2],
    record_bytes: u64,
    /// Records of tiles that an earlier run made durable.
    verified: Arc<Mutex<BTreeMap<usize, TileRecord>>>,
}

impl FactorPlan {
    pub(crate) fn new(output: &FactorOutput, path: &Path) -> Result<FactorPlan, StoreError> {
        let longest = output.lengths.iter().copied().max().unwrap_or(1).max(1);
        let offsets = offsets(output.lengths.iter().copied())
            .ok_or_else(|| StoreError::unsupported(path, "a factor is too large to address"))?;
        Ok(FactorPlan {
            offsets: offsets.into(),
            grid: [output.lengths.len() as u64, longest],
            tile: [1, longest],
            record_bytes: record_size(&*output.record),
            verified: Arc::default(),
            output: output.clone(),
        })
    }

    fn directory(&self) -> u64 {
        self.offsets[self.offsets.len() - 1]
    }

    /// Bytes behind the tiles, in whole pages.
    fn tail_bytes(&self) -> u64 {
        let directory = self.output.lengths.len() as u64 * TILE_BYTES;
        (directory + self.record_bytes).next_multiple_of(PAGE as u64)
    }

    fn unwritten(&self) -> Vec<TileRecord> {
        vec![TileRecord::default(); self.output.lengths.len()]
    }

    /// The record of a tile whose room is known.
    fn record_of(&self, tile: usize, room: &[u8]) -> TileRecord {
        let record = &*self.output.record;
        let bytes = record.taken(tile, room).min(room.len());
        TileRecord {
            bytes: bytes as u64,
            checksum: crc32c(&room[..bytes]),
            pages: match record.has_room() {
                true => room.len().div_ceil(PAGE) as u32,
                false => 0,
            },
        }
    }

    /// Sets the space of the file aside; of one with room that is not taken, the length alone.
    fn set_aside(&self, file: &File, path: &Path, io: &Io) -> Result<(), StoreError> {
        if !self.output.record.has_room() {
            return file.allocate(self.bytes());
        }
        let memory = AlignedBuffer::new(PAGE);
        let mut page = memory.map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
        page.fill(0);
        io.write(file, &page, self.bytes() - PAGE as u64).map(|_| ())
    }

    fn sink(&self, path: &Path, partial: Partial, file: File, tiles: Vec<TileRecord>) -> Arc<dyn Sink> {
        Arc::new(FactorSink {
            name: path.display().to_string(),
            tiles: Mutex::new(tiles),
            plan: self.clone(),
            file: file.named(path.to_path_buf()),
            partial,
        })
    }

    /// Bytes of the whole file.
    pub(crate) fn bytes(&self) -> u64 {
        self.directory() + self.tail_bytes()
    }
}

impl WriteCosts for FactorPlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }
    fn write_bytes(&self, region: &Region) -> u64 {
        self.output.lengths[region.start[0] as usize].next_multiple_of(PAGE as u64)
    }
    fn overhead_bytes(&self) -> u64 {
        let last = if self.output.record.has_room() { PAGE } else { 0 };
        (PAGE + last) as u64 + self.tail_bytes()
    }
    fn workspace_bytes(&self, _region: &Region) -> usize {
        0
    }
    fn is_read_back(&self) -> bool {
        true
    }
}

impl OutputPlan for FactorPlan {
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
        let make = |partial: &Path| io.open(partial, Mode::Create);
        let (partial, file) = Partial::new_in(folder, path, overwrite, make)?;
        self.set_aside(&file, path, io)?;
        Ok(self.sink(path, partial, file, self.unwritten()))
    }
    fn reopen(
        &self,
        folder: LockedDir,
        path: &Path,
        overwrite: bool,
        done: &[JournalRecord],
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let open = |partial: &Path| io.open(partial, Mode::Reopen);
        let (partial, file) = Partial::within(folder, path, overwrite, true, open)?;
        let mut tiles = self.unwritten();
        for record in done {
            let tile = record.tile as usize;
            tiles[tile] = locked(&self.verified).get(&tile).copied().unwrap_or(TileRecord {
                bytes: self.output.lengths[tile],
                checksum: record.checksum,
                pages: 0,
            });
        }
        Ok(self.sink(path, partial, file, tiles))
    }
    fn is_begun_at(&self, path: &Path, _io: &Io) -> Result<bool, StoreError> {
        Ok(path.metadata().is_ok_and(|found| found.len() == self.bytes()))
    }
    fn finish_bytes(&self) -> u64 {
        self.overhead_bytes()
    }
    fn tile_bytes(&self, region: &Region) -> u64 {
        self.output.lengths[region.start[0] as usize]
    }
    fn verified(&self, region: &Region, tile: &[u8]) {
        let number = region.start[0] as usize;
        locked(&self.verified).insert(number, self.record_of(number, tile));
    }
    fn is_placed(&self) -> bool {
        true
    }
    fn is_exact(&self) -> bool {
        !self.output.record.has_room()
    }
    fn place(&self, region: &Region) -> Option<Interval> {
        let tile = region.start[0] as usize;
        Some(Interval::new(self.offsets[tile], self.output.lengths[tile]))
    }
}

struct FactorSink {
    plan: FactorPlan,
    name: String,
    file: File,
    partial: Partial,
    tiles: Mutex<Vec<TileRecord>>,
}

impl FactorSink {
    /// Writes the directory and the record, through a buffer of whole pages.
    fn write_tail(&self, directory: &[u8], io: &Io) -> Result<(), StoreError> {
        let memory = AlignedBuffer::new(PIECE_BYTES);
        let mut buffer = memory.map_err(|cause| StoreError::io(self.partial.path(), 0, "map memory", cause))?;
        let (mut filled, mut offset) = (0, self.plan.directory());
        let mut put = |mut bytes: &[u8]| {
            while !bytes.is_empty() {
                let part = bytes.len().min(PIECE_BYTES - filled);
                buffer[filled..filled + part].copy_from_slice(&bytes[..part]);
                (filled, bytes) = (filled + part, &bytes[part..]);
                if filled == PIECE_BYTES {
                    io.write(&self.file, &buffer, offset)?;
                    (filled, offset) = (0, offset + PIECE_BYTES as u64);
                }
            }
            Ok::<(), StoreError>(())
        };
        put(directory)?;
        each_piece(&*self.plan.output.record, &mut put)?;
        if filled > 0 {
            let padded = filled.next_multiple_of(PAGE);
            buffer[filled..padded].fill(0);
            io.write(&self.file, &buffer[..padded], offset)?;
        }
        Ok(())
    }
}

impl Sink for FactorSink {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }
    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.grid, &self.name)?;
        let tile = region.start[0] as usize;
        let room = data.get(..self.plan.output.lengths[tile] as usize).ok_or_else(|| {
            StoreError::Invalid(format!("{}: a tile of {} bytes is too short", self.name, data.len()))
        })?;
        let record = self.plan.record_of(tile, room);
        let bytes = record.bytes as usize;
        let (own, whole) = (&room[..bytes], bytes - bytes % PAGE);
        let offset = self.plan.offsets[tile];
        if whole > 0 {
            io.write(&self.file, &own[..whole], offset)?;
        }
        if whole < bytes {
            // Behind the tile a frame has whatever was there before.
            let memory = AlignedBuffer::new(PAGE);
            let mut page = memory.map_err(|cause| StoreError::io(self.partial.path(), 0, "map memory", cause))?;
            page[..bytes - whole].copy_from_slice(&own[whole..]);
            page[bytes - whole..].fill(0);
            io.write(&self.file, &page, offset + whole as u64)?;
        }
        locked(&self.tiles)[tile] = record;
        Ok(())
    }
    fn read_back(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.grid, &self.name)?;
        let tile = region.start[0] as usize;
        let record = locked(&self.tiles)[tile];
        let bytes = (record.bytes as usize).next_multiple_of(PAGE);
        let frame = frame.get_mut(..bytes).filter(|_| record.bytes > 0);
        let frame = frame.ok_or_else(|| StoreError::Invalid(format!("{}: tile {tile} is not there", self.name)))?;
        io.read(&self.file, frame, self.plan.offsets[tile], bytes)?;
        match crc32c(&frame[..record.bytes as usize]) == record.checksum {
            true => Ok(()),
            false => Err(StoreError::disturbed(
                self.partial.path(),
                format!("tile {tile} is not what was written"),
            )),
        }
    }
    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync(&self.file)
    }
    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        let directory = directory_bytes(&locked(&self.tiles));
        self.write_tail(&directory, io)?;
        let record = &*self.plan.output.record;
        let header = FactorHeader {
            rows: self.plan.output.rows,
            dtype: self.plan.output.dtype,
            tiles: self.plan.output.lengths.len() as u64,
            directory: self.plan.directory(),
            record: self.plan.directory() + directory.len() as u64,
            record_bytes: self.plan.record_bytes,
            sections: record.sections().len() as u32,
            directory_checksum: crc32c(&directory),
            record_checksum: record_checksum(record),
            has_room: record.has_room(),
        };
        let memory = AlignedBuffer::new(PAGE);
        let mut page = memory.map_err(|cause| StoreError::io(self.partial.path(), 0, "map memory", cause))?;
        page.copy_from_slice(&header.bytes());
        io.write(&self.file, &page, 0)?;
        io.sync(&self.file)?;
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
