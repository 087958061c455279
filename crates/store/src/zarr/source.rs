//! Reading a Zarr v3 array, region by region.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use outcore_dtype::DType;

use super::inventory::Inventory;
use super::metadata::{parse_zarr_json, ArrayMetadata};
use super::shard::ShardIndex;
use crate::frames::PAGE;
use crate::io::Mode;
use crate::mapping::AlignedBuffer;
use crate::region::{c_strides, copy_lattice, Lattice};
use crate::rowmajor::{normalize_bools, swap_bytes, RowMajor, Window};
use crate::source::{Layout, Source};
use crate::stamp::{settled, Stamp};
use crate::{Io, Region, StoreError};

/// Metadata documents larger than this are refused.
pub(crate) const JSON_MAX: u64 = 16 << 20;

/// An opened array.
///
/// A *unit* is a chunk, or an inner chunk where there are shards: the smallest part that is decoded alone.
pub struct ZarrArray {
    dir: PathBuf,
    metadata: ArrayMetadata,
    unit: Vec<u64>,
    unit_bytes: usize,
    stamp: Stamp,
    inventory: Inventory,
    identity: String,
    io: Io,
    found: Mutex<HashMap<Vec<u64>, Option<Chunk>>>,
}

/// A chunk's file, as found at first use.
#[derive(Clone)]
struct Chunk {
    path: PathBuf,
    bytes: u64,
    index: Option<Arc<ShardIndex>>,
}

/// Where a unit's encoded bytes lie.
struct Place {
    path: PathBuf,
    offset: u64,
    bytes: u64,
    file_bytes: u64,
}

/// A region's share of one unit.
struct Part {
    /// In the array.
    region: Region,
    /// In the unit.
    local: Region,
    place: Option<Place>,
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

impl ZarrArray {
    /// Opens the directory of an array.
    pub fn open(dir: &Path, io: &Io) -> Result<ZarrArray, StoreError> {
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
        let stamp = Stamp::of(&json)?;
        if stamp.bytes > JSON_MAX {
            return Err(StoreError::format(
                &json,
                format!("{} bytes of metadata are too many", stamp.bytes),
            ));
        }
        let text = std::fs::read(&json).map_err(|cause| StoreError::io(&json, 0, "read", cause))?;
        let metadata = parse_zarr_json(&text).map_err(|reason| StoreError::format(dir, reason))?;
        let inventory = settled(|| {
            let inventory = Inventory::of(dir, metadata.shape.len() + 1)?;
            Ok((inventory, inventory.modified_ns))
        })?;
        let unit = metadata
            .sharding
            .as_ref()
            .map_or(&metadata.chunk, |sharding| &sharding.inner)
            .clone();
        Ok(ZarrArray {
            dir: dir.to_path_buf(),
            unit_bytes: unit.iter().product::<u64>() as usize * metadata.dtype.size(),
            unit,
            metadata,
            stamp,
            inventory,
            identity: format!("{}:{:016x}", stamp.name(&json), inventory.hash),
            io: io.clone(),
            found: Mutex::default(),
        })
    }

    /// Refuses an array whose files are not what they were, by parts of their stamps and of their inventory.
    fn check(&self, stamp: fn(Stamp) -> Stamp, hash: fn(&Inventory) -> u64) -> Result<(), StoreError> {
        self.stamp.check(&self.dir.join("zarr.json"), stamp)?;
        let changed = |reason: &str| StoreError::Changed {
            path: self.dir.clone(),
            reason: reason.into(),
        };
        let now = Inventory::of(&self.dir, self.metadata.shape.len() + 1).map_err(|_| changed("it is gone"))?;
        if hash(&now) != hash(&self.inventory) {
            return Err(changed("a chunk was added, removed or rewritten"));
        }
        Ok(())
    }

    fn found(&self) -> MutexGuard<'_, HashMap<Vec<u64>, Option<Chunk>>> {
        self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The file of a chunk, `None` when it does not exist.
    fn chunk(&self, index: &[u64]) -> Result<Option<Chunk>, StoreError> {
        if let Some(known) = self.found().get(index) {
            return Ok(known.clone());
        }
        let path = self.dir.join(self.metadata.keys.path(index));
        let chunk = match std::fs::metadata(&path) {
            Ok(metadata) => {
                let bytes = metadata.len();
                Some(Chunk {
                    index: self.shard_index(&path, bytes)?,
                    path,
                    bytes,
                })
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
            Err(cause) => return Err(StoreError::io(&path, 0, "stat", cause)),
        };
        self.found().insert(index.to_vec(), chunk.clone());
        Ok(chunk)
    }

    fn shard_index(&self, path: &Path, file_bytes: u64) -> Result<Option<Arc<ShardIndex>>, StoreError> {
        let Some(sharding) = &self.metadata.sharding else {
            return Ok(None);
        };
        let file = self.io.open(path, Mode::Read)?;
        let count = self.inner_grid().iter().product();
        Ok(Some(Arc::new(ShardIndex::read(
            &file, file_bytes, count, sharding, &self.io,
        )?)))
    }

    /// Units per chunk along each axis.
    fn inner_grid(&self) -> Vec<u64> {
        self.metadata
            .chunk
            .iter()
            .zip(&self.unit)
            .map(|(chunk, unit)| chunk / unit)
            .collect()
    }

    fn place(&self, unit: &[u64]) -> Result<Option<Place>, StoreError> {
        let grid = self.inner_grid();
        let index: Vec<u64> = unit
            .iter()
            .zip(&grid)
            .map(|(unit, per_chunk)| unit / per_chunk)
            .collect();
        let Some(chunk) = self.chunk(&index)? else {
            return Ok(None);
        };
        let (offset, bytes) = match &chunk.index {
            None => (0, chunk.bytes),
            Some(ranges) => {
                let strides = c_strides(&grid);
                let inner = unit
                    .iter()
                    .zip(&grid)
                    .zip(&strides)
                    .map(|((unit, per), stride)| unit % per * stride)
                    .sum();
                let Some(range) = ranges.range(inner) else {
                    return Ok(None);
                };
                range
            }
        };
        if self.metadata.chain.is_plain() && bytes != self.unit_bytes as u64 {
            let reason = format!("a chunk of {bytes} bytes where {} are expected", self.unit_bytes);
            return Err(StoreError::format(&chunk.path, reason));
        }
        Ok(Some(Place {
            path: chunk.path,
            offset,
            bytes,
            file_bytes: chunk.bytes,
        }))
    }

    fn parts(&self, region: &Region) -> Result<Vec<Part>, StoreError> {
        region.check_in(&self.metadata.shape, &self.name())?;
        let part = |unit: Vec<u64>| {
            let start: Vec<u64> = unit
                .iter()
                .zip(&self.unit)
                .map(|(index, extent)| index * extent)
                .collect();
            let cell = Region::new(start, self.unit.clone());
            let shared = region
                .intersect(&cell)
                .unwrap_or_else(|| Region::full(&vec![0; cell.start.len()]));
            Ok(Part {
                local: shared.relative_to(&cell.start),
                region: shared,
                place: self.place(&unit)?,
            })
        };
        region.cells(&self.unit).into_iter().map(part).collect()
    }

    /// A plain unit as an array in its file.
    fn plain(&self, place: &Place) -> RowMajor {
        let item = self.metadata.dtype.size();
        RowMajor {
            base: place.offset,
            shape: self.unit.clone(),
            item,
            file_bytes: place.file_bytes,
        }
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.metadata.dtype.size()
    }

    fn part_bytes(&self, part: &Part) -> u64 {
        match &part.place {
            None => 0,
            Some(place) if self.metadata.chain.is_plain() => self.plain(place).read_bytes(&part.local),
            Some(place) => encoded_window(place).present,
        }
    }

    /// Frame bytes beyond the data that reading one part needs.
    fn staging_bytes(&self, part: &Part) -> usize {
        match &part.place {
            Some(place) if self.metadata.chain.is_plain() => self.plain(place).frame_bytes(&part.local),
            _ => 0,
        }
    }

    /// Where one plain unit holds all of the region, it is read without a further copy.
    fn sole_plain<'a>(&self, parts: &'a [Part]) -> Option<(&'a Part, &'a Place)> {
        match parts {
            [part] if self.metadata.chain.is_plain() => part.place.as_ref().map(|place| (part, place)),
            _ => None,
        }
    }

    /// Brings one part into its place in the frame, in the byte order of the file.
    fn read_part(&self, part: &Part, region: &Region, frame: &mut [u8], io: &Io) -> Result<(), StoreError> {
        let item = self.metadata.dtype.size();
        let within = part.region.relative_to(&region.start);
        let target = Lattice::of_box(&region.shape, &within.start);
        let Some(place) = &part.place else {
            self.fill(&within, region, frame);
            return Ok(());
        };
        let file = io.open(&place.path, Mode::Read)?;
        if self.metadata.chain.is_plain() {
            let (data, staging) = frame.split_at_mut(self.data_bytes(region).next_multiple_of(PAGE));
            let at = self.plain(place).read(&file, &part.local, staging, io)?;
            let source = Lattice::of_box(&part.local.shape, &vec![0; self.unit.len()]);
            copy_lattice(&staging[at..], &source, data, &target, &part.local.shape, item);
            return Ok(());
        }
        let window = encoded_window(place);
        let map = |cause| StoreError::io(&place.path, place.offset, "map memory", cause);
        let mut pages = AlignedBuffer::new(window.bytes()).map_err(map)?;
        io.read(
            &file,
            &mut pages[..window.bytes()],
            window.start,
            window.present as usize,
        )?;
        let head = (place.offset - window.start) as usize;
        let encoded = &pages[head..head + place.bytes as usize];
        let decoded = self.metadata.chain.decode(encoded, self.unit_bytes);
        let decoded = decoded.map_err(|reason| StoreError::format(&place.path, reason))?;
        let mut source = self.metadata.chain.lattice(&self.unit);
        source.offset = part
            .local
            .start
            .iter()
            .zip(&source.strides)
            .map(|(start, stride)| *start as i64 * stride)
            .sum();
        copy_lattice(&decoded, &source, frame, &target, &part.local.shape, item);
        Ok(())
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
}

/// The pages that hold an encoded unit.
fn encoded_window(place: &Place) -> Window {
    Window::of(place.offset, place.offset + place.bytes, place.file_bytes)
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

    fn check_unchanged(&self) -> Result<(), StoreError> {
        self.check(|stamp| stamp, |inventory| inventory.hash)
    }

    fn check_unwritten(&self) -> Result<(), StoreError> {
        self.check(Stamp::written, |inventory| inventory.written)
    }

    fn read_bytes(&self, region: &Region) -> Result<u64, StoreError> {
        Ok(self.parts(region)?.iter().map(|part| self.part_bytes(part)).sum())
    }

    fn frame_bytes(&self, region: &Region) -> usize {
        let data = self.data_bytes(region);
        // An array that cannot be read says so in `read_bytes`; the size then does not matter.
        let Ok(parts) = self.parts(region) else {
            return data;
        };
        if let Some((part, place)) = self.sole_plain(&parts) {
            return self.plain(place).frame_bytes(&part.local);
        }
        match parts.iter().map(|part| self.staging_bytes(part)).max().unwrap_or(0) {
            0 => data,
            staging => data.next_multiple_of(PAGE) + staging,
        }
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        let chain = &self.metadata.chain;
        if chain.is_plain() {
            return 0;
        }
        let places = self.parts(region).into_iter().flatten().filter_map(|part| part.place);
        let pages = places.map(|place| encoded_window(&place).bytes().max(PAGE)).max();
        pages.map_or(0, |pages| pages.saturating_add(chain.workspace_bytes(self.unit_bytes)))
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let parts = self.parts(region)?;
        let offset = match self.sole_plain(&parts) {
            Some((part, place)) => {
                let file = io.open(&place.path, Mode::Read)?;
                self.plain(place).read(&file, &part.local, frame, io)?
            }
            None => {
                for part in &parts {
                    self.read_part(part, region, frame, io)?;
                }
                0
            }
        };
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
