//! Tiles as bytes, against their entries.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod support;

use outcore_coding::tiles::{check_tile_row, TileRow, TileRowEncoder};
use outcore_coding::Malformed;
use proptest::prelude::*;

use support::{aligned, broken, encoded, entries, Entries};

fn decoded(bytes: &[u8], item: usize, side: usize) -> Result<Vec<(u32, Entries)>, Malformed> {
    let mut found = vec![];
    for tile in TileRow::new(bytes, item)?.tiles() {
        let tile = tile?;
        let values: &[f64] = if item > 0 {
            bytemuck::cast_slice(tile.values)
        } else {
            &[]
        };
        let mut own = Entries::new();
        let mut at = 0;
        tile.for_each(side, side, |row, column| {
            own.insert((row, column), values.get(at).copied().unwrap_or(1.0));
            at += 1;
        })?;
        found.push((tile.block, own));
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_encoded_is_decoded(a in entries(700), b in entries(16), valued: bool) {
        let tiles: Vec<_> = [(3, &a), (70_000, &b)].into_iter().filter(|(_, tile)| !tile.is_empty()).collect();
        let bytes = aligned(&encoded(&tiles, valued));
        let found = decoded(bytemuck::cast_slice(&bytes), if valued { 8 } else { 0 }, 700).expect("well formed");
        prop_assert_eq!(found.len(), tiles.len());
        for ((block, own), (wanted, entries)) in found.iter().zip(&tiles) {
            prop_assert_eq!(block, wanted);
            prop_assert!(own.keys().eq(entries.keys()));
            prop_assert!(!valued || own.values().eq(entries.values()));
        }
    }

    #[test]
    fn broken_bytes_are_errors_or_tiles_that_stay_inside(
        entries in entries(300), valued: bool, breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(), is_cut: bool,
    ) {
        let cut = is_cut.then_some(cut);
        let (words, length) = broken(&entries, valued, breaks, cut);
        let bytes = &bytemuck::cast_slice(&words)[..length];
        if let Ok(row) = TileRow::new(bytes, if valued { 8 } else { 0 }) {
            for tile in row.tiles().map_while(Result::ok) {
                let _ = tile.for_each(300, 300, |row, column| assert!(row < 300 && column < 300));
            }
        }
    }
}

#[test]
fn places_of_a_scattered_tile_take_few_bytes() {
    // 4 Ki rows of 1, 2, 3 or 4 entries, as in the middle of a power-law graph.
    let entries: Entries = (0..4096u32)
        .flat_map(|row| {
            (0..row % 4 + 1).map(move |entry| ((row as u16 * 4, (row * 37 % 4096 + entry * 4099) as u16), 1.0))
        })
        .collect();
    let bytes = encoded(&[(0, &entries)], false);
    let each = bytes.len() as f64 / entries.len() as f64;
    assert!(each < 2.45, "{each} bytes an entry");
}

/// The format says that rows ascend in a segment and are in one of them, and that columns ascend in a row.
#[test]
fn entries_twice_or_out_of_order_are_refused() {
    let checked = |places: &[(u32, u32)]| {
        let places: Vec<u32> = places.iter().map(|(row, column)| row << 16 | column).collect();
        let (mut encoder, mut bytes) = (TileRowEncoder::default(), vec![]);
        encoder.tile(0, &places, &[], 0);
        encoder.finish(&mut bytes);
        check_tile_row(&bytes, 0, 64, 64, 64)
    };
    let rows = |columns: &[u32]| -> Vec<(u32, u32)> {
        let row = |row: u32| columns.iter().map(move |column| (row, *column));
        (0..4).flat_map(row).collect()
    };
    let many: Vec<u32> = (0..20).collect();
    for columns in [&[3][..], &[3, 5], &[0, 9, 63], &many] {
        assert_eq!(checked(&rows(columns)), Ok(4 * columns.len() as u64));
    }
    let falling = Err(Malformed("the columns of a row do not ascend"));
    let mut other = many.clone();
    other.swap(7, 8);
    for columns in [&[5, 3][..], &[3, 3], &[0, 9, 9], &[0, 9, 4, 10], &other] {
        assert_eq!(checked(&rows(columns)), falling, "{columns:?}");
    }
    // Rows of one entry and rows of two stand in segments of their own.
    let twice = [rows(&[1]), rows(&[2, 3])].concat();
    assert_eq!(checked(&twice), Err(Malformed("a row stands in its tile twice")));
}
