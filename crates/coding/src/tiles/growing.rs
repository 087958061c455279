//! A tile row that is encoded where it will lie, tile by tile.

use super::encode::{segments_bytes_most, TileEncoder};
use super::layout::{HEAD_BYTES, LISTED_BYTES};

/// The most that a tile row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimits {
    pub tiles: u64,
    pub entries: u64,
    /// Bytes of a value, 0 where there are none.
    pub item: usize,
}

impl RowLimits {
    /// Where the segments begin while the row grows.
    fn segments(self) -> u64 {
        (HEAD_BYTES as u64).saturating_add(self.tiles.saturating_mul(LISTED_BYTES as u64))
    }

    /// Where the values begin while the row grows, at least.
    fn values(self) -> u64 {
        let segments = segments_bytes_most(self.tiles, self.entries);
        self.segments().saturating_add(segments).saturating_add(7) / 8 * 8
    }

    /// Bytes of the row, at most.
    pub fn bytes(self) -> u64 {
        let values = self.entries.saturating_mul(self.item as u64).saturating_add(7) / 8 * 8;
        self.values().saturating_add(values)
    }
}

/// A tile row in memory of the caller, which has all that is known of it, so that one task may go on where another ended.
///
/// While it grows, its head has the tiles, the entries and the bytes of the segments that there are; segments begin behind
/// the longest list of tiles, and values behind the most bytes of segments.
pub struct GrowingRow<'a> {
    memory: &'a mut [u8],
    limits: RowLimits,
    tiles: usize,
    entries: usize,
    segments: usize,
}

impl<'a> GrowingRow<'a> {
    /// A row without tiles, in memory of at least the bytes of its limits.
    pub fn begin(memory: &'a mut [u8], limits: RowLimits) -> GrowingRow<'a> {
        memory[..HEAD_BYTES].fill(0);
        GrowingRow::again(memory, limits)
    }

    /// The row that another task has left there.
    pub fn again(memory: &'a mut [u8], limits: RowLimits) -> GrowingRow<'a> {
        let word = |at: usize| u64::from_le_bytes(*memory[at..].first_chunk().expect("a head")) as usize;
        GrowingRow {
            tiles: word(0),
            entries: word(8),
            segments: word(16),
            memory,
            limits,
        }
    }

    /// Adds a tile behind those there are: entries and values as of [`TileEncoder::encode`].
    ///
    /// # Panics
    /// Beyond the limits.
    pub fn add(&mut self, encoder: &mut TileEncoder, block: u32, entries: &[u32], values: &[u8]) {
        let item = self.limits.item;
        let (front, back) = self.memory.split_at_mut(self.limits.values() as usize);
        let (listed, segments) = front.split_at_mut(self.limits.segments() as usize);
        let length = encoder.encode(
            entries,
            values,
            item,
            &mut segments[self.segments..],
            &mut back[self.entries * item..],
        );
        let at = HEAD_BYTES + self.tiles * LISTED_BYTES;
        let words = [block, entries.len() as u32, length.bytes as u32, length.segments];
        for (to, word) in listed[at..at + LISTED_BYTES].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.tiles += 1;
        self.entries += entries.len();
        self.segments += length.bytes;
        let words = [self.tiles, self.entries, self.segments];
        for (to, word) in listed[..HEAD_BYTES].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&(word as u64).to_le_bytes());
        }
    }

    /// How many entries it has.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Moves its parts together, and gives the bytes of the row, a multiple of eight.
    pub fn finish(self) -> usize {
        let from = self.limits.segments() as usize;
        let listed = HEAD_BYTES + self.tiles * LISTED_BYTES;
        self.memory.copy_within(from..from + self.segments, listed);
        let end = listed + self.segments;
        let values_at = end.next_multiple_of(8);
        let (from, bytes) = (self.limits.values() as usize, self.entries * self.limits.item);
        self.memory.copy_within(from..from + bytes, values_at);
        self.memory[end..values_at].fill(0);
        let end = (values_at + bytes).next_multiple_of(8);
        self.memory[values_at + bytes..end].fill(0);
        let values_at = if bytes == 0 { 0 } else { values_at };
        let words = [self.tiles, self.entries, values_at];
        for (to, word) in self.memory[..HEAD_BYTES].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&(word as u64).to_le_bytes());
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::{put_tiles, TileRowEncoder};
    use super::super::tile::TileRow;
    use super::*;

    #[test]
    fn a_row_that_grew_is_the_row_that_was_made_at_once() {
        let entries: Vec<Vec<u32>> = vec![
            vec![5, 1 << 16 | 2, 1 << 16 | 9],
            (0..700).map(|at| ((at / 3) << 16) | (at % 3)).collect(),
            vec![7],
        ];
        for item in [0, 1, 4, 8, 16] {
            let limits = RowLimits {
                tiles: 5,
                entries: 900,
                item,
            };
            let (mut memory, mut encoder) = (vec![0xa5; limits.bytes() as usize], TileEncoder::default());
            let mut whole = TileRowEncoder::default();
            GrowingRow::begin(&mut memory, limits);
            for (block, entries) in entries.iter().enumerate() {
                let values: Vec<u8> = (0..entries.len() * item).map(|at| at as u8).collect();
                let block = 3 * block as u32;
                GrowingRow::again(&mut memory, limits).add(&mut encoder, block, entries, &values);
                whole.tile(block, entries, &values, item);
            }
            let row = GrowingRow::again(&mut memory, limits);
            assert_eq!(row.entries(), 704);
            let bytes = row.finish();
            let mut expected = vec![];
            whole.finish(&mut expected);
            assert!(memory[..bytes] == expected, "values of {item} bytes");
            let row = TileRow::new(&expected, item).expect("a tile row");
            let tiles: Result<Vec<_>, _> = row.tiles().collect();
            let mut out = vec![0; limits.bytes() as usize];
            let length = put_tiles(&tiles.expect("tiles"), item, &mut out);
            assert!(out[..length] == expected);
        }
    }
}
