//! The one loop under every reduction: fold the rows of a `[rows, width]` block, pairwise over groups of rows.
//!
//! Rows are folded in sequence within a group of `GROUP` and groups pairwise, so the rounding error of a sum grows with
//! `GROUP + log2(rows / GROUP)` (N. Higham, "The accuracy of floating point summation", 1993). Each of up to `L` columns has a
//! lane of its own. A block with few columns is read as one with `R` times as many columns and `R` times fewer rows, and
//! its lanes are folded pairwise at the end; a contiguous run is the case of one column.

/// Rows folded in sequence.
const GROUP: usize = 32;
/// Groups pair up like the digits of a binary counter; this many digits count any length.
const DIGITS: usize = 40;

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
    let group = |first: usize| {
        let mut lanes = [zero; L];
        for row in first..rows.min(first + GROUP) {
            let values = &x[row * stride..row * stride + width];
            if let Ok(values) = <&[T; L]>::try_from(values) {
                for lane in 0..L {
                    lanes[lane] = add(lanes[lane], load(lane, values[lane]));
                }
            } else {
                for (lane, (sum, value)) in lanes[..width].iter_mut().zip(values).enumerate() {
                    *sum = add(*sum, load(lane, *value));
                }
            }
        }
        lanes
    };
    if rows <= GROUP {
        return group(0);
    }
    let mut pending = [[zero; L]; DIGITS];
    let mut count = 0usize;
    for first in (0..rows).step_by(GROUP) {
        let mut lanes = group(first);
        // A carry meets every full digit below it: the earlier half is on the left.
        let mut digit = 0;
        while count >> digit & 1 == 1 {
            for lane in 0..width {
                lanes[lane] = add(pending[digit][lane], lanes[lane]);
            }
            digit += 1;
        }
        pending[digit] = lanes;
        count += 1;
    }
    let mut total: Option<[A; L]> = None;
    for (digit, earlier) in pending.iter().enumerate() {
        if count >> digit & 1 == 1 {
            total = Some(match total {
                None => *earlier,
                Some(mut later) => {
                    for lane in 0..width {
                        later[lane] = add(earlier[lane], later[lane]);
                    }
                    later
                }
            });
        }
    }
    total.unwrap_or([zero; L])
}

/// Folds each of the first `width` columns of `length` rows, `stride` apart, and hands `(column, result)` to `put`.
/// `load` sees the column.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // a shape and the four parts of a fold
pub fn fold_columns<T: Copy, A: Copy, const L: usize>(
    x: &[T],
    length: usize,
    stride: usize,
    width: usize,
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
    let mut side_by_side = 1;
    while 2 * side_by_side * inner <= L && 2 * side_by_side * 2 <= length {
        side_by_side *= 2;
    }
    let width = side_by_side * inner;
    let rows = length / side_by_side;
    let mut columns = [0usize; L];
    for (lane, column) in columns.iter_mut().enumerate() {
        *column = lane % inner;
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
