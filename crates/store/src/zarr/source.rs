//! Reading a Zarr v3 array, region by region.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use outcore_dtype::DType;

use super::inventory::Inventory;
use super::listing::list;
use super::metadata::{parse_zarr_json, ArrayMetadata};
use super::shard::Indices;
use super::units::{ChunkFile, Cut, Piece, Span, Spare};
use crate::frames::PAGE;
use crate::heap::return_freed_memory;
use crate::mapping::AlignedBuffer;
use crate::region::{c_strides, copy_lattice, Cells, Lattice};
use crate::rowmajor::{normalize_bools, swap_bytes, Window};
use crate::source::{Layout, Opening, ReadCost, Source};
use crate::stamp::{settled, Stamp};
use crate::{Io, Region, StoreError};

/// Metadata documents larger than this are refused.
pub(crate) const JSON_MAX: u64 = 16 << 20;

/// An opened array.
///
/// A *unit* is a chunk, or an inner chunk where there are shards: the smallest part that is decoded alone.
///
/// Invariant: besides one record for each file there is, its memory does not grow with the number of units.
pub struct ZarrArray {
    dir: PathBuf,
    pub(super) metadata: ArrayMetadata,
    pub(super) unit: Vec<u64>,
    pub(super) unit_bytes: usize,
    /// Units of a chunk along each axis.
    pub(super) per_chunk: Vec<u64>,
    /// Of the grid of chunks.
    pub(super) strides: Vec<u64>,
    stamp: Stamp,
    pub(super) inventory: Inventory,
    pub(super) indices: Indices,
    identity: String,
}

impl std::fmt::Debug for ZarrArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "zarr({:?}, {:?}, {})",
            self.dir, self.metadata.shape, self.metadata.dtype
        )
    }
}

/// The document of the array in `dir`, and its stamp.
fn read_metadata(dir: &Path) -> Result<(ArrayMetadata, Stamp), StoreError> {
    let json = dir.join("zarr.json");
    if !json.is_file() {
        let old = [".zarray", ".zgroup"].iter().any(|name| dir.join(name).exists());
        let reason = if old {
            "Zarr format 2 is not supported, only 3"
        } else {
            "not a Zarr array: no zarr.json"
        };
        return Err(StoreError::format(dir, reason));
    }
    let stamp = settled(|| Stamp::of(&json).map(|stamp| (stamp, stamp.modified_ns)))?;
    if stamp.bytes > JSON_MAX {
        return Err(StoreError::format(
            &json,
            format!("{} bytes of metadata are too many", stamp.bytes),
        ));
    }
    let text = std::fs::read(&json).map_err(|cause| StoreError::io(&json, 0, "read", cause))?;
    let metadata = parse_zarr_json(&text).map_err(|reason| StoreError::format(dir, reason))?;
    Ok((metadata, stamp))
}

impl ZarrArray {
    /// Opens the directory of an array. Costs one `stat` per chunk, the only way to know it again: `zarr.json` stays as
    /// it is when a chunk is replaced.
    pub fn open(dir: &Path, opening: &mut dyn Opening) -> Result<ZarrArray, StoreError> {
        let (metadata, stamp) = read_metadata(dir)?;
        let extents = metadata.shape.iter().zip(&metadata.chunk);
        let counts: Vec<u64> = extents.map(|(length, chunk)| length.div_ceil(*chunk)).collect();
        let inventory = list(dir, &metadata.keys, &counts, opening)?;
        if inventory.is_large() {
            return_freed_memory();
        }
        let sharding = metadata.sharding.as_ref();
        let unit = sharding.map_or(&metadata.chunk, |sharding| &sharding.inner).clone();
        Ok(ZarrArray {
            dir: dir.to_path_buf(),
            unit_bytes: unit.iter().product::<u64>() as usize * metadata.dtype.size(),
            per_chunk: metadata
                .chunk
                .iter()
                .zip(&unit)
                .map(|(chunk, unit)| chunk / unit)
                .collect(),
            strides: c_strides(&counts),
            unit,
            identity: format!("{}:{:016x}", stamp.name(&dir.join("zarr.json")), inventory.hash),
            metadata,
            stamp,
            inventory,
            indices: Indices::default(),
        })
    }

    /// The file of the chunk at `index`.
    pub(super) fn path(&self, index: &[u64]) -> PathBuf {
        self.dir.join(self.metadata.keys.name(index))
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.metadata.dtype.size()
    }

    /// Whether one plain unit holds all of the region: then it is read without a further copy.
    fn is_sole(&self, region: &Region) -> bool {
        self.reads_rows() && Cells::of(region, &self.unit).count() == 1
    }

    /// Refuses a chunk that was not there and is.
    fn check_absent(&self, index: &[u64]) -> Result<(), StoreError> {
        let path = self.path(index);
        match std::fs::symlink_metadata(&path) {
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            Err(cause) => Err(StoreError::io(&path, 0, "stat", cause)),
            Ok(_) => Err(StoreError::Changed {
                path,
                reason: "it was not there then".into(),
            }),
        }
    }

    /// Fills a box of the frame with the fill value, in the byte order of the file.
    fn fill(&self, within: &Region, region: &Region, frame: &mut [u8]) {
        let item = self.metadata.dtype.size();
        let mut element = self.metadata.fill.clone();
        if self.swapped() {
            swap_bytes(&mut element, self.metadata.dtype);
        }
        for (first, elements) in within.runs(&region.shape) {
            let at = first as usize * item;
            let run = &mut frame[at..at + elements as usize * item];
            if element.iter().all(|byte| *byte == 0) {
                run.fill(0);
            } else {
                run.chunks_exact_mut(item)
                    .for_each(|place| place.copy_from_slice(&element));
            }
        }
    }

    fn swapped(&self) -> bool {
        self.metadata.chain.big_endian != cfg!(target_endian = "big") && self.metadata.dtype.size() > 1
    }

    /// Brings the region into the frame, in the byte order of the file; returns where it starts.
    fn read_raw(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let sole = self.is_sole(region);
        let mut offset = 0;
        let mut spare = Spare::new(self, region);
        let mut reading = Reading {
            array: self,
            region,
            cut: Cut::new(self, region),
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
                    Piece::Rows { unit, offset: at } if sole => {
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
struct Reading<'a> {
    array: &'a ZarrArray,
    region: &'a Region,
    cut: Cut<'a>,
    /// Where windows are read to.
    staging: Option<AlignedBuffer>,
}

impl Reading<'_> {
    /// Brings a piece into its place in the frame.
    fn take(&mut self, piece: Piece<'_>, chunk: &ChunkFile<'_>, frame: &mut [u8], io: &Io) -> Result<(), StoreError> {
        let array = self.array;
        let item = array.metadata.dtype.size();
        match piece {
            Piece::Missing { unit } => {
                self.cut.unit(chunk.index, unit);
                array.fill(&self.cut.within(), self.region, frame);
            }
            Piece::Rows { unit, offset } => {
                self.cut.unit(chunk.index, unit);
                let (data, staging) = frame.split_at_mut(array.data_bytes(self.region).next_multiple_of(PAGE));
                let plain = array.plain(offset, chunk.bytes);
                let at = plain.read(chunk.file(io)?, &self.cut.local(), staging, io)?;
                let source = Lattice::of_box(&self.cut.shape, &vec![0; self.cut.shape.len()]);
                copy_lattice(&staging[at..], &source, data, &self.cut.target, &self.cut.shape, item);
            }
            Piece::Window { window, spans } => {
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
    fn stage(&mut self, window: Window, chunk: &ChunkFile<'_>) -> Result<AlignedBuffer, StoreError> {
        if let Some(staging) = self.staging.take().filter(|staging| staging.len() >= window.bytes()) {
            return Ok(staging);
        }
        AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(&chunk.path(), window.start, "map memory", cause))
    }

    /// Brings what the region needs of a unit from its encoded bytes into the frame.
    fn place(
        &mut self,
        span: &Span,
        encoded: &[u8],
        chunk: &ChunkFile<'_>,
        frame: &mut [u8],
    ) -> Result<(), StoreError> {
        let array = self.array;
        let item = array.metadata.dtype.size();
        self.cut.unit(chunk.index, span.unit);
        let Cut {
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
        let mut spare = Spare::new(self, region);
        let mut cut = Cut::new(self, region);
        let (mut read_bytes, mut frame_bytes, mut widest) = (0, data, 0);
        let mut chunks = Cells::of(region, &self.metadata.chunk);
        while let Some(index) = chunks.next() {
            let Some(chunk) = ChunkFile::find(self, index) else {
                continue;
            };
            let found = chunk.pieces(region, &mut spare, io, &mut |piece| {
                match piece {
                    Piece::Missing { .. } => {}
                    Piece::Rows { unit, offset } => {
                        cut.unit(index, unit);
                        let (plain, local) = (self.plain(offset, chunk.bytes), cut.local());
                        let before = if sole { 0 } else { data.next_multiple_of(PAGE) };
                        frame_bytes = frame_bytes.max(before + plain.frame_bytes(&local));
                        read_bytes += plain.read_bytes(&local);
                    }
                    Piece::Window { window, .. } => {
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
