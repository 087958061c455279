//! From a path in a file to the source of a dataset, or to a group.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_hdf5::{chunks, ChunkPlace, DataLayout, DatasetFacts, Hdf5Error, Hdf5File, Hdf5Object, MemberKind};

use super::annotations::{group_of, of_dataset};
use super::bytes::StoredBytes;
use super::records::record_type;
use super::types::{class_name, element_type, stage_of};
use crate::array::format::{Ability, Evidence, Format};
use crate::array::in_memory::MemorySource;
use crate::array::raw::RawSource;
use crate::array::record::StoredRecords;
use crate::array::region::{c_strides, is_computable};
use crate::array::rowmajor::make_native;
use crate::array::source::{Opened, Opening, RawArray, Source};
use crate::array::stored::StoredObject;
use crate::backend::stamp::Stamp;
use crate::chunked::chain::{CodecChain, CodecStage};
use crate::chunked::listed::{ListedChunks, StoredChunk};
use crate::chunked::manifest::ChunkGrid;
use crate::chunked::one_file::{member_identity, OneFile};
use crate::chunked::source::ChunkArray;
use crate::{Io, Reservation, StoreError};

/// The first bytes of a file, and where they may be: behind a user block as MATLAB writes one, too.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
const SIGNATURE_AT: [usize; 4] = [0, 512, 1024, 2048];
/// Members that a refusal names at most, and groups that are looked into for them.
const NAMED_MAX: usize = 12;
const GROUPS_MAX: usize = 64;
/// Chunks that memory is asked for at a time.
const STEP: usize = (1 << 20) / size_of::<StoredChunk>();

pub(crate) struct Hdf5;

impl Format for Hdf5 {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    fn abilities(&self) -> &'static [Ability] {
        &[Ability::Attributes, Ability::Groups]
    }

    fn sniff(&self, evidence: Evidence<'_>) -> bool {
        let Evidence::Head(head) = evidence else { return false };
        let begins = SIGNATURE_AT.iter().filter_map(|&at| head.get(at..));
        begins.into_iter().any(|begin| begin.starts_with(SIGNATURE))
    }

    /// Finds a dataset or a group of a file.
    ///
    /// # Errors
    /// No such object, with the names of the datasets that there are; elements that are no numbers, filters and layouts that are
    /// not supported, by name; a damaged file, with the place.
    fn find(&self, path: &Path, member: &str, io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
        let (stamp, opened) = Stamp::opened(path, io)?;
        let bytes = StoredBytes::new(&opened, stamp.bytes, io, opening);
        let file = Hdf5File::open(&bytes).map_err(|error| bytes.error(error))?;
        let facts = match file.object(member) {
            Ok(Hdf5Object::Dataset(facts)) => facts,
            Ok(Hdf5Object::Group(listing)) => {
                let group = group_of(&file, path, member, listing);
                stamp.check(path, |stamp| stamp)?;
                return Ok(StoredObject::Group(group));
            }
            Ok(Hdf5Object::NamedType { .. }) => {
                return Err(StoreError::format(path, format!("{member:?} is a datatype")))
            }
            Err(Hdf5Error::NotFound(_)) => {
                let what = format!("no dataset {member:?} in an HDF5 file");
                return Err(StoreError::format(path, among(&file, path, &what)));
            }
            Err(error) => return Err(bytes.error(error)),
        };
        let record = match element_type(&facts.datatype) {
            Some(_) => None,
            None => record_type(&facts.datatype),
        };
        let dataset = Dataset {
            path,
            member,
            stamp,
            facts: &facts,
            shape: match record {
                Some(_) => [&facts.shape[..], &[u64::from(facts.datatype.bytes)]].concat(),
                None => facts.shape.clone(),
            },
            bytes: &bytes,
        };
        let opened = Opened {
            source: dataset.source()?,
            transposed: false,
            format: "hdf5",
            annotations: of_dataset(member, &facts),
        };
        stamp.check(path, |stamp| stamp)?;
        Ok(match record {
            Some(record) => StoredObject::Records(StoredRecords {
                bytes: opened,
                record: record.to_string(),
            }),
            None => StoredObject::Array(opened),
        })
    }
}

/// What has the arrays that there are, and how one is opened.
fn among(file: &Hdf5File<'_>, path: &Path, what: &str) -> String {
    let mut names = vec![];
    let mut groups = vec![String::new()];
    let mut looked = 0;
    while let Some(group) = groups.pop() {
        looked += 1;
        let Ok(Hdf5Object::Group(listing)) = file.object(&group) else {
            continue;
        };
        for member in listing.members {
            let name = if group.is_empty() {
                member.name
            } else {
                format!("{group}/{}", member.name)
            };
            match member.kind {
                MemberKind::Dataset if names.len() <= NAMED_MAX => names.push(name),
                MemberKind::Group if looked + groups.len() < GROUPS_MAX => groups.push(name),
                _ => {}
            }
        }
        if names.len() > NAMED_MAX {
            break;
        }
    }
    names.sort();
    let Some(first) = names.first() else {
        return format!("{what} without datasets");
    };
    let way = format!("oc.open({:?})", path.join(first).display().to_string());
    let more = if names.len() > NAMED_MAX { " and others" } else { "" };
    names.truncate(NAMED_MAX);
    format!(
        "{what} with the datasets {}{more}: open one, as {way}",
        names.join(", ")
    )
}

/// Parts in which an array is read of which nothing was ever stored.
fn empty_unit(shape: &[u64], dtype: DType) -> Vec<u64> {
    const UNIT_BYTES: u64 = 4 << 20;
    let mut unit = vec![1; shape.len()];
    let mut left = UNIT_BYTES / dtype.size() as u64;
    for (unit, &length) in unit.iter_mut().zip(shape).rev() {
        *unit = length.clamp(1, left.max(1));
        left /= *unit;
    }
    unit
}

struct Dataset<'a, 'f> {
    path: &'a Path,
    member: &'a str,
    stamp: Stamp,
    facts: &'a DatasetFacts,
    /// That of the elements; of records with an axis for their bytes.
    shape: Vec<u64>,
    bytes: &'a StoredBytes<'f>,
}

impl Dataset<'_, '_> {
    fn refused(&self, reason: &str) -> StoreError {
        StoreError::unsupported(self.path, format!("{:?} {reason}", self.member))
    }

    fn source(&self) -> Result<Arc<dyn Source>, StoreError> {
        let facts = self.facts;
        if facts.is_null {
            return Err(self.refused("has no elements, not even one"));
        }
        let (dtype, is_swapped) = match element_type(&facts.datatype) {
            Some(element) => element,
            None if self.is_of_bytes() => (DType::U8, false),
            None => {
                let what = class_name(&facts.datatype.class);
                let bytes = facts.datatype.bytes;
                return Err(self.refused(&format!("has elements of {bytes} bytes, {what}, which are not read")));
            }
        };
        self.check_size(&self.shape, dtype)?;
        let mut grid = ChunkGrid {
            shape: self.shape.clone(),
            dtype,
            cell: vec![],
            unit: empty_unit(&self.shape, dtype),
            fill: self.fill(dtype, is_swapped)?,
            chain: CodecChain::new(None, is_swapped != cfg!(target_endian = "big"), vec![]),
            is_cut: false,
        };
        let mut granted = vec![];
        let stored = match &facts.layout {
            DataLayout::Compact { bytes } => return self.in_memory(bytes.clone(), dtype, is_swapped),
            DataLayout::Contiguous { offset, .. } => match offset {
                Some(offset) => return self.contiguous(grid, *offset),
                None => {
                    grid.cell = self.cell(&grid)?;
                    vec![]
                }
            },
            DataLayout::Chunked(chunked) => {
                grid.unit.clone_from(&chunked.shape);
                grid.unit
                    .extend(self.is_of_bytes().then_some(u64::from(facts.datatype.bytes)));
                grid.cell = self.cell(&grid)?;
                grid.chain = CodecChain::new(None, is_swapped != cfg!(target_endian = "big"), self.stages()?);
                self.chunks(&grid, &mut granted)?
            }
        };
        Ok(self.array(grid, stored, granted))
    }

    /// The whole chunks that hold the array.
    fn cell(&self, grid: &ChunkGrid) -> Result<Vec<u64>, StoreError> {
        let counts = grid.shape.iter().zip(&grid.unit);
        let cell: Option<Vec<u64>> = counts
            .map(|(length, unit)| length.div_ceil(*unit).max(1).checked_mul(*unit))
            .collect();
        let cell = cell.ok_or_else(|| self.refused("has chunks that overflow"))?;
        self.check_size(&cell, grid.dtype)?;
        Ok(cell)
    }

    /// Whether elements are read as bytes, along an axis of their own.
    fn is_of_bytes(&self) -> bool {
        self.shape.len() > self.facts.shape.len()
    }

    /// An element that was never written, in native order.
    fn fill(&self, dtype: DType, is_swapped: bool) -> Result<Vec<u8>, StoreError> {
        let mut element = self.facts.fill.clone().unwrap_or_else(|| vec![0; dtype.size()]);
        if self.is_of_bytes() {
            let first = element.first().copied().unwrap_or(0);
            if element.iter().any(|byte| *byte != first) {
                return Err(self.refused("has a fill value of bytes that differ, which is not read"));
            }
            element = vec![first];
        }
        make_native(&mut element, dtype, is_swapped);
        Ok(element)
    }

    /// Refuses shapes whose sizes cannot be computed with.
    fn check_size(&self, shape: &[u64], dtype: DType) -> Result<(), StoreError> {
        match is_computable(shape, dtype) {
            true => Ok(()),
            false => Err(self.refused(&format!("of shape {shape:?} overflows"))),
        }
    }

    /// The stages that undo the filters of chunks.
    fn stages(&self) -> Result<Vec<CodecStage>, StoreError> {
        let item = self.facts.datatype.bytes as usize;
        let stages = self.facts.filters.iter().map(|filter| stage_of(filter, item));
        let stages: Result<Vec<CodecStage>, String> = stages.collect();
        stages.map_err(|name| self.refused(&format!("has chunks with {name}, which is not supported")))
    }

    /// Data that are part of the metadata.
    fn in_memory(&self, mut bytes: Vec<u8>, dtype: DType, is_swapped: bool) -> Result<Arc<dyn Source>, StoreError> {
        make_native(&mut bytes, dtype, is_swapped);
        let strides: Vec<i64> = c_strides(&self.shape).into_iter().map(|stride| stride as i64).collect();
        let source = MemorySource::new(Arc::new(bytes), dtype, 0, &self.shape, &strides)?;
        Ok(Arc::new(
            source.known_as(&member_identity(self.path, self.member, self.stamp).0),
        ))
    }

    /// Data in one run of the file.
    fn contiguous(&self, grid: ChunkGrid, start: u64) -> Result<Arc<dyn Source>, StoreError> {
        let raw = RawArray {
            start,
            shape: grid.shape,
            dtype: grid.dtype,
            swapped: grid.chain.big_endian != cfg!(target_endian = "big"),
        };
        Ok(Arc::new(RawSource::placed(self.path, self.stamp, raw)?))
    }

    /// Where chunks are, in order. Memory for them is asked for as they come.
    fn chunks(&self, grid: &ChunkGrid, granted: &mut Vec<Reservation>) -> Result<Vec<StoredChunk>, StoreError> {
        let mut stored: Vec<StoredChunk> = vec![];
        let mut refusal = None;
        let mut each = |place: ChunkPlace| {
            let added = self.chunk(grid, place).and_then(|chunk| {
                if stored.len() == stored.capacity() {
                    let more = stored.len().clamp(4, STEP);
                    granted.extend(self.bytes.keep_for_good(more * size_of::<StoredChunk>())?);
                    stored.reserve_exact(more);
                }
                stored.push(chunk);
                Ok(())
            });
            added.map_err(|error: StoreError| {
                let reason = error.to_string();
                refusal = Some(error);
                Hdf5Error::Interrupted(reason)
            })
        };
        let walked = chunks(self.facts, self.bytes, &mut each);
        if let Err(error) = walked {
            return Err(refusal.unwrap_or_else(|| self.bytes.error(error)));
        }
        stored.sort_unstable_by_key(|chunk| chunk.number);
        if let Some(twice) = stored.windows(2).find(|pair| pair[0].number == pair[1].number) {
            let reason = format!("{:?} has chunk {} twice", self.member, twice[0].number);
            return Err(StoreError::format(self.path, reason));
        }
        Ok(stored)
    }

    fn chunk(&self, grid: &ChunkGrid, place: ChunkPlace) -> Result<StoredChunk, StoreError> {
        let ChunkPlace {
            number, offset, bytes, ..
        } = place;
        let is_within = offset.checked_add(bytes).is_some_and(|end| end <= self.stamp.bytes);
        let chunk = u32::try_from(bytes)
            .ok()
            .filter(|_| is_within)
            .map(|bytes| StoredChunk {
                number,
                offset,
                bytes,
                mask: if self.is_unfiltered(grid, number) {
                    u32::MAX
                } else {
                    place.mask
                },
            });
        chunk.ok_or_else(|| {
            let reason = format!(
                "{:?} has chunk {number} in {bytes} bytes from byte {offset} on",
                self.member
            );
            StoreError::format(self.path, reason)
        })
    }

    /// Whether a chunk leaves the shape where such chunks have no filters.
    fn is_unfiltered(&self, grid: &ChunkGrid, number: u64) -> bool {
        if !self.facts.edges_unfiltered() {
            return false;
        }
        let mut rest = number;
        (0..grid.shape.len()).rev().any(|axis| {
            let (count, unit) = (grid.per_cell(axis), grid.unit[axis]);
            let end = (rest % count + 1) * unit;
            rest /= count;
            end > grid.shape[axis]
        })
    }

    fn array(&self, grid: ChunkGrid, chunks: Vec<StoredChunk>, granted: Vec<Reservation>) -> Arc<dyn Source> {
        let units = ListedChunks {
            chunks,
            _granted: granted,
        };
        let manifest = OneFile::new(self.path, self.member, self.stamp, units);
        Arc::new(ChunkArray { grid, manifest })
    }
}
