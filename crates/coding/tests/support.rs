//! Entries of drawn tiles, and their bytes.

use std::collections::BTreeMap;

use outcore_coding::tiles::TileRowEncoder;
use proptest::prelude::*;

/// Entries by row and column.
pub type Entries = BTreeMap<(u16, u16), f64>;

pub fn entries(side: u16) -> impl Strategy<Value = Entries> {
    let scattered = prop::collection::btree_map((0..side, 0..side), -9i8..9, 0..200);
    let row = (0..side, prop::collection::btree_map(0..side, -9i8..9, 0..120));
    let few = prop::collection::btree_map((0..side.min(20), 0..side), -9i8..9, 0..200);
    (scattered, row, few).prop_map(|(scattered, (at, row), few)| {
        let row = row.into_iter().map(|(column, value)| ((at, column), value));
        let all = scattered.into_iter().chain(row).chain(few);
        all.map(|(place, value)| (place, f64::from(value))).collect()
    })
}

pub fn encoded(tiles: &[(u32, &Entries)], valued: bool) -> Vec<u8> {
    let mut encoder = TileRowEncoder::default();
    for (block, entries) in tiles {
        let places: Vec<u32> = entries
            .keys()
            .map(|(row, column)| u32::from(*row) << 16 | u32::from(*column))
            .collect();
        let values: Vec<f64> = entries.values().copied().collect();
        let (values, item) = match valued {
            true => (bytemuck::cast_slice(&values), 8),
            false => (&[][..], 0),
        };
        encoder.tile(*block, &places, values, item);
    }
    let mut bytes = vec![];
    encoder.finish(&mut bytes);
    bytes
}

/// A copy whose first byte lies as it does in a frame.
pub fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Two tiles of the same entries with other bits in some bytes, and cut off where one says so; and how many bytes are left.
pub fn broken(
    entries: &Entries,
    valued: bool,
    breaks: Vec<(prop::sample::Index, u8)>,
    cut: Option<prop::sample::Index>,
) -> (Vec<u64>, usize) {
    let mut bytes = encoded(&[(0, entries), (9, entries)], valued);
    for (place, byte) in breaks {
        let at = place.index(bytes.len());
        bytes[at] ^= byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    (aligned(&bytes), bytes.len())
}
