//! Encoding one chunk: the codecs that arrays are written with, which `chain.rs` undoes.

use std::mem::swap;

use outcore_blosc::BloscSettings;
use zstd::zstd_safe::{compress_bound, CParameter};

use super::casting::{ValueCast, ValueScale};
use super::shuffle::shuffle;
use crate::base::page::PAGE;
use crate::memory::workspace::WorkBuffer;

/// Memory that compressors other than zstd use besides their output: blocks of Blosc, tables of deflate.
const CONTEXT_BYTES: usize = 8 << 20;
/// The largest block that Blosc chooses.
const BLOSC_BLOCK_BYTES: usize = 1 << 20;

/// A codec from bytes to bytes, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EncoderStage {
    /// Levels from 0 to 9; of this and of `Zlib`, 0 is taken for 1.
    Gzip(i32),
    Zlib(i32),
    Zstd {
        level: i32,
        has_checksum: bool,
    },
    Blosc(BloscSettings),
    /// Bytes of elements of so many, all first ones first.
    Shuffle(usize),
    Cast(ValueCast),
    Scale(ValueScale),
    Crc32c,
}

/// The codecs of an array from its bytes on, in the order of encoding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChunkEncoder(Vec<EncoderStage>);

impl ChunkEncoder {
    /// An encoder of chunks of so many bytes; nothing where there is nothing to encode.
    ///
    /// # Errors
    /// One line: a chunk that is too large for a codec.
    pub(crate) fn new(stages: Vec<EncoderStage>, bytes: usize) -> Result<Option<ChunkEncoder>, String> {
        let encoder = ChunkEncoder(stages);
        let has_blosc = encoder.0.iter().any(|stage| matches!(stage, EncoderStage::Blosc(_)));
        let most = outcore_blosc::SOURCE_BYTES_MAX;
        if has_blosc && encoder.lengths(bytes).iter().any(|&length| length > most) {
            return Err(format!("blosc takes chunks of {most} bytes at most, not of {bytes}"));
        }
        Ok((!encoder.0.is_empty()).then_some(encoder))
    }

    /// The most bytes after each stage.
    fn lengths(&self, bytes: usize) -> Vec<usize> {
        let after = |length: &mut usize, stage: &EncoderStage| {
            *length = stage.bound(*length);
            Some(*length)
        };
        self.0.iter().scan(bytes, after).collect()
    }

    /// The most bytes that so many are encoded to.
    pub(crate) fn bound(&self, bytes: usize) -> usize {
        self.lengths(bytes).last().copied().unwrap_or(bytes)
    }

    /// Memory that `encode` uses besides its input.
    pub(crate) fn workspace_bytes(&self, bytes: usize) -> usize {
        let lengths = self.lengths(bytes);
        let largest = lengths.iter().copied().max().unwrap_or(0);
        let before = std::iter::once(bytes).chain(lengths.iter().copied());
        let contexts = self.0.iter().zip(before);
        let context = contexts.map(|(stage, length)| stage.context_bytes(length)).max();
        // Results of a stage are given back when the next but one has begun.
        largest.next_multiple_of(PAGE) * lengths.len().min(2) + context.unwrap_or(0)
    }

    /// Encodes a chunk: gives whole pages, the last of which ends in zeros, and how many bytes of them count.
    ///
    /// # Errors
    /// One line: the codec that failed, or memory that the system does not give.
    pub(crate) fn encode<'a>(&self, bytes: &[u8], space: &'a mut [WorkBuffer; 2]) -> Result<(&'a [u8], usize), String> {
        let [current, next] = space;
        let (mut current, mut next) = (current, next);
        let mut length = None;
        for stage in &self.0 {
            let from = length.map_or(bytes, |length| current.held(length));
            let room = stage.bound(from.len()).next_multiple_of(PAGE);
            let out = next
                .bytes(room)
                .map_err(|cause| format!("no memory for a chunk: {cause}"))?;
            length = Some(stage.encode(from, out)?);
            swap(&mut current, &mut next);
        }
        let length = length.ok_or("a chunk has no codecs")?;
        let pages = length.next_multiple_of(PAGE);
        let whole = current
            .bytes(pages)
            .map_err(|cause| format!("no memory for a chunk: {cause}"))?;
        whole[length..].fill(0);
        Ok((current.held(pages), length))
    }
}

impl EncoderStage {
    /// The most bytes that so many are encoded to.
    fn bound(&self, bytes: usize) -> usize {
        match self {
            // Blocks of 5000 bytes and more that are stored with five bytes each, and what is around them.
            EncoderStage::Gzip(_) | EncoderStage::Zlib(_) => bytes + bytes / 1000 + 64,
            EncoderStage::Zstd { .. } => compress_bound(bytes) + 4,
            EncoderStage::Blosc(_) => bytes + outcore_blosc::OVERHEAD_BYTES,
            EncoderStage::Shuffle(_) | EncoderStage::Scale(_) => bytes,
            EncoderStage::Cast(cast) => bytes / cast.from.size() * cast.to.size(),
            EncoderStage::Crc32c => bytes + 4,
        }
    }

    /// Memory of its tables.
    fn context_bytes(&self, bytes: usize) -> usize {
        match self {
            EncoderStage::Zstd { level, .. } => zstd_bytes(*level, bytes),
            EncoderStage::Blosc(settings) => {
                let block = settings.block.max(BLOSC_BLOCK_BYTES).min(bytes.max(1));
                let highest = *zstd::compression_level_range().end();
                let zstd = match settings.compressor.as_str() {
                    "zstd" if settings.level >= 8 => zstd_bytes(highest, block),
                    "zstd" => zstd_bytes(i32::from(settings.level) * 2, block),
                    _ => 0,
                };
                CONTEXT_BYTES + 4 * block + zstd
            }
            EncoderStage::Gzip(_) | EncoderStage::Zlib(_) => CONTEXT_BYTES,
            EncoderStage::Shuffle(_) | EncoderStage::Cast(_) | EncoderStage::Scale(_) | EncoderStage::Crc32c => 0,
        }
    }

    /// Encodes into the front of `out`, which is as long as may come; gives how many bytes came.
    fn encode(&self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let deflater = |level: i32| {
            let level = libdeflater::CompressionLvl::new(level.clamp(1, 9)).unwrap_or_default();
            libdeflater::Compressor::new(level)
        };
        match self {
            EncoderStage::Gzip(level) => deflater(*level)
                .gzip_compress(bytes, out)
                .map_err(|error| format!("gzip: {error}")),
            EncoderStage::Zlib(level) => deflater(*level)
                .zlib_compress(bytes, out)
                .map_err(|error| format!("deflate: {error}")),
            EncoderStage::Zstd { level, has_checksum } => {
                let failed = |error| format!("zstd: {error}");
                let mut compressor = zstd::bulk::Compressor::new(*level).map_err(failed)?;
                let checksum = CParameter::ChecksumFlag(*has_checksum);
                compressor.set_parameter(checksum).map_err(failed)?;
                compressor.compress_to_buffer(bytes, out).map_err(failed)
            }
            EncoderStage::Blosc(settings) => outcore_blosc::compress_into(bytes, out, settings)
                .ok_or_else(|| format!("blosc: {} does not compress a chunk", settings.compressor)),
            EncoderStage::Shuffle(item) => {
                shuffle(bytes, *item, &mut out[..bytes.len()]);
                Ok(bytes.len())
            }
            EncoderStage::Cast(cast) => cast.apply(bytes, out),
            EncoderStage::Scale(scale) => scale.encode(bytes, out),
            EncoderStage::Crc32c => {
                out[..bytes.len()].copy_from_slice(bytes);
                out[bytes.len()..][..4].copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
                Ok(bytes.len() + 4)
            }
        }
    }
}

/// The most memory of a compressor of zstd at a level, for so many bytes: two tables of its window at most, or of the level's size
/// ("clevels.h"), with marks of rows, and a block with its sequences.
fn zstd_bytes(level: i32, bytes: usize) -> usize {
    const BLOCK: usize = 3 << 20;
    let tables = match level {
        ..=4 => 2 << 20,
        5..=8 => 8 << 20,
        9..=12 => 64 << 20,
        13..=19 => 112 << 20,
        20 => 192 << 20,
        21 => 384 << 20,
        _ => 768 << 20,
    };
    let window = bytes.next_power_of_two().max(1 << 10);
    BLOCK + tables.min(window.saturating_mul(24))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunked::chain::{CodecChain, CodecStage, DecodeSpace};

    fn content(count: u64) -> Vec<u8> {
        let mixed = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 | at << 30;
        (0..count).flat_map(|at| mixed(at).to_le_bytes()).collect()
    }

    fn blosc(compressor: &str, level: u8) -> EncoderStage {
        EncoderStage::Blosc(BloscSettings {
            level,
            shuffle: 1,
            item: 8,
            compressor: compressor.into(),
            block: 0,
        })
    }

    #[test]
    fn chunks_decode_to_what_was_encoded() {
        let zstd = |level| EncoderStage::Zstd {
            level,
            has_checksum: level > 3,
        };
        let cases = [
            (vec![EncoderStage::Gzip(5)], vec![CodecStage::Gzip]),
            (
                vec![EncoderStage::Gzip(0), EncoderStage::Crc32c],
                vec![CodecStage::Gzip, CodecStage::Crc32c],
            ),
            (
                vec![EncoderStage::Shuffle(8), EncoderStage::Zlib(9)],
                vec![CodecStage::Shuffle(8), CodecStage::Zlib],
            ),
            (vec![zstd(-5)], vec![CodecStage::Zstd]),
            (
                vec![zstd(5), EncoderStage::Crc32c],
                vec![CodecStage::Zstd, CodecStage::Crc32c],
            ),
            (vec![blosc("lz4", 5)], vec![CodecStage::Blosc]),
            (vec![blosc("zstd", 9)], vec![CodecStage::Blosc]),
        ];
        for count in [1, 1000, 100_000] {
            let all = content(count);
            for (encoder, decoder) in &cases {
                let encoder = ChunkEncoder::new(encoder.clone(), all.len()).unwrap().unwrap();
                let mut space = Default::default();
                let (pages, length) = encoder.encode(&all, &mut space).unwrap();
                assert!(length <= encoder.bound(all.len()) && pages.len().is_multiple_of(PAGE));
                assert!(pages[length..].iter().all(|&byte| byte == 0));
                let (chain, mut space) = (CodecChain::new(None, false, decoder.clone()), DecodeSpace::default());
                let decoded = chain.decode(&pages[..length], all.len(), 0, &mut space, None);
                assert_eq!(decoded.unwrap(), Some(&all[..]), "{encoder:?}");
            }
        }
    }

    #[test]
    fn noise_stays_within_its_bound() {
        let noise: Vec<u8> = content(40_000).into_iter().step_by(3).collect();
        for stage in [
            EncoderStage::Gzip(1),
            EncoderStage::Zlib(9),
            blosc("blosclz", 9),
            blosc("snappy", 1),
        ] {
            let encoder = ChunkEncoder::new(vec![stage], noise.len()).unwrap().unwrap();
            assert!(encoder.encode(&noise, &mut Default::default()).is_ok());
        }
    }

    #[test]
    fn memory_of_zstd_is_at_most_what_is_said() {
        for level in [-50, 1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22] {
            for bytes in [1000, 20_000, 130_000, 600_000, 5_000_000] {
                let mut compressor = zstd::bulk::Compressor::new(level).unwrap();
                let mut out = vec![0; compress_bound(bytes)];
                // Zeros: tables are made all the same.
                compressor.compress_to_buffer(&vec![0; bytes], &mut out[..]).unwrap();
                let used = compressor.context_mut().sizeof();
                assert!(used <= zstd_bytes(level, bytes), "{used} at level {level} for {bytes}");
            }
        }
    }

    #[test]
    fn chunks_that_are_too_large_for_blosc_are_refused() {
        let stages = || vec![EncoderStage::Shuffle(8), blosc("lz4", 1)];
        assert!(ChunkEncoder::new(stages(), 1 << 30).is_ok());
        assert!(ChunkEncoder::new(stages(), 1 << 31).unwrap_err().contains("at most"));
        assert_eq!(ChunkEncoder::new(vec![], 1 << 40), Ok(None));
    }
}
