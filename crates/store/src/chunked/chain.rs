//! Decoding one chunk. What it may inflate to is bounded before it is inflated.

use std::borrow::Cow;
use std::io::Read;

use crate::array::region::{c_strides, Lattice};

/// Memory that decompressors use besides their output.
const CONTEXT_BYTES: usize = 256 << 10;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodecStage {
    Gzip,
    Zstd,
    Blosc,
    Crc32c,
}

/// The codecs of an array, in the order of encoding: transposition, bytes, then stages.
#[derive(Clone, Debug)]
pub(crate) struct CodecChain {
    /// Axis `order[i]` of the array is axis `i` of what is stored.
    order: Option<Vec<usize>>,
    pub(crate) big_endian: bool,
    stages: Vec<CodecStage>,
}

impl CodecChain {
    /// A chain of stages over elements that lie in the order of `order`, where that is not the array's own.
    pub(crate) fn new(order: Option<Vec<usize>>, big_endian: bool, stages: Vec<CodecStage>) -> CodecChain {
        CodecChain {
            order,
            big_endian,
            stages,
        }
    }

    /// Stored as it lies in memory, but for the order of an element's bytes: any part can be read alone.
    pub(crate) fn is_plain(&self) -> bool {
        self.stages.is_empty()
            && self
                .order
                .as_ref()
                .is_none_or(|order| order.iter().copied().eq(0..order.len()))
    }

    /// For the codecs of a shard index: whether there is a checksum; `None` when there is anything else.
    pub(crate) fn is_crc_only(&self) -> Option<bool> {
        match self.stages.as_slice() {
            [] => Some(false),
            [CodecStage::Crc32c] => Some(true),
            _ => None,
        }
    }

    /// The lattice of a chunk's decoded bytes, seen as the array's axes.
    pub(crate) fn lattice(&self, chunk: &[u64]) -> Lattice {
        let Some(order) = &self.order else {
            return Lattice::of_box(chunk, &vec![0; chunk.len()]);
        };
        let stored: Vec<u64> = order.iter().map(|axis| chunk[*axis]).collect();
        let mut strides = vec![0; chunk.len()];
        for (axis, stride) in order.iter().zip(c_strides(&stored)) {
            strides[*axis] = stride as i64;
        }
        Lattice { offset: 0, strides }
    }

    /// Memory that `decode` uses besides its input, for a chunk of `decoded` bytes.
    pub(crate) fn workspace_bytes(&self, decoded: usize) -> usize {
        let compressors = self.stages.iter().filter(|stage| **stage != CodecStage::Crc32c).count();
        match compressors {
            0 => 0,
            1 => decoded.saturating_add(CONTEXT_BYTES),
            _ => bound(decoded).saturating_mul(2).saturating_add(CONTEXT_BYTES),
        }
    }

    /// Undoes the stages but for those `skipped`, as bits: `decoded` bytes, or an error that names the codec.
    pub(crate) fn decode<'a>(&self, encoded: &'a [u8], decoded: usize, skipped: u32) -> Result<Cow<'a, [u8]>, String> {
        let mut bytes = Cow::Borrowed(encoded);
        let is_taken = |at: usize| u32::try_from(at).is_ok_and(|at| skipped.checked_shr(at).unwrap_or(0) & 1 == 0);
        for (at, stage) in self.stages.iter().enumerate().rev().filter(|(at, _)| is_taken(*at)) {
            let before = &self.stages[..at];
            let limit = if before.iter().all(|stage| *stage == CodecStage::Crc32c) {
                decoded + 4 * before.len()
            } else {
                bound(decoded)
            };
            bytes = stage.decode(bytes, limit)?;
        }
        if bytes.len() != decoded {
            return Err(format!("a chunk decodes to {} bytes, not {decoded}", bytes.len()));
        }
        Ok(bytes)
    }
}

/// What a compressor may make of `bytes` that do not compress.
fn bound(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 8).saturating_add(64 << 10)
}

impl CodecStage {
    /// Undoes one stage, of which at most `limit` bytes may come.
    fn decode<'a>(self, bytes: Cow<'a, [u8]>, limit: usize) -> Result<Cow<'a, [u8]>, String> {
        match self {
            CodecStage::Crc32c => check_crc(bytes),
            CodecStage::Gzip => {
                let mut out = Vec::with_capacity(limit + 1);
                let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]).take(limit as u64 + 1);
                decoder
                    .read_to_end(&mut out)
                    .map_err(|error| format!("gzip: {error}"))?;
                if out.len() > limit {
                    return Err(format!("gzip: a chunk is larger than the {limit} bytes expected"));
                }
                Ok(Cow::Owned(out))
            }
            CodecStage::Zstd => {
                let out = zstd::bulk::decompress(&bytes, limit).map_err(|error| format!("zstd: {error}"))?;
                Ok(Cow::Owned(out))
            }
            CodecStage::Blosc => {
                let size = outcore_blosc::decompressed_bytes(&bytes).ok_or("blosc: a chunk is damaged")?;
                if size > limit {
                    return Err(format!("blosc: a chunk of {size} bytes, {limit} expected"));
                }
                let out = outcore_blosc::decompress(&bytes, size).ok_or("blosc: a chunk does not decompress")?;
                Ok(Cow::Owned(out))
            }
        }
    }
}

/// Removes and checks the checksum in the last four bytes.
pub(crate) fn check_crc(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, String> {
    let split = bytes
        .len()
        .checked_sub(4)
        .ok_or("crc32c: a chunk is too short for its checksum")?;
    let stored = u32::from_le_bytes([bytes[split], bytes[split + 1], bytes[split + 2], bytes[split + 3]]);
    if crc32c::crc32c(&bytes[..split]) != stored {
        return Err("crc32c: a checksum does not match".into());
    }
    Ok(match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..split]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(split);
            Cow::Owned(bytes)
        }
    })
}
