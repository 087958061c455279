//! Files of an array as they are written from tiles: each a chunk, or a shard of chunks behind which its index stands.

use outcore_dtype::DType;

use super::chunk::PlainChunk;
use super::encoding::{chunk_encoder, WrittenChunk};
use super::json::Extension;
use super::metadata::{inner_codecs, sharding_of, Sharding};
use crate::array::region::{c_strides, copy_lattice, is_computable, Lattice};
use crate::base::page::PAGE;
use crate::chunked::encoder::ChunkEncoder;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::memory::workspace::WorkBuffer;
use crate::{Io, Region, StoreError};

const ENTRY_BYTES: usize = 16;
/// Bytes of a shard that are collected, about, before they are written.
const STRIP_BYTES: usize = 512 << 10;

/// How each file of an array is written.
///
/// Invariant: the bytes of a shard and of its index do not overflow.
#[derive(Clone, Debug)]
pub(super) struct WrittenFile {
    /// The shape of a chunk, or of a shard.
    pub shape: Vec<u64>,
    pub item: usize,
    /// One element of what the array does not have; nothing is zero.
    pub fill: Vec<u8>,
    encoder: Option<ChunkEncoder>,
    sharding: Option<Sharding>,
}

impl WrittenFile {
    /// Files of some shape, as the codecs of an array of a type have them.
    ///
    /// # Errors
    /// One line: the codec that is not written, or shards that are not.
    pub(super) fn new(codecs: &[Extension], shape: &[u64], dtype: DType, fill: &[u8]) -> Result<WrittenFile, String> {
        if !is_computable(shape, dtype) {
            return Err(format!("chunks or shards {shape:?} of {dtype} overflow"));
        }
        let sharding = sharding_of(codecs, shape)?;
        let inner = sharding.as_ref().map_or(shape, |sharding| &sharding.inner).to_vec();
        let bytes = inner.iter().product::<u64>() as usize * dtype.size();
        let encoder = match &sharding {
            Some(_) => chunk_encoder(&inner_codecs(codecs)?, shape.len(), dtype, bytes)?,
            None => chunk_encoder(codecs, shape.len(), dtype, bytes)?,
        };
        let file = WrittenFile {
            encoder,
            shape: shape.to_vec(),
            item: dtype.size(),
            fill: fill.to_vec(),
            sharding,
        };
        let index = file.shard().map_or(Some(0), |shard| shard.checked_index_bytes());
        let whole = index.and_then(|index| index.checked_add(file.chunk().plain.bytes()));
        let fits = whole.is_some_and(|bytes| bytes < isize::MAX as usize / 2);
        fits.then_some(file)
            .ok_or_else(|| format!("shards {shape:?} of chunks {inner:?} have too large an index"))
    }

    /// The file as one chunk.
    fn chunk(&self) -> WrittenChunk<'_> {
        self.chunk_of(&self.shape)
    }

    fn chunk_of<'a>(&'a self, shape: &'a [u64]) -> WrittenChunk<'a> {
        let plain = PlainChunk {
            shape,
            item: self.item,
            fill: &self.fill,
        };
        WrittenChunk {
            plain,
            encoder: self.encoder.as_ref(),
        }
    }

    fn shard(&self) -> Option<WrittenShard<'_>> {
        let sharding = self.sharding.as_ref()?;
        Some(WrittenShard {
            shape: &self.shape,
            sharding,
            chunk: self.chunk_of(&sharding.inner),
        })
    }

    /// Whether the bytes of files are known before they are written.
    pub(super) fn is_exact(&self) -> bool {
        self.encoder.is_none()
    }

    /// The bytes of each file, where all files have the same.
    pub(super) fn same_bytes(&self) -> Option<u64> {
        let is_same = self.encoder.is_none() && self.sharding.is_none();
        is_same.then(|| self.chunk().plain.bytes() as u64)
    }

    /// The bytes that writing a tile transfers, at most.
    pub(super) fn write_bytes(&self, region: &Region) -> u64 {
        match self.shard() {
            Some(_) if region.is_empty() => 0,
            Some(shard) => shard.write_bytes(region) as u64,
            None => self.chunk().write_bytes(region),
        }
    }

    /// Memory that writing a tile uses.
    pub(super) fn workspace_bytes(&self, region: &Region) -> usize {
        match self.shard() {
            Some(shard) => shard.workspace_bytes(region),
            None => self.chunk().workspace_bytes(region),
        }
    }

    /// Writes the new file of a tile, and gives the bytes that the file has.
    pub(super) fn write(&self, file: &File, region: &Region, data: &[u8], io: &Io) -> Result<u64, StoreError> {
        match self.shard() {
            Some(shard) => shard.write(file, region, data, io),
            None => self.chunk().write(file, region, data, io),
        }
    }
}

/// A shard: the chunks that the array has of it, one behind the other, and the places of all.
struct WrittenShard<'a> {
    shape: &'a [u64],
    sharding: &'a Sharding,
    chunk: WrittenChunk<'a>,
}

impl WrittenShard<'_> {
    /// Chunks along each axis.
    fn counts(&self, shape: &[u64]) -> Vec<u64> {
        let axes = shape.iter().zip(&self.sharding.inner);
        axes.map(|(length, inner)| length.div_ceil(*inner)).collect()
    }

    fn checked_index_bytes(&self) -> Option<usize> {
        let count: u64 = self.counts(self.shape).iter().product();
        let entries = usize::try_from(count).ok()?.checked_mul(ENTRY_BYTES)?;
        entries.checked_add(4)
    }

    fn entry_bytes(&self) -> usize {
        self.counts(self.shape).iter().product::<u64>() as usize * ENTRY_BYTES
    }

    fn index_bytes(&self) -> usize {
        self.entry_bytes() + if self.sharding.index_crc { 4 } else { 0 }
    }

    /// The most bytes of a chunk.
    fn chunk_bytes(&self) -> usize {
        let bytes = self.chunk.plain.bytes();
        self.chunk.encoder.map_or(bytes, |encoder| encoder.bound(bytes))
    }

    /// The most bytes of all chunks of a tile.
    fn content_bytes(&self, region: &Region) -> usize {
        let count: u64 = self.counts(&region.shape).iter().product();
        (count as usize).saturating_mul(self.chunk_bytes())
    }

    /// An index at the start is followed by zeros up to the first page behind, where chunks begin.
    fn write_bytes(&self, region: &Region) -> usize {
        let (index, content) = (self.index_bytes(), self.content_bytes(region));
        match self.sharding.index_at_start {
            true => page_up(index).saturating_add(page_up(content)),
            false => page_up(content.saturating_add(index)),
        }
    }

    /// Memory in which chunks are collected: those of a small shard all together.
    fn strip_bytes(&self, region: &Region) -> usize {
        let most = page_up(self.chunk_bytes()).saturating_add(STRIP_BYTES);
        most.min(self.write_bytes(region))
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        let bytes = self.chunk.plain.bytes();
        let encoding = self.chunk.encoder.map_or(0, |encoder| {
            page_up(bytes).saturating_add(encoder.workspace_bytes(bytes))
        });
        let strip = self.strip_bytes(region).saturating_add(page_up(self.index_bytes()));
        strip.saturating_add(encoding)
    }

    fn write(&self, file: &File, region: &Region, data: &[u8], io: &Io) -> Result<u64, StoreError> {
        let data = data.get(..region.elements() as usize * self.chunk.plain.item);
        let data = data.ok_or_else(|| {
            let path = file.path().display();
            StoreError::Invalid(format!("{path}: a tile of {} elements is too short", region.elements()))
        })?;
        let map = |cause| StoreError::io(file.path(), 0, "map memory", cause);
        let index_bytes = self.index_bytes();
        let mut index = AlignedBuffer::new(page_up(index_bytes)).map_err(map)?;
        index[..index_bytes].fill(0xff);
        index[index_bytes..].fill(0);
        let begin = if self.sharding.index_at_start { index.len() } else { 0 };
        let mut stream = ShardStream {
            file,
            io,
            strip: AlignedBuffer::new(self.strip_bytes(region)).map_err(map)?,
            length: 0,
            position: begin as u64,
        };
        self.write_chunks(region, data, &mut stream, &mut index)?;
        if self.sharding.index_crc {
            let (entries, checksum) = index[..index_bytes].split_at_mut(index_bytes - 4);
            checksum.copy_from_slice(&crc32c::crc32c(entries).to_le_bytes());
        }
        if self.sharding.index_at_start {
            io.write(file, &index, 0)?;
        } else {
            for part in index[..index_bytes].chunks(STRIP_BYTES) {
                stream.room(part.len())?.copy_from_slice(part);
                stream.length += part.len();
            }
        }
        stream.finish()
    }

    /// Writes the chunks in C order, and their places into the index.
    fn write_chunks(
        &self,
        region: &Region,
        data: &[u8],
        stream: &mut ShardStream<'_>,
        index: &mut [u8],
    ) -> Result<(), StoreError> {
        let (bytes, inner) = (self.chunk.plain.bytes(), &self.sharding.inner);
        let (mut plain, mut space) = (WorkBuffer::default(), [WorkBuffer::default(), WorkBuffer::default()]);
        let (counts, strides) = (self.counts(&region.shape), c_strides(&self.counts(self.shape)));
        for number in 0..counts.iter().product() {
            let mut remaining: u64 = number;
            let mut at = vec![0; counts.len()];
            for axis in (0..counts.len()).rev() {
                at[axis] = remaining % counts[axis];
                remaining /= counts[axis];
            }
            let origin: Vec<u64> = at.iter().zip(inner).map(|(at, inner)| at * inner).collect();
            let length = match self.chunk.encoder {
                None => {
                    self.gather(region, data, &origin, stream.room(bytes)?);
                    bytes
                }
                Some(encoder) => {
                    let path = stream.file.path();
                    let chunk = plain.bytes(bytes);
                    let chunk = chunk.map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
                    self.gather(region, data, &origin, chunk);
                    let (pages, length) = encoder
                        .encode(chunk, &mut space)
                        .map_err(|reason| StoreError::Invalid(format!("{}: {reason}", path.display())))?;
                    stream.room(length)?.copy_from_slice(&pages[..length]);
                    length
                }
            };
            let place: u64 = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            let entry = &mut index[place as usize * ENTRY_BYTES..][..ENTRY_BYTES];
            self.set_entry(entry, stream.end(), length as u64);
            stream.length += length;
        }
        Ok(())
    }

    fn set_entry(&self, entry: &mut [u8], offset: u64, bytes: u64) {
        let (first, second) = entry.split_at_mut(8);
        for (place, number) in [(first, offset), (second, bytes)] {
            place.copy_from_slice(&match self.sharding.index_big_endian {
                true => number.to_be_bytes(),
                false => number.to_le_bytes(),
            });
        }
    }

    /// Brings the elements of a chunk out of the tile, with fill values behind those that the array has.
    fn gather(&self, region: &Region, data: &[u8], origin: &[u64], chunk: &mut [u8]) {
        let inner = &self.sharding.inner;
        let zeros = vec![0; inner.len()];
        let axes = region.shape.iter().zip(origin).zip(inner);
        let shape: Vec<u64> = axes
            .map(|((length, from), inner)| (length - from).min(*inner))
            .collect();
        if shape != *inner {
            self.chunk.plain.clear(chunk);
        }
        let (from, to) = (Lattice::of_box(&region.shape, origin), Lattice::of_box(inner, &zeros));
        copy_lattice(data, &from, chunk, &to, &shape, self.chunk.plain.item);
    }
}

/// Bytes that are appended to a file, written as whole pages.
struct ShardStream<'a> {
    file: &'a File,
    io: &'a Io,
    strip: AlignedBuffer,
    /// Bytes in the strip.
    length: usize,
    /// Where the strip begins in the file.
    position: u64,
}

impl ShardStream<'_> {
    /// The offset at which the next byte goes into the file.
    fn end(&self) -> u64 {
        self.position + self.length as u64
    }

    /// A place for the next bytes, which fit into the strip once its whole pages are written.
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], StoreError> {
        if self.length + bytes > self.strip.len() {
            let whole = self.length / PAGE * PAGE;
            self.io.write(self.file, &self.strip[..whole], self.position)?;
            self.strip.copy_within(whole..self.length, 0);
            self.position += whole as u64;
            self.length -= whole;
        }
        Ok(&mut self.strip[self.length..self.length + bytes])
    }

    /// Writes the remainder; gives the bytes of the file.
    fn finish(mut self) -> Result<u64, StoreError> {
        let (end, pages) = (self.end(), page_up(self.length));
        self.strip[self.length..pages].fill(0);
        if pages > 0 {
            self.io.write(self.file, &self.strip[..pages], self.position)?;
        }
        self.file.set_len(end)?;
        Ok(end)
    }
}

fn page_up(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}
