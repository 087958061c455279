//! Arrays by a list of their chunks that somebody else read or made: pages of TIFF files, references into files of any format.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::array::annotations::Annotations;
use crate::array::region::{c_strides, is_computable};
use crate::array::rowmajor::make_native;
use crate::array::source::{Opened, Opening};
use crate::backend::remote::{place_of, RemotePlace};
use crate::backend::stamp::Stamp;
use crate::chunked::chain::DecodeSpace;
use crate::chunked::listed::{ListedChunks, StoredChunk};
use crate::chunked::manifest::ChunkGrid;
use crate::chunked::several_files::{SeveralFiles, StampedFile};
use crate::chunked::source::ChunkArray;
use crate::formats::zarr::parse_grid;
use crate::StoreError;

/// Entries of a chunk: its number in C order of the grid, the number of its file, its first byte, its bytes, or `u64::MAX` for all
/// up to the end of the file, and the stages that it goes without, as bits.
type ChunkRow = [u64; 5];
/// Chunks between two looks at whether the opening is still wanted.
const STEP: usize = 1 << 16;

/// Files that are worth a thread.
const LOCAL_FILES_MIN: usize = 1 << 10;

/// Objects of a store between two such looks.
const OBJECTS_PER_LOOK: usize = 1024;

/// An array and its chunks, as somebody lists them. Nothing of it is trusted.
#[derive(Clone, Copy, Debug)]
pub struct ChunkListing<'a> {
    /// The file by which the array is opened.
    pub path: &'a Path,
    /// The path of the array in that; empty where it holds only one.
    pub member: &'a str,
    /// The shape, the chunk shape, the type and the codecs, as `zarr.json` or `.zarray` says them.
    pub document: &'a [u8],
    pub files: &'a [PathBuf],
    /// In any order; chunks that are not listed are all fill value.
    pub chunks: &'a [ChunkRow],
    /// Whether chunks end where the array does, and not behind it.
    pub is_cut: bool,
}

/// Opens an array by a list of its chunks.
///
/// # Errors
/// One line: metadata that are not supported; a file that cannot be opened, a chunk outside of its file or listed twice, with the
/// path and the place; what `opening` answers.
pub fn open_listing(listing: &ChunkListing<'_>, opening: &mut dyn Opening) -> Result<Opened, StoreError> {
    let refused = |reason: String| StoreError::format(&listing.whole_path(), reason);
    let mut grid = parse_grid(listing.document).map_err(refused)?;
    grid.is_cut = listing.is_cut;
    if grid.is_cut {
        check_cut(&grid).map_err(refused)?;
    }
    let counts = grid
        .shape
        .iter()
        .zip(&grid.unit)
        .map(|(length, unit)| length.div_ceil(*unit));
    let counts: Vec<u64> = counts.collect();
    let lengths = counts.iter().zip(&grid.unit);
    let whole: Option<Vec<u64>> = lengths
        .map(|(count, unit)| (*count).max(1).checked_mul(*unit))
        .collect();
    let whole = whole.filter(|whole| is_computable(whole, grid.dtype));
    let whole = whole.ok_or_else(|| refused(format!("chunks of shape {:?} overflow", grid.unit)))?;
    let opened = stamped(listing.path)?;
    let files = all_stamped(listing.files, opening)?;
    let is_one = files.len() < 2;
    if is_one {
        grid.cell = whole;
    }
    let granted = opening.keep(listing.chunks.len() * size_of::<(StoredChunk, u32)>())?;
    let mut placed = listing.placed(&grid, &counts, &files, opening)?;
    placed.sort_unstable_by_key(|(chunk, _)| chunk.number);
    if let Some(twice) = placed.windows(2).find(|pair| pair[0].0.number == pair[1].0.number) {
        return Err(refused(format!("chunk {} is listed twice", twice[0].0.number)));
    }
    let manifest = SeveralFiles {
        member: listing.member.into(),
        identity: listing.identity(&opened, &files),
        file_of: placed.iter().map(|(_, file)| *file).filter(|_| !is_one).collect(),
        listed: ListedChunks {
            chunks: placed.into_iter().map(|(chunk, _)| chunk).collect(),
            _granted: granted.into_iter().collect(),
        },
        strides: if is_one {
            vec![0; counts.len()]
        } else {
            c_strides(&counts)
        },
        opened,
        files,
    };
    Ok(Opened {
        source: Arc::new(ChunkArray { grid, manifest }),
        transposed: false,
        format: "listing",
        annotations: Annotations::default(),
    })
}

/// The elements of a chunk that somebody has in memory: in C order of the chunk, native byte order.
///
/// # Errors
/// Metadata that are not supported, and a chunk that does not decode to the bytes of one.
pub fn decode_listed_chunk(document: &[u8], encoded: &[u8]) -> Result<Vec<u8>, String> {
    let grid = parse_grid(document)?;
    if !is_computable(&grid.unit, grid.dtype) || !grid.chain.is_c_order() {
        return Err(format!("chunks of shape {:?} in memory are not supported", grid.unit));
    }
    let mut space = DecodeSpace::default();
    let decoded = grid.chain.decode(encoded, grid.unit_bytes(), 0, &mut space, None)?;
    let mut bytes = decoded.map(<[u8]>::to_vec).unwrap_or_default();
    make_native(&mut bytes, grid.dtype, grid.swapped());
    Ok(bytes)
}

fn stamped(path: &Path) -> Result<StampedFile, StoreError> {
    Ok(StampedFile {
        stamp: Stamp::settled(path)?,
        path: path.to_path_buf(),
    })
}

/// Files with their stamps. Stamps of objects are asked for together, store by store.
fn all_stamped(paths: &[PathBuf], opening: &mut dyn Opening) -> Result<Vec<StampedFile>, StoreError> {
    let mut stamps: Vec<Stamp> = vec![Stamp::of_bytes(0); paths.len()];
    let mut stores: Vec<(RemotePlace, Vec<(usize, String)>)> = Vec::new();
    for (stamps, paths) in stamps.chunks_mut(STEP).zip(paths.chunks(STEP)) {
        opening.look()?;
        stamp_local(paths, stamps)?;
    }
    for (number, path) in paths.iter().enumerate() {
        let Some(place) = place_of(path) else {
            continue;
        };
        let object = (number, place.key.clone());
        match stores.iter_mut().find(|(of, _)| Arc::ptr_eq(&of.store, &place.store)) {
            Some((_, objects)) => objects.push(object),
            None => stores.push((place, vec![object])),
        }
    }
    for (place, objects) in &stores {
        for objects in objects.chunks(OBJECTS_PER_LOOK) {
            opening.look()?;
            let keys: Vec<String> = objects.iter().map(|(_, key)| key.clone()).collect();
            let failed = |cause| StoreError::io(&paths[objects[0].0], 0, "stat", cause);
            let answers = place.store.facts_of_many(&keys).map_err(failed)?;
            for ((number, _), facts) in objects.iter().zip(answers) {
                let missing = || StoreError::io(&paths[*number], 0, "stat", std::io::ErrorKind::NotFound);
                stamps[*number] = Stamp::of_object(place, facts.ok_or_else(missing)?);
            }
        }
    }
    let files = paths.iter().zip(stamps).map(|(path, stamp)| StampedFile {
        path: path.clone(),
        stamp,
    });
    Ok(files.collect())
}

/// Stamps files of this machine, on all cores: of a million files the kernel takes seconds.
fn stamp_local(paths: &[PathBuf], stamps: &mut [Stamp]) -> Result<(), StoreError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(cores).max(LOCAL_FILES_MIN);
    std::thread::scope(|threads| {
        let parts = stamps.chunks_mut(share).zip(paths.chunks(share));
        let stamping = parts.map(|(stamps, paths)| {
            move || {
                let mut files = stamps
                    .iter_mut()
                    .zip(paths)
                    .filter(|(_, path)| place_of(path).is_none());
                files.try_for_each(|(stamp, path)| Stamp::settled(path).map(|found| *stamp = found))
            }
        });
        let begun: Vec<_> = stamping.map(|part| threads.spawn(part)).collect();
        let ended = begun.into_iter().map(|part| match part.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<Vec<()>, StoreError>>().map(drop)
    })
}

/// Refuses chunks that would not be the first bytes of whole ones.
fn check_cut(grid: &ChunkGrid) -> Result<(), String> {
    let first = grid.unit.iter().position(|unit| *unit > 1).unwrap_or(0);
    let mut behind = grid.shape.iter().zip(&grid.unit).skip(first + 1);
    match behind.all(|(length, unit)| length % unit == 0) && grid.chain.is_c_order() {
        true => Ok(()),
        false => Err(format!("chunks of shape {:?} cannot end with the array", grid.unit)),
    }
}

impl ChunkListing<'_> {
    fn whole_path(&self) -> PathBuf {
        match self.member {
            "" => self.path.to_path_buf(),
            member => self.path.join(member),
        }
    }

    fn placed(
        &self,
        grid: &ChunkGrid,
        counts: &[u64],
        files: &[StampedFile],
        opening: &mut dyn Opening,
    ) -> Result<Vec<(StoredChunk, u32)>, StoreError> {
        let count: u64 = counts.iter().product();
        let mut placed = Vec::with_capacity(self.chunks.len());
        for step in self.chunks.chunks(STEP) {
            opening.look()?;
            for &[number, file, offset, bytes, mask] in step {
                let known = usize::try_from(file).ok().and_then(|file| files.get(file));
                let Some(known) = known.filter(|_| number < count) else {
                    let reason = format!("chunk {number} of {count}, in file {file} of {}", files.len());
                    return Err(StoreError::format(&self.whole_path(), reason));
                };
                let bytes = match bytes {
                    u64::MAX => known.stamp.bytes.saturating_sub(offset),
                    bytes => bytes,
                };
                let bytes = stored_bytes(grid, counts, number, bytes);
                let is_within = offset.checked_add(bytes).is_some_and(|end| end <= known.stamp.bytes);
                let in_words = u32::try_from(bytes).ok().filter(|&bytes| is_within && bytes > 0);
                let (Some(bytes), Ok(mask)) = (in_words, u32::try_from(mask)) else {
                    let (have, name) = (known.stamp.bytes, self.whole_path());
                    let name = name.display();
                    let reason =
                        format!("byte {offset}: chunk {number} of {name} has {bytes} bytes there, the file has {have}");
                    return Err(StoreError::format(&known.path, reason));
                };
                let chunk = StoredChunk {
                    number,
                    offset,
                    bytes,
                    mask,
                };
                placed.push((chunk, file as u32));
            }
        }
        Ok(placed)
    }

    /// The stamps and the list: equal ones are equal arrays.
    fn identity(&self, opened: &StampedFile, files: &[StampedFile]) -> String {
        let mut hasher = DefaultHasher::new();
        (self.document, self.chunks, self.is_cut).hash(&mut hasher);
        // Whether a file system is memory is asked once for each.
        let mut names: HashMap<u64, String> = HashMap::new();
        for file in files {
            (&file.path, file.stamp).hash(&mut hasher);
            let of_device = names.entry(file.stamp.device);
            of_device
                .or_insert_with(|| file.stamp.name(&file.path))
                .hash(&mut hasher);
        }
        let name = opened.stamp.name(&opened.path);
        format!("{name}:{}:{:016x}", self.member, hasher.finish())
    }
}

/// The bytes of a chunk: as listed, but of plain ones no more than elements.
fn stored_bytes(grid: &ChunkGrid, counts: &[u64], mut number: u64, bytes: u64) -> u64 {
    if !grid.chain.is_plain() {
        return bytes;
    }
    let mut elements = 1;
    for axis in (0..counts.len()).rev() {
        let (at, length) = (number % counts[axis], grid.unit[axis]);
        number /= counts[axis];
        elements *= match grid.is_cut {
            true => length.min(grid.shape[axis] - at * length),
            false => length,
        };
    }
    bytes.min(elements * grid.dtype.size() as u64)
}
