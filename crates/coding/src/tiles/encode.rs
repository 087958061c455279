//! Tile rows made of sorted entries.

use std::ops::Range;

use super::layout::{HEAD_BYTES, LISTED_BYTES, SEGMENT_BYTES};

/// Entries of a tile, at most.
pub const ENTRIES_MAX: usize = u32::MAX as usize;
/// Rows of more entries have a count each.
pub(super) const WIDTH_MAX: usize = 16;
/// Fewer rows of a width are not worth a segment of their own.
const ROWS_MIN: usize = 3;

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
        self.firsts.resize(entries.len() + 1, 0);
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
}

impl TileRowEncoder {
    /// Adds a tile behind those there are. `entries` are row · 2¹⁶ + column, ascending, no two alike; `values` are theirs, of
    /// `item` bytes each.
    pub fn tile(&mut self, block: u32, entries: &[u32], values: &[u8], item: usize) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.find(entries);
        let begin = self.segments.len();
        let (mut segments, mut first) = (0u32, 0);
        for (place, &end) in rows.ends.iter().enumerate() {
            let width = if place < WIDTH_MAX { place + 1 } else { 0 };
            cut(&rows.numbers[first..end], |part, is_gapped| {
                let of_all = first + part.start..first + part.end;
                let spans = &rows.spans[of_all.clone()];
                put_segment(
                    &mut self.segments,
                    width,
                    &rows.numbers[of_all],
                    is_gapped,
                    spans,
                    entries,
                );
                put_values(&mut self.values, spans, values, item);
                segments += 1;
            });
            first = end;
        }
        let bytes = (self.segments.len() - begin) as u32;
        for word in [block, entries.len() as u32, bytes, segments] {
            self.directory.extend(word.to_le_bytes());
        }
        self.entries += entries.len() as u64;
        self.rows = rows;
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
        let tiles = (self.directory.len() / LISTED_BYTES) as u32;
        let listed = HEAD_BYTES + self.directory.len() + self.segments.len();
        let values_at = match self.values.is_empty() {
            true => 0,
            false => listed.next_multiple_of(8) as u64,
        };
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.extend(tiles.to_le_bytes());
        head.extend(0u32.to_le_bytes());
        head.extend(self.entries.to_le_bytes());
        head.extend(values_at.to_le_bytes());
        let padding = |bytes: usize| &[0u8; 8][..bytes.next_multiple_of(8) - bytes];
        let parts: [&[u8]; 6] = [
            &head,
            &self.directory,
            &self.segments,
            padding(listed),
            &self.values,
            padding(self.values.len()),
        ];
        let found = then(&parts, self.entries);
        self.clear();
        found
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
    out: &mut Vec<u8>,
    width: usize,
    numbers: &[u16],
    is_gapped: bool,
    spans: &[(u32, u32)],
    entries: &[u32],
) {
    let rows = numbers.len();
    let head = [width as u8, if is_gapped { 1 } else { 2 }];
    out.extend(head);
    out.extend(((rows - 1) as u16).to_le_bytes());
    out.extend(numbers[0].to_le_bytes());
    match is_gapped {
        true => {
            out.extend(numbers.windows(2).map(|pair| (pair[1] - pair[0]) as u8));
            out.resize(out.len() + (rows - 1) % 2, 0);
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
fn put_words<T, const N: usize>(out: &mut Vec<u8>, from: &[T], words: impl Fn(&T) -> [u16; N]) {
    let begin = out.len();
    out.resize(begin + 2 * N * from.len(), 0);
    for (to, from) in out[begin..].chunks_exact_mut(2 * N).zip(from) {
        for (to, word) in to.chunks_exact_mut(2).zip(words(from)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Appends the values of some rows, `item` bytes each.
fn put_values(out: &mut Vec<u8>, spans: &[(u32, u32)], values: &[u8], item: usize) {
    match item {
        0 => {}
        4 => put_items::<4>(out, spans, values),
        8 => put_items::<8>(out, spans, values),
        _ => {
            for (first, end) in spans {
                out.extend_from_slice(&values[*first as usize * item..*end as usize * item]);
            }
        }
    }
}

fn put_items<const N: usize>(out: &mut Vec<u8>, spans: &[(u32, u32)], values: &[u8]) {
    out.reserve(spans.iter().map(|(first, end)| (end - first) as usize * N).sum());
    let (values, _) = values.as_chunks::<N>();
    for (first, end) in spans {
        for value in &values[*first as usize..*end as usize] {
            out.extend_from_slice(value);
        }
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
