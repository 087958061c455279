//! Reading an array of chunks, region by region.

use std::path::Path;

use outcore_dtype::DType;

use super::chain::DecodeSpace;
use super::manifest::{ChunkGrid, Manifest};
use super::units::{Cell, UnitCut, UnitPiece, UnitSpace, UnitSpan};
use crate::array::region::{copy_lattice, Cells, PairedRuns};
use crate::array::rowmajor::{make_native, ReadWindow, RowMajor};
use crate::array::source::{Layout, ReadCost, Source};
use crate::backend::stamp::Stamp;
use crate::base::interval::Interval;
use crate::base::page::PAGE;
use crate::memory::workspace::{transfer_bytes, WorkBuffer};
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
    /// Brings the region into the frame, in the byte order of the file; returns where it starts.
    fn read_raw(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let sole = self.grid.is_sole(region);
        let mut offset = 0;
        let mut spare = UnitSpace::new(&self.grid, region);
        let [staging, first, second] = io.work_buffers(self.manifest.identity());
        let mut reading = RegionReading {
            grid: &self.grid,
            region,
            cut: UnitCut::new(&self.grid, region),
            staging,
            space: DecodeSpace::new([first, second]),
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
        let RegionReading { staging, space, .. } = reading;
        let [first, second] = space.buffers;
        io.keep_buffers(self.manifest.identity(), [staging, first, second]);
        Ok(offset)
    }
}

/// One read of a region that lies in several units.
struct RegionReading<'a> {
    grid: &'a ChunkGrid,
    region: &'a Region,
    cut: UnitCut<'a>,
    /// Where windows are read to.
    staging: WorkBuffer,
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
        match piece {
            UnitPiece::Missing { unit } => {
                self.cut.unit(cell.index, unit);
                grid.fill(&self.cut.within(), self.region, frame);
            }
            UnitPiece::Rows { unit, offset } => {
                self.cut.unit(cell.index, unit);
                self.rows(&grid.plain(offset, cell.of.bytes), cell, frame, io)?;
            }
            UnitPiece::ReadWindow { window, spans } => {
                self.stage(window, cell, io)?;
                for span in spans {
                    let at = (span.offset - window.start) as usize;
                    self.place(span, at, window, cell, frame)?;
                }
            }
        }
        Ok(())
    }

    /// Brings what the region needs of a plain unit, row by row, into the frame.
    fn rows<M: Manifest>(
        &mut self,
        plain: &RowMajor,
        cell: &Cell<'_, M>,
        frame: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let within = self.cut.within();
        let mut places = PairedRuns::new(within.runs(&self.region.shape), self.grid.dtype.size());
        plain.staged_windows(&self.cut.local(), |window, runs| {
            let bytes = self
                .staging
                .for_transfer(window.bytes())
                .map_err(no_memory(cell, window))?;
            io.read(cell.file(io)?, bytes, window.start, window.present as usize)?;
            for run in runs {
                let mut rest = &bytes[(run.start - window.start) as usize..];
                places.each(run.length, |Interval { start, length }| {
                    let (taken, behind) = rest.split_at(length as usize);
                    frame[start as usize..][..taken.len()].copy_from_slice(taken);
                    rest = behind;
                });
            }
            Ok(())
        })
    }

    /// Reads a window.
    fn stage<M: Manifest>(&mut self, window: ReadWindow, cell: &Cell<'_, M>, io: &Io) -> Result<(), StoreError> {
        let bytes = self
            .staging
            .for_transfer(window.bytes())
            .map_err(no_memory(cell, window))?;
        io.read(cell.file(io)?, bytes, window.start, window.present as usize)
    }

    /// Brings what the region needs of a unit from its encoded bytes in the window into the frame.
    fn place<M: Manifest>(
        &mut self,
        span: &UnitSpan,
        at: usize,
        window: ReadWindow,
        cell: &Cell<'_, M>,
        frame: &mut [u8],
    ) -> Result<(), StoreError> {
        let grid = self.grid;
        let item = grid.dtype.size();
        let encoded = &self.staging.held(window.bytes())[at..at + span.bytes as usize];
        self.cut.unit(cell.index, span.unit);
        let UnitCut {
            source, target, shape, ..
        } = &self.cut;
        if grid.chain.is_plain() {
            copy_lattice(encoded, source, frame, target, shape, item);
            return Ok(());
        }
        let place = self.cut.run().map(|run| {
            let at = run.start as usize * item;
            &mut frame[at..at + run.length as usize * item]
        });
        let decoded = grid.chain.decode(
            encoded,
            grid.bytes_of(cell.index, span.unit),
            span.skipped,
            &mut self.space,
            place,
        );
        let decoded = decoded.map_err(|reason| cell.damaged(span, &reason))?;
        if let Some(decoded) = decoded {
            copy_lattice(decoded, source, frame, target, shape, item);
        }
        Ok(())
    }
}

fn no_memory<'a, M: Manifest>(
    cell: &'a Cell<'_, M>,
    window: ReadWindow,
) -> impl FnOnce(std::io::Error) -> StoreError + 'a {
    move |cause| StoreError::io(&cell.path(), window.start, "map memory", cause)
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
        let sole = self.grid.is_sole(region);
        let data = self.grid.data_bytes(region);
        let mut spare = UnitSpace::new(&self.grid, region);
        let mut cut = UnitCut::new(&self.grid, region);
        let (mut read_bytes, mut frame_bytes, mut widest, mut staged) = (0, data, 0, 0);
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
                        if sole {
                            frame_bytes = plain.frame_bytes(&local);
                            read_bytes += plain.read_bytes(&local);
                        } else {
                            plain.staged_windows(&local, |window, _| {
                                staged = staged.max(window.bytes());
                                read_bytes += window.present;
                                Ok(())
                            })?;
                        }
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
            workspace_bytes: transfer_bytes(widest.max(staged))
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
