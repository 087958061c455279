//! The codecs that chunks are written with, and chunks as they are written.

use outcore_blosc::BloscSettings;
use outcore_dtype::DType;
use serde_json::Value;

use super::chunk::PlainChunk;
use super::codec::{big_endian, codec_chain};
use super::json::Extension;
use super::values::{value_cast, value_scale, CastDirection};
use crate::array::region::{copy_lattice, Lattice};
use crate::base::page::PAGE;
use crate::chunked::encoder::{ChunkEncoder, EncoderStage};
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

/// The encoder of chunks of so many bytes by the codecs of an array, which has so many axes; nothing where they are stored as they lie.
///
/// # Errors
/// One line: the codec that is not written.
pub(super) fn chunk_encoder(
    codecs: &[Extension],
    axes: usize,
    dtype: DType,
    bytes: usize,
) -> Result<Option<ChunkEncoder>, String> {
    let chain = codec_chain(codecs, axes, dtype)?;
    let mut stored = dtype;
    let stages: Result<Vec<Option<EncoderStage>>, String> = codecs
        .iter()
        .map(|codec| match codec.name.as_str() {
            "bytes" if stored.size() > 1 && big_endian(codec)? => {
                Err("big-endian numbers are read, and not written".into())
            }
            "bytes" | "transpose" => Ok(None),
            "scale_offset" => Ok(Some(EncoderStage::Scale(value_scale(codec, stored)?))),
            "cast_value" => {
                let cast = value_cast(codec, stored, CastDirection::Encode)?;
                stored = cast.to;
                Ok(Some(EncoderStage::Cast(cast)))
            }
            _ => encoder_stage(codec, stored).map(Some),
        })
        .collect();
    if !chain.is_c_order() {
        return Err("codec \"transpose\" is read, and not written".into());
    }
    ChunkEncoder::new(stages?.into_iter().flatten().collect(), bytes)
}

fn encoder_stage(codec: &Extension, dtype: DType) -> Result<EncoderStage, String> {
    let number = |name: &str, otherwise: i64, least: i64, most: i64| {
        let value = codec.setting(name).map_or(Some(otherwise), Value::as_i64);
        let within = value.filter(|value| (least..=most).contains(value));
        within.ok_or_else(|| format!("{}: {name} is a whole number from {least} to {most}", codec.name))
    };
    let levels = zstd::compression_level_range();
    Ok(match codec.name.as_str() {
        "gzip" | "numcodecs.gzip" => EncoderStage::Gzip(number("level", 5, 0, 9)? as i32),
        "numcodecs.zlib" => EncoderStage::Zlib(number("level", 1, 0, 9)? as i32),
        "zstd" | "numcodecs.zstd" => EncoderStage::Zstd {
            level: number("level", 0, i64::from(*levels.start()), i64::from(*levels.end()))? as i32,
            has_checksum: codec.setting("checksum").and_then(Value::as_bool).unwrap_or(false),
        },
        "blosc" | "numcodecs.blosc" => EncoderStage::Blosc(BloscSettings {
            level: number("clevel", 5, 0, 9)? as u8,
            shuffle: blosc_shuffle(codec, dtype)?,
            item: number("typesize", dtype.size() as i64, 1, 255)? as usize,
            compressor: blosc_compressor(codec)?,
            block: number("blocksize", 0, 0, 1 << 30)? as usize,
        }),
        "numcodecs.shuffle" => EncoderStage::Shuffle(number("elementsize", 4, 1, 1 << 20)? as usize),
        "crc32c" => EncoderStage::Crc32c,
        other => return Err(format!("codec {other:?} is read, and not written")),
    })
}

/// Zarr v3 names the ways of shuffling, numcodecs numbers them, and takes -1 for bits of single bytes and bytes of others.
fn blosc_shuffle(codec: &Extension, dtype: DType) -> Result<u8, String> {
    let by_size = if dtype.size() == 1 { 2 } else { 1 };
    match codec.setting("shuffle") {
        None => Ok(by_size),
        Some(value) => match (value.as_str(), value.as_i64()) {
            (Some("noshuffle"), _) | (_, Some(0)) => Ok(0),
            (Some("shuffle"), _) | (_, Some(1)) => Ok(1),
            (Some("bitshuffle"), _) | (_, Some(2)) => Ok(2),
            (_, Some(-1)) => Ok(by_size),
            _ => Err("blosc: shuffle is \"noshuffle\", \"shuffle\" or \"bitshuffle\"".into()),
        },
    }
}

fn blosc_compressor(codec: &Extension) -> Result<String, String> {
    const NAMES: [&str; 6] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    let name = codec.setting("cname").map_or(Some("zstd"), Value::as_str);
    let known = name.filter(|name| NAMES.contains(name));
    known
        .map(str::to_string)
        .ok_or_else(|| format!("blosc: cname is one of {}", NAMES.join(", ")))
}

/// Chunks as they are written from tiles: as they lie, or encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenChunk<'a> {
    pub plain: PlainChunk<'a>,
    pub encoder: Option<&'a ChunkEncoder>,
}

impl WrittenChunk<'_> {
    /// The bytes that writing a tile transfers, at most.
    pub(super) fn write_bytes(&self, region: &Region) -> u64 {
        match self.encoder {
            Some(_) if region.is_empty() => 0,
            Some(encoder) => encoder.bound(self.plain.bytes()).next_multiple_of(PAGE) as u64,
            None => self.plain.write_bytes(region),
        }
    }

    /// Memory that writing a tile uses.
    pub(super) fn workspace_bytes(&self, region: &Region) -> usize {
        let Some(encoder) = self.encoder else {
            return self.plain.workspace_bytes(region);
        };
        let whole = if self.is_whole(region) { 0 } else { self.plain.bytes() };
        whole.next_multiple_of(PAGE) + encoder.workspace_bytes(self.plain.bytes())
    }

    fn is_whole(&self, region: &Region) -> bool {
        region.shape == self.plain.shape
    }

    /// Writes the chunk of a tile to its new file, and gives the bytes that it has there.
    pub(super) fn write(&self, file: &File, region: &Region, data: &[u8], io: &Io) -> Result<u64, StoreError> {
        let Some(encoder) = self.encoder else {
            self.plain.write(file, region, data, io)?;
            return Ok(self.plain.bytes() as u64);
        };
        let chunk = self.content(file, region, data)?;
        let mut space = Default::default();
        let encoded = encoder.encode(chunk.as_bytes(), &mut space);
        let (pages, length) =
            encoded.map_err(|reason| StoreError::Invalid(format!("{}: {reason}", file.path().display())))?;
        io.write(file, pages, 0)?;
        file.set_len(length as u64)?;
        Ok(length as u64)
    }

    /// The elements of the whole chunk, of which a tile at the array's edge has a part.
    fn content<'a>(&self, file: &File, region: &Region, data: &'a [u8]) -> Result<ChunkContent<'a>, StoreError> {
        let PlainChunk { shape, item, .. } = self.plain;
        let bytes = region.elements() as usize * item;
        let data = data.get(..bytes).ok_or_else(|| {
            let path = file.path().display();
            StoreError::Invalid(format!("{path}: a tile of {} bytes is too short", data.len()))
        })?;
        if self.is_whole(region) {
            return Ok(ChunkContent::Tile(data));
        }
        let map = |cause| StoreError::io(file.path(), 0, "map memory", cause);
        let mut whole = AlignedBuffer::new(self.plain.bytes()).map_err(map)?;
        let origin = vec![0; shape.len()];
        let (from, to) = (Lattice::of_box(&region.shape, &origin), Lattice::of_box(shape, &origin));
        self.plain.clear(&mut whole);
        copy_lattice(data, &from, &mut whole, &to, &region.shape, item);
        Ok(ChunkContent::Padded(whole, self.plain.bytes()))
    }
}

enum ChunkContent<'a> {
    Tile(&'a [u8]),
    Padded(AlignedBuffer, usize),
}

impl ChunkContent<'_> {
    fn as_bytes(&self) -> &[u8] {
        match self {
            ChunkContent::Tile(data) => data,
            ChunkContent::Padded(whole, bytes) => &whole[..*bytes],
        }
    }
}
