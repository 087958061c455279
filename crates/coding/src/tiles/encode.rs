//! Tile rows made of sorted entries.

use std::ops::Range;

use super::layout::{HEAD_BYTES, LISTED_BYTES, SEGMENT_BYTES};
use super::tile::Tile;

/// Entries of a tile, at most.
pub const ENTRIES_MAX: usize = u32::MAX as usize;
/// Rows of more entries have a count each.
pub(super) const WIDTH_MAX: usize = 16;
/// Fewer rows of a width are not worth a segment of their own.
const ROWS_MIN: usize = 3;

/// Where encoded bytes go.
trait ByteSink {
    /// Room for so many bytes behind those there are.
    fn room(&mut self, bytes: usize) -> &mut [u8];

    fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }
}

impl ByteSink for Vec<u8> {
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let begin = self.len();
        self.resize(begin + bytes, 0);
        &mut self[begin..]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Memory of the caller, which is filled from its front.
struct Filled<'a> {
    memory: &'a mut [u8],
    length: usize,
}

impl ByteSink for Filled<'_> {
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let begin = self.length;
        self.length += bytes;
        &mut self.memory[begin..self.length]
    }
}

/// Bytes that the segments of a tile of so many entries take at most: a row takes a number and a count, and each segment but
/// one has rows enough that are alike.
pub fn segments_bytes_most(tiles: u64, entries: u64) -> u64 {
    let columns = entries.saturating_mul(2);
    let rows = entries.saturating_mul(4);
    let per_row = entries.saturating_mul(SEGMENT_BYTES as u64).div_ceil(ROWS_MIN as u64);
    let per_width = tiles.saturating_mul((WIDTH_MAX * SEGMENT_BYTES) as u64);
    let heads = tiles
        .saturating_mul(SEGMENT_BYTES as u64)
        .saturating_add(per_row.min(per_width));
    columns.saturating_add(rows).saturating_add(heads)
}

/// Encodes single tiles into memory of the caller.
#[derive(Debug, Default)]
pub struct TileEncoder {
    rows: RowsByWidth,
}

impl TileEncoder {
    /// Encodes a tile: `entries` are row · 2¹⁶ + column, ascending, no two alike; `values` are theirs, of `item` bytes each. Gives
    /// the bytes of its segments in `segments`, and how many they are; the values lie in `ordered` afterwards, in their order.
    ///
    /// # Panics
    /// Where `segments` is shorter than [`segments_bytes_most`], or `ordered` than the values.
    pub fn encode(
        &mut self,
        entries: &[u32],
        values: &[u8],
        item: usize,
        segments: &mut [u8],
        ordered: &mut [u8],
    ) -> TileLength {
        let mut segments = Filled {
            memory: segments,
            length: 0,
        };
        let mut ordered = Filled {
            memory: ordered,
            length: 0,
        };
        let count = self.rows.put(entries, values, item, &mut segments, &mut ordered);
        TileLength {
            bytes: segments.length,
            segments: count,
        }
    }
}

/// The length of an encoded tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLength {
    /// Of its segments together.
    pub bytes: usize,
    pub segments: u32,
}

/// Puts tiles together to a tile row at the front of `out`; gives its bytes, a multiple of eight. Values have `item` bytes, 0
/// where there are none.
///
/// # Panics
/// Where `out` is too short.
pub fn put_tiles(tiles: &[Tile<'_>], item: usize, out: &mut [u8]) -> usize {
    let listed = HEAD_BYTES + tiles.len() * LISTED_BYTES;
    let segments: usize = tiles.iter().map(|tile| tile.bytes.len()).sum();
    let entries: usize = tiles.iter().map(|tile| tile.entries).sum();
    let values_at = (listed + segments).next_multiple_of(8);
    let mut out = Filled { memory: out, length: 0 };
    out.put(&(tiles.len() as u32).to_le_bytes());
    out.put(&0u32.to_le_bytes());
    out.put(&(entries as u64).to_le_bytes());
    out.put(&(if entries * item == 0 { 0 } else { values_at as u64 }).to_le_bytes());
    for tile in tiles {
        for word in [
            tile.block,
            tile.entries as u32,
            tile.bytes.len() as u32,
            tile.segments as u32,
        ] {
            out.put(&word.to_le_bytes());
        }
    }
    tiles.iter().for_each(|tile| out.put(tile.bytes));
    out.room(values_at - listed - segments).fill(0);
    if item > 0 {
        tiles.iter().for_each(|tile| out.put(tile.values));
        out.room((entries * item).next_multiple_of(8) - entries * item).fill(0);
    }
    out.length
}

/// Makes one tile row after the other.
#[derive(Debug, Default)]
pub struct TileRowEncoder {
    directory: Vec<u8>,
    segments: Vec<u8>,
    values: Vec<u8>,
    entries: u64,
    rows: RowsByWidth,
}

/// The rows of the tile at work, those of as many entries together.
#[derive(Debug, Default)]
struct RowsByWidth {
    /// By row: its first entry. One more than there are rows.
    firsts: Vec<u32>,
    /// Where the rows of each width end in what follows: of 1, 2, …, and of all others.
    ends: [usize; WIDTH_MAX + 1],
    /// Row numbers, ascending in each width.
    numbers: Vec<u16>,
    /// First entry, and the entry behind the last.
    spans: Vec<(u32, u32)>,
}

impl RowsByWidth {
    /// Goes through the entries without a branch that depends on them: how long a row is cannot be foretold.
    fn find(&mut self, entries: &[u32]) {
        // There are no more rows than numbers of rows.
        self.firsts.resize(entries.len().min(1 << 16) + 1, 0);
        let mut rows = usize::from(!entries.is_empty());
        for (before, pair) in entries.windows(2).enumerate() {
            self.firsts[rows] = before as u32 + 1;
            rows += usize::from((pair[0] ^ pair[1]) >> 16 != 0);
        }
        self.firsts[rows] = entries.len() as u32;
        let firsts = &self.firsts[..rows + 1];
        let width = |span: &[u32]| ((span[1] - span[0]) as usize).min(WIDTH_MAX + 1) - 1;
        let mut counts = [0; WIDTH_MAX + 1];
        firsts.windows(2).for_each(|span| counts[width(span)] += 1);
        // Few rows of a width stand with the others.
        let mut place: [usize; WIDTH_MAX + 1] = std::array::from_fn(|width| width);
        for width in 0..WIDTH_MAX {
            if counts[width] < ROWS_MIN {
                counts[WIDTH_MAX] += counts[width];
                counts[width] = 0;
                place[width] = WIDTH_MAX;
            }
        }
        let mut end = 0;
        let mut next = counts.map(|count| {
            end += count;
            end - count
        });
        self.numbers.resize(rows, 0);
        self.spans.resize(rows, (0, 0));
        for span in firsts.windows(2) {
            let at = &mut next[place[width(span)]];
            self.numbers[*at] = (entries[span[0] as usize] >> 16) as u16;
            self.spans[*at] = (span[0], span[1]);
            *at += 1;
        }
        self.ends = next;
    }

    /// Encodes a tile; the number of its segments.
    fn put(
        &mut self,
        entries: &[u32],
        values: &[u8],
        item: usize,
        segments: &mut impl ByteSink,
        ordered: &mut impl ByteSink,
    ) -> u32 {
        self.find(entries);
        let (mut count, mut first) = (0u32, 0);
        for (place, &end) in self.ends.iter().enumerate() {
            let width = if place < WIDTH_MAX { place + 1 } else { 0 };
            cut(&self.numbers[first..end], |part, is_gapped| {
                let of_all = first + part.start..first + part.end;
                let spans = &self.spans[of_all.clone()];
                put_segment(segments, width, &self.numbers[of_all], is_gapped, spans, entries);
                put_values(ordered, spans, values, item);
                count += 1;
            });
            first = end;
        }
        count
    }
}

impl TileRowEncoder {
    /// Adds a tile behind those there are. `entries` are row · 2¹⁶ + column, ascending, no two alike; `values` are theirs, of
    /// `item` bytes each.
    pub fn tile(&mut self, block: u32, entries: &[u32], values: &[u8], item: usize) {
        let begin = self.segments.len();
        let segments = self
            .rows
            .put(entries, values, item, &mut self.segments, &mut self.values);
        let bytes = (self.segments.len() - begin) as u32;
        for word in [block, entries.len() as u32, bytes, segments] {
            self.directory.extend(word.to_le_bytes());
        }
        self.entries += entries.len() as u64;
    }

    /// Adds the tiles of another behind those there are. The other begins a new tile row, and keeps its memory for it.
    pub fn append(&mut self, other: &mut TileRowEncoder) {
        self.directory.extend_from_slice(&other.directory);
        self.segments.extend_from_slice(&other.segments);
        self.values.extend_from_slice(&other.values);
        self.entries += other.entries;
        other.clear();
    }

    /// Whether no tile was added.
    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Puts the tile row behind what is in `out`, as long as a multiple of eight, and gives its entries. Begins a new one.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        self.take(|parts, entries| {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            entries
        })
    }

    /// Hands out the tile row in parts, whose bytes are a multiple of eight together, and its entries. Begins a new one.
    pub fn take<T>(&mut self, then: impl FnOnce(&[&[u8]], u64) -> T) -> T {
        let found = TileRowEncoder::joined(std::slice::from_ref(self), then);
        self.clear();
        found
    }

    /// As `take`, of a tile row whose tiles are with several encoders, one behind the other.
    pub fn joined<T>(encoders: &[TileRowEncoder], then: impl FnOnce(&[&[u8]], u64) -> T) -> T {
        let bytes = |of: fn(&TileRowEncoder) -> usize| encoders.iter().map(of).sum::<usize>();
        let directory = bytes(|encoder| encoder.directory.len());
        let (listed, values) = (
            HEAD_BYTES + directory + bytes(|encoder| encoder.segments.len()),
            bytes(|encoder| encoder.values.len()),
        );
        let values_at = match values {
            0 => 0,
            _ => listed.next_multiple_of(8) as u64,
        };
        let entries: u64 = encoders.iter().map(|encoder| encoder.entries).sum();
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.extend(((directory / LISTED_BYTES) as u32).to_le_bytes());
        head.extend(0u32.to_le_bytes());
        head.extend(entries.to_le_bytes());
        head.extend(values_at.to_le_bytes());
        let padding = |bytes: usize| &[0u8; 8][..bytes.next_multiple_of(8) - bytes];
        let mut parts: Vec<&[u8]> = vec![&head];
        parts.extend(encoders.iter().map(|encoder| &encoder.directory[..]));
        parts.extend(encoders.iter().map(|encoder| &encoder.segments[..]));
        parts.push(padding(listed));
        parts.extend(encoders.iter().map(|encoder| &encoder.values[..]));
        parts.push(padding(values));
        then(&parts, entries)
    }

    fn clear(&mut self) {
        self.directory.clear();
        self.segments.clear();
        self.values.clear();
        self.entries = 0;
    }

    /// Bytes of memory that are held, also for what comes.
    pub fn held_bytes(&self) -> usize {
        self.directory.capacity() + self.segments.capacity() + self.values.capacity()
    }
}

/// Writes a segment of rows of `width` entries, 0 where each has a count.
fn put_segment(
    out: &mut impl ByteSink,
    width: usize,
    numbers: &[u16],
    is_gapped: bool,
    spans: &[(u32, u32)],
    entries: &[u32],
) {
    let rows = numbers.len();
    let head = [width as u8, if is_gapped { 1 } else { 2 }];
    out.put(&head);
    out.put(&((rows - 1) as u16).to_le_bytes());
    out.put(&numbers[0].to_le_bytes());
    match is_gapped {
        true => {
            let gaps = out.room((rows - 1).next_multiple_of(2));
            gaps[(rows - 1)..].fill(0);
            for (gap, pair) in gaps.iter_mut().zip(numbers.windows(2)) {
                *gap = (pair[1] - pair[0]) as u8;
            }
        }
        false => put_words(out, &numbers[1..], |number| [*number]),
    }
    match width {
        1 => put_words(out, spans, |(first, _)| columns::<1>(entries, *first)),
        2 => put_words(out, spans, |(first, _)| columns::<2>(entries, *first)),
        3 => put_words(out, spans, |(first, _)| columns::<3>(entries, *first)),
        4 => put_words(out, spans, |(first, _)| columns::<4>(entries, *first)),
        _ => {
            if width == 0 {
                put_words(out, spans, |(first, end)| [(end - first - 1) as u16]);
            }
            for (first, end) in spans {
                put_words(out, &entries[*first as usize..*end as usize], |entry| [*entry as u16]);
            }
        }
    }
}

/// The columns of a row of so many entries.
#[inline(always)]
fn columns<const N: usize>(entries: &[u32], first: u32) -> [u16; N] {
    let own = &entries[first as usize..][..N];
    std::array::from_fn(|at| own[at] as u16)
}

/// Appends the words that each of `from` comes to. All bytes are made room for at once.
#[inline(always)]
fn put_words<T, const N: usize>(out: &mut impl ByteSink, from: &[T], words: impl Fn(&T) -> [u16; N]) {
    let out = out.room(2 * N * from.len());
    for (to, from) in out.chunks_exact_mut(2 * N).zip(from) {
        for (to, word) in to.chunks_exact_mut(2).zip(words(from)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Appends the values of some rows, `item` bytes each.
fn put_values(out: &mut impl ByteSink, spans: &[(u32, u32)], values: &[u8], item: usize) {
    match item {
        0 => {}
        4 => put_items::<4>(out, spans, values),
        8 => put_items::<8>(out, spans, values),
        _ => {
            for (first, end) in spans {
                out.put(&values[*first as usize * item..*end as usize * item]);
            }
        }
    }
}

fn put_items<const N: usize>(out: &mut impl ByteSink, spans: &[(u32, u32)], values: &[u8]) {
    let items = spans.iter().map(|(first, end)| (end - first) as usize).sum::<usize>();
    let (mut out, _) = out.room(items * N).as_chunks_mut::<N>();
    let (values, _) = values.as_chunks::<N>();
    for (first, end) in spans {
        let row = &values[*first as usize..*end as usize];
        let (to, later) = out.split_at_mut(row.len());
        to.copy_from_slice(row);
        out = later;
    }
}

/// Cuts the rows of a width into segments so that they take the fewest bytes: first some whose rows are distances of one
/// byte, cut where a distance is larger, then one of row numbers. Gives each to `put`, and whether it has distances.
fn cut(numbers: &[u16], mut put: impl FnMut(Range<usize>, bool)) {
    let length = numbers.len();
    if length == 0 {
        return;
    }
    let is_far = |at: usize| numbers[at] - numbers[at - 1] > 255;
    // Bytes where the first `split` rows are gapped and the others numbered, less those that every way has.
    let numbered = |count: usize| if count > 0 { SEGMENT_BYTES + 2 * (count - 1) } else { 0 };
    let (mut best, mut split) = (numbered(length), 0);
    let mut gapped = SEGMENT_BYTES;
    for at in 1..length {
        let bytes = gapped + numbered(length - at);
        if bytes < best {
            (best, split) = (bytes, at);
        }
        gapped += if is_far(at) { SEGMENT_BYTES } else { 1 };
    }
    if gapped < best {
        split = length;
    }
    let mut first = 0;
    for at in 1..split {
        if is_far(at) {
            put(first..at, true);
            first = at;
        }
    }
    if split > 0 {
        put(first..split, true);
    }
    if split < length {
        put(split..length, false);
    }
}
