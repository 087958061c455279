//! Entries row by row, as products of two sparse matrices go through them.

use bytemuck::Pod;

use super::encode::ENTRIES_MAX;
use super::tile::TileRow;
use crate::Malformed;

/// Values of some type, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Values {
    words: Vec<u64>,
    bytes: usize,
}

impl Values {
    /// So many bytes, all 0.
    pub fn zeroed(bytes: usize) -> Values {
        Values {
            words: vec![0; bytes.div_ceil(8)],
            bytes,
        }
    }

    /// None, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Values {
        Values {
            words: Vec::with_capacity(bytes.div_ceil(8)),
            bytes: 0,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    pub fn of<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    /// Adds values behind those there are.
    pub fn extend<T: Pod>(&mut self, values: &[T]) {
        let begin = self.bytes;
        self.bytes += size_of_val(values);
        self.words.resize(self.bytes.div_ceil(8), 0);
        self.bytes_mut()[begin..].copy_from_slice(bytemuck::cast_slice(values));
    }
}

/// The entries of a tile row, or of some rows of it, by row and column.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The rows that have entries, where they are few; else every row is there.
    numbers: Option<Vec<u16>>,
    /// Where each row begins, and where the last ends.
    starts: Vec<u32>,
    /// Columns in the matrix.
    pub columns: Vec<u64>,
    pub values: Values,
}

/// With fewer entries than the rows by this, rows without any are left out.
const FEW: usize = 8;

impl Rows {
    /// Bytes of so many entries, at most, with values of `item` bytes.
    pub fn bytes_of(entries: u64, rows: u64, item: usize) -> u64 {
        entries * (8 + item as u64) + 4 * (rows + 1).min(2 * FEW as u64 * (entries + 1))
    }

    /// Nothing, in so many rows.
    pub fn empty(rows: usize) -> Rows {
        Rows {
            starts: vec![0; rows + 1],
            ..Rows::default()
        }
    }

    /// The entries of a tile row of `rows` rows, with other values in the place of its own: one for each, of `item` bytes,
    /// in their order.
    ///
    /// # Errors
    /// A tile row that is malformed.
    pub fn new(row: &TileRow<'_>, side: u64, rows: usize, values: &[u8], item: usize) -> Result<Rows, Malformed> {
        let entries = row.entries() as usize;
        if entries > ENTRIES_MAX {
            return Err(Malformed(
                "a tile row has more entries than can be gone through by rows",
            ));
        }
        let mut counts = vec![0u32; rows + 1];
        for tile in row.tiles() {
            tile?.for_each(rows, side as usize, |row, _| counts[usize::from(row) + 1] += 1)?;
        }
        let mut next = counts;
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let starts = next.clone();
        let mut columns = vec![0; entries];
        let mut own = Values::zeroed(entries * item);
        let out = own.bytes_mut();
        let mut entry = 0;
        for tile in row.tiles() {
            let tile = tile?;
            let first = u64::from(tile.block) * side;
            tile.for_each(rows, side as usize, |row, column| {
                let at = next[usize::from(row)] as usize;
                next[usize::from(row)] += 1;
                columns[at] = first + u64::from(column);
                out[at * item..][..item].copy_from_slice(&values[entry * item..][..item]);
                entry += 1;
            })?;
        }
        let found = Rows {
            numbers: None,
            starts,
            columns,
            values: own,
        };
        Ok(match entries < rows / FEW {
            true => found.without_empty(rows),
            false => found,
        })
    }

    fn without_empty(self, rows: usize) -> Rows {
        let numbers: Vec<u16> = (0..rows)
            .filter(|row| self.starts[*row] < self.starts[row + 1])
            .map(|row| row as u16)
            .collect();
        let starts = numbers.iter().map(|row| self.starts[usize::from(*row)]);
        Rows {
            starts: starts.chain(self.starts.last().copied()).collect(),
            numbers: Some(numbers),
            ..self
        }
    }

    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Where the entries of a row are.
    #[inline]
    pub fn place(&self, row: usize) -> std::ops::Range<usize> {
        let position = match &self.numbers {
            None => row,
            Some(numbers) => match numbers.binary_search(&(row as u16)) {
                Ok(position) => position,
                Err(_) => return 0..0,
            },
        };
        self.starts[position] as usize..self.starts[position + 1] as usize
    }

    /// The rows of several parts, one behind the other; each part has every row of its own.
    pub fn joined(parts: Vec<Rows>) -> Rows {
        if parts.len() == 1 {
            return parts.into_iter().next().unwrap_or_default();
        }
        let sum = |of: fn(&Rows) -> usize| parts.iter().map(of).sum::<usize>();
        let mut all = Rows {
            numbers: None,
            starts: Vec::with_capacity(sum(|part| part.starts.len()) + 1),
            columns: Vec::with_capacity(sum(|part| part.columns.len())),
            values: Values::with_capacity(sum(|part| part.values.bytes().len())),
        };
        all.starts.push(0);
        for part in parts {
            let base = all.columns.len() as u32;
            all.starts.extend(part.starts.iter().skip(1).map(|start| base + start));
            all.columns.extend_from_slice(&part.columns);
            all.values.extend::<u8>(part.values.bytes());
        }
        all
    }

    /// Ends a row behind so many entries in all.
    pub fn end_row(&mut self) {
        self.starts.push(self.columns.len() as u32);
    }
}
