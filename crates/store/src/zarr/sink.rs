//! Zarr v3 output: one uncompressed chunk per tile, written past the page cache.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use outcore_dtype::{DType, Kind};
use serde_json::json;

use crate::frames::PAGE;
use crate::io::Mode;
use crate::mapping::AlignedBuffer;
use crate::partial::Partial;
use crate::region::{copy_lattice, Lattice};
use crate::sink::Sink;
use crate::{Io, Region, StoreError};

/// Shape, type, chunk shape and metadata of an output.
#[derive(Clone, Debug)]
pub(crate) struct ZarrPlan {
    shape: Vec<u64>,
    dtype: DType,
    /// The chunk shape.
    pub tile: Vec<u64>,
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
        let json = metadata(shape, dtype, tile);
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

    pub(crate) fn write_bytes(&self, region: &Region) -> u64 {
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

    pub(crate) fn overhead_bytes(&self) -> u64 {
        self.json.len() as u64
    }

    pub(crate) fn workspace_bytes(&self, region: &Region) -> usize {
        if self.is_front(region) {
            0
        } else {
            self.chunk_bytes.next_multiple_of(PAGE)
        }
    }

    pub(crate) fn create(&self, path: &Path, overwrite: bool, io: &Io) -> Result<Arc<dyn Sink>, StoreError> {
        let make = |dir: &Path| std::fs::create_dir(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause));
        let partial = Partial::new(path, overwrite, make)?;
        let file = io.open(&partial.path().join("zarr.json"), Mode::CreateUnaligned)?;
        io.write(&file, self.json.as_bytes(), 0)?;
        let dir = partial.path().to_path_buf();
        Ok(Arc::new(ZarrSink {
            plan: self.clone(),
            name: path.display().to_string(),
            dir,
            partial: Mutex::new(partial),
        }))
    }
}

fn metadata(shape: &[u64], dtype: DType, chunk: &[u64]) -> String {
    let fill = match dtype.kind() {
        Kind::Bool => json!(false),
        Kind::Unsigned | Kind::Signed => json!(0),
        Kind::Float => json!(0.0),
        Kind::Complex => json!([0.0, 0.0]),
    };
    let document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
    });
    format!("{document:#}\n")
}

struct ZarrSink {
    plan: ZarrPlan,
    name: String,
    dir: std::path::PathBuf,
    partial: Mutex<Partial>,
}

impl ZarrSink {
    fn partial(&self) -> MutexGuard<'_, Partial> {
        self.partial.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The chunk's file, in directories made on the way.
    fn create_chunk(&self, region: &Region, io: &Io) -> Result<crate::io::File, StoreError> {
        let mut path = self.dir.join("c");
        for (start, extent) in region.start.iter().zip(&self.plan.tile) {
            path.push((start / extent).to_string());
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|cause| StoreError::io(parent, 0, "create", cause))?;
        }
        io.open(&path, Mode::Create)
    }
}

impl Sink for ZarrSink {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn tile(&self) -> &[u64] {
        &self.plan.tile
    }

    fn write_bytes(&self, region: &Region) -> u64 {
        self.plan.write_bytes(region)
    }

    fn overhead_bytes(&self) -> u64 {
        self.plan.overhead_bytes()
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        self.plan.workspace_bytes(region)
    }

    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.shape, &self.name)?;
        if region.is_empty() {
            return Ok(());
        }
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
        let mut chunk = AlignedBuffer::new(padded).map_err(map)?;
        let origin = vec![0; self.plan.tile.len()];
        let (from, to) = (
            Lattice::of_box(&region.shape, &origin),
            Lattice::of_box(&self.plan.tile, &origin),
        );
        let data = data.get(..bytes).ok_or_else(short)?;
        copy_lattice(data, &from, &mut chunk, &to, &region.shape, self.plan.dtype.size());
        io.write(&file, &chunk, 0)?;
        file.set_len(self.plan.chunk_bytes as u64)
    }

    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        io.sync_file_system(&self.dir)
    }

    fn publish(&self) -> Result<(), StoreError> {
        self.partial().put_in_place()
    }

    fn abort(&self) {
        self.partial().discard();
    }
}
