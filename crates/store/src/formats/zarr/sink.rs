//! Zarr v3 output: one uncompressed chunk per tile, written past the page cache.

use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use outcore_dtype::{DType, Kind};
use rustix::fs::{openat, OFlags};
use serde_json::json;

use super::attributes::attributes_json;
use super::made::{gone_or, MadeChunks, Modes};
use crate::array::annotations::Annotations;
use crate::array::region::{copy_lattice, Lattice};
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::base::page::PAGE;
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

const JSON: &str = "zarr.json";
/// Memory in which a chunk that is wider than its tile is put together, about.
const STRIP_BYTES: usize = 512 << 10;

/// Shape, type, chunk shape and metadata of an output.
#[derive(Clone, Debug)]
pub(crate) struct ZarrPlan {
    shape: Vec<u64>,
    dtype: DType,
    /// The chunk shape.
    tile: Vec<u64>,
    chunk_bytes: usize,
    json: String,
}

impl ZarrPlan {
    pub(crate) fn new(shape: &[u64], dtype: DType, tile: &[u64]) -> Result<ZarrPlan, StoreError> {
        if cfg!(target_endian = "big") {
            return Err(StoreError::Invalid(
                "Zarr output is written on little-endian machines only".into(),
            ));
        }
        let chunk_bytes = tile.iter().product::<u64>() as usize * dtype.size();
        let json = metadata(shape, dtype, tile, &Annotations::default());
        Ok(ZarrPlan {
            shape: shape.to_vec(),
            dtype,
            tile: tile.to_vec(),
            chunk_bytes,
            json,
        })
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.dtype.size()
    }

    /// Whether the tile is the front of its chunk: then it is written as it is, and the rest is a hole of zeros.
    fn is_front(&self, region: &Region) -> bool {
        self.tile.is_empty() || region.shape[1..] == self.tile[1..]
    }

    /// Bytes of one index of the chunk's first axis.
    fn row_bytes(&self) -> usize {
        self.tile[1..].iter().product::<u64>() as usize * self.dtype.size()
    }

    /// Rows of a chunk that are put together and written at a time: whole pages, or all rows.
    fn strip_rows(&self) -> usize {
        let rows = self.tile[0] as usize;
        let row = self.row_bytes();
        // The fewest rows that are whole pages: a power of two, as pages are.
        let whole = PAGE >> row.trailing_zeros().min(PAGE.trailing_zeros());
        let strip = (STRIP_BYTES / row.max(1)).max(1).next_multiple_of(whole);
        strip.min(rows)
    }

    /// Chunks along each axis.
    fn counts(&self) -> Vec<u64> {
        let axes = self.shape.iter().zip(&self.tile);
        axes.map(|(extent, tile)| extent.div_ceil(*tile)).collect()
    }
}

impl WriteCosts for ZarrPlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn write_bytes(&self, region: &Region) -> u64 {
        if region.is_empty() {
            return 0;
        }
        let bytes = if self.is_front(region) {
            self.data_bytes(region)
        } else {
            self.chunk_bytes
        };
        bytes.next_multiple_of(PAGE) as u64
    }

    fn overhead_bytes(&self) -> u64 {
        self.json.len() as u64
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        if self.is_front(region) {
            0
        } else {
            (self.strip_rows() * self.row_bytes()).next_multiple_of(PAGE)
        }
    }
}

impl OutputPlan for ZarrPlan {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn is_folder(&self) -> bool {
        true
    }

    fn head(&self) -> Vec<u8> {
        vec![]
    }

    fn annotated(&self, annotations: &Annotations) -> Option<Arc<dyn OutputPlan>> {
        let json = metadata(&self.shape, self.dtype, &self.tile, annotations);
        Some(Arc::new(ZarrPlan { json, ..self.clone() }))
    }

    fn is_begun_at(&self, path: &Path, _io: &Io) -> Result<bool, StoreError> {
        Ok(std::fs::read(path.join(JSON)).is_ok_and(|found| found == self.json.as_bytes()))
    }

    fn reopen(
        &self,
        folder: LockedDir,
        path: &Path,
        overwrite: bool,
        done: &[JournalRecord],
        _io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let (partial, ()) = Partial::within(folder, path, overwrite, true, |_| Ok(()))?;
        let modes = Modes::kept(path, partial.path(), JSON);
        let mut made = MadeChunks::new(self.counts(), modes);
        made.go_on(&done.iter().map(|record| record.tile).collect::<Vec<_>>());
        Ok(Arc::new(ZarrSink {
            plan: self.clone(),
            name: path.display().to_string(),
            made: Mutex::new(made),
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
        let make = |dir: &Path| {
            std::fs::create_dir(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause))?;
            let file = io.open_plain(&dir.join(JSON), Mode::CreateUnaligned)?;
            io.write(&file, self.json.as_bytes(), 0)
        };
        let (partial, ()) = Partial::new_in(folder, path, overwrite, make)?;
        let modes = Modes::kept(path, partial.path(), JSON);
        Ok(Arc::new(ZarrSink {
            plan: self.clone(),
            name: path.display().to_string(),
            made: Mutex::new(MadeChunks::new(self.counts(), modes)),
            partial,
        }))
    }
}

fn metadata(shape: &[u64], dtype: DType, chunk: &[u64], annotations: &Annotations) -> String {
    let fill = match dtype.kind() {
        Kind::Bool => json!(false),
        Kind::Unsigned | Kind::Signed => json!(0),
        Kind::Float => json!(0.0),
        Kind::Complex => json!([0.0, 0.0]),
    };
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attributes_json(&annotations.attributes),
    });
    if annotations.dims.iter().any(Option::is_some) && annotations.dims.len() == shape.len() {
        document["dimension_names"] = json!(annotations.dims);
    }
    format!("{document:#}\n")
}

struct ZarrSink {
    plan: ZarrPlan,
    name: String,
    made: Mutex<MadeChunks>,
    partial: Partial,
}

impl ZarrSink {
    fn made(&self) -> MutexGuard<'_, MadeChunks> {
        self.made.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn index(&self, region: &Region) -> Vec<u64> {
        let axes = region.start.iter().zip(&self.plan.tile);
        axes.map(|(start, extent)| start / extent).collect()
    }

    /// The chunk's file, in directories made on the way.
    fn create_chunk(&self, region: &Region, io: &Io) -> Result<File, StoreError> {
        let path = self.made().chunk_path(self.partial.path(), &self.index(region))?;
        let known = path.strip_prefix(self.partial.path()).unwrap_or(&path);
        if self.made().goes_on() {
            // What was begun and not recorded.
            let _ = crate::volume::remove_file(&path);
        }
        match io.open(&path, Mode::Create) {
            Ok(file) => {
                self.made().set_mode(&path);
                Ok(file.named(self.partial.target().join(known)))
            }
            Err(StoreError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(&path);
                Err(StoreError::disturbed(parent, "this directory was moved or removed"))
            }
            Err(error) => Err(error),
        }
    }

    fn write_chunk(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        let (bytes, padded) = (self.plan.data_bytes(region), self.plan.write_bytes(region) as usize);
        let short = || StoreError::Invalid(format!("{}: a tile of {} bytes is too short", self.name, data.len()));
        let file = self.create_chunk(region, io)?;
        if self.plan.is_front(region) {
            io.write(&file, data.get(..padded).ok_or_else(short)?, 0)?;
            // Cutting before growing turns what lay behind the data into zeros.
            if bytes < padded {
                file.set_len(bytes as u64)?;
            }
            if bytes < self.plan.chunk_bytes {
                file.set_len(self.plan.chunk_bytes as u64)?;
            }
            return Ok(());
        }
        let map = |cause| StoreError::io(file.path(), 0, "map memory", cause);
        let mut strip = AlignedBuffer::new(self.plan.workspace_bytes(region)).map_err(map)?;
        let data = data.get(..bytes).ok_or_else(short)?;
        let (rows, row_bytes) = (self.plan.strip_rows() as u64, self.plan.row_bytes());
        let origin = vec![0; self.plan.tile.len()];
        let given_bytes = bytes / region.shape[0] as usize;
        for first in (0..self.plan.tile[0]).step_by(rows as usize) {
            let height = rows.min(self.plan.tile[0] - first);
            let filled = height.min(region.shape[0].saturating_sub(first));
            let shape = |of: &[u64], height: u64| [&[height], &of[1..]].concat();
            let (given, chunk) = (shape(&region.shape, filled), shape(&self.plan.tile, height));
            let strip = &mut strip[..(height as usize * row_bytes).next_multiple_of(PAGE)];
            strip.fill(0);
            if filled > 0 {
                let (from, to) = (Lattice::of_box(&given, &origin), Lattice::of_box(&chunk, &origin));
                let begin = first as usize * given_bytes;
                copy_lattice(&data[begin..], &from, strip, &to, &given, self.plan.dtype.size());
            }
            io.write(&file, strip, first * row_bytes as u64)?;
        }
        file.set_len(self.plan.chunk_bytes as u64)
    }

    fn check_content(&self, array: BorrowedFd<'_>) -> Result<(), StoreError> {
        self.check_json(array)?;
        let chunk_bytes = self.plan.chunk_bytes as u64;
        self.made().check(array, self.partial.path(), chunk_bytes)
    }

    /// The metadata, with the bytes that were written.
    fn check_json(&self, array: BorrowedFd<'_>) -> Result<(), StoreError> {
        let path = self.partial.path().join(JSON);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(array, JSON, flags, rustix::fs::Mode::empty());
        let file = file.map_err(|cause| gone_or(&path, "open", cause.into()))?;
        let mut text = Vec::new();
        let limit = self.plan.json.len() as u64 + 1;
        let read = std::fs::File::from(file).take(limit).read_to_end(&mut text);
        read.map_err(|cause| StoreError::io(&path, 0, "read", cause))?;
        if text != self.plan.json.as_bytes() {
            return Err(StoreError::disturbed(&path, "it is not what was written"));
        }
        Ok(())
    }
}

impl Sink for ZarrSink {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }

    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.shape, &self.name)?;
        if region.is_empty() {
            return Ok(());
        }
        self.write_chunk(region, data, io)
            .map_err(|error| error.at_output(self.partial.target()))?;
        self.made().set_written(&self.index(region));
        Ok(())
    }

    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync_file_system(self.partial.path())
    }

    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        self.partial.check()?;
        io.sync_file_system(self.partial.path())
    }

    fn check(&self) -> Result<(), StoreError> {
        self.partial.check()?;
        let array = self.partial.directory();
        let array = array.ok_or_else(|| StoreError::disturbed(self.partial.path(), "it is no directory"));
        array
            .and_then(|array| self.check_content(array))
            .map_err(|error| error.at_output(self.partial.target()))
    }

    fn partial(&self) -> Option<&Partial> {
        Some(&self.partial)
    }
}
