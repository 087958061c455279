//! Reading an array of chunks, region by region.

use std::path::Path;

use outcore_dtype::DType;

use super::chain::DecodeSpace;
use super::manifest::{ChunkGrid, Manifest};
use super::units::{Cell, UnitCut, UnitPiece, UnitSpace, UnitSpan};
use crate::array::region::{copy_lattice, Cells, Lattice};
use crate::array::rowmajor::{make_native, ReadWindow};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

/// An array of chunks: how it is cut, and where its chunks are.
///
/// Invariant: besides what the manifest keeps, its memory does not grow with the number of units.
#[derive(Debug)]
pub(crate) struct ChunkArray<M> {
    pub grid: ChunkGrid,
    pub manifest: M,
}

impl<M: Manifest> ChunkArray<M> {
    /// Whether one plain unit holds all of the region: then it is read without a further copy.
    fn is_sole(&self, region: &Region) -> bool {
        self.grid.reads_rows() && Cells::of(region, &self.grid.unit).count() == 1
    }

    /// Brings the region into the frame, in the byte order of the file; returns where it starts.
    fn read_raw(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let sole = self.is_sole(region);
        let mut offset = 0;
        let mut spare = UnitSpace::new(&self.grid, region);
        let mut reading = RegionReading {
            grid: &self.grid,
            region,
            cut: UnitCut::new(&self.grid, region),
            staging: None,
            space: DecodeSpace::default(),
        };
        let mut cells = Cells::of(region, &self.grid.cell);
        while let Some(index) = cells.next() {
            let Some(cell) = Cell::find(&self.grid, &self.manifest, index) else {
                self.manifest.check_absent(index)?;
                reading.cut.cell(index);
                self.grid.fill(&reading.cut.within(), region, frame);
                continue;
            };
            let file = cell.file(io)?;
            let read = cell.pieces(region, &mut spare, io, &mut |piece| {
                match piece {
                    UnitPiece::Rows { unit, offset: at } if sole => {
                        reading.cut.unit(index, unit);
                        let plain = self.grid.plain(at, cell.of.bytes);
                        offset = plain.read(file, &reading.cut.local(), frame, io)?;
                    }
                    piece => reading.take(piece, &cell, frame, io)?,
                }
                Ok(())
            });
            cell.unless_changed(read, io)?;
        }
        Ok(offset)
    }
}

/// One read of a region that lies in several units.
struct RegionReading<'a> {
    grid: &'a ChunkGrid,
    region: &'a Region,
    cut: UnitCut<'a>,
    /// Where windows are read to.
    staging: Option<AlignedBuffer>,
    space: DecodeSpace,
}

impl RegionReading<'_> {
    /// Brings a piece into its place in the frame.
    fn take<M: Manifest>(
        &mut self,
        piece: UnitPiece<'_>,
        cell: &Cell<'_, M>,
        frame: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let grid = self.grid;
        let item = grid.dtype.size();
        match piece {
            UnitPiece::Missing { unit } => {
                self.cut.unit(cell.index, unit);
                grid.fill(&self.cut.within(), self.region, frame);
            }
            UnitPiece::Rows { unit, offset } => {
                self.cut.unit(cell.index, unit);
                let (data, staging) = frame.split_at_mut(grid.data_bytes(self.region).next_multiple_of(PAGE));
                let plain = grid.plain(offset, cell.of.bytes);
                let at = plain.read(cell.file(io)?, &self.cut.local(), staging, io)?;
                let source = Lattice::of_box(&self.cut.shape, &vec![0; self.cut.shape.len()]);
                copy_lattice(&staging[at..], &source, data, &self.cut.target, &self.cut.shape, item);
            }
            UnitPiece::ReadWindow { window, spans } => {
                let mut staging = self.stage(window, cell)?;
                let bytes = &mut staging[..window.bytes()];
                io.read(cell.file(io)?, bytes, window.start, window.present as usize)?;
                for span in spans {
                    let at = (span.offset - window.start) as usize;
                    self.place(span, &bytes[at..at + span.bytes as usize], cell, frame)?;
                }
                self.staging = Some(staging);
            }
        }
        Ok(())
    }

    /// Memory for a window.
    fn stage<M: Manifest>(&mut self, window: ReadWindow, cell: &Cell<'_, M>) -> Result<AlignedBuffer, StoreError> {
        if let Some(staging) = self.staging.take().filter(|staging| staging.len() >= window.bytes()) {
            return Ok(staging);
        }
        AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(&cell.path(), window.start, "map memory", cause))
    }

    /// Brings what the region needs of a unit from its encoded bytes into the frame.
    fn place<M: Manifest>(
        &mut self,
        span: &UnitSpan,
        encoded: &[u8],
        cell: &Cell<'_, M>,
        frame: &mut [u8],
    ) -> Result<(), StoreError> {
        let grid = self.grid;
        let item = grid.dtype.size();
        self.cut.unit(cell.index, span.unit);
        let UnitCut {
            source, target, shape, ..
        } = &self.cut;
        if grid.chain.is_plain() {
            copy_lattice(encoded, source, frame, target, shape, item);
            return Ok(());
        }
        let decoded = grid
            .chain
            .decode(encoded, grid.unit_bytes(), span.skipped, &mut self.space);
        let decoded = decoded.map_err(|reason| StoreError::format(&cell.path(), reason))?;
        copy_lattice(decoded, source, frame, target, shape, item);
        Ok(())
    }
}

impl<M: Manifest> Source for ChunkArray<M> {
    fn name(&self) -> String {
        self.manifest.name()
    }

    fn shape(&self) -> &[u64] {
        &self.grid.shape
    }

    fn dtype(&self) -> DType {
        self.grid.dtype
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(self.grid.unit.clone())
    }

    fn identity(&self) -> &str {
        self.manifest.identity()
    }

    fn origin(&self) -> &str {
        self.manifest.origin()
    }

    fn path(&self) -> Option<&Path> {
        Some(self.manifest.path())
    }

    fn member(&self) -> Option<&str> {
        self.manifest.member()
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.manifest.check(|stamp| stamp)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.manifest.check(Stamp::written)
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        region.check_in(&self.grid.shape, &self.name())?;
        let mut cells = Cells::of(region, &self.grid.cell);
        while let Some(index) = cells.next() {
            match Cell::find(&self.grid, &self.manifest, index) {
                Some(cell) => cell.check()?,
                None => self.manifest.check_absent(index)?,
            }
        }
        Ok(())
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        region.check_in(&self.grid.shape, &self.name())?;
        let sole = self.is_sole(region);
        let data = self.grid.data_bytes(region);
        let mut spare = UnitSpace::new(&self.grid, region);
        let mut cut = UnitCut::new(&self.grid, region);
        let (mut read_bytes, mut frame_bytes, mut widest) = (0, data, 0);
        let mut cells = Cells::of(region, &self.grid.cell);
        while let Some(index) = cells.next() {
            let Some(cell) = Cell::find(&self.grid, &self.manifest, index) else {
                continue;
            };
            let found = cell.pieces(region, &mut spare, io, &mut |piece| {
                match piece {
                    UnitPiece::Missing { .. } => {}
                    UnitPiece::Rows { unit, offset } => {
                        cut.unit(index, unit);
                        let (plain, local) = (self.grid.plain(offset, cell.of.bytes), cut.local());
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
            cell.unless_changed(found, io)?;
        }
        let decoding = if widest > 0 {
            self.grid.chain.workspace_bytes(self.grid.unit_bytes())
        } else {
            0
        };
        Ok(ReadCost {
            read_bytes,
            frame_bytes,
            workspace_bytes: widest
                .saturating_add(decoding)
                .saturating_add(self.grid.span_bytes(region))
                .saturating_add(self.manifest.search_bytes()),
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        region.check_in(&self.grid.shape, &self.name())?;
        let offset = self.read_raw(region, frame, io)?;
        let data = &mut frame[offset..offset + self.grid.data_bytes(region)];
        make_native(data, self.grid.dtype, self.grid.swapped());
        Ok(offset)
    }
}
