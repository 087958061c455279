//! Decoding one chunk. The bytes that may come of it are bounded before it is inflated.

use super::blocks::{unlz4, unlz4_blocks, Bitshuffle, BlockCodec};
use super::casting::{ValueCast, ValueScale};
use super::contexts::Decompressors;
use super::differences::Differences;
use super::filters::{check_fletcher, unlzf};
use super::lzw::unlzw;
use super::pages::{ColumnPages, PageSpace};
use super::scaling::{unpack_bits, FixedScaleOffset, ScaleOffset};
use super::shuffle::unshuffle;
use crate::array::region::{c_strides, Lattice};
use crate::base::page::PAGE;
use crate::memory::workspace::WorkBuffer;

/// Memory that decompressors use besides their output.
const CONTEXT_BYTES: usize = 256 << 10;

/// A codec from bytes to bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CodecStage {
    Gzip,
    Zlib,
    Zstd,
    Blosc,
    Lzf,
    /// As TIFF has it.
    Lzw,
    /// One block behind its length.
    Lz4,
    /// Blocks, as HDF5's plugin writes them.
    Lz4Blocks,
    Bitshuffle(Bitshuffle),
    ScaleOffset(ScaleOffset),
    FixedScaleOffset(FixedScaleOffset),
    Cast(ValueCast),
    Scale(ValueScale),
    /// Bytes of elements of so many, the last first.
    Swap(usize),
    PackBits,
    /// A column of Parquet.
    Pages(ColumnPages),
    Differences(Differences),
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
        self.stages.is_empty() && self.is_c_order()
    }

    /// Whether elements are stored in the order of the array.
    pub(crate) fn is_c_order(&self) -> bool {
        let order = self.order.as_ref();
        order.is_none_or(|order| order.iter().copied().eq(0..order.len()))
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
        let is_writer = |(at, stage): (usize, &CodecStage)| (!stage.is_checksum()).then_some(at);
        let writers = self.stages.iter().enumerate().filter_map(is_writer);
        let largest = writers.clone().map(|at| self.limit(at, decoded)).max().unwrap_or(0);
        // Blocks are decompressed before their bits are sorted.
        let has_blocks = |stage: &CodecStage| match stage {
            CodecStage::Bitshuffle(bitshuffle) => bitshuffle.codec != BlockCodec::Plain,
            _ => false,
        };
        let buffers = writers.count().min(2) + usize::from(self.stages.iter().any(has_blocks));
        let pages = self.stages.iter().map(|stage| match stage {
            CodecStage::Pages(column) => column.workspace_bytes(decoded),
            _ => 0,
        });
        let pages = pages.max().unwrap_or(0);
        match buffers {
            0 => 0,
            buffers => page_up(largest)
                .saturating_mul(buffers)
                .saturating_add(pages)
                .saturating_add(CONTEXT_BYTES),
        }
    }

    /// Undoes the stages but for those `skipped`, as bits: `decoded` bytes, or an error that names the codec. Nothing where
    /// they are in `place`, which is as long, and into which the last stage to be undone writes where it can.
    pub(crate) fn decode<'a>(
        &self,
        encoded: &'a [u8],
        decoded: usize,
        skipped: u32,
        space: &'a mut DecodeSpace,
        mut place: Option<&mut [u8]>,
    ) -> Result<Option<&'a [u8]>, String> {
        let DecodeSpace {
            buffers: [buffer, other],
            states,
        } = space;
        let (mut current, mut next) = (buffer, other);
        // How many bytes there are so far, and whether in the buffer.
        let (mut length, mut is_written) = (encoded.len(), false);
        let is_taken = |at: usize| u32::try_from(at).is_ok_and(|at| skipped.checked_shr(at).unwrap_or(0) & 1 == 0);
        let last = (0..self.stages.len()).find(|&at| is_taken(at));
        for (at, stage) in self.stages.iter().enumerate().rev().filter(|(at, _)| is_taken(*at)) {
            let bytes = if is_written {
                current.held(length)
            } else {
                &encoded[..length]
            };
            if stage.is_checksum() {
                length = stage.checked(bytes)?;
                continue;
            }
            if let Some(place) = place.take_if(|place| last == Some(at) && place.len() == decoded) {
                length = stage.decode(bytes, place, states)?;
                return match length == decoded {
                    true => Ok(None),
                    false => Err(format!("a chunk decodes to {length} bytes, not {decoded}")),
                };
            }
            let limit = self.limit(at, decoded);
            let out = next
                .bytes(limit)
                .map_err(|cause| format!("no memory for a chunk: {cause}"))?;
            length = stage.decode(bytes, out, states)?;
            std::mem::swap(&mut current, &mut next);
            is_written = true;
        }
        if length != decoded {
            return Err(format!("a chunk decodes to {length} bytes, not {decoded}"));
        }
        Ok(Some(if is_written {
            current.held(length)
        } else {
            &encoded[..length]
        }))
    }

    /// The most bytes that may come of undoing the stage at `at`.
    fn limit(&self, at: usize, decoded: usize) -> usize {
        let mut before = self.stages[..at].iter();
        let exact = before.try_fold(decoded, |length, stage| stage.encoded_bytes(length));
        exact.unwrap_or_else(|| bound(decoded))
    }
}

/// Decompressors and buffers, kept from one chunk to the next.
#[derive(Default)]
struct DecodeStates {
    decompressors: Decompressors,
    pages: PageSpace,
}

/// Memory and states of decompressors, from one chunk to the next.
#[derive(Default)]
pub(crate) struct DecodeSpace {
    pub buffers: [WorkBuffer; 2],
    states: DecodeStates,
}

impl DecodeSpace {
    pub fn new(buffers: [WorkBuffer; 2]) -> DecodeSpace {
        DecodeSpace {
            buffers,
            ..DecodeSpace::default()
        }
    }
}

/// The most that a compressor makes of `bytes` that do not compress.
fn bound(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 8).saturating_add(64 << 10)
}

fn page_up(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

impl CodecStage {
    fn is_checksum(&self) -> bool {
        matches!(self, CodecStage::Crc32c | CodecStage::Fletcher32)
    }

    /// The bytes that so many are encoded to, where these alone say it.
    fn encoded_bytes(&self, bytes: usize) -> Option<usize> {
        match self {
            CodecStage::Shuffle(_) | CodecStage::Differences(_) | CodecStage::Scale(_) | CodecStage::Swap(_) => {
                Some(bytes)
            }
            CodecStage::Cast(cast) => (bytes / cast.to.size()).checked_mul(cast.from.size()),
            CodecStage::Crc32c | CodecStage::Fletcher32 => bytes.checked_add(4),
            CodecStage::PackBits => bytes.div_ceil(8).checked_add(1),
            CodecStage::FixedScaleOffset(FixedScaleOffset { stored, dtype, .. }) => {
                (bytes / dtype.size()).checked_mul(stored.size())
            }
            CodecStage::Bitshuffle(bitshuffle) if bitshuffle.codec == BlockCodec::Plain => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes come before a checksum that is right.
    fn checked(&self, bytes: &[u8]) -> Result<usize, String> {
        match self {
            CodecStage::Fletcher32 => check_fletcher(bytes),
            _ => check_crc(bytes),
        }
    }

    /// Undoes one stage into the front of `out`, which is as long as may come; gives how many bytes came.
    fn decode(&self, bytes: &[u8], out: &mut [u8], states: &mut DecodeStates) -> Result<usize, String> {
        let DecodeStates { decompressors, pages } = states;
        let limit = out.len();
        let too_large = |name: &str| format!("{name}: a chunk is larger than the {limit} bytes expected");
        match self {
            CodecStage::Gzip => decompressors.gunzip(bytes, out),
            CodecStage::Zlib => {
                let inflated = decompressors.inflater().zlib_decompress(bytes, out);
                inflated.map_err(|error| match error {
                    libdeflater::DecompressionError::InsufficientSpace => too_large("deflate"),
                    error => format!("deflate: {error}"),
                })
            }
            CodecStage::Zstd => decompressors.unzstd(bytes, out),
            CodecStage::Blosc => {
                let size = outcore_blosc::decompressed_bytes(bytes).ok_or("blosc: a chunk is damaged")?;
                if size > limit {
                    return Err(format!("blosc: a chunk of {size} bytes, {limit} expected"));
                }
                outcore_blosc::decompress_into(bytes, out).ok_or_else(|| "blosc: a chunk does not decompress".into())
            }
            CodecStage::Lzf => unlzf(bytes, out),
            CodecStage::Lzw => unlzw(bytes, out),
            CodecStage::Lz4 => unlz4(bytes, out),
            CodecStage::Lz4Blocks => unlz4_blocks(bytes, out),
            CodecStage::Bitshuffle(bitshuffle) => bitshuffle.decode(bytes, out, decompressors),
            CodecStage::ScaleOffset(scaling) => scaling.decode(bytes, out),
            CodecStage::FixedScaleOffset(scaling) => scaling.decode(bytes, out),
            CodecStage::Cast(cast) => cast.apply(bytes, out),
            CodecStage::Scale(scale) => scale.decode(bytes, out),
            CodecStage::Swap(item) => {
                let out = out.get_mut(..bytes.len()).ok_or_else(|| too_large("bytes"))?;
                out.copy_from_slice(bytes);
                out.chunks_exact_mut(*item).for_each(<[u8]>::reverse);
                Ok(bytes.len())
            }
            CodecStage::PackBits => unpack_bits(bytes, out),
            CodecStage::Pages(column) => column.decode(bytes, out, pages, decompressors),
            CodecStage::Differences(differences) => differences.decode(bytes, out),
            CodecStage::Shuffle(item) => {
                let out = out.get_mut(..bytes.len()).ok_or_else(|| too_large("shuffle"))?;
                unshuffle(bytes, *item as usize, out);
                Ok(bytes.len())
            }
            CodecStage::Crc32c | CodecStage::Fletcher32 => self.checked(bytes),
        }
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

    /// What a chain decodes to, which is the same where the last stage writes into its place.
    fn decoded(stages: &[CodecStage], bytes: &[u8], length: usize, skipped: u32) -> Result<Vec<u8>, String> {
        let (chain, mut space) = (CodecChain::new(None, false, stages.to_vec()), DecodeSpace::default());
        let mut place = vec![1; length];
        let in_place = chain.decode(bytes, length, skipped, &mut space, Some(&mut place));
        let in_place = in_place.map(|elsewhere| elsewhere.map(<[u8]>::to_vec).unwrap_or(place));
        let apart = chain.decode(bytes, length, skipped, &mut space, None);
        let apart = apart.map(|bytes| bytes.expect("apart").to_vec());
        assert_eq!(in_place, apart);
        apart
    }

    #[test]
    fn members_of_a_gzip_file_are_joined() {
        let all = content();
        for cut in [0, 1, 1000, all.len()] {
            let both = [gzipped(&all[..cut]), gzipped(&all[cut..])].concat();
            assert_eq!(decoded(&[CodecStage::Gzip], &both, all.len(), 0).unwrap(), all);
        }
        let one = gzipped(&all);
        for expected in [all.len() - 1, all.len() + 1] {
            assert!(decoded(&[CodecStage::Gzip], &one, expected, 0).is_err());
        }
        assert!(decoded(&[CodecStage::Gzip], &one[..one.len() - 1], all.len(), 0).is_err());
    }

    #[test]
    fn stages_are_undone_from_the_last_but_for_those_skipped() {
        let (all, stages) = (content(), [CodecStage::Shuffle(4), CodecStage::Zlib]);
        let both = deflated(&shuffled(&all, 4));
        let cases = [
            (both.clone(), 0),
            (deflated(&all), 0b01),
            (shuffled(&all, 4), 0b10),
            (all.clone(), 0b11),
        ];
        for (bytes, skipped) in cases {
            assert_eq!(decoded(&stages, &bytes, all.len(), skipped).unwrap(), all);
        }
        assert!(decoded(&stages, &both[..both.len() / 2], all.len(), 0).is_err());
    }

    #[test]
    fn what_inflates_to_more_is_refused() {
        let bomb = deflated(&vec![0; 1 << 20]);
        let refusal = decoded(&[CodecStage::Zlib], &bomb, 1000, 0).unwrap_err();
        assert_eq!(refusal, "deflate: a chunk is larger than the 1000 bytes expected");
    }
}
