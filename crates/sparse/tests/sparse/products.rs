//! Products of tiles and of rows against plain loops over their entries.

use outcore_coding::tiles::{check_tile_row, Rows, TileRow};
use outcore_dtype::DType;
use outcore_sparse::*;
use proptest::prelude::*;

use crate::support::{aligned, broken, encoded, entries, Entries};

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
    fn broken_bytes_that_pass_the_check_are_multiplied(
        entries in entries(300), valued: bool, breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(), is_cut: bool,
    ) {
        let cut = is_cut.then_some(cut);
        let (words, length) = broken(&entries, valued, breaks, cut);
        let bytes = &bytemuck::cast_slice(&words)[..length];
        let (x, mut y) = (vec![1.0; 300 * 3], vec![0.0; 300 * 3]);
        let item = if valued { 8 } else { 0 };
        if check_tile_row(bytes, item, 300, 300, 3000).is_ok() {
            let row = TileRow::new(bytes, item).expect("checked");
            for kernel in [product_kernel, transposed_kernel] {
                let kernel = kernel(Semiring::PlusTimes, DType::F64, valued).expect("float64");
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
