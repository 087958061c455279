//! What a summary tells of each column, all of it from one look at every element.
//!
//! Powers are of distances from the mean of some rows that lie together, and those of several such groups are merged by
//! the update formulas of P. Pébay, *Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
//! statistical moments*, Sandia report SAND2008-6212, 2008. So no choice of a shift decides how many digits are left,
//! whatever the first rows hold.

use bytemuck::cast_slice;

use crate::fence::shells::UnaryBody;

/// Facts of a column, the rows of a table, each of the elements that are not NaN: how many there are, and are not 0; the
/// least and the greatest; Σ|x|, Σx²; a finite element, and the mean less that; Σd², Σd³, Σd⁴ of distances from the mean.
pub const FACTS: usize = 11;
const COUNT: usize = 0;
const LEAST: usize = 2;
const GREATEST: usize = 3;
const BASE: usize = 6;
const REST: usize = 7;
const SECOND: usize = 8;
const THIRD: usize = 9;
const FOURTH: usize = 10;

/// Columns side by side in registers; rows whose mean distances are from; groups of them that are merged before they are
/// taken into longer ones, so that rounding errors grow with their number and not with that of all rows (N. Higham 1993).
const LANES: usize = 8;
const ROWS: usize = 64;
const GROUPS: usize = 64;

type DescribedRow = [f64; LANES];
type Facts = [DescribedRow; FACTS];

/// Of no elements.
fn nothing(fact: usize) -> f64 {
    match fact {
        LEAST => f64::INFINITY,
        GREATEST => f64::NEG_INFINITY,
        _ => 0.0,
    }
}

#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if b < a {
        b
    } else {
        a
    }
}

#[inline(always)]
fn greatest(a: f64, b: f64) -> f64 {
    if b > a {
        b
    } else {
        a
    }
}

/// The facts `a` and `b` of two sets of elements, either of which may be empty, as those of both.
#[inline(always)]
fn merged(a: &[f64; FACTS], b: &[f64; FACTS]) -> [f64; FACTS] {
    let (na, nb) = (a[COUNT], b[COUNT]);
    if nb == 0.0 {
        return *a;
    }
    if na == 0.0 {
        return *b;
    }
    let n = na + nb;
    let mut of: [f64; FACTS] = std::array::from_fn(|fact| a[fact] + b[fact]);
    of[LEAST] = least(a[LEAST], b[LEAST]);
    of[GREATEST] = greatest(a[GREATEST], b[GREATEST]);
    let (share_a, share_b) = (na / n, nb / n);
    // Elements lie near each other where their distance from zero is large, so means are compared without rounding it.
    let apart = (b[BASE] - a[BASE]) + (b[REST] - a[REST]);
    (of[BASE], of[REST]) = if apart.is_finite() {
        (a[BASE], a[REST] + apart * share_b)
    } else {
        ((a[BASE] + a[REST]) * share_a + (b[BASE] + b[REST]) * share_b, 0.0)
    };
    let square = apart * apart;
    of[SECOND] += square * na * share_b;
    of[THIRD] +=
        square * apart * na * share_b * (share_a - share_b) + 3.0 * apart * (share_a * b[SECOND] - share_b * a[SECOND]);
    of[FOURTH] += square * square * na * share_b * (share_a * share_a - share_a * share_b + share_b * share_b)
        + 6.0 * square * (share_a * share_a * b[SECOND] + share_b * share_b * a[SECOND])
        + 4.0 * apart * (share_a * b[THIRD] - share_b * a[THIRD]);
    of
}

#[inline(always)]
fn lane_of(facts: &Facts, lane: usize) -> [f64; FACTS] {
    std::array::from_fn(|fact| facts[fact][lane])
}

#[inline(always)]
fn merge(into: &mut Facts, from: &Facts) {
    for lane in 0..LANES {
        let both = merged(&lane_of(into, lane), &lane_of(from, lane));
        for fact in 0..FACTS {
            into[fact][lane] = both[fact];
        }
    }
}

/// Calls `see` with rows `width` apart, of which the first `used <= LANES` elements count; the others are NaN.
#[inline(always)]
fn each_row(x: &[f64], width: usize, used: usize, mut see: impl FnMut(&DescribedRow)) {
    for row in x.chunks(width) {
        let values = match row.first_chunk::<LANES>() {
            Some(&values) if used == LANES => values,
            _ => {
                let mut values = [f64::NAN; LANES];
                let used = used.min(row.len());
                values[..used].copy_from_slice(&row[..used]);
                values
            }
        };
        see(&values);
    }
}

/// The facts of a few rows, which three looks find in the nearest cache.
#[inline(always)]
fn group(x: &[f64], width: usize, used: usize) -> Facts {
    let mut facts: Facts = std::array::from_fn(|fact| [nothing(fact); LANES]);
    let mut base = [f64::NAN; LANES];
    each_row(x, width, used, |values| {
        for lane in 0..LANES {
            let x = values[lane];
            facts[COUNT][lane] += if x.is_nan() { 0.0 } else { 1.0 };
            base[lane] = if base[lane].is_nan() && x.is_finite() {
                x
            } else {
                base[lane]
            };
        }
    });
    let count = facts[COUNT];
    facts[BASE] = base.map(|x| if x.is_nan() { 0.0 } else { x });
    let base = facts[BASE];
    each_row(x, width, used, |values| {
        for lane in 0..LANES {
            let apart = values[lane] - base[lane];
            facts[REST][lane] += if apart.is_nan() { 0.0 } else { apart };
        }
    });
    for (rest, count) in facts[REST].iter_mut().zip(count) {
        *rest /= if count > 0.0 { count } else { 1.0 };
    }
    for lane in 0..LANES {
        if facts[REST][lane].is_finite() {
            continue;
        }
        // An infinity, or distances beyond the largest number.
        (facts[BASE][lane], facts[REST][lane]) = (0.0, 0.0);
        each_row(x, width, used, |values| {
            let part = values[lane] / count[lane];
            facts[BASE][lane] += if values[lane].is_nan() { 0.0 } else { part };
        });
    }
    powers(x, width, used, &mut facts);
    facts
}

/// Adds what does not need the mean, and the powers of distances from it.
#[inline(always)]
fn powers(x: &[f64], width: usize, used: usize, facts: &mut Facts) {
    let (base, rest) = (facts[BASE], facts[REST]);
    let mut sums = [[0.0; LANES]; 7];
    each_row(x, width, used, |values| {
        for lane in 0..LANES {
            let x = values[lane];
            let is_missing = x.is_nan();
            let known = if is_missing { 0.0 } else { x };
            let apart = if is_missing { 0.0 } else { (x - base[lane]) - rest[lane] };
            let square = apart * apart;
            facts[LEAST][lane] = least(facts[LEAST][lane], x);
            facts[GREATEST][lane] = greatest(facts[GREATEST][lane], x);
            let of_one = [
                if known == 0.0 { 0.0 } else { 1.0 },
                known.abs(),
                known * known,
                apart,
                square,
                square * apart,
                square * square,
            ];
            for (sum, one) in sums.iter_mut().zip(of_one) {
                sum[lane] += one;
            }
        }
    });
    let [nonzeros, l1, squares, first, second, third, fourth] = sums;
    (facts[1], facts[4], facts[5]) = (nonzeros, l1, squares);
    // The distances are from the mean but for its rounding, which is taken out: Σ(d − r)ᵏ with r = Σd / n.
    for lane in 0..LANES {
        let n = if facts[COUNT][lane] > 0.0 {
            facts[COUNT][lane]
        } else {
            1.0
        };
        let left = first[lane] / n;
        facts[SECOND][lane] = greatest(0.0, second[lane] - left * first[lane]) + 0.0 * first[lane];
        facts[THIRD][lane] = third[lane] - 3.0 * left * second[lane] + 2.0 * left * left * first[lane];
        facts[FOURTH][lane] = fourth[lane] - 4.0 * left * third[lane] + 6.0 * left * left * second[lane]
            - 3.0 * left * left * left * first[lane];
        if left.is_finite() {
            facts[REST][lane] += left;
        }
    }
}

/// The facts of rows `width` apart, of which the first `used <= LANES` elements count.
#[inline(always)]
fn fold(x: &[f64], width: usize, used: usize) -> Facts {
    let none: Facts = std::array::from_fn(|fact| [nothing(fact); LANES]);
    let mut all = none;
    for groups in x.chunks(width * ROWS * GROUPS) {
        let mut several = none;
        for rows in groups.chunks(width * ROWS) {
            merge(&mut several, &group(rows, width, used));
        }
        merge(&mut all, &several);
    }
    all
}

fn take_in(table: &mut [f64], columns: usize, column: usize, from: &[f64; FACTS]) {
    let own: [f64; FACTS] = std::array::from_fn(|fact| table[fact * columns + column]);
    for (fact, value) in merged(&own, from).into_iter().enumerate() {
        table[fact * columns + column] = value;
    }
}

struct DescribeBody;

impl UnaryBody for DescribeBody {
    #[inline(always)]
    fn run(x: &[u8], table: &mut [u8]) {
        let x: &[f64] = cast_slice(x);
        let table: &mut [f64] = bytemuck::cast_slice_mut(table);
        let columns = table.len() / FACTS;
        // Of few columns several rows stand side by side; what is left of the last of them are missing elements.
        let beside = (LANES / columns).max(1);
        let width = columns * beside;
        for first in (0..width).step_by(LANES) {
            let used = LANES.min(width - first);
            let facts = fold(x.get(first..).unwrap_or_default(), width, used);
            for lane in 0..used {
                take_in(table, columns, (first + lane) % columns, &lane_of(&facts, lane));
            }
        }
    }
}

/// Adds to a table of `FACTS` rows what the rows of `x` tell, as many float64 elements each as the table has columns.
pub fn describe(x: &[u8], table: &mut [u8]) {
    if !table.is_empty() {
        DescribeBody::kernel()(x, table);
    }
}

/// Makes a table that of no rows.
pub fn clear_facts(table: &mut [u8]) {
    let table: &mut [f64] = bytemuck::cast_slice_mut(table);
    let columns = (table.len() / FACTS).max(1);
    for (fact, row) in table.chunks_mut(columns).enumerate() {
        row.fill(nothing(fact));
    }
}

/// Takes another table in.
pub fn merge_facts(from: &[u8], into: &mut [u8]) {
    let from: &[f64] = cast_slice(from);
    let into: &mut [f64] = bytemuck::cast_slice_mut(into);
    let columns = into.len() / FACTS;
    for column in 0..columns {
        let other: [f64; FACTS] = std::array::from_fn(|fact| from[fact * columns + column]);
        take_in(into, columns, column, &other);
    }
}
