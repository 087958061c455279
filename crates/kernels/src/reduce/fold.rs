//! The one loop under every reduction: fold the rows of a `[rows, width]` block, pairwise over groups of rows.
//!
//! FoldRows are folded in sequence within a group and groups pairwise, so the rounding error of a sum grows with
//! `group + log2(rows / group)` (N. Higham, "The accuracy of floating point summation", 1993). Each of up to `L` columns
//! has a lane of its own. A block with few columns is read as one with `R` times as many columns and `R` times fewer
//! rows, and its lanes are folded in halves at the end; a contiguous run is the case of one column.

/// FoldRows folded in sequence, unless there are so many rows that the groups would run out of digits.
const GROUP: usize = 32;
/// Groups pair up like the digits of a binary counter.
const DIGITS: usize = 13;

/// Folds `rows` rows in sequence.
#[inline(always)]
fn fold_group<T: Copy, A: Copy, const L: usize>(
    x: &[T],
    rows: usize,
    stride: usize,
    width: usize,
    zero: A,
    load: &impl Fn(usize, T) -> A,
    add: &impl Fn(A, A) -> A,
) -> [A; L] {
    let mut lanes = [zero; L];
    if width == L {
        for row in 0..rows {
            let values: &[T; L] = x[row * stride..].first_chunk().expect("rows have L columns");
            for lane in 0..L {
                lanes[lane] = add(lanes[lane], load(lane, values[lane]));
            }
        }
    } else {
        for row in 0..rows {
            let values = &x[row * stride..row * stride + width];
            for (lane, (sum, value)) in lanes[..width].iter_mut().zip(values).enumerate() {
                *sum = add(*sum, load(lane, *value));
            }
        }
    }
    lanes
}

/// Folds rows `stride` apart, `width <= L` columns each, into the first `width` lanes. `load` sees the lane.
#[inline(always)]
fn fold_rows<T: Copy, A: Copy, const L: usize>(
    x: &[T],
    rows: usize,
    stride: usize,
    width: usize,
    zero: A,
    load: impl Fn(usize, T) -> A,
    add: impl Fn(A, A) -> A,
) -> [A; L] {
    let group = GROUP.max(rows.div_ceil(1 << (DIGITS - 1)).next_power_of_two());
    if rows <= group {
        return fold_group(x, rows, stride, width, zero, &load, &add);
    }
    let mut pending = [[zero; L]; DIGITS];
    let mut count = 0usize;
    for first in (0..rows).step_by(group) {
        let mut lanes: [A; L] = fold_group(
            &x[first * stride..],
            group.min(rows - first),
            stride,
            width,
            zero,
            &load,
            &add,
        );
        // A carry meets every full digit below it: the earlier half is on the left.
        let mut digit = 0;
        while count >> digit & 1 == 1 {
            for lane in 0..L {
                lanes[lane] = add(pending[digit][lane], lanes[lane]);
            }
            digit += 1;
        }
        pending[digit] = lanes;
        count += 1;
    }
    let mut digit = count.trailing_zeros() as usize;
    let mut total = pending[digit];
    while count >> (digit + 1) != 0 {
        digit += 1;
        if count >> digit & 1 == 1 {
            for lane in 0..L {
                total[lane] = add(pending[digit][lane], total[lane]);
            }
        }
    }
    total
}

/// Folds each of the first `width` columns of `length` rows, `stride` apart, and hands `(column, result)` to `put`.
/// `load` sees the column.
#[inline(always)]
pub fn fold_columns<T: Copy, A: Copy, const L: usize>(
    x: &[T],
    [length, stride, width]: [usize; 3],
    zero: A,
    load: impl Fn(usize, T) -> A,
    add: impl Fn(A, A) -> A,
    mut put: impl FnMut(usize, A),
) {
    if width == stride && 2 * width <= L && length >= 4 {
        return fold_narrow::<T, A, L>(x, length, width, zero, load, add, put);
    }
    for first in (0..width).step_by(L) {
        let lanes_used = L.min(width - first);
        let load = |lane, value| load(first + lane, value);
        let lanes = fold_rows::<T, A, L>(&x[first..], length, stride, lanes_used, zero, load, &add);
        for (lane, value) in lanes[..lanes_used].iter().enumerate() {
            put(first + lane, *value);
        }
    }
}

/// The case of few columns: rows side by side fill the lanes, the lanes fold in halves, the rest comes last.
#[inline(always)]
fn fold_narrow<T: Copy, A: Copy, const L: usize>(
    x: &[T],
    length: usize,
    inner: usize,
    zero: A,
    load: impl Fn(usize, T) -> A,
    add: impl Fn(A, A) -> A,
    mut put: impl FnMut(usize, A),
) {
    if length * inner < 2 * L {
        return fold_short(x, length, inner, zero, load, add, put);
    }
    let side_by_side = 1usize << (L / inner).ilog2();
    let width = side_by_side * inner;
    let rows = length / side_by_side;
    let mut columns = [0usize; L];
    for lane in 1..L {
        let next = columns[lane - 1] + 1;
        columns[lane] = if next == inner { 0 } else { next };
    }
    let mut lanes = fold_rows::<T, A, L>(
        x,
        rows,
        width,
        width,
        zero,
        |lane, value| load(columns[lane], value),
        &add,
    );
    let mut half = side_by_side / 2;
    while half > 0 {
        for lane in 0..half * inner {
            lanes[lane] = add(lanes[lane], lanes[lane + half * inner]);
        }
        half /= 2;
    }
    for row in rows * side_by_side..length {
        for column in 0..inner {
            lanes[column] = add(lanes[column], load(column, x[row * inner + column]));
        }
    }
    for (column, value) in lanes[..inner].iter().enumerate() {
        put(column, *value);
    }
}

/// Too short to fill the lanes: four rows at a time.
#[inline(always)]
fn fold_short<T: Copy, A: Copy>(
    x: &[T],
    length: usize,
    inner: usize,
    zero: A,
    load: impl Fn(usize, T) -> A,
    add: impl Fn(A, A) -> A,
    mut put: impl FnMut(usize, A),
) {
    for column in 0..inner {
        let at = |row: usize| load(column, x[row * inner + column]);
        let mut total = zero;
        let mut row = 0;
        while row + 4 <= length {
            total = add(total, add(add(at(row), at(row + 2)), add(at(row + 1), at(row + 3))));
            row += 4;
        }
        for row in row..length {
            total = add(total, at(row));
        }
        put(column, total);
    }
}
