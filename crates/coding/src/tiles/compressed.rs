//! Tile rows made of compressed rows (CSR), which are in the order of rows and not of tiles.

use super::encode::{TileRowEncoder, WIDTH_MAX};
use super::layout::{HEAD_BYTES, LISTED_BYTES, SEGMENT_BYTES};
use crate::Malformed;

/// Makes a tile row of some rows: how many entries each has, their columns below `length`, and their values of `item`
/// bytes. Tiles have `side` columns.
///
/// # Errors
/// Columns that are not below `length`, two entries at one place, or other columns than there are entries.
pub fn encode_rows(
    counts: &[u64],
    columns: &[u64],
    values: &[u8],
    (side, length, item): (u64, u64, usize),
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    if counts.iter().sum::<u64>() != columns.len() as u64 || values.len() != columns.len() * item {
        return Err(Malformed("there are not as many columns or values as entries"));
    }
    if columns.iter().any(|column| *column >= length) {
        return Err(Malformed("a column lies outside the matrix"));
    }
    // Entries by tile, in their order: how many each has, and then where the next of it goes.
    let shift = side.trailing_zeros();
    let mut ends = vec![0u32; length.div_ceil(side) as usize];
    columns.iter().for_each(|column| ends[(column >> shift) as usize] += 1);
    let mut begin = 0;
    for end in &mut ends {
        begin += std::mem::replace(end, begin);
    }
    let mut entries = vec![0u32; columns.len()];
    let mut moved = vec![0; values.len()];
    let mut at = 0;
    for (row, count) in counts.iter().enumerate() {
        let own = at..at + *count as usize;
        for (column, from) in columns[own.clone()].iter().zip(own.clone()) {
            let place = &mut ends[(column >> shift) as usize];
            let to = *place as usize;
            entries[to] = (row as u32) << 16 | (column & (side - 1)) as u32;
            moved[to * item..(to + 1) * item].copy_from_slice(&values[from * item..(from + 1) * item]);
            *place += 1;
        }
        at = own.end;
    }
    let mut encoder = TileRowEncoder::default();
    let mut begin = 0;
    for (block, end) in ends.iter().map(|end| *end as usize).enumerate() {
        let own = begin..end;
        begin = end;
        if own.is_empty() {
            continue;
        }
        let (tile, values) = (&mut entries[own.clone()], &mut moved[own.start * item..own.end * item]);
        sort(tile, values, item)?;
        encoder.tile(block as u32, tile, values, item);
    }
    encoder.finish(out);
    Ok(())
}

/// Puts the entries of a tile in order, where they are not: rows are sorted, columns within them need not be.
fn sort(entries: &mut [u32], values: &mut [u8], item: usize) -> Result<(), Malformed> {
    let ascends = |entries: &[u32]| entries.windows(2).all(|pair| pair[0] < pair[1]);
    if ascends(entries) {
        return Ok(());
    }
    let mut order: Vec<(u32, u32)> = entries.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let before = values.to_vec();
    for (to, (entry, from)) in order.iter().enumerate() {
        entries[to] = *entry;
        let from = *from as usize;
        values[to * item..(to + 1) * item].copy_from_slice(&before[from * item..(from + 1) * item]);
    }
    match ascends(entries) {
        true => Ok(()),
        false => Err(Malformed("two entries are at one place")),
    }
}

/// Most bytes that a tile row of so many entries has.
pub fn rows_bytes(entries: u64, (side, length, item): (u64, u64, usize)) -> u64 {
    let tiles = length.div_ceil(side.max(1)).min(entries);
    let segments = tiles.saturating_mul(WIDTH_MAX as u64 + 1).min(entries);
    // An entry has its column, and at worst a row with a count, and an odd byte.
    let each = 2 + 2 + 2 + 1 + item as u64;
    let heads = tiles * LISTED_BYTES as u64 + segments * SEGMENT_BYTES as u64;
    (HEAD_BYTES as u64 + 16)
        .saturating_add(heads)
        .saturating_add(entries.saturating_mul(each))
        .next_multiple_of(64)
}
