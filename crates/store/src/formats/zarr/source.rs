//! RegionReading a Zarr v3 array, region by region.

use std::path::Path;

use outcore_dtype::DType;

use super::array::ZarrArray;
use super::units::{ChunkFile, UnitCut, UnitPiece, UnitSpace, UnitSpan};
use crate::array::region::{copy_lattice, Cells, Lattice};
use crate::array::rowmajor::{normalize_bools, swap_bytes, ReadWindow};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

impl ZarrArray {
    /// Whether one plain unit holds all of the region: then it is read without a further copy.
    fn is_sole(&self, region: &Region) -> bool {
        self.reads_rows() && Cells::of(region, &self.unit).count() == 1
    }

    /// Brings the region into the frame, in the byte order of the file; returns where it starts.
    fn read_raw(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let sole = self.is_sole(region);
        let mut offset = 0;
        let mut spare = UnitSpace::new(self, region);
        let mut reading = RegionReading {
            array: self,
            region,
            cut: UnitCut::new(self, region),
            staging: None,
        };
        let mut chunks = Cells::of(region, &self.metadata.chunk);
        while let Some(index) = chunks.next() {
            let Some(chunk) = ChunkFile::find(self, index) else {
                self.check_absent(index)?;
                reading.cut.chunk(index);
                self.fill(&reading.cut.within(), region, frame);
                continue;
            };
            let file = chunk.file(io)?;
            let read = chunk.pieces(region, &mut spare, io, &mut |piece| {
                match piece {
                    UnitPiece::Rows { unit, offset: at } if sole => {
                        reading.cut.unit(index, unit);
                        let plain = self.plain(at, chunk.bytes);
                        offset = plain.read(file, &reading.cut.local(), frame, io)?;
                    }
                    piece => reading.take(piece, &chunk, frame, io)?,
                }
                Ok(())
            });
            chunk.unless_changed(read, io)?;
        }
        Ok(offset)
    }
}

/// One read of a region that lies in several units.
struct RegionReading<'a> {
    array: &'a ZarrArray,
    region: &'a Region,
    cut: UnitCut<'a>,
    /// Where windows are read to.
    staging: Option<AlignedBuffer>,
}

impl RegionReading<'_> {
    /// Brings a piece into its place in the frame.
    fn take(
        &mut self,
        piece: UnitPiece<'_>,
        chunk: &ChunkFile<'_>,
        frame: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let array = self.array;
        let item = array.metadata.dtype.size();
        match piece {
            UnitPiece::Missing { unit } => {
                self.cut.unit(chunk.index, unit);
                array.fill(&self.cut.within(), self.region, frame);
            }
            UnitPiece::Rows { unit, offset } => {
                self.cut.unit(chunk.index, unit);
                let (data, staging) = frame.split_at_mut(array.data_bytes(self.region).next_multiple_of(PAGE));
                let plain = array.plain(offset, chunk.bytes);
                let at = plain.read(chunk.file(io)?, &self.cut.local(), staging, io)?;
                let source = Lattice::of_box(&self.cut.shape, &vec![0; self.cut.shape.len()]);
                copy_lattice(&staging[at..], &source, data, &self.cut.target, &self.cut.shape, item);
            }
            UnitPiece::ReadWindow { window, spans } => {
                let mut staging = self.stage(window, chunk)?;
                let bytes = &mut staging[..window.bytes()];
                io.read(chunk.file(io)?, bytes, window.start, window.present as usize)?;
                for span in spans {
                    let at = (span.offset - window.start) as usize;
                    self.place(span, &bytes[at..at + span.bytes as usize], chunk, frame)?;
                }
                self.staging = Some(staging);
            }
        }
        Ok(())
    }

    /// Memory for a window.
    fn stage(&mut self, window: ReadWindow, chunk: &ChunkFile<'_>) -> Result<AlignedBuffer, StoreError> {
        if let Some(staging) = self.staging.take().filter(|staging| staging.len() >= window.bytes()) {
            return Ok(staging);
        }
        AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(&chunk.path(), window.start, "map memory", cause))
    }

    /// Brings what the region needs of a unit from its encoded bytes into the frame.
    fn place(
        &mut self,
        span: &UnitSpan,
        encoded: &[u8],
        chunk: &ChunkFile<'_>,
        frame: &mut [u8],
    ) -> Result<(), StoreError> {
        let array = self.array;
        let item = array.metadata.dtype.size();
        self.cut.unit(chunk.index, span.unit);
        let UnitCut {
            source, target, shape, ..
        } = &self.cut;
        if array.metadata.chain.is_plain() {
            copy_lattice(encoded, source, frame, target, shape, item);
            return Ok(());
        }
        let decoded = array.metadata.chain.decode(encoded, array.unit_bytes);
        let decoded = decoded.map_err(|reason| StoreError::format(&chunk.path(), reason))?;
        copy_lattice(&decoded, source, frame, target, shape, item);
        Ok(())
    }
}

impl Source for ZarrArray {
    fn name(&self) -> String {
        self.dir.display().to_string()
    }

    fn shape(&self) -> &[u64] {
        &self.metadata.shape
    }

    fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(self.unit.clone())
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.dir.join("zarr.json"), |stamp| stamp)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.dir.join("zarr.json"), Stamp::written)
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        region.check_in(&self.metadata.shape, &self.name())?;
        let mut chunks = Cells::of(region, &self.metadata.chunk);
        while let Some(index) = chunks.next() {
            match ChunkFile::find(self, index) {
                Some(chunk) => chunk.check()?,
                None => self.check_absent(index)?,
            }
        }
        Ok(())
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        region.check_in(&self.metadata.shape, &self.name())?;
        let sole = self.is_sole(region);
        let data = self.data_bytes(region);
        let mut spare = UnitSpace::new(self, region);
        let mut cut = UnitCut::new(self, region);
        let (mut read_bytes, mut frame_bytes, mut widest) = (0, data, 0);
        let mut chunks = Cells::of(region, &self.metadata.chunk);
        while let Some(index) = chunks.next() {
            let Some(chunk) = ChunkFile::find(self, index) else {
                continue;
            };
            let found = chunk.pieces(region, &mut spare, io, &mut |piece| {
                match piece {
                    UnitPiece::Missing { .. } => {}
                    UnitPiece::Rows { unit, offset } => {
                        cut.unit(index, unit);
                        let (plain, local) = (self.plain(offset, chunk.bytes), cut.local());
                        let before = if sole { 0 } else { data.next_multiple_of(PAGE) };
                        frame_bytes = frame_bytes.max(before + plain.frame_bytes(&local));
                        read_bytes += plain.read_bytes(&local);
                    }
                    UnitPiece::ReadWindow { window, .. } => {
                        widest = widest.max(window.bytes().max(PAGE));
                        read_bytes += window.present;
                    }
                }
                Ok(())
            });
            chunk.unless_changed(found, io)?;
        }
        let chain = &self.metadata.chain;
        let decoding = if widest > 0 {
            chain.workspace_bytes(self.unit_bytes)
        } else {
            0
        };
        Ok(ReadCost {
            read_bytes,
            frame_bytes,
            workspace_bytes: widest
                .saturating_add(decoding)
                .saturating_add(self.search_bytes(region)),
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        region.check_in(&self.metadata.shape, &self.name())?;
        let offset = self.read_raw(region, frame, io)?;
        let data = &mut frame[offset..offset + self.data_bytes(region)];
        if self.swapped() {
            swap_bytes(data, self.metadata.dtype);
        }
        if self.metadata.dtype == DType::Bool {
            normalize_bools(data);
        }
        Ok(offset)
    }
}
