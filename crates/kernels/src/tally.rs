//! Counting numbers, and gathering what stands beside them: one row of a table for each number.

use std::ops::Range;

use bytemuck::Pod;
use outcore_dtype::DType;

use crate::cast_kernel;
use crate::names::names;

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
    /// The first that is not NaN, in the order in which values come; NaN where there is none. Of `float64` alone.
    First,
    /// The last, likewise.
    Last,
}

impl Tally {
    /// Whether the order in which values come and tables are merged makes a difference beyond rounding.
    pub fn is_ordered(self) -> bool {
        matches!(self, Tally::First | Tally::Last)
    }
}

names!(Tally {
    Count => "count",
    Sum => "sum",
    Prod => "prod",
    Min => "min",
    Max => "max",
    First => "first",
    Last => "last",
});

/// Element types of tables.
trait Entry: Pod {
    const DTYPE: DType;
    fn one(op: Tally) -> Self;
    fn combine(op: Tally, a: Self, b: Self) -> Self;
}

impl Entry for i64 {
    const DTYPE: DType = DType::I64;
    fn one(op: Tally) -> i64 {
        match op {
            Tally::Count | Tally::Sum => 0,
            Tally::Prod => 1,
            Tally::Min => i64::MAX,
            Tally::Max => i64::MIN,
            Tally::First | Tally::Last => panic!("tally: integers have no NaN to begin with"),
        }
    }
    #[inline(always)]
    fn combine(op: Tally, a: i64, b: i64) -> i64 {
        match op {
            Tally::Count | Tally::Sum => a.wrapping_add(b),
            Tally::Prod => a.wrapping_mul(b),
            Tally::Min => a.min(b),
            Tally::Max => a.max(b),
            Tally::First => a,
            Tally::Last => b,
        }
    }
}

impl Entry for f64 {
    const DTYPE: DType = DType::F64;
    fn one(op: Tally) -> f64 {
        match op {
            Tally::Count | Tally::Sum => 0.0,
            Tally::Prod => 1.0,
            Tally::Min => f64::INFINITY,
            Tally::Max => f64::NEG_INFINITY,
            Tally::First | Tally::Last => f64::NAN,
        }
    }
    #[inline(always)]
    fn combine(op: Tally, a: f64, b: f64) -> f64 {
        match op {
            Tally::Count | Tally::Sum => a + b,
            Tally::Prod => a * b,
            Tally::Min if a <= b || a.is_nan() => a,
            Tally::Max if a >= b || a.is_nan() => a,
            Tally::First if !a.is_nan() => a,
            Tally::Last if b.is_nan() => a,
            Tally::Min | Tally::Max | Tally::First | Tally::Last => b,
        }
    }
}

/// Fills a table with what changes nothing that it is combined with.
///
/// # Panics
/// For another type than `int64` and `float64`, and for `int64` where `op` is of `float64` alone.
pub fn clear_tally(op: Tally, dtype: DType, table: &mut [u8]) {
    match dtype {
        DType::I64 => bytemuck::cast_slice_mut(table).fill(i64::one(op)),
        DType::F64 => bytemuck::cast_slice_mut(table).fill(f64::one(op)),
        _ => panic!("tally: a table of {dtype}"),
    }
}

/// Types of the elements of values, and of those of the table that they are gathered in: `int64` or `float64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyTypes {
    pub values: DType,
    pub table: DType,
}

/// Combines row `number` of the table with the row of `values` beside each of `numbers` (`int64`), in order. Numbers
/// without a row are left out. Rows have `columns` elements; for [`Tally::Count`] there are no values, and one column of
/// `int64`.
///
/// # Panics
/// When there is not one row of values for each number; for other types.
pub fn tally(op: Tally, types: TallyTypes, numbers: &[u8], values: &[u8], columns: usize, table: &mut [u8]) {
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
    match types.table {
        DType::I64 => typed::<i64>(op, numbers, (types.values, values), columns, table),
        DType::F64 => typed::<f64>(op, numbers, (types.values, values), columns, table),
        other => panic!("tally: a table of {other}"),
    }
}

/// TalliedValues by rows, in their own type.
type TalliedValues<'a> = (DType, &'a [u8]);

/// Elements that are converted together.
const STRIP: usize = 512;

/// Calls `each` with all values as elements of a table: a range of rows, a range of columns, and what they have in common,
/// row by row. Rows come in their order.
#[inline(always)]
fn in_strips<T: Entry>(
    (dtype, values): TalliedValues<'_>,
    rows: usize,
    columns: usize,
    mut each: impl FnMut(Range<usize>, Range<usize>, &[T]),
) {
    assert!(!dtype.is_complex(), "tally: complex values");
    assert_eq!(values.len(), rows * columns * dtype.size(), "tally: numbers and values");
    if dtype == T::DTYPE {
        return each(0..rows, 0..columns, bytemuck::cast_slice(values));
    }
    let convert = cast_kernel(dtype, T::DTYPE);
    let mut strip = [T::zeroed(); STRIP];
    let width = columns.clamp(1, STRIP);
    let height = STRIP / width;
    for first in (0..rows).step_by(height) {
        let own = first..rows.min(first + height);
        for column in (0..columns).step_by(width) {
            let beside = column..columns.min(column + width);
            let strip = &mut strip[..own.len() * beside.len()];
            let begin = first * columns + column;
            let bytes = begin * dtype.size()..(begin + strip.len()) * dtype.size();
            convert(&values[bytes], bytemuck::cast_slice_mut(strip));
            each(own.clone(), beside, strip);
        }
    }
}

fn typed<T: Entry>(op: Tally, numbers: &[i64], values: TalliedValues<'_>, columns: usize, table: &mut [u8]) {
    let table: &mut [T] = bytemuck::cast_slice_mut(table);
    match op {
        Tally::Count | Tally::Sum => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Sum, a, b)),
        Tally::Prod => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Prod, a, b)),
        Tally::Min => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Min, a, b)),
        Tally::Max => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Max, a, b)),
        Tally::First => gather(numbers, values, columns, table, |a, b| T::combine(Tally::First, a, b)),
        Tally::Last => gather(numbers, values, columns, table, |a, b| T::combine(Tally::Last, a, b)),
    }
}

#[inline(always)]
fn gather<T: Entry>(
    numbers: &[i64],
    values: TalliedValues<'_>,
    columns: usize,
    table: &mut [T],
    combine: impl Fn(T, T) -> T,
) {
    in_strips(values, numbers.len(), columns, |rows, beside, values: &[T]| {
        if columns == 1 {
            for (number, value) in numbers[rows].iter().zip(values) {
                if let Some(entry) = usize::try_from(*number).ok().and_then(|at| table.get_mut(at)) {
                    *entry = combine(*entry, *value);
                }
            }
            return;
        }
        each_row(&numbers[rows], values, (columns, beside), table.len(), |inside, row| {
            for (entry, value) in table[inside].iter_mut().zip(row) {
                *entry = combine(*entry, *value);
            }
        });
    });
}

/// Calls `each` with every row of values and where the row of its number, of so many columns and from those `beside` the
/// values, is in a table of so many elements.
#[inline(always)]
fn each_row<T>(
    numbers: &[i64],
    values: &[T],
    (columns, beside): (usize, Range<usize>),
    table: usize,
    mut each: impl FnMut(Range<usize>, &[T]),
) {
    let rows = table.checked_div(columns).unwrap_or(0);
    for (number, row) in numbers.iter().zip(values.chunks_exact(beside.len().max(1))) {
        if let Some(at) = usize::try_from(*number).ok().filter(|&at| at < rows) {
            each(at * columns + beside.start..at * columns + beside.end, row);
        }
    }
}

/// Adds to row `number` of the table the squared distances of the row of `values` beside each of `numbers` (`int64`) from
/// that row of `centers`, in order. Numbers without a row are left out, and NaN beside a center that is a number: it was
/// passed over when that was found. Centers and table are `float64`.
///
/// # Panics
/// When there is not one row of values for each number, or centers and table differ in length; for other types.
pub fn tally_squares(
    values_dtype: DType,
    numbers: &[u8],
    values: &[u8],
    centers: &[u8],
    columns: usize,
    table: &mut [u8],
) {
    let numbers: &[i64] = bytemuck::cast_slice(numbers);
    let centers: &[f64] = bytemuck::cast_slice(centers);
    let table: &mut [f64] = bytemuck::cast_slice_mut(table);
    assert_eq!(centers.len(), table.len(), "tally_squares: centers and table");
    let each = |rows: Range<usize>, beside, values: &[f64]| {
        each_row(
            &numbers[rows],
            values,
            (columns, beside),
            centers.len(),
            |inside, row| {
                for ((entry, value), center) in table[inside.clone()].iter_mut().zip(row).zip(&centers[inside]) {
                    let apart = value - center;
                    let squared = if value.is_nan() && !center.is_nan() {
                        0.0
                    } else {
                        apart * apart
                    };
                    *entry += squared;
                }
            },
        );
    };
    in_strips((values_dtype, values), numbers.len(), columns, each);
}

/// Lowers each element of the table to the first row, counted from `first` on, in which the value beside its number equals
/// its center, or is NaN. Numbers without a row are left out. The table is `int64`, centers are of `centers_dtype`: `int64`
/// or `float64`.
///
/// # Panics
/// As `tally_squares`.
pub fn tally_places(
    (values_dtype, centers_dtype): (DType, DType),
    numbers: &[u8],
    values: &[u8],
    (centers, columns): (&[u8], usize),
    first: i64,
    table: &mut [u8],
) {
    fn places<T: Entry + PartialEq>(
        numbers: &[i64],
        values: TalliedValues<'_>,
        (centers, columns): (&[T], usize),
        first: i64,
        table: &mut [i64],
    ) {
        assert_eq!(centers.len(), table.len(), "tally_places: centers and table");
        in_strips(values, numbers.len(), columns, |rows, beside, values: &[T]| {
            let place = first + rows.start as i64;
            let rows = numbers[rows]
                .chunks_exact(1)
                .zip(values.chunks_exact(beside.len().max(1)));
            for (place, (number, values)) in (place..).zip(rows) {
                let columns = (columns, beside.clone());
                each_row(number, values, columns, centers.len(), |inside, values| {
                    for ((entry, value), center) in table[inside.clone()].iter_mut().zip(values).zip(&centers[inside]) {
                        // NaN alone is not equal to itself.
                        #[allow(clippy::eq_op)]
                        let is_there = *value == *center || *value != *value;
                        *entry = if is_there { place.min(*entry) } else { *entry };
                    }
                });
            }
        });
    }
    let numbers: &[i64] = bytemuck::cast_slice(numbers);
    let table: &mut [i64] = bytemuck::cast_slice_mut(table);
    let values = (values_dtype, values);
    match centers_dtype {
        DType::I64 => places::<i64>(numbers, values, (bytemuck::cast_slice(centers), columns), first, table),
        DType::F64 => places::<f64>(numbers, values, (bytemuck::cast_slice(centers), columns), first, table),
        other => panic!("tally_places: centers of {other}"),
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
