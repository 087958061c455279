//! Decoding a chunk of a column.

use super::delta::undelta;
use super::header::{page_header, PageHeader, PageKind};
use super::hybrid::{unpack, HybridRun, HybridRuns};
use crate::base::page::PAGE;
use crate::chunked::blocks::lz4_block;
use crate::chunked::contexts::Decompressors;
use crate::chunked::shuffle::unshuffle;
use crate::memory::workspace::WorkBuffer;

/// The type of the elements as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    Boolean,
    Int32,
    Int64,
    Float,
    Double,
}

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageCodec {
    Plain,
    Snappy,
    Gzip,
    Zstd,
    Lz4Raw,
}

/// The value of elements that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingElements {
    Refused,
    NotANumber,
    NotATime,
    Zero,
}

/// A column without structure, each chunk of which has so many elements as it decodes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnPages {
    pub physical: Physical,
    pub codec: PageCodec,
    /// Whether there are levels, which say where elements are missing.
    pub is_optional: bool,
    pub missing: MissingElements,
    /// Bytes of an element as it decodes.
    pub item: usize,
}

/// Memory of one chunk: a page, the dictionary, and which elements there are.
#[derive(Default)]
pub(crate) struct PageSpace {
    page: WorkBuffer,
    dictionary: WorkBuffer,
    present: WorkBuffer,
}

/// Encodings, by their numbers in headers.
const PLAIN: u64 = 0;
const PLAIN_DICTIONARY: u64 = 2;
const RLE: u64 = 3;
const DELTA_BINARY_PACKED: u64 = 5;
const RLE_DICTIONARY: u64 = 8;
const BYTE_STREAM_SPLIT: u64 = 9;
/// Bytes of a page beyond its elements: levels, widths, and dictionaries that have more than a chunk needs.
const SLACK_BYTES: usize = 64 << 10;

fn cut_off() -> String {
    "parquet: a page is cut off".into()
}

fn no_memory(cause: std::io::Error) -> String {
    format!("no memory for a page: {cause}")
}

impl Physical {
    /// Bytes of an element; of truths, of a bit of which eight are one.
    fn size(self) -> usize {
        match self {
            Physical::Boolean => 1,
            Physical::Int32 | Physical::Float => 4,
            Physical::Int64 | Physical::Double => 8,
        }
    }

    /// Whether elements of so many bytes may come of it: integers of 32 bits are those of fewer, and dates in days those of 64.
    pub(crate) fn decodes_to(self, item: usize) -> bool {
        match self {
            Physical::Int32 => matches!(item, 1 | 2 | 4 | 8),
            other => item == other.size(),
        }
    }
}

impl ColumnPages {
    /// The most bytes that a page of a chunk decompresses to.
    fn page_limit(&self, decoded: usize) -> usize {
        let bytes = (decoded / self.item).saturating_mul(self.physical.size());
        bytes.saturating_add(bytes / 8).saturating_add(SLACK_BYTES)
    }

    fn dictionary_limit(&self, decoded: usize) -> usize {
        let entries = self.page_limit(decoded) / self.physical.size();
        entries.saturating_mul(self.item)
    }

    /// Memory that `decode` uses besides what it decodes to.
    pub(crate) fn workspace_bytes(&self, decoded: usize) -> usize {
        let present = if self.is_optional { decoded / self.item } else { 0 };
        let parts = [self.page_limit(decoded), self.dictionary_limit(decoded), present];
        let whole = parts.map(|part| part.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX));
        whole.into_iter().fold(0, usize::saturating_add)
    }

    /// The elements of a chunk, the lowest byte first, until `out` is full.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        out: &mut [u8],
        space: &mut PageSpace,
        decompressors: &mut Decompressors,
    ) -> Result<usize, String> {
        let (total, limit) = (out.len(), self.page_limit(out.len()));
        let (mut rest, mut at, mut dictionary_bytes) = (bytes, 0, None);
        while at < total {
            let (header, behind) = page_header(rest)?;
            let (stored, behind) = behind.split_at_checked(header.stored).ok_or_else(cut_off)?;
            rest = behind;
            check_sum(&header, stored)?;
            if header.plain > limit {
                let plain = header.plain;
                return Err(format!("parquet: a page of {plain} bytes, at most {limit} expected"));
            }
            let PageSpace {
                page,
                dictionary,
                present,
            } = space;
            if header.kind == PageKind::Dictionary {
                if dictionary_bytes.is_some() || at > 0 {
                    return Err("parquet: a second dictionary, or one behind the elements".into());
                }
                let plain = self.decompressed(stored, header.plain, page, decompressors)?;
                let length = header
                    .elements
                    .checked_mul(self.item)
                    .filter(|&length| length <= self.dictionary_limit(total));
                let length = length.ok_or("parquet: a dictionary is larger than a page")?;
                let entries = dictionary.bytes(length).map_err(no_memory)?;
                self.plain_elements(plain, entries)?;
                dictionary_bytes = Some(length);
                continue;
            }
            let Some((levels, values, plain)) = self.parts(&header, stored)? else {
                continue;
            };
            let values = match plain {
                Some(plain) => self.decompressed(values, plain, page, decompressors)?,
                None => values,
            };
            let (levels, values) = match levels {
                Some(levels) => (levels, values),
                None if self.is_optional => with_length(values)?,
                None => (&[][..], values),
            };
            let length = header
                .elements
                .checked_mul(self.item)
                .filter(|length| *length <= total - at);
            let length = length.ok_or_else(|| {
                let (more, left) = (header.elements, (total - at) / self.item);
                format!("parquet: a page of {more} elements, {left} are left")
            })?;
            let to = &mut out[at..at + length];
            let entries = dictionary_bytes.map(|bytes| dictionary.held(bytes));
            self.elements(&header, (levels, values), entries, present, to)?;
            at += length;
        }
        Ok(at)
    }

    /// The levels of a page of data where they are not among its values, its values, and the bytes that these decompress to where
    /// they are compressed; nothing for what readers may pass over.
    #[expect(clippy::type_complexity, reason = "three parts of one page, taken apart at once")]
    fn parts<'a>(
        &self,
        header: &PageHeader,
        stored: &'a [u8],
    ) -> Result<Option<(Option<&'a [u8]>, &'a [u8], Option<usize>)>, String> {
        match header.kind {
            PageKind::Data if self.is_optional && header.level_encoding != RLE => {
                Err(format!("parquet: levels of encoding {}", header.level_encoding))
            }
            PageKind::Data => Ok(Some((None, stored, Some(header.plain)))),
            PageKind::Data2 {
                definition_bytes,
                repetition_bytes,
                is_compressed,
            } => {
                let (_, behind) = stored.split_at_checked(repetition_bytes).ok_or_else(cut_off)?;
                let (levels, values) = behind.split_at_checked(definition_bytes).ok_or_else(cut_off)?;
                let plain = header
                    .plain
                    .checked_sub(stored.len() - values.len())
                    .ok_or_else(cut_off)?;
                Ok(Some((Some(levels), values, is_compressed.then_some(plain))))
            }
            _ => Ok(None),
        }
    }

    fn decompressed<'a>(
        &self,
        stored: &'a [u8],
        plain: usize,
        page: &'a mut WorkBuffer,
        decompressors: &mut Decompressors,
    ) -> Result<&'a [u8], String> {
        if plain == 0 || self.codec == PageCodec::Plain {
            return Ok(stored);
        }
        let out = page.bytes(plain).map_err(no_memory)?;
        let length = match self.codec {
            PageCodec::Plain => 0,
            PageCodec::Snappy => snap::raw::Decoder::new()
                .decompress(stored, out)
                .map_err(|error| format!("snappy: {error}"))?,
            PageCodec::Gzip => decompressors.gunzip(stored, out)?,
            PageCodec::Zstd => decompressors.unzstd(stored, out)?,
            PageCodec::Lz4Raw => {
                lz4_block("lz4", stored, out)?;
                plain
            }
        };
        match length == plain {
            true => Ok(page.held(plain)),
            false => Err(format!("parquet: a page decompresses to {length} bytes, not {plain}")),
        }
    }

    /// The elements of a page, those that are missing among them.
    fn elements(
        &self,
        header: &PageHeader,
        (levels, values): (&[u8], &[u8]),
        dictionary: Option<&[u8]>,
        present: &mut WorkBuffer,
        out: &mut [u8],
    ) -> Result<(), String> {
        let count = header.elements;
        let there = if self.is_optional {
            count_present(levels, count)?
        } else {
            count
        };
        if header.missing.is_some_and(|missing| missing != count - there) {
            return Err("parquet: the levels of a page are not those of its header".into());
        }
        if there < count && self.missing == MissingElements::Refused {
            let missing = count - there;
            return Err(format!(
                "parquet: {missing} elements are missing, none of which the file's statistics know"
            ));
        }
        self.encoded(header.encoding, values, dictionary, &mut out[..there * self.item])?;
        if there == count {
            return Ok(());
        }
        let present = present.bytes(count).map_err(no_memory)?;
        spread_levels(levels, present)?;
        match self.item {
            1 => spread::<1>(out, there, present, self.missing),
            2 => spread::<2>(out, there, present, self.missing),
            4 => spread::<4>(out, there, present, self.missing),
            _ => spread::<8>(out, there, present, self.missing),
        }
        Ok(())
    }

    /// Elements of an encoding, until `out` is full.
    fn encoded(&self, encoding: u64, values: &[u8], dictionary: Option<&[u8]>, out: &mut [u8]) -> Result<(), String> {
        // A page of which all is missing may have nothing else.
        if out.is_empty() {
            return Ok(());
        }
        match encoding {
            PLAIN => self.plain_elements(values, out),
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let dictionary = dictionary.ok_or("parquet: a page of a dictionary that is missing")?;
                let (&width, values) = values.split_first().ok_or_else(cut_off)?;
                match self.item {
                    1 => chosen::<1>(values, width.into(), dictionary, out),
                    2 => chosen::<2>(values, width.into(), dictionary, out),
                    4 => chosen::<4>(values, width.into(), dictionary, out),
                    _ => chosen::<8>(values, width.into(), dictionary, out),
                }
            }
            RLE if self.physical == Physical::Boolean => {
                let (bits, _) = with_length(values)?;
                chosen::<1>(bits, 1, &[0, 1], out)
            }
            DELTA_BINARY_PACKED if matches!(self.physical, Physical::Int32 | Physical::Int64) => {
                let (item, is_narrow) = (self.item, self.physical == Physical::Int32);
                undelta(values, out.len() / item, &mut |at, integer| {
                    let integer = if is_narrow { i64::from(integer as i32) } else { integer };
                    let place = &mut out[at * item..at * item + item];
                    place.copy_from_slice(&integer.to_le_bytes()[..item]);
                    Ok(())
                })
            }
            BYTE_STREAM_SPLIT if self.physical != Physical::Boolean => self.split_elements(values, out),
            other => Err(format!(
                "parquet: encoding {other} of {:?} is not supported",
                self.physical
            )),
        }
    }

    /// Elements whose bytes are apart, all first ones first.
    fn split_elements(&self, values: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (size, count) = (self.physical.size(), out.len() / self.item);
        if values.len() != count * size {
            return Err(format!("parquet: {} bytes of {count} split elements", values.len()));
        }
        if self.item <= size {
            // The lowest bytes come first, and narrow elements have no others.
            unshuffle(&values[..out.len()], self.item, out);
            return Ok(());
        }
        for (at, to) in out.chunks_exact_mut(self.item).enumerate() {
            let word = std::array::from_fn(|byte| values[byte * count + at]);
            to.copy_from_slice(&i64::from(i32::from_le_bytes(word)).to_le_bytes());
        }
        Ok(())
    }

    /// Elements one after the other, until `out` is full.
    fn plain_elements(&self, values: &[u8], out: &mut [u8]) -> Result<(), String> {
        if self.physical == Physical::Boolean {
            let bits = values.get(..out.len().div_ceil(8)).ok_or_else(cut_off)?;
            for (to, bits) in out.chunks_mut(8).zip(bits) {
                let places = to.iter_mut().enumerate();
                places.for_each(|(bit, place)| *place = bits >> bit & 1);
            }
            return Ok(());
        }
        let size = self.physical.size();
        let values = values.get(..out.len() / self.item * size).ok_or_else(cut_off)?;
        if size == self.item {
            out.copy_from_slice(values);
            return Ok(());
        }
        let (words, _) = values.as_chunks::<4>();
        for (to, word) in out.chunks_exact_mut(self.item).zip(words) {
            let integer = i64::from(i32::from_le_bytes(*word));
            to.copy_from_slice(&integer.to_le_bytes()[..self.item]);
        }
        Ok(())
    }
}

fn check_sum(header: &PageHeader, stored: &[u8]) -> Result<(), String> {
    let matches = header.checksum.is_none_or(|expected| {
        let mut sum = libdeflater::Crc::new();
        sum.update(stored);
        sum.sum() == expected
    });
    matches
        .then_some(())
        .ok_or_else(|| "parquet: the checksum of a page does not match".into())
}

/// The bytes that a length before them counts, and the rest.
fn with_length(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_off)?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
        .ok_or_else(cut_off)
}

/// How many of so many elements are not missing.
fn count_present(levels: &[u8], count: usize) -> Result<usize, String> {
    let mut there = 0;
    for run in HybridRuns::new(levels, 1, count)? {
        match run? {
            HybridRun::Same { number, count } => there += number.min(1) as usize * count,
            HybridRun::Packed { bytes, count } => {
                let whole = count / 8;
                let last = bytes
                    .get(whole)
                    .map_or(0, |last| last & ((1u32 << (count % 8)) - 1) as u8);
                let ones: u32 = bytes[..whole].iter().map(|bits| bits.count_ones()).sum();
                there += (ones + last.count_ones()) as usize;
            }
        }
    }
    Ok(there)
}

/// A byte for each element: whether it is there.
fn spread_levels(levels: &[u8], present: &mut [u8]) -> Result<(), String> {
    chosen::<1>(levels, 1, &[0, 1], present)
}

/// Brings elements that are there, all first, to their places.
fn spread<const N: usize>(out: &mut [u8], there: usize, present: &[u8], missing: MissingElements) {
    let (places, _) = out.as_chunks_mut::<N>();
    let (mut fill, mut from) = ([0; N], there);
    let bytes: &[u8] = match (missing, N) {
        (MissingElements::NotANumber, 4) => &f32::NAN.to_le_bytes(),
        (MissingElements::NotANumber, 8) => &f64::NAN.to_le_bytes(),
        (MissingElements::NotATime, 8) => &i64::MIN.to_le_bytes(),
        _ => &[0; N],
    };
    fill.copy_from_slice(bytes);
    for (at, is_present) in present.iter().enumerate().rev() {
        places[at] = match is_present {
            0 => fill,
            _ => {
                from -= 1;
                places[from]
            }
        };
    }
}

/// Elements of a dictionary by their numbers, until `out` is full.
fn chosen<const N: usize>(bytes: &[u8], width: u32, dictionary: &[u8], out: &mut [u8]) -> Result<(), String> {
    let ((entries, _), (places, _)) = (dictionary.as_chunks::<N>(), out.as_chunks_mut::<N>());
    let entry = |number: u32| entries.get(number as usize).copied();
    let outside = || format!("parquet: an element outside of a dictionary of {}", entries.len());
    let mut at = 0;
    for run in HybridRuns::new(bytes, width, places.len())? {
        match run? {
            HybridRun::Same { number, count } => {
                places[at..at + count].fill(entry(number).ok_or_else(outside)?);
                at += count;
            }
            HybridRun::Packed { bytes, count } => {
                let to = &mut places[at..at + count];
                unpack(bytes, width, count, &mut |place, numbers| {
                    for (to, &number) in to[place..].iter_mut().zip(numbers) {
                        *to = entry(number).ok_or_else(outside)?;
                    }
                    Ok(())
                })?;
                at += count;
            }
        }
    }
    Ok(())
}
