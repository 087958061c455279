//! Tile rows made of sorted entries.

use super::{HEAD_BYTES, LISTED_BYTES, SEGMENT_BYTES};

/// Entries of a tile, at most.
pub const ENTRIES_MAX: usize = u32::MAX as usize;
/// Rows of more entries have a count each.
const WIDTH_MAX: usize = 16;
/// Fewer rows of a width are not worth a segment of their own.
const ROWS_MIN: usize = 3;

/// Makes one tile row after the other.
#[derive(Debug, Default)]
pub struct TileRowEncoder {
    directory: Vec<u8>,
    segments: Vec<u8>,
    values: Vec<u8>,
    entries: u64,
    /// Rows of the tile at work: number, first entry, entries.
    rows: Vec<(u16, u32, u32)>,
    /// The rows of each width.
    by_width: Vec<Vec<u32>>,
}

impl TileRowEncoder {
    /// Adds a tile behind those there are. `entries` are row · 2¹⁶ + column, ascending, no two alike; `values` are theirs, of
    /// `item` bytes each.
    pub fn tile(&mut self, block: u32, entries: &[u32], values: &[u8], item: usize) {
        self.find_rows(entries);
        let begin = self.segments.len();
        let mut segments = 0u32;
        for width in 1..=WIDTH_MAX + 1 {
            let members = std::mem::take(&mut self.by_width[width - 1]);
            for part in cut(&self.rows, &members) {
                self.segment(if width > WIDTH_MAX { 0 } else { width }, part, entries, values, item);
                segments += 1;
            }
            self.by_width[width - 1] = members;
        }
        let bytes = (self.segments.len() - begin) as u32;
        for word in [block, entries.len() as u32, bytes, segments] {
            self.directory.extend(word.to_le_bytes());
        }
        self.entries += entries.len() as u64;
    }

    fn find_rows(&mut self, entries: &[u32]) {
        self.rows.clear();
        self.by_width.resize_with(WIDTH_MAX + 1, Vec::new);
        self.by_width.iter_mut().for_each(Vec::clear);
        let mut first = 0;
        for at in 1..=entries.len() {
            if at == entries.len() || entries[at] >> 16 != entries[first] >> 16 {
                self.rows
                    .push(((entries[first] >> 16) as u16, first as u32, (at - first) as u32));
                first = at;
            }
        }
        for (position, (_, _, count)) in self.rows.iter().enumerate() {
            self.by_width[(*count as usize).min(WIDTH_MAX + 1) - 1].push(position as u32);
        }
        let (long, short) = self.by_width.split_last_mut().expect("there is one for the others");
        for members in short.iter_mut().filter(|members| members.len() < ROWS_MIN) {
            long.append(members);
        }
        long.sort_unstable();
    }

    fn segment(&mut self, width: usize, part: Part<'_>, entries: &[u32], values: &[u8], item: usize) {
        let Part { members, is_gapped } = part;
        let row = |member: &u32| self.rows[*member as usize].0;
        let out = &mut self.segments;
        out.push(width as u8);
        out.push(if is_gapped { 1 } else { 2 });
        out.extend(((members.len() - 1) as u16).to_le_bytes());
        out.extend(row(&members[0]).to_le_bytes());
        if is_gapped {
            out.extend(members.windows(2).map(|pair| (row(&pair[1]) - row(&pair[0])) as u8));
            if members.len().is_multiple_of(2) {
                out.push(0);
            }
        } else {
            members[1..]
                .iter()
                .for_each(|member| out.extend(row(member).to_le_bytes()));
        }
        if width == 0 {
            for member in members {
                out.extend(((self.rows[*member as usize].2 - 1) as u16).to_le_bytes());
            }
        }
        for member in members {
            let (_, first, count) = self.rows[*member as usize];
            let own = first as usize..(first + count) as usize;
            for entry in &entries[own.clone()] {
                out.extend((*entry as u16).to_le_bytes());
            }
            self.values.extend_from_slice(&values[own.start * item..own.end * item]);
        }
    }

    /// Adds the tiles of another behind those there are.
    pub fn append(&mut self, other: TileRowEncoder) {
        self.directory.extend(other.directory);
        self.segments.extend(other.segments);
        self.values.extend(other.values);
        self.entries += other.entries;
    }

    /// Whether no tile was added.
    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Puts the tile row behind what is in `out`, as long as a multiple of eight, and gives its entries. Begins a new one.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        let begin = out.len();
        let tiles = (self.directory.len() / LISTED_BYTES) as u32;
        let values_at = match self.values.is_empty() {
            true => 0,
            false => (HEAD_BYTES + self.directory.len() + self.segments.len()).next_multiple_of(8) as u64,
        };
        out.extend(tiles.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.extend(self.entries.to_le_bytes());
        out.extend(values_at.to_le_bytes());
        out.append(&mut self.directory);
        out.append(&mut self.segments);
        let end = begin + (out.len() - begin).next_multiple_of(8);
        out.resize(end, 0);
        out.append(&mut self.values);
        let end = begin + (out.len() - begin).next_multiple_of(8);
        out.resize(end, 0);
        std::mem::take(&mut self.entries)
    }
}

/// Rows of one segment.
struct Part<'a> {
    members: &'a [u32],
    is_gapped: bool,
}

/// Cuts the rows of a width into segments so that they take the fewest bytes: first some whose rows are distances of one
/// byte, cut where a distance is larger, then one of row numbers.
fn cut<'a>(rows: &[(u16, u32, u32)], members: &'a [u32]) -> Vec<Part<'a>> {
    let gap = |at: usize| rows[members[at] as usize].0 - rows[members[at - 1] as usize].0;
    let length = members.len();
    if length == 0 {
        return vec![];
    }
    // Bytes where the first `split` rows are gapped and the others numbered, less those that every way has.
    let numbered = |count: usize| if count > 0 { SEGMENT_BYTES + 2 * (count - 1) } else { 0 };
    let (mut best, mut split) = (numbered(length), 0);
    let mut gapped = SEGMENT_BYTES;
    for at in 1..=length {
        if gapped + numbered(length - at) < best {
            (best, split) = (gapped + numbered(length - at), at);
        }
        if at < length {
            gapped += if gap(at) > 255 { SEGMENT_BYTES } else { 1 };
        }
    }
    let mut parts = vec![];
    let mut first = 0;
    for at in 1..=split {
        if at == split || gap(at) > 255 {
            parts.push(Part {
                members: &members[first..at],
                is_gapped: true,
            });
            first = at;
        }
    }
    if first < length {
        parts.push(Part {
            members: &members[first..],
            is_gapped: false,
        });
    }
    parts
}
