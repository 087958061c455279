//! Counting numbers, and gathering what stands beside them: one row of a table for each number.

use bytemuck::Pod;
use outcore_dtype::DType;

/// What is gathered of the values beside equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tally {
    /// How many there are.
    Count,
    /// Integers wrap.
    Sum,
    /// Integers wrap.
    Prod,
    /// `numpy.minimum`: NaN where one is among them.
    Min,
    /// `numpy.maximum`, likewise.
    Max,
}

/// Element types of tables.
trait Entry: Pod {
    fn one(op: Tally) -> Self;
    fn combine(op: Tally, a: Self, b: Self) -> Self;
}

impl Entry for i64 {
    fn one(op: Tally) -> i64 {
        match op {
            Tally::Count | Tally::Sum => 0,
            Tally::Prod => 1,
            Tally::Min => i64::MAX,
            Tally::Max => i64::MIN,
        }
    }
    #[inline(always)]
    fn combine(op: Tally, a: i64, b: i64) -> i64 {
        match op {
            Tally::Count | Tally::Sum => a.wrapping_add(b),
            Tally::Prod => a.wrapping_mul(b),
            Tally::Min => a.min(b),
            Tally::Max => a.max(b),
        }
    }
}

impl Entry for f64 {
    fn one(op: Tally) -> f64 {
        match op {
            Tally::Count | Tally::Sum => 0.0,
            Tally::Prod => 1.0,
            Tally::Min => f64::INFINITY,
            Tally::Max => f64::NEG_INFINITY,
        }
    }
    #[inline(always)]
    fn combine(op: Tally, a: f64, b: f64) -> f64 {
        match op {
            Tally::Count | Tally::Sum => a + b,
            Tally::Prod => a * b,
            Tally::Min if a <= b || a.is_nan() => a,
            Tally::Max if a >= b || a.is_nan() => a,
            Tally::Min | Tally::Max => b,
        }
    }
}

/// Fills a table with what changes nothing that it is combined with.
///
/// # Panics
/// For another type than `int64` and `float64`.
pub fn clear_tally(op: Tally, dtype: DType, table: &mut [u8]) {
    match dtype {
        DType::I64 => bytemuck::cast_slice_mut(table).fill(i64::one(op)),
        DType::F64 => bytemuck::cast_slice_mut(table).fill(f64::one(op)),
        _ => panic!("tally: a table of {dtype}"),
    }
}

/// Combines row `number` of the table with the row of `values` beside each of `numbers` (`int64`), in order. Numbers
/// without a row are left out. Values and table are `int64` or `float64`, rows of `columns` elements; for [`Tally::Count`]
/// there are no values, and one column of `int64`.
///
/// # Panics
/// When there is not one row of values for each number; for other types.
pub fn tally(op: Tally, dtype: DType, numbers: &[u8], values: &[u8], columns: usize, table: &mut [u8]) {
    let numbers: &[i64] = bytemuck::cast_slice(numbers);
    if op == Tally::Count {
        let counts: &mut [i64] = bytemuck::cast_slice_mut(table);
        for number in numbers {
            if let Some(count) = usize::try_from(*number).ok().and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        return;
    }
    match dtype {
        DType::I64 => typed::<i64>(op, numbers, values, columns, table),
        DType::F64 => typed::<f64>(op, numbers, values, columns, table),
        _ => panic!("tally: a table of {dtype}"),
    }
}

fn typed<T: Entry>(op: Tally, numbers: &[i64], values: &[u8], columns: usize, table: &mut [u8]) {
    let values: &[T] = bytemuck::cast_slice(values);
    let table: &mut [T] = bytemuck::cast_slice_mut(table);
    assert_eq!(values.len(), numbers.len() * columns, "tally: numbers and values");
    match op {
        Tally::Count | Tally::Sum => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Sum, a, b)),
        Tally::Prod => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Prod, a, b)),
        Tally::Min => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Min, a, b)),
        Tally::Max => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Max, a, b)),
    }
}

#[inline(always)]
fn gather<T: Copy>(numbers: &[i64], values: &[T], columns: usize, table: &mut [T], combine: impl Fn(T, T) -> T) {
    if columns == 1 {
        for (number, value) in numbers.iter().zip(values) {
            if let Some(entry) = usize::try_from(*number).ok().and_then(|at| table.get_mut(at)) {
                *entry = combine(*entry, *value);
            }
        }
        return;
    }
    let rows = table.len().checked_div(columns).unwrap_or(0);
    for (number, row) in numbers.iter().zip(values.chunks_exact(columns.max(1))) {
        let Some(at) = usize::try_from(*number).ok().filter(|&at| at < rows) else {
            continue;
        };
        for (entry, value) in table[at * columns..(at + 1) * columns].iter_mut().zip(row) {
            *entry = combine(*entry, *value);
        }
    }
}

/// Combines a table with another, element by element.
///
/// # Panics
/// For another type, or when they differ in length.
pub fn merge_tallies(op: Tally, dtype: DType, part: &[u8], total: &mut [u8]) {
    fn merge<T: Entry>(op: Tally, part: &[u8], total: &mut [u8]) {
        let part: &[T] = bytemuck::cast_slice(part);
        let total: &mut [T] = bytemuck::cast_slice_mut(total);
        for (total, part) in total.iter_mut().zip(part) {
            *total = T::combine(op, *total, *part);
        }
    }
    assert_eq!(part.len(), total.len(), "merge_tallies: lengths");
    match dtype {
        DType::I64 => merge::<i64>(op, part, total),
        DType::F64 => merge::<f64>(op, part, total),
        _ => panic!("tally: a table of {dtype}"),
    }
}
