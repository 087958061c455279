//! Tables of numbers and of what stands beside them.

use bytemuck::Pod;
use outcore_dtype::DType;
use outcore_kernels::{clear_tally, merge_tallies, tally, Tally};

const NUMBERS: [i64; 6] = [0, 2, 2, -1, 3, i64::MAX];

fn gathered<T: Pod>(op: Tally, dtype: DType, values: &[T], columns: usize) -> Vec<T> {
    let mut table = values[..3 * columns].to_vec();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut table);
    clear_tally(op, dtype, bytes);
    let numbers = bytemuck::cast_slice(&NUMBERS);
    tally(op, dtype, numbers, bytemuck::cast_slice(values), columns, bytes);
    table
}

#[test]
fn numbers_without_a_row_are_left_out() {
    let mut counts = [0i64; 3];
    tally(
        Tally::Count,
        DType::I64,
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
