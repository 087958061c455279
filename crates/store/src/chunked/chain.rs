//! Decoding one chunk. The bytes that may come of it are bounded before it is inflated.

use std::io::Read;

use super::filters::{check_fletcher, unlzf, unshuffle};

use crate::array::region::{c_strides, Lattice};

/// Memory that decompressors use besides their output.
const CONTEXT_BYTES: usize = 256 << 10;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodecStage {
    Gzip,
    Zlib,
    Zstd,
    Blosc,
    Lzf,
    /// Bytes of elements of so many, all first ones first.
    Shuffle(u32),
    Crc32c,
    Fletcher32,
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
        let writers = self.stages.iter().filter(|stage| !stage.is_checksum()).count();
        match writers {
            0 => 0,
            1 => decoded.saturating_add(CONTEXT_BYTES),
            _ => bound(decoded).saturating_mul(2).saturating_add(CONTEXT_BYTES),
        }
    }

    /// Undoes the stages but for those `skipped`, as bits: `decoded` bytes, or an error that names the codec.
    pub(crate) fn decode<'a>(
        &self,
        encoded: &'a [u8],
        decoded: usize,
        skipped: u32,
        space: &'a mut DecodeSpace,
    ) -> Result<&'a [u8], String> {
        let DecodeSpace {
            buffers: [buffer, other],
            contexts,
        } = space;
        let (mut current, mut next) = (buffer, other);
        // How many bytes there are so far, and whether in the buffer.
        let (mut length, mut is_written) = (encoded.len(), false);
        let is_taken = |at: usize| u32::try_from(at).is_ok_and(|at| skipped.checked_shr(at).unwrap_or(0) & 1 == 0);
        for (at, stage) in self.stages.iter().enumerate().rev().filter(|(at, _)| is_taken(*at)) {
            let bytes = if is_written {
                &current[..length]
            } else {
                &encoded[..length]
            };
            if stage.is_checksum() {
                length = stage.checked(bytes)?;
                continue;
            }
            let before = &self.stages[..at];
            let keeps_length = |stage: &CodecStage| stage.is_checksum() || matches!(stage, CodecStage::Shuffle(_));
            let checksums = before.iter().filter(|stage| stage.is_checksum()).count();
            let limit = if before.iter().all(keeps_length) {
                decoded + 4 * checksums
            } else {
                bound(decoded)
            };
            if next.len() < limit {
                next.resize(limit, 0);
            }
            length = stage.decode(bytes, &mut next[..limit], contexts)?;
            std::mem::swap(&mut current, &mut next);
            is_written = true;
        }
        if length != decoded {
            return Err(format!("a chunk decodes to {length} bytes, not {decoded}"));
        }
        Ok(if is_written {
            &current[..length]
        } else {
            &encoded[..length]
        })
    }
}

/// Memory and states of decompressors, from one chunk to the next.
#[derive(Default)]
pub(crate) struct DecodeSpace {
    buffers: [Vec<u8>; 2],
    contexts: Contexts,
}

#[derive(Default)]
struct Contexts {
    deflate: Option<libdeflater::Decompressor>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

/// The most that a compressor makes of `bytes` that do not compress.
fn bound(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 8).saturating_add(64 << 10)
}

impl CodecStage {
    fn is_checksum(self) -> bool {
        matches!(self, CodecStage::Crc32c | CodecStage::Fletcher32)
    }

    /// How many bytes come before a checksum that is right.
    fn checked(self, bytes: &[u8]) -> Result<usize, String> {
        match self {
            CodecStage::Fletcher32 => check_fletcher(bytes),
            _ => check_crc(bytes),
        }
    }

    /// Undoes one stage into the front of `out`, which is as long as may come; gives how many bytes came.
    fn decode(self, bytes: &[u8], out: &mut [u8], contexts: &mut Contexts) -> Result<usize, String> {
        let limit = out.len();
        let too_large = |name: &str| format!("{name}: a chunk is larger than the {limit} bytes expected");
        match self {
            CodecStage::Gzip => gunzip(bytes, out, contexts),
            CodecStage::Zlib => {
                let inflated = contexts.inflater().zlib_decompress(bytes, out);
                inflated.map_err(|error| match error {
                    libdeflater::DecompressionError::InsufficientSpace => too_large("deflate"),
                    error => format!("deflate: {error}"),
                })
            }
            CodecStage::Zstd => {
                let context = match &mut contexts.zstd {
                    Some(context) => context,
                    none => none.insert(zstd::bulk::Decompressor::new().map_err(|error| format!("zstd: {error}"))?),
                };
                context
                    .decompress_to_buffer(bytes, out)
                    .map_err(|error| format!("zstd: {error}"))
            }
            CodecStage::Blosc => {
                let size = outcore_blosc::decompressed_bytes(bytes).ok_or("blosc: a chunk is damaged")?;
                if size > limit {
                    return Err(format!("blosc: a chunk of {size} bytes, {limit} expected"));
                }
                outcore_blosc::decompress_into(bytes, out).ok_or_else(|| "blosc: a chunk does not decompress".into())
            }
            CodecStage::Lzf => unlzf(bytes, out),
            CodecStage::Shuffle(item) => {
                let out = out.get_mut(..bytes.len()).ok_or_else(|| too_large("shuffle"))?;
                unshuffle(bytes, item as usize, out);
                Ok(bytes.len())
            }
            CodecStage::Crc32c | CodecStage::Fletcher32 => self.checked(bytes),
        }
    }
}

impl Contexts {
    fn inflater(&mut self) -> &mut libdeflater::Decompressor {
        self.deflate.get_or_insert_with(libdeflater::Decompressor::new)
    }
}

/// Inflates the members of a gzip file: most are one, which the fast decompressor does alone.
fn gunzip(bytes: &[u8], out: &mut [u8], contexts: &mut Contexts) -> Result<usize, String> {
    // It passes over members after the first: where all that may come has come, there are none, or empty ones.
    if contexts.inflater().gzip_decompress(bytes, out) == Ok(out.len()) {
        return Ok(out.len());
    }
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
    let mut length = 0;
    while length < out.len() {
        match decoder
            .read(&mut out[length..])
            .map_err(|error| format!("gzip: {error}"))?
        {
            0 => return Ok(length),
            more => length += more,
        }
    }
    match decoder.read(&mut [0]).map_err(|error| format!("gzip: {error}"))? {
        0 => Ok(length),
        _ => Err(format!("gzip: a chunk is larger than the {} bytes expected", out.len())),
    }
}

/// How many bytes come before the checksum in the last four, which is right.
pub(crate) fn check_crc(bytes: &[u8]) -> Result<usize, String> {
    let (content, stored) = bytes
        .split_last_chunk::<4>()
        .ok_or("crc32c: a chunk is too short for its checksum")?;
    match crc32c::crc32c(content) == u32::from_le_bytes(*stored) {
        true => Ok(content.len()),
        false => Err("crc32c: a checksum does not match".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn chain(stages: &[CodecStage]) -> CodecChain {
        CodecChain::new(None, false, stages.to_vec())
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn content() -> Vec<u8> {
        (0..1000u32).flat_map(|at| (at * at / 7).to_le_bytes()).collect()
    }

    fn shuffled(bytes: &[u8], item: usize) -> Vec<u8> {
        (0..item)
            .flat_map(|byte| bytes.iter().skip(byte).step_by(item).copied())
            .collect()
    }

    #[test]
    fn members_of_a_gzip_file_are_joined() {
        let (all, mut space) = (content(), DecodeSpace::default());
        for cut in [0, 1, 1000, all.len()] {
            let both = [gzipped(&all[..cut]), gzipped(&all[cut..])].concat();
            assert_eq!(
                chain(&[CodecStage::Gzip])
                    .decode(&both, all.len(), 0, &mut space)
                    .unwrap(),
                all
            );
        }
        let one = gzipped(&all);
        for expected in [all.len() - 1, all.len() + 1] {
            assert!(chain(&[CodecStage::Gzip])
                .decode(&one, expected, 0, &mut space)
                .is_err());
        }
        assert!(chain(&[CodecStage::Gzip])
            .decode(&one[..one.len() - 1], all.len(), 0, &mut space)
            .is_err());
    }

    #[test]
    fn stages_are_undone_from_the_last_but_for_those_skipped() {
        let (all, mut space) = (content(), DecodeSpace::default());
        let stages = chain(&[CodecStage::Shuffle(4), CodecStage::Zlib]);
        let both = deflated(&shuffled(&all, 4));
        assert_eq!(stages.decode(&both, all.len(), 0, &mut space).unwrap(), all);
        assert_eq!(
            stages.decode(&deflated(&all), all.len(), 0b01, &mut space).unwrap(),
            all
        );
        assert_eq!(
            stages.decode(&shuffled(&all, 4), all.len(), 0b10, &mut space).unwrap(),
            all
        );
        assert_eq!(stages.decode(&all, all.len(), 0b11, &mut space).unwrap(), all);
        assert!(stages
            .decode(&both[..both.len() / 2], all.len(), 0, &mut space)
            .is_err());
    }

    #[test]
    fn what_inflates_to_more_is_refused() {
        let mut space = DecodeSpace::default();
        let bomb = deflated(&vec![0; 1 << 20]);
        let refusal = chain(&[CodecStage::Zlib])
            .decode(&bomb, 1000, 0, &mut space)
            .unwrap_err();
        assert_eq!(refusal, "deflate: a chunk is larger than the 1000 bytes expected");
    }
}
