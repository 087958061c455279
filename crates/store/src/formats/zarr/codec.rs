//! Decoding one chunk. What it may inflate to is bounded before it is inflated.

use std::borrow::Cow;
use std::io::Read;

use serde_json::Value;

use super::json::Extension;
use crate::array::region::{c_strides, Lattice};

/// Memory that decompressors use besides their output.
const CONTEXT_BYTES: usize = 256 << 10;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodecStage {
    Gzip,
    Zstd,
    Blosc,
    Crc32c,
}

/// The codecs of an array, in the order of encoding: transposition, bytes, then stages.
#[derive(Clone, Debug)]
pub(super) struct CodecChain {
    /// Axis `order[i]` of the array is axis `i` of what is stored.
    order: Option<Vec<usize>>,
    pub big_endian: bool,
    stages: Vec<CodecStage>,
}

impl CodecChain {
    pub(super) fn from_metadata(codecs: &[Extension], axes: usize) -> Result<CodecChain, String> {
        let mut chain = CodecChain {
            order: None,
            big_endian: false,
            stages: Vec::new(),
        };
        let mut serialized = false;
        for codec in codecs {
            let stage = match codec.name.as_str() {
                "transpose" if !serialized => {
                    chain.transpose(codec, axes)?;
                    continue;
                }
                "bytes" if !serialized => {
                    chain.big_endian = big_endian(codec)?;
                    serialized = true;
                    continue;
                }
                "gzip" => CodecStage::Gzip,
                "zstd" => CodecStage::Zstd,
                "blosc" => CodecStage::Blosc,
                "crc32c" => CodecStage::Crc32c,
                "transpose" | "bytes" => return Err(format!("codec {:?} is in the wrong place", codec.name)),
                "sharding_indexed" => return Err("shards within shards are not supported".into()),
                other => return Err(format!("codec {other:?} is not supported")),
            };
            if !serialized {
                return Err(format!("codec {:?} stands before \"bytes\"", codec.name));
            }
            chain.stages.push(stage);
        }
        if !serialized {
            return Err("the codecs have no \"bytes\"".into());
        }
        Ok(chain)
    }

    fn transpose(&mut self, codec: &Extension, axes: usize) -> Result<(), String> {
        let order = codec.setting("order").and_then(Value::as_array);
        let order: Option<Vec<usize>> = order.and_then(|order| {
            order
                .iter()
                .map(|axis| axis.as_u64().and_then(|axis| axis.try_into().ok()))
                .collect()
        });
        let order = order.ok_or("transpose has no valid order")?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..axes) {
            return Err(format!("transpose order {order:?} is not a permutation of {axes} axes"));
        }
        self.order = Some(match &self.order {
            Some(before) => order.iter().map(|axis| before[*axis]).collect(),
            None => order,
        });
        Ok(())
    }

    /// Stored as it lies in memory, but for the order of an element's bytes: any part can be read alone.
    pub(super) fn is_plain(&self) -> bool {
        self.stages.is_empty()
            && self
                .order
                .as_ref()
                .is_none_or(|order| order.iter().copied().eq(0..order.len()))
    }

    /// For the codecs of a shard index: whether there is a checksum; `None` when there is anything else.
    pub(super) fn is_crc_only(&self) -> Option<bool> {
        match self.stages.as_slice() {
            [] => Some(false),
            [CodecStage::Crc32c] => Some(true),
            _ => None,
        }
    }

    /// The lattice of a chunk's decoded bytes, seen as the array's axes.
    pub(super) fn lattice(&self, chunk: &[u64]) -> Lattice {
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
    pub(super) fn workspace_bytes(&self, decoded: usize) -> usize {
        let compressors = self.stages.iter().filter(|stage| **stage != CodecStage::Crc32c).count();
        match compressors {
            0 => 0,
            1 => decoded.saturating_add(CONTEXT_BYTES),
            _ => bound(decoded).saturating_mul(2).saturating_add(CONTEXT_BYTES),
        }
    }

    /// Undoes the stages: `decoded` bytes, or an error that names the codec.
    pub(super) fn decode<'a>(&self, encoded: &'a [u8], decoded: usize) -> Result<Cow<'a, [u8]>, String> {
        let mut bytes = Cow::Borrowed(encoded);
        for (at, stage) in self.stages.iter().enumerate().rev() {
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

fn big_endian(codec: &Extension) -> Result<bool, String> {
    match codec.setting("endian").map(Value::as_str) {
        None | Some(Some("little")) => Ok(false),
        Some(Some("big")) => Ok(true),
        Some(_) => Err("the endian of \"bytes\" is neither \"little\" nor \"big\"".into()),
    }
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
pub(super) fn check_crc(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, String> {
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
