//! The entries of a tile by rows and columns: a file has them by the lengths of rows.

use outcore_coding::tiles::Tile;
use outcore_coding::Malformed;

/// Values of the entries of a tile, in their order, and whether they are kept.
#[derive(Clone, Copy)]
pub(super) struct TileEntry<'a> {
    /// 1 for each that is kept; nothing where all are.
    pub kept: Option<&'a [u8]>,
    pub values: &'a [u8],
    /// Bytes of a value.
    pub item: usize,
}

impl TileEntry<'_> {
    fn is_kept(&self, at: usize) -> bool {
        self.kept.is_none_or(|kept| kept[at] != 0)
    }
}

/// Puts the entries of a tile in order, as row · 2¹⁶ + column, and their values: by counting those of each row, which lie
/// together. `counts` is memory for that.
///
/// # Errors
/// Rows or columns outside the tile.
pub(super) fn sort_kept(
    tile: &Tile<'_>,
    (height, width): (usize, usize),
    entry: TileEntry<'_>,
    (counts, entries, values): (&mut Vec<u32>, &mut [u32], &mut [u8]),
) -> Result<(), Malformed> {
    counts.clear();
    counts.resize(height, 0);
    let mut at = 0;
    tile.for_each(height, width, |row, _| {
        counts[usize::from(row)] += u32::from(entry.is_kept(at));
        at += 1;
    })?;
    let mut sum = 0;
    for count in counts.iter_mut() {
        sum += std::mem::replace(count, sum);
    }
    let (item, mut at) = (entry.item, 0);
    tile.for_each(height, width, |row, column| {
        if entry.is_kept(at) {
            let place = &mut counts[usize::from(row)];
            let to = *place as usize;
            *place += 1;
            entries[to] = u32::from(row) << 16 | u32::from(column);
            copy_item(item, &entry.values[at * item..], &mut values[to * item..]);
        }
        at += 1;
    })
}

#[inline(always)]
fn copy_item(item: usize, from: &[u8], to: &mut [u8]) {
    match item {
        0 => {}
        4 => to[..4].copy_from_slice(&from[..4]),
        8 => to[..8].copy_from_slice(&from[..8]),
        item => to[..item].copy_from_slice(&from[..item]),
    }
}
