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

/// The parts of a fold: what is known of each lane, how a value is loaded beside that, and how two results become one.
pub struct Fold<A, P, F, G> {
    pub zero: A,
    pub part: P,
    pub load: F,
    pub add: G,
}

/// A block's rows: how many, how far apart, and as how many columns they are read.
#[derive(Clone, Copy)]
struct FoldRows {
    count: usize,
    stride: usize,
    width: usize,
}

impl<A: Copy, P, F, G> Fold<A, P, F, G> {
    /// Folds each of the first `width` columns of `length` rows, `stride` apart, and hands `(column, result)` to `put`. `load`
    /// sees the part of the column.
    #[inline(always)]
    pub fn columns<T: Copy, C: Copy, const L: usize>(
        &self,
        x: &[T],
        length: usize,
        stride: usize,
        width: usize,
        mut put: impl FnMut(usize, A),
    ) where
        P: Fn(usize) -> C,
        F: Fn(C, T) -> A,
        G: Fn(A, A) -> A,
    {
        let is_narrow = width == stride && 2 * width <= L && length >= 4;
        if is_narrow && length * width < 2 * L {
            return self.short(x, length, width, put);
        }
        // Few columns: rows side by side fill the lanes, the lanes fold in halves, the rest comes last.
        let side_by_side = if is_narrow { 1usize << (L / width).ilog2() } else { 1 };
        let (count, whole) = (length / side_by_side, side_by_side * width);
        let stride = if is_narrow { whole } else { stride };
        for first in (0..whole).step_by(L) {
            let used = L.min(whole - first);
            let rows = FoldRows {
                count,
                stride,
                width: used,
            };
            let mut parts = [(self.part)(0); L];
            let mut column = first;
            for part in &mut parts[..used] {
                *part = (self.part)(column);
                column = if column + 1 == width { 0 } else { column + 1 };
            }
            let mut lanes: [A; L] = self.rows(&x[first..], rows, &parts);
            if !is_narrow {
                for (lane, value) in lanes[..used].iter().enumerate() {
                    put(first + lane, *value);
                }
                continue;
            }
            let mut half = side_by_side / 2;
            while half > 0 {
                for lane in 0..half * width {
                    lanes[lane] = (self.add)(lanes[lane], lanes[lane + half * width]);
                }
                half /= 2;
            }
            for row in count * side_by_side..length {
                for column in 0..width {
                    let value = (self.load)((self.part)(column), x[row * width + column]);
                    lanes[column] = (self.add)(lanes[column], value);
                }
            }
            for (column, value) in lanes[..width].iter().enumerate() {
                put(column, *value);
            }
        }
    }

    /// Folds rows of at most `L` columns into the first lanes.
    #[inline(always)]
    fn rows<T: Copy, C: Copy, const L: usize>(&self, x: &[T], rows: FoldRows, parts: &[C; L]) -> [A; L]
    where
        F: Fn(C, T) -> A,
        G: Fn(A, A) -> A,
    {
        let group = GROUP.max(rows.count.div_ceil(1 << (DIGITS - 1)).next_power_of_two());
        // Made for the second group: one alone has nothing to pair up with.
        let mut pending: Option<[[A; L]; DIGITS]> = None;
        let (mut first, mut groups) = (0, 0usize);
        loop {
            let count = group.min(rows.count - first);
            let mut lanes: [A; L] = self.group(&x[first * rows.stride..], FoldRows { count, ..rows }, parts);
            first += count;
            let is_last = first == rows.count;
            if is_last && groups == 0 {
                return lanes;
            }
            #[allow(clippy::unnecessary_lazy_evaluations)] // kilobytes
            let pending = pending.get_or_insert_with(|| [[self.zero; L]; DIGITS]);
            // A carry meets every full digit below it: the earlier half is on the left.
            let mut digit = 0;
            while groups >> digit & 1 == 1 {
                for lane in 0..L {
                    lanes[lane] = (self.add)(pending[digit][lane], lanes[lane]);
                }
                digit += 1;
            }
            pending[digit] = lanes;
            groups += 1;
            if is_last {
                return self.total(pending, groups);
            }
        }
    }

    /// Folds rows in sequence.
    #[inline(always)]
    fn group<T: Copy, C: Copy, const L: usize>(&self, x: &[T], rows: FoldRows, parts: &[C; L]) -> [A; L]
    where
        F: Fn(C, T) -> A,
        G: Fn(A, A) -> A,
    {
        let mut lanes = [self.zero; L];
        if rows.width == L {
            for row in 0..rows.count {
                let values: &[T; L] = x[row * rows.stride..].first_chunk().expect("rows have L columns");
                for lane in 0..L {
                    lanes[lane] = (self.add)(lanes[lane], (self.load)(parts[lane], values[lane]));
                }
            }
        } else {
            for row in 0..rows.count {
                let values = &x[row * rows.stride..row * rows.stride + rows.width];
                for ((sum, part), value) in lanes[..rows.width].iter_mut().zip(parts).zip(values) {
                    *sum = (self.add)(*sum, (self.load)(*part, *value));
                }
            }
        }
        lanes
    }

    /// The digits of a counter of so many groups as one.
    #[inline(always)]
    fn total<const L: usize>(&self, pending: &[[A; L]; DIGITS], groups: usize) -> [A; L]
    where
        G: Fn(A, A) -> A,
    {
        let mut digit = groups.trailing_zeros() as usize;
        let mut total = pending[digit];
        while groups >> (digit + 1) != 0 {
            digit += 1;
            if groups >> digit & 1 == 1 {
                for lane in 0..L {
                    total[lane] = (self.add)(pending[digit][lane], total[lane]);
                }
            }
        }
        total
    }

    /// Too short to fill the lanes: four rows at a time.
    #[inline(always)]
    fn short<T: Copy, C: Copy>(&self, x: &[T], length: usize, width: usize, mut put: impl FnMut(usize, A))
    where
        P: Fn(usize) -> C,
        F: Fn(C, T) -> A,
        G: Fn(A, A) -> A,
    {
        let add = &self.add;
        for column in 0..width {
            let at = |row: usize| (self.load)((self.part)(column), x[row * width + column]);
            let mut total = self.zero;
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
}
