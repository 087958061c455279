//! Zarr v3 output: one chunk per tile, as it lies or encoded, written past the page cache.

use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use outcore_dtype::{DType, Kind};
use rustix::fs::{openat, OFlags};
use serde_json::{json, Value};

use super::attributes::attributes_json;
use super::json::Extension;
use super::made::{gone_or, MadeChunks, Modes};
use super::written::WrittenFile;
use crate::array::annotations::Annotations;
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::{Io, Region, StoreError};

pub(super) const JSON: &str = "zarr.json";

/// Shape, type, chunk shape and metadata of an output.
#[derive(Clone, Debug)]
pub(crate) struct ZarrPlan {
    shape: Vec<u64>,
    dtype: DType,
    /// The shape of a file, as far as the array goes.
    tile: Vec<u64>,
    annotations: Annotations,
    /// As the document has them.
    codecs: Vec<Value>,
    /// A chunk, or a shard of chunks.
    file: WrittenFile,
    json: String,
}

impl ZarrPlan {
    pub(crate) fn new(shape: &[u64], dtype: DType, tile: &[u64]) -> Result<ZarrPlan, StoreError> {
        if cfg!(target_endian = "big") {
            return Err(StoreError::Invalid(
                "Zarr output is written on little-endian machines only".into(),
            ));
        }
        let codecs = vec![little_endian()];
        let file = written_file(&codecs, tile, dtype).map_err(StoreError::Invalid)?;
        let plan = ZarrPlan {
            shape: shape.to_vec(),
            dtype,
            tile: tile.to_vec(),
            annotations: Annotations::default(),
            codecs,
            file,
            json: String::new(),
        };
        Ok(plan.with_document())
    }

    fn with_document(mut self) -> ZarrPlan {
        self.json = metadata(&self);
        self
    }

    /// Files along each axis.
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
        self.file.write_bytes(region)
    }

    fn overhead_bytes(&self) -> u64 {
        self.json.len() as u64
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        self.file.workspace_bytes(region)
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

    fn annotated(&self, annotations: &Annotations) -> Option<Arc<dyn OutputPlan>> {
        let annotations = annotations.clone();
        let plan = ZarrPlan {
            annotations,
            ..self.clone()
        };
        Some(Arc::new(plan.with_document()))
    }

    fn encoded(&self, codecs: &str) -> Option<Result<Arc<dyn OutputPlan>, String>> {
        let encoded = || {
            let chosen = serde_json::from_str(codecs).map_err(|error| format!("codecs are no JSON: {error}"))?;
            let (codecs, shape) = match chosen {
                Value::Array(behind) => ([vec![little_endian()], behind].concat(), self.tile.clone()),
                document => sharded(&document, &self.shape, &self.tile)?,
            };
            let plan = ZarrPlan {
                file: written_file(&codecs, &shape, self.dtype)?,
                codecs,
                ..self.clone()
            };
            Ok(Arc::new(plan.with_document()) as Arc<dyn OutputPlan>)
        };
        Some(encoded())
    }

    fn is_exact(&self) -> bool {
        self.file.is_exact()
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
        let mut made = MadeChunks::new(self.counts(), modes, self.file.same_bytes().is_none());
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
            made: Mutex::new(MadeChunks::new(self.counts(), modes, self.file.same_bytes().is_none())),
            partial,
        }))
    }
}

fn little_endian() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

fn written_file(codecs: &[Value], shape: &[u64], dtype: DType) -> Result<WrittenFile, String> {
    let extensions: Option<Vec<Extension>> = codecs.iter().map(Extension::from_value).collect();
    let extensions = extensions.ok_or("codecs are names with configurations")?;
    WrittenFile::new(&extensions, shape, dtype, &[])
}

/// The codecs of an array in shards, and the shape of a shard, which tiles are as far as the array goes.
fn sharded(document: &Value, array: &[u64], tile: &[u64]) -> Result<(Vec<Value>, Vec<u64>), String> {
    let shape = document.pointer("/chunk_grid/configuration/chunk_shape");
    let shape: Option<Vec<u64>> = shape
        .and_then(Value::as_array)
        .and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let shape = shape.ok_or("shards have no shape")?;
    let is_tile = |((shard, array), tile): ((&u64, &u64), &u64)| *shard.min(array).max(&1) == *tile;
    if shape.len() != tile.len() || !shape.iter().zip(array).zip(tile).all(is_tile) {
        return Err(format!("shards {shape:?} are not written by tiles {tile:?}"));
    }
    let codecs = document["codecs"].as_array().ok_or("codecs are no list")?;
    Ok((codecs.clone(), shape))
}

fn metadata(plan: &ZarrPlan) -> String {
    let annotations = &plan.annotations;
    let fill = match plan.dtype.kind() {
        Kind::Bool => json!(false),
        Kind::Unsigned | Kind::Signed => json!(0),
        Kind::Float => json!(0.0),
        Kind::Complex => json!([0.0, 0.0]),
    };
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": plan.shape,
        "data_type": plan.dtype.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": plan.file.shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": plan.codecs,
        "attributes": attributes_json(&annotations.attributes),
    });
    if annotations.dims.iter().any(Option::is_some) && annotations.dims.len() == plan.shape.len() {
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

    fn write_chunk(&self, region: &Region, data: &[u8], io: &Io) -> Result<u64, StoreError> {
        let file = self.create_chunk(region, io)?;
        self.plan.file.write(&file, region, data, io)
    }

    fn check_content(&self, array: BorrowedFd<'_>) -> Result<(), StoreError> {
        check_document(array, self.partial.path(), &self.plan.json)?;
        let same = self.plan.file.same_bytes().unwrap_or(0);
        self.made().check(array, self.partial.path(), same)
    }
}

/// Refuses a document in the folder `array`, at `path`, that is not what was written.
pub(super) fn check_document(array: BorrowedFd<'_>, path: &Path, json: &str) -> Result<(), StoreError> {
    let path = path.join(JSON);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(array, JSON, flags, rustix::fs::Mode::empty());
    let file = file.map_err(|cause| gone_or(&path, "open", cause.into()))?;
    let mut text = Vec::new();
    let limit = json.len() as u64 + 1;
    let read = std::fs::File::from(file).take(limit).read_to_end(&mut text);
    read.map_err(|cause| StoreError::io(&path, 0, "read", cause))?;
    if text != json.as_bytes() {
        return Err(StoreError::disturbed(&path, "it is not what was written"));
    }
    Ok(())
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
        let written = self.write_chunk(region, data, io);
        let bytes = written.map_err(|error| error.at_output(self.partial.target()))?;
        self.made().set_written(&self.index(region), bytes);
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
