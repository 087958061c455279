//! Counting numbers, and gathering what stands beside them: one row of a table for each number.

use bytemuck::Pod;
use outcore_dtype::{f16, with_dtype, Complex, DType};

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

/// Element types of values, read as those of tables.
trait Value: Pod {
    fn whole(self) -> i64;
    fn real(self) -> f64;
}

macro_rules! values {
    ($($kind:ty),*) => {$(
        impl Value for $kind {
            #[inline(always)]
            fn whole(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
        }
    )*};
}

values!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// Complex numbers have no order and are not tallied: the caller refuses them.
impl<T> Value for Complex<T>
where
    Complex<T>: Pod,
{
    fn whole(self) -> i64 {
        panic!("tally: complex values")
    }
    fn real(self) -> f64 {
        panic!("tally: complex values")
    }
}

impl Value for f16 {
    #[inline(always)]
    fn whole(self) -> i64 {
        self.to_f64() as i64
    }
    #[inline(always)]
    fn real(self) -> f64 {
        self.to_f64()
    }
}

/// Element types of tables.
trait Entry: Pod {
    fn of(value: impl Value) -> Self;
    fn one(op: Tally) -> Self;
    fn combine(op: Tally, a: Self, b: Self) -> Self;
}

impl Entry for i64 {
    #[inline(always)]
    fn of(value: impl Value) -> i64 {
        value.whole()
    }
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
    #[inline(always)]
    fn of(value: impl Value) -> f64 {
        value.real()
    }
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
    with_dtype!(types.values, S => match types.table {
        DType::I64 => typed::<S, i64>(op, numbers, values, columns, table),
        DType::F64 => typed::<S, f64>(op, numbers, values, columns, table),
        other => panic!("tally: a table of {other}"),
    })
}

fn typed<S: Value, T: Entry>(op: Tally, numbers: &[i64], values: &[u8], columns: usize, table: &mut [u8]) {
    let values: &[S] = bytemuck::cast_slice(values);
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
fn gather<S: Value, T: Entry>(
    numbers: &[i64],
    values: &[S],
    columns: usize,
    table: &mut [T],
    combine: impl Fn(T, T) -> T,
) {
    if columns == 1 {
        for (number, value) in numbers.iter().zip(values) {
            if let Some(entry) = usize::try_from(*number).ok().and_then(|at| table.get_mut(at)) {
                *entry = combine(*entry, T::of(*value));
            }
        }
        return;
    }
    each_row(numbers, values, columns, table.len(), |inside, row| {
        for (entry, value) in table[inside].iter_mut().zip(row) {
            *entry = combine(*entry, T::of(*value));
        }
    });
}

/// Calls `each` with every row of values and where the row of its number is in a table of so many elements.
#[inline(always)]
fn each_row<S>(
    numbers: &[i64],
    values: &[S],
    columns: usize,
    table: usize,
    mut each: impl FnMut(std::ops::Range<usize>, &[S]),
) {
    let rows = table.checked_div(columns).unwrap_or(0);
    for (number, row) in numbers.iter().zip(values.chunks_exact(columns.max(1))) {
        if let Some(at) = usize::try_from(*number).ok().filter(|&at| at < rows) {
            each(at * columns..(at + 1) * columns, row);
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
    with_dtype!(values_dtype, S => {
        let values: &[S] = bytemuck::cast_slice(values);
        assert_eq!(values.len(), numbers.len() * columns, "tally_squares: numbers and values");
        each_row(numbers, values, columns, centers.len(), |inside, row| {
            for ((entry, value), center) in table[inside.clone()].iter_mut().zip(row).zip(&centers[inside]) {
                let value = f64::of(*value);
                let apart = value - center;
                let squared = if value.is_nan() && !center.is_nan() { 0.0 } else { apart * apart };
                *entry += squared;
            }
        });
    });
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
    fn places<S: Value, T: Entry + PartialEq>(
        numbers: &[i64],
        values: &[S],
        (centers, columns): (&[T], usize),
        first: i64,
        table: &mut [i64],
    ) {
        assert_eq!(
            values.len(),
            numbers.len() * columns,
            "tally_places: numbers and values"
        );
        assert_eq!(centers.len(), table.len(), "tally_places: centers and table");
        let rows = numbers.chunks_exact(1).zip(values.chunks_exact(columns.max(1)));
        for (row, (number, values)) in (first..).zip(rows) {
            each_row(number, values, columns, centers.len(), |inside, values| {
                for ((entry, value), center) in table[inside.clone()].iter_mut().zip(values).zip(&centers[inside]) {
                    let value = T::of(*value);
                    // NaN alone is not equal to itself.
                    #[allow(clippy::eq_op)]
                    let is_there = value == *center || value != value;
                    *entry = if is_there { row.min(*entry) } else { *entry };
                }
            });
        }
    }
    let numbers: &[i64] = bytemuck::cast_slice(numbers);
    let table: &mut [i64] = bytemuck::cast_slice_mut(table);
    with_dtype!(values_dtype, S => {
        let values: &[S] = bytemuck::cast_slice(values);
        match centers_dtype {
            DType::I64 => places::<S, i64>(numbers, values, (bytemuck::cast_slice(centers), columns), first, table),
            DType::F64 => places::<S, f64>(numbers, values, (bytemuck::cast_slice(centers), columns), first, table),
            other => panic!("tally_places: centers of {other}"),
        }
    });
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
