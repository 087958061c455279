//! Tile rows as they lie in memory, read without trust.

use super::layout::{HEAD_BYTES, LISTED_BYTES, SEGMENT_BYTES, SIDE_MAX};
use crate::Malformed;

type Result<T> = std::result::Result<T, Malformed>;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A tile row: the tiles that have entries, by column.
#[derive(Clone, Copy, Debug)]
pub struct TileRow<'a> {
    directory: &'a [u8],
    segments: &'a [u8],
    values: &'a [u8],
    /// Bytes of a value; 0 where there are none.
    item: usize,
    entries: u64,
}

/// A tile. Entries and lengths have been held against the bytes; rows and columns have not.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    /// Its column of tiles.
    pub block: u32,
    pub entries: usize,
    pub bytes: &'a [u8],
    pub segments: usize,
    /// Of the entries, in their order; empty where the matrix has none.
    pub values: &'a [u8],
}

impl<'a> TileRow<'a> {
    /// Looks at the bytes of a tile row whose values have `item` bytes, 0 for none.
    ///
    /// # Errors
    /// Lengths that do not agree.
    pub fn new(bytes: &'a [u8], item: usize) -> Result<TileRow<'a>> {
        let cut = Malformed("a tile row is cut off");
        let tiles = u32_at(bytes, 0).ok_or(cut)? as usize;
        let entries = u64_at(bytes, 8).ok_or(cut)?;
        let values_at = u64_at(bytes, 16).ok_or(cut)?;
        let listed = tiles
            .checked_mul(LISTED_BYTES)
            .and_then(|bytes| bytes.checked_add(HEAD_BYTES));
        let begin = listed.filter(|begin| *begin <= bytes.len()).ok_or(cut)?;
        let (end, values) = match item {
            0 => (bytes.len(), &[][..]),
            _ => {
                let at = usize::try_from(values_at)
                    .ok()
                    .filter(|at| (begin..=bytes.len()).contains(at) && at.is_multiple_of(8));
                let at = at.ok_or(Malformed("the values begin outside the tile row"))?;
                let length = usize::try_from(entries)
                    .ok()
                    .and_then(|entries| entries.checked_mul(item));
                let values = length.and_then(|length| bytes[at..].get(..length));
                (at, values.ok_or(Malformed("there are fewer values than entries"))?)
            }
        };
        let row = TileRow {
            directory: &bytes[HEAD_BYTES..begin],
            segments: &bytes[begin..end],
            values,
            item,
            entries,
        };
        let listed = row.directory.chunks_exact(LISTED_BYTES);
        let counted: u64 = listed.map(|tile| u64::from(u32_at(tile, 4).unwrap_or_default())).sum();
        match counted == entries {
            true => Ok(row),
            false => Err(Malformed("the tiles have not the entries of their tile row")),
        }
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Of all entries, in their order; none where the matrix has none.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// The tiles, by column. What they claim of entries and bytes is less than there is, or an error.
    pub fn tiles(self) -> impl Iterator<Item = Result<Tile<'a>>> {
        let (mut bytes, mut entries) = (0usize, 0usize);
        let mut before: Option<u32> = None;
        self.directory.chunks_exact(LISTED_BYTES).map(move |listed| {
            let word = |at: usize| u32_at(listed, at).unwrap_or_default();
            let (block, own, length, segments) = (word(0), word(4) as usize, word(8) as usize, word(12) as usize);
            if before.is_some_and(|before| before >= block) {
                return Err(Malformed("tiles are out of order"));
            }
            before = Some(block);
            let (first, value) = (bytes, entries);
            bytes = bytes.saturating_add(length);
            entries = entries.saturating_add(own);
            let tile = self
                .segments
                .get(first..bytes)
                .ok_or(Malformed("a tile leaves its tile row"))?;
            let values = self.values.get(value * self.item..entries.saturating_mul(self.item));
            Ok(Tile {
                block,
                entries: own,
                bytes: tile,
                segments,
                values: values.ok_or(Malformed("a tile has more entries than its tile row"))?,
            })
        })
    }
}

/// The columns of tiles that the head of a tile row lists, ascending, and the entries of each.
///
/// # Errors
/// A head that is cut off, or lists tiles out of order.
pub fn listed_tiles(head: &[u8]) -> Result<Vec<(u32, u32)>> {
    let cut = Malformed("a tile row is cut off");
    let tiles = u32_at(head, 0).ok_or(cut)? as usize;
    let end = tiles
        .checked_mul(LISTED_BYTES)
        .and_then(|bytes| bytes.checked_add(HEAD_BYTES));
    let listed = end.and_then(|end| head.get(HEAD_BYTES..end)).ok_or(cut)?;
    let word = |tile: &[u8], at: usize| u32_at(tile, at).unwrap_or_default();
    let found: Vec<(u32, u32)> = listed
        .chunks_exact(LISTED_BYTES)
        .map(|tile| (word(tile, 0), word(tile, 4)))
        .collect();
    match found.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        true => Ok(found),
        false => Err(Malformed("tiles are out of order")),
    }
}

/// Looks at all that the bytes of a tile row say, as it has to be done once before it is multiplied: tiles of `side` rows
/// and columns, of which the row has `rows`, and the matrix `columns` in all.
///
/// # Errors
/// Lengths that do not agree; rows or columns outside the matrix, twice in it, or out of order.
pub fn check_tile_row(bytes: &[u8], item: usize, side: u64, rows: u64, columns: u64) -> Result<u64> {
    let row = TileRow::new(bytes, item)?;
    for tile in row.tiles() {
        let tile = tile?;
        let width = side.min(columns.saturating_sub(u64::from(tile.block) * side));
        if width == 0 {
            return Err(Malformed("a tile lies beside the matrix"));
        }
        tile.check(rows as usize, width as usize)?;
    }
    Ok(row.entries())
}

/// Rows of a tile that have equally many entries, or a count each.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Entries of each row; 0 where `counts` says.
    pub width: usize,
    first: u16,
    pub rows: RowNumbers<'a>,
    pub counts: &'a [u16],
    pub columns: &'a [u16],
}

/// The rows of a segment behind its first.
#[derive(Clone, Copy, Debug)]
pub enum RowNumbers<'a> {
    Gaps(&'a [u8]),
    Numbers(&'a [u16]),
}

/// Numbers that are compared together.
const CHUNK: usize = 256;

/// Numbers that are not above the one before.
fn falls(numbers: &[u16]) -> usize {
    let next = numbers.get(1..).unwrap_or_default();
    let parts = numbers.chunks(CHUNK).zip(next.chunks(CHUNK));
    // Counted in as few bits as they have, a vector at a time; a chunk has no more than these hold.
    let of_part = |(part, next): (&[u16], &[u16])| {
        let falls = part.iter().zip(next).map(|(one, next)| u16::from(one >= next));
        usize::from(falls.sum::<u16>())
    };
    parts.map(of_part).sum()
}

fn words(bytes: &[u8]) -> Result<&[u16]> {
    if bytes.is_empty() {
        return Ok(&[]); // wherever nothing lies
    }
    bytemuck::try_cast_slice(bytes).map_err(|_| Malformed("a segment lies at an odd place"))
}

impl<'a> Tile<'a> {
    /// The tile with other values in the place of its own, one for each entry.
    pub fn with_values(self, values: &'a [u8]) -> Tile<'a> {
        Tile { values, ..self }
    }

    /// Its segments, with lengths that agree, or an error.
    #[inline]
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'a>>> {
        let (mut rest, mut left) = (self.bytes, self.entries);
        let count = self.segments;
        let none = (count == 0 && left > 0).then_some(Err(Malformed("a tile has entries and no segments")));
        none.into_iter().chain((1..=count).map(move |number| {
            let (segment, after) = Segment::split(rest)?;
            rest = after;
            left = left
                .checked_sub(segment.columns.len())
                .ok_or(Malformed("a tile has more entries than it says"))?;
            if number == count && left > 0 {
                return Err(Malformed("a tile has fewer entries than it says"));
            }
            Ok(segment)
        }))
    }

    /// Refuses a tile with rows and columns that are not below these, a row that stands in it twice, and columns that do
    /// not ascend.
    fn check(&self, rows: usize, columns: usize) -> Result<()> {
        // Rows ascend within a segment; a row of several segments would be in one of them again.
        let mut seen = (self.segments > 1).then_some([0u64; SIDE_MAX.div_ceil(64)]);
        self.segments().try_for_each(|segment| {
            let segment = segment?;
            segment.check(rows, columns)?;
            segment.check_order()?;
            let Some(seen) = &mut seen else { return Ok(()) };
            let mut again = 0;
            let mut rows = segment.walk();
            while let Some((_, numbers)) = rows.next_rows() {
                for row in numbers {
                    let (word, bit) = (&mut seen[usize::from(*row) / 64], 1 << (row % 64));
                    again |= *word & bit;
                    *word |= bit;
                }
            }
            (again == 0)
                .then_some(())
                .ok_or(Malformed("a row stands in its tile twice"))
        })
    }

    /// Calls `each` with row and column of every entry, in their order.
    ///
    /// # Errors
    /// Rows or columns outside the tile, lengths that do not agree.
    pub fn for_each(&self, rows: usize, columns: usize, mut each: impl FnMut(u16, u16)) -> Result<()> {
        let mut seen = 0;
        for segment in self.segments() {
            let segment = segment?;
            segment.check(rows, columns)?;
            let mut at = 0;
            let mut rows = segment.walk();
            while let Some((first, numbers)) = rows.next_rows() {
                for (position, row) in numbers.iter().enumerate() {
                    let count = segment.count(first + position);
                    for column in &segment.columns[at..at + count] {
                        each(*row, *column);
                    }
                    at += count;
                }
            }
            seen += at;
        }
        match seen == self.entries {
            true => Ok(()),
            false => Err(Malformed("a tile has fewer entries than it says")),
        }
    }
}

impl<'a> Segment<'a> {
    #[inline]
    fn split(bytes: &'a [u8]) -> Result<(Segment<'a>, &'a [u8])> {
        let cut = Malformed("a segment is cut off");
        let width = usize::from(*bytes.first().ok_or(cut)?);
        let coding = *bytes.get(1).ok_or(cut)?;
        let rows = usize::from(u16_at(bytes, 2).ok_or(cut)?) + 1;
        let first = u16_at(bytes, 4).ok_or(cut)?;
        let rest = &bytes[SEGMENT_BYTES..];
        let (others, rest) = match coding {
            1 => {
                let (gaps, rest) = rest.split_at_checked((rows - 1).next_multiple_of(2)).ok_or(cut)?;
                (RowNumbers::Gaps(&gaps[..rows - 1]), rest)
            }
            2 => {
                let (numbers, rest) = rest.split_at_checked(2 * (rows - 1)).ok_or(cut)?;
                (RowNumbers::Numbers(words(numbers)?), rest)
            }
            _ => return Err(Malformed("a segment codes its rows in an unknown way")),
        };
        let (counts, rest) = match width {
            0 => rest.split_at_checked(2 * rows).ok_or(cut)?,
            _ => (&[][..], rest),
        };
        let counts = words(counts)?;
        let entries = match width {
            0 => counts.iter().map(|count| usize::from(*count) + 1).sum(),
            _ => width * rows,
        };
        let (columns, rest) = rest.split_at_checked(2 * entries).ok_or(cut)?;
        let segment = Segment {
            width,
            first,
            rows: others,
            counts,
            columns: words(columns)?,
        };
        Ok((segment, rest))
    }

    fn check(&self, rows: usize, columns: usize) -> Result<()> {
        let last = match self.rows {
            RowNumbers::Gaps(gaps) => usize::from(self.first) + gaps.iter().map(|gap| usize::from(*gap)).sum::<usize>(),
            RowNumbers::Numbers(numbers) => usize::from(numbers.iter().fold(self.first, |most, row| most.max(*row))),
        };
        if last >= rows {
            return Err(Malformed("a row lies outside its tile"));
        }
        if usize::from(self.columns.iter().fold(0, |most, column| most.max(*column))) >= columns {
            return Err(Malformed("a column lies outside its tile"));
        }
        Ok(())
    }

    /// Refuses rows that do not ascend, and columns that do not within their row.
    fn check_order(&self) -> Result<()> {
        let rows_ascend = match self.rows {
            RowNumbers::Gaps(gaps) => gaps.iter().fold(true, |ascend, gap| ascend & (*gap != 0)),
            RowNumbers::Numbers(numbers) => {
                numbers.first().is_none_or(|next| self.first < *next) && falls(numbers) == 0
            }
        };
        if !rows_ascend {
            return Err(Malformed("the rows of a segment do not ascend"));
        }
        // All of them are counted, a vector at a time, and then those from the end of one row to the begin of the next.
        let falls_at = |next: usize| usize::from(self.columns[next - 1] >= self.columns[next]);
        let between = match self.width {
            1 => return Ok(()),
            0 => {
                let mut end = 0;
                let ends = self.counts.iter().map(|count| {
                    end += usize::from(*count) + 1;
                    end
                });
                ends.filter(|end| *end < self.columns.len()).map(falls_at).sum()
            }
            width => (width..self.columns.len()).step_by(width).map(falls_at).sum::<usize>(),
        };
        match falls(self.columns) == between {
            true => Ok(()),
            false => Err(Malformed("the columns of a row do not ascend")),
        }
    }

    /// Entries of a row.
    #[inline(always)]
    pub fn count(&self, row: usize) -> usize {
        match self.width {
            0 => usize::from(self.counts[row]) + 1,
            width => width,
        }
    }

    /// A walk over the rows, some at a time.
    pub fn walk(&self) -> RowWalk<'a> {
        RowWalk {
            first: [self.first],
            others: self.rows,
            row: self.first,
            at: 0,
            summed: [0; CHUNK],
        }
    }
}

/// Rows of a segment, decoded some at a time: one function for the hundreds of products that are compiled around it.
pub struct RowWalk<'a> {
    first: [u16; 1],
    others: RowNumbers<'a>,
    /// The last row decoded.
    row: u16,
    /// Rows decoded so far.
    at: usize,
    summed: [u16; CHUNK],
}

impl RowWalk<'_> {
    /// The numbers of the next rows, and where the first of them stands among the rows of the segment; None behind the last.
    #[inline(never)]
    pub fn next_rows(&mut self) -> Option<(usize, &[u16])> {
        let at = self.at;
        let numbers = match self.others {
            _ if at == 0 => &self.first[..],
            RowNumbers::Numbers(numbers) => &numbers[at - 1..],
            RowNumbers::Gaps(gaps) => {
                let gaps = &gaps[at - 1..];
                let gaps = &gaps[..gaps.len().min(CHUNK)];
                for (number, gap) in self.summed.iter_mut().zip(gaps) {
                    self.row = self.row.wrapping_add(u16::from(*gap));
                    *number = self.row;
                }
                &self.summed[..gaps.len()]
            }
        };
        self.at += numbers.len();
        (!numbers.is_empty()).then_some((at, numbers))
    }
}
