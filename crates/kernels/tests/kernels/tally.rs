//! Tables of numbers and of what stands beside them.

use bytemuck::Pod;
use outcore_dtype::DType;
use outcore_kernels::{clear_tally, merge_tallies, tally, tally_places, tally_squares, Tally, TallyTypes};

const NUMBERS: [i64; 6] = [0, 2, 2, -1, 3, i64::MAX];

fn gathered<T: Pod>(op: Tally, dtype: DType, values: &[T], columns: usize) -> Vec<T> {
    let mut table = values[..3 * columns].to_vec();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut table);
    clear_tally(op, dtype, bytes);
    let numbers = bytemuck::cast_slice(&NUMBERS);
    let types = TallyTypes {
        values: dtype,
        table: dtype,
    };
    tally(op, types, numbers, bytemuck::cast_slice(values), columns, bytes);
    table
}

#[test]
fn numbers_without_a_row_are_left_out() {
    let mut counts = [0i64; 3];
    tally(
        Tally::Count,
        TallyTypes {
            values: DType::I64,
            table: DType::I64,
        },
        bytemuck::cast_slice(&NUMBERS),
        &[],
        1,
        bytemuck::cast_slice_mut(&mut counts),
    );
    assert_eq!(counts, [1, 0, 2]);
    let weights = [0.5, 1.0, 2.0, 9.0, 9.0, 9.0];
    let mut sums = gathered(Tally::Sum, DType::F64, &weights, 1);
    assert_eq!(sums, [0.5, 0.0, 3.0]);
    let copy = sums.clone();
    merge_tallies(
        Tally::Sum,
        DType::F64,
        bytemuck::cast_slice(&copy),
        bytemuck::cast_slice_mut(&mut sums),
    );
    assert_eq!(sums, [1.0, 0.0, 6.0]);
}

#[test]
fn rows_are_combined_column_by_column() {
    let values: Vec<f64> = [1.0, -2.0, 3.0, f64::NAN, -5.0, 7.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0].to_vec();
    let found = gathered(Tally::Min, DType::F64, &values, 2);
    assert_eq!(found[..3], [1.0, -2.0, f64::INFINITY]);
    assert!(found[4] == -5.0 && found[5].is_nan());
    let found = gathered(Tally::Max, DType::F64, &values, 2);
    assert!(found[4] == 3.0 && found[5].is_nan() && found[2] == f64::NEG_INFINITY);
    let whole: Vec<i64> = (1..=12).collect();
    assert_eq!(gathered(Tally::Prod, DType::I64, &whole, 2), [1, 2, 1, 1, 15, 24]);
    assert_eq!(gathered(Tally::Max, DType::I64, &whole, 2)[4..], [5, 6]);
}

#[test]
fn values_are_read_in_their_own_type() {
    let types = |values, table| TallyTypes { values, table };
    let numbers: &[u8] = bytemuck::cast_slice(&NUMBERS);
    let single = [0.5f32, 1.0, 2.0, 9.0, 9.0, 9.0];
    let mut sums = [0.0f64; 3];
    let table = bytemuck::cast_slice_mut(&mut sums);
    tally(
        Tally::Sum,
        types(DType::F32, DType::F64),
        numbers,
        bytemuck::cast_slice(&single),
        1,
        table,
    );
    assert_eq!(sums, [0.5, 0.0, 3.0]);
    let bytes = [200u8, 100, 200, 1, 1, 1];
    let mut whole = [0i64; 3];
    tally(
        Tally::Sum,
        types(DType::U8, DType::I64),
        numbers,
        &bytes,
        1,
        bytemuck::cast_slice_mut(&mut whole),
    );
    assert_eq!(whole, [200, 0, 300]);
}

#[test]
fn squares_are_of_distances_from_the_center_of_the_own_row() {
    let values = [1.0f32, 5.0, f32::NAN, 9.0, 9.0, 9.0];
    let squares = |centers: [f64; 3]| {
        let mut table = [0.0f64; 3];
        let numbers = bytemuck::cast_slice(&NUMBERS);
        let (values, centers) = (bytemuck::cast_slice(&values), bytemuck::cast_slice(&centers));
        tally_squares(
            DType::F32,
            numbers,
            values,
            centers,
            1,
            bytemuck::cast_slice_mut(&mut table),
        );
        table
    };
    assert_eq!(squares([3.0, 0.0, 4.0]), [4.0, 0.0, 1.0]);
    // A center that is no number had the NaN in it.
    assert!(squares([3.0, 0.0, f64::NAN])[2].is_nan());
}

#[test]
fn places_are_the_first_rows_that_equal_the_center_or_are_nan() {
    let values = [4i16, 7, 7, 0, 0, 0];
    let mut table = [i64::MAX; 3];
    let (numbers, centers) = (bytemuck::cast_slice(&NUMBERS), [4i64, 0, 7]);
    let centers: &[u8] = bytemuck::cast_slice(&centers);
    let types = (DType::I16, DType::I64);
    let into = bytemuck::cast_slice_mut(&mut table);
    tally_places(types, numbers, bytemuck::cast_slice(&values), (centers, 1), 10, into);
    assert_eq!(table, [10, i64::MAX, 11]);
    let (values, centers) = ([1.0, 2.0, f64::NAN, 0.0, 0.0, 0.0], [0.0, 0.0, f64::NAN]);
    let mut table = [i64::MAX; 3];
    let (values, centers) = (bytemuck::cast_slice(&values), bytemuck::cast_slice(&centers));
    let into = bytemuck::cast_slice_mut(&mut table);
    tally_places((DType::F64, DType::F64), numbers, values, (centers, 1), 0, into);
    assert_eq!(table, [i64::MAX, i64::MAX, 2]);
}

/// Values of other types meet the table as if they were of its type, in however wide rows.
#[test]
fn values_of_other_types_are_converted() {
    for columns in [1, 3, 700] {
        let numbers: Vec<i64> = (0..60).map(|at| at % 5 - 1).collect();
        let halves: Vec<i32> = (0..60 * columns as i32).map(|at| (at * 37 % 1013) - 500).collect();
        let values: Vec<f32> = halves.iter().map(|half| *half as f32 / 2.0).collect();
        let exact: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
        let gather = |op: Tally, values: DType, bytes: &[u8]| {
            let mut table = vec![0f64; 3 * columns];
            clear_tally(op, DType::F64, bytemuck::cast_slice_mut(&mut table));
            let types = TallyTypes {
                values,
                table: DType::F64,
            };
            let numbers = bytemuck::cast_slice(&numbers);
            tally(op, types, numbers, bytes, columns, bytemuck::cast_slice_mut(&mut table));
            table
        };
        for op in [Tally::Sum, Tally::Min, Tally::Max] {
            let found = gather(op, DType::F32, bytemuck::cast_slice(&values));
            assert_eq!(
                found,
                gather(op, DType::F64, bytemuck::cast_slice(&exact)),
                "{op:?} {columns}"
            );
            let doubled: Vec<f64> = found.iter().map(|value| 2.0 * value).collect();
            assert_eq!(
                gather(op, DType::I32, bytemuck::cast_slice(&halves)),
                doubled,
                "{op:?} {columns}"
            );
        }
        // The row beside the first number that has one.
        let centers = exact[columns..2 * columns].repeat(3);
        let squares = |values: DType, bytes: &[u8]| {
            let mut table = vec![0f64; 3 * columns];
            let (numbers, centers) = (bytemuck::cast_slice(&numbers), bytemuck::cast_slice(&centers));
            tally_squares(
                values,
                numbers,
                bytes,
                centers,
                columns,
                bytemuck::cast_slice_mut(&mut table),
            );
            table
        };
        let found = squares(DType::F32, bytemuck::cast_slice(&values));
        assert_eq!(found, squares(DType::F64, bytemuck::cast_slice(&exact)));
        let places = |values: DType, bytes: &[u8]| {
            let mut table = vec![i64::MAX; 3 * columns];
            let (numbers, centers) = (bytemuck::cast_slice(&numbers), bytemuck::cast_slice(&centers));
            let types = (values, DType::F64);
            tally_places(
                types,
                numbers,
                bytes,
                (centers, columns),
                7,
                bytemuck::cast_slice_mut(&mut table),
            );
            table
        };
        let found = places(DType::F32, bytemuck::cast_slice(&values));
        assert_eq!(found, places(DType::F64, bytemuck::cast_slice(&exact)));
        assert!(found.iter().any(|place| *place < i64::MAX));
    }
}

#[test]
fn first_and_last_pass_over_nan() {
    let values = [f64::NAN, 1.0, 2.0, 9.0, 9.0, 9.0];
    let first = gathered(Tally::First, DType::F64, &values, 1);
    assert!(first[0].is_nan() && first[1].is_nan() && first[2] == 1.0);
    let mut last = gathered(Tally::Last, DType::F64, &values, 1);
    assert_eq!(last[2], 2.0);
    let later = [5.0, f64::NAN, f64::NAN];
    merge_tallies(
        Tally::Last,
        DType::F64,
        bytemuck::cast_slice(&later),
        bytemuck::cast_slice_mut(&mut last),
    );
    assert!(last[0] == 5.0 && last[1].is_nan() && last[2] == 2.0);
}
