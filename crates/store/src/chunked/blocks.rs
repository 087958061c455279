//! Chunks of blocks that are compressed one by one: LZ4 of HDF5's plugin, and bitshuffle. Lengths are the file's, and are
//! held against the bytes there are before they are computed with.

use super::contexts::Decompressors;
use super::shuffle::unshuffle_bits;

/// Elements that bits are sorted among, at least.
const GROUP: usize = 8;

/// LZ4 in one block behind its length (numcodecs).
pub(super) fn unlz4(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let (length, block) = bytes.split_first_chunk::<4>().ok_or("lz4: a chunk is too short")?;
    let out = room("lz4", u64::from(u32::from_le_bytes(*length)), out)?;
    lz4_block("lz4", block, out)?;
    Ok(out.len())
}

/// LZ4 in blocks, as filter 32004 of HDF5 writes them: the length of all, the length of a block, then blocks behind their
/// compressed lengths; a block that did not compress is as it was.
pub(super) fn unlz4_blocks(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let mut fields = BlockFields {
        name: "lz4",
        rest: bytes,
    };
    let length = fields.long()?;
    let out = room("lz4", length, out)?;
    let block = fields.word()?;
    if block == 0 && !out.is_empty() {
        return Err("lz4: a chunk has blocks of no bytes".into());
    }
    for to in out.chunks_mut(block.max(1)) {
        let encoded = fields.block()?;
        match encoded.len() == to.len() {
            true => to.copy_from_slice(encoded),
            false => lz4_block("lz4", encoded, to)?,
        }
    }
    Ok(out.len())
}

/// How bitshuffle compresses blocks of sorted bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockCodec {
    Plain,
    Lz4,
    Zstd,
}

/// Filter 32008 of HDF5 (Masui et al., "A compression scheme for radio data in high performance computing", 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bitshuffle {
    item: usize,
    /// Elements of a block where the chunk does not tell.
    block: usize,
    pub(super) codec: BlockCodec,
}

impl Bitshuffle {
    /// By the numbers that the filter is set by: version (two numbers), bytes of an element, elements of a block, codec.
    ///
    /// # Errors
    /// Numbers that no such filter has, as a name for the filter.
    pub(crate) fn from_values(values: &[u32]) -> Result<Bitshuffle, String> {
        let value = |at: usize| values.get(at).copied().unwrap_or(0) as usize;
        let (item, block) = (value(2), value(3));
        if !(1..=1024).contains(&item) {
            return Err(format!("bitshuffle of elements of {item} bytes"));
        }
        if !block.is_multiple_of(GROUP) {
            return Err(format!("bitshuffle of blocks of {block} elements"));
        }
        let codec = match value(4) {
            0 => BlockCodec::Plain,
            2 => BlockCodec::Lz4,
            3 => BlockCodec::Zstd,
            other => return Err(format!("bitshuffle of compression {other}")),
        };
        // `bshuf_default_block_size`
        let usual = ((8 << 10) / item / GROUP * GROUP).max(128);
        let block = if block == 0 { usual } else { block };
        Ok(Bitshuffle { item, block, codec })
    }

    pub(super) fn decode(
        self,
        bytes: &[u8],
        out: &mut [u8],
        decompressors: &mut Decompressors,
    ) -> Result<usize, String> {
        let mut fields = BlockFields {
            name: "bitshuffle",
            rest: bytes,
        };
        let (out, block) = match self.codec {
            BlockCodec::Plain => (room("bitshuffle", bytes.len() as u64, out)?, self.block),
            _ => {
                let length = fields.long()?;
                (room("bitshuffle", length, out)?, fields.word()? / self.item)
            }
        };
        if block == 0 || !block.is_multiple_of(GROUP) {
            return Err(format!("bitshuffle: a chunk has blocks of {block} elements"));
        }
        let whole = out.len() / (GROUP * self.item) * (GROUP * self.item);
        let (sorted, rest) = out.split_at_mut(whole);
        let mut scratch = vec![];
        for to in sorted.chunks_mut(block.saturating_mul(self.item)) {
            match self.codec {
                BlockCodec::Plain => unshuffle_bits(fields.take(to.len())?, self.item, to),
                codec => {
                    scratch.resize(to.len(), 0);
                    let encoded = fields.block()?;
                    match codec {
                        BlockCodec::Zstd => zstd_block(encoded, &mut scratch, decompressors)?,
                        _ => lz4_block("bitshuffle", encoded, &mut scratch)?,
                    }
                    unshuffle_bits(&scratch, self.item, to);
                }
            }
        }
        rest.copy_from_slice(fields.take(rest.len())?);
        Ok(out.len())
    }
}

/// As many bytes of `out` as the chunk says.
fn room<'o>(name: &str, length: u64, out: &'o mut [u8]) -> Result<&'o mut [u8], String> {
    let limit = out.len();
    let length = usize::try_from(length).ok().filter(|&length| length <= limit);
    let length = length.ok_or_else(|| format!("{name}: a chunk is larger than the {limit} bytes expected"))?;
    Ok(&mut out[..length])
}

/// One block that fills `out`.
pub(super) fn lz4_block(name: &str, block: &[u8], out: &mut [u8]) -> Result<(), String> {
    match lz4_flex::block::decompress_into(block, out) {
        Ok(length) if length == out.len() => Ok(()),
        Ok(length) => Err(format!("{name}: a block of {length} bytes, {} expected", out.len())),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn zstd_block(block: &[u8], out: &mut [u8], decompressors: &mut Decompressors) -> Result<(), String> {
    match decompressors.unzstd(block, out) {
        Ok(length) if length == out.len() => Ok(()),
        Ok(length) => Err(format!("bitshuffle: a block of {length} bytes, {} expected", out.len())),
        Err(error) => Err(format!("bitshuffle: {error}")),
    }
}

/// The bytes of a chunk, from the first to the last.
struct BlockFields<'a> {
    name: &'static str,
    rest: &'a [u8],
}

impl<'a> BlockFields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(|| self.short())?;
        self.rest = rest;
        Ok(taken)
    }

    fn short(&self) -> String {
        format!("{}: a chunk ends early", self.name)
    }

    fn word(&mut self) -> Result<usize, String> {
        let (word, rest) = self.rest.split_first_chunk::<4>().ok_or_else(|| self.short())?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*word) as usize)
    }

    fn long(&mut self) -> Result<u64, String> {
        let (long, rest) = self.rest.split_first_chunk::<8>().ok_or_else(|| self.short())?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*long))
    }

    /// Bytes behind their length.
    fn block(&mut self) -> Result<&'a [u8], String> {
        let length = self.word()?;
        self.take(length)
    }
}
