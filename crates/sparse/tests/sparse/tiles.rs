//! Tiles against a plain loop over their entries.

use std::collections::BTreeMap;

use outcore_dtype::DType;
use proptest::prelude::*;

use outcore_sparse::*;

/// Entries by row and column.
type Entries = BTreeMap<(u16, u16), f64>;

fn entries(side: u16) -> impl Strategy<Value = Entries> {
    let scattered = prop::collection::btree_map((0..side, 0..side), -9i8..9, 0..200);
    let row = (0..side, prop::collection::btree_map(0..side, -9i8..9, 0..120));
    let few = prop::collection::btree_map((0..side.min(20), 0..side), -9i8..9, 0..200);
    (scattered, row, few).prop_map(|(scattered, (at, row), few)| {
        let row = row.into_iter().map(|(column, value)| ((at, column), value));
        let all = scattered.into_iter().chain(row).chain(few);
        all.map(|(place, value)| (place, f64::from(value))).collect()
    })
}

fn encoded(tiles: &[(u32, &Entries)], valued: bool) -> Vec<u8> {
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
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

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

/// The rows of a tile row.
fn rows(tiles: &[(u32, &Entries)]) -> Rows {
    let bytes = aligned(&encoded(tiles, true));
    let row = TileRow::new(bytemuck::cast_slice(&bytes), 8).expect("well formed");
    Rows::new(&row, 300, 300, row.values(), 8).expect("well formed")
}

fn product(semiring: Semiring, entries: &Entries, transposed: bool, width: usize, x: &[f64], y: &mut [f64]) {
    for ((row, column), value) in entries {
        let (from, to) = match transposed {
            false => (usize::from(*column), usize::from(*row)),
            true => (usize::from(*row), usize::from(*column)),
        };
        for lane in 0..width {
            let (x, y) = (x[from * width + lane], &mut y[to * width + lane]);
            let (add, multiply) = semiring.name().split_once('_').expect("two words");
            let term = match multiply {
                "times" => value * x,
                "plus" => value + x,
                "first" => *value,
                "second" => x,
                _ => 1.0,
            };
            *y = match add {
                "plus" => *y + term,
                "min" => y.min(term),
                "max" => y.max(term),
                _ => 1.0,
            };
        }
    }
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
    fn products_are_those_of_a_plain_loop(
        entries in entries(300), which in 0..Semiring::ALL.len() - 1, width in 1usize..40, valued: bool, transposed: bool,
    ) {
        let semiring = Semiring::ALL[which].1;
        let bytes = aligned(&encoded(&[(0, &entries)], valued));
        let row = TileRow::new(bytemuck::cast_slice(&bytes), if valued { 8 } else { 0 }).expect("well formed");
        let tile = row.tiles().next().expect("one tile").expect("well formed");
        let plain: Entries = entries.iter().map(|(place, value)| (*place, if valued { *value } else { 1.0 })).collect();
        let kernel = if transposed { transposed_kernel } else { product_kernel };
        let kernel = kernel(semiring, DType::F64, valued).expect("float64 makes every semiring but one");
        let x: Vec<f64> = (0..300 * width).map(|i| (i * 7919 % 23) as f64 - 11.0).collect();
        let zero = semiring.zero(DType::F64).expect("likewise");
        let mut y = vec![bytemuck::pod_read_unaligned::<f64>(&zero); 300 * width];
        let mut expected = y.clone();
        multiply_tile(kernel, tile, width, bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y))
            .expect("well formed");
        product(semiring, &plain, transposed, width, &x, &mut expected);
        prop_assert_eq!(y, expected);
    }

    /// In columns side by side, and so far apart that they have no bits.
    #[test]
    fn masks_let_through_what_they_name_and_nothing_else(
        first in entries(300), second in entries(300), named in entries(300), is_far: bool, batches in 1usize..3,
    ) {
        let first = rows(&[(0, &first)]);
        let apart = if is_far { 100_000 } else { 1 };
        let [second, mask] = [second, named].map(|entries| {
            let mut found = rows(&[(0, &entries)]);
            found.columns.iter_mut().for_each(|column| *column *= apart);
            found
        });
        let kernel = rows_product(Semiring::PlusTimes, DType::F64).expect("float64");
        let multiply = |mask: Option<Mask<'_>>| {
            let mut table = Table::default();
            let mut made: Option<Rows> = None;
            for batch in 0..batches {
                let tile_rows = if batch == 0 { vec![(0, &second)] } else { vec![] };
                let batch = Batch { side: 300, tile_rows };
                let operands = Operands { first: &first, rows: 0..300, batch: &batch, before: made.as_ref(), mask };
                made = Some(kernel(&operands, &mut table));
            }
            made.expect("one batch")
        };
        let plain = multiply(None);
        for complement in [false, true] {
            let masked = multiply(Some(Mask { rows: &mask, complement, columns: u64::MAX }));
            for row in 0..300 {
                let (all, own, names) = (plain.place(row), masked.place(row), &mask.columns[mask.place(row)]);
                let wanted: Vec<(u64, f64)> = all
                    .map(|at| (plain.columns[at], plain.values.of::<f64>()[at]))
                    .filter(|(column, _)| names.contains(column) != complement)
                    .collect();
                let found: Vec<(u64, f64)> =
                    own.map(|at| (masked.columns[at], masked.values.of::<f64>()[at])).collect();
                prop_assert_eq!(found, wanted);
            }
        }
    }

    #[test]
    fn broken_bytes_are_errors_or_tiles_that_stay_inside(
        entries in entries(300), valued: bool, breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(), is_cut: bool,
    ) {
        let mut bytes = encoded(&[(0, &entries), (9, &entries)], valued);
        for (place, byte) in breaks {
            let at = place.index(bytes.len());
            bytes[at] ^= byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let words = aligned(&bytes);
        let bytes = &bytemuck::cast_slice(&words)[..bytes.len()];
        let (x, mut y) = (vec![1.0; 300 * 3], vec![0.0; 300 * 3]);
        for kernel in [product_kernel, transposed_kernel] {
            let kernel = kernel(Semiring::PlusTimes, DType::F64, valued).expect("float64");
            let item = if valued { 8 } else { 0 };
            let Ok(row) = TileRow::new(bytes, item) else { continue };
            for tile in row.tiles().map_while(Result::ok) {
                let _ = tile.for_each(300, 300, |row, column| assert!(row < 300 && column < 300));
            }
            if check_tile_row(bytes, item, 300, 300, 3000).is_ok() {
                for tile in row.tiles() {
                    let (x, y) = (bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
                    multiply_tile(kernel, tile.expect("checked"), 3, x, y).expect("checked");
                }
            }
        }
    }
}

#[test]
fn every_semiring_has_the_kernels_of_its_types() {
    for (name, semiring) in Semiring::ALL {
        assert_eq!((Semiring::named(name), semiring.name()), (Some(semiring), name));
        for dtype in [
            DType::F32,
            DType::F64,
            DType::I64,
            DType::Bool,
            DType::C64,
            DType::C128,
            DType::U8,
        ] {
            for valued in [false, true] {
                let is_one = semiring.zero(dtype).is_some();
                for kernel in [product_kernel, transposed_kernel] {
                    assert_eq!(kernel(semiring, dtype, valued).is_some(), is_one, "{name} {dtype}");
                }
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
