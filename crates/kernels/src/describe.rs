//! What a summary tells of each column, all of it from one look at every element.

use bytemuck::cast_slice;

use crate::fence::shells::BinaryBody;

/// Facts of a column, the rows of a table, each of the elements that are not NaN: how many there are, and are not 0; the
/// least and the greatest; Σ|x|, Σx²; with a = x − center Σa, Σa², Σa³, Σa⁴.
pub const FACTS: usize = 10;
const LEAST: usize = 2;
const GREATEST: usize = 3;

/// Columns side by side in registers; rows added up before the sums go on to longer ones, twice, so that rounding errors
/// grow with their number and not with that of all rows (N. Higham 1993).
const LANES: usize = 8;
const ROWS: usize = 64;
const GROUPS: usize = 64;

type Facts = [[f64; LANES]; FACTS];

#[inline(always)]
fn none() -> Facts {
    let mut facts = [[0.0; LANES]; FACTS];
    facts[LEAST] = [f64::INFINITY; LANES];
    facts[GREATEST] = [f64::NEG_INFINITY; LANES];
    facts
}

#[inline(always)]
fn joined(fact: usize, a: f64, b: f64) -> f64 {
    match fact {
        LEAST => {
            if b < a {
                b
            } else {
                a
            }
        }
        GREATEST => {
            if b > a {
                b
            } else {
                a
            }
        }
        _ => a + b,
    }
}

#[inline(always)]
fn join(into: &mut Facts, from: &Facts) {
    for fact in 0..FACTS {
        for lane in 0..LANES {
            into[fact][lane] = joined(fact, into[fact][lane], from[fact][lane]);
        }
    }
}

#[inline(always)]
fn see(facts: &mut Facts, values: &[f64; LANES], centers: &[f64; LANES]) {
    for lane in 0..LANES {
        let (x, center) = (values[lane], centers[lane]);
        let is_missing = x.is_nan();
        let known = if is_missing { 0.0 } else { x };
        let apart = if is_missing { 0.0 } else { x - center };
        let square = apart * apart;
        let of_one = [
            if is_missing { 0.0 } else { 1.0 },
            if known == 0.0 { 0.0 } else { 1.0 },
            x,
            x,
            known.abs(),
            known * known,
            apart,
            square,
            square * apart,
            square * square,
        ];
        for fact in 0..FACTS {
            facts[fact][lane] = joined(fact, facts[fact][lane], of_one[fact]);
        }
    }
}

/// The rows `x`, `width` apart, of which the first `used <= LANES` elements count.
#[inline(always)]
fn fold(x: &[f64], width: usize, used: usize, centers: &[f64; LANES]) -> Facts {
    let mut all = none();
    for groups in x.chunks(width * ROWS * GROUPS) {
        let mut sums = none();
        for group in groups.chunks(width * ROWS) {
            let mut facts = none();
            for row in group.chunks(width) {
                match row.first_chunk::<LANES>() {
                    Some(values) if used == LANES => see(&mut facts, values, centers),
                    _ => {
                        let mut values = [f64::NAN; LANES];
                        let used = used.min(row.len());
                        values[..used].copy_from_slice(&row[..used]);
                        see(&mut facts, &values, centers);
                    }
                }
            }
            join(&mut sums, &facts);
        }
        join(&mut all, &sums);
    }
    all
}

struct Body;

impl BinaryBody for Body {
    #[inline(always)]
    fn run(x: &[u8], centers: &[u8], table: &mut [u8]) {
        let (x, centers): (&[f64], &[f64]) = (cast_slice(x), cast_slice(centers));
        let table: &mut [f64] = bytemuck::cast_slice_mut(table);
        let columns = centers.len();
        // Of few columns several rows stand side by side; what is left of the last of them are missing elements.
        let beside = (LANES / columns).max(1);
        let width = columns * beside;
        for first in (0..width).step_by(LANES) {
            let used = LANES.min(width - first);
            let own: [f64; LANES] = std::array::from_fn(|lane| centers[(first + lane) % columns]);
            let facts = fold(x.get(first..).unwrap_or_default(), width, used, &own);
            for fact in 0..FACTS {
                for lane in 0..used {
                    let place = &mut table[fact * columns + (first + lane) % columns];
                    *place = joined(fact, *place, facts[fact][lane]);
                }
            }
        }
    }
}

/// Adds to a table of `FACTS` rows what the rows of `x` tell, as many float64 elements each as there are `centers`.
pub fn describe(x: &[u8], centers: &[u8], table: &mut [u8]) {
    if !centers.is_empty() {
        Body::kernel()(x, centers, table);
    }
}

/// Makes a table that of no rows.
pub fn clear_facts(table: &mut [u8]) {
    let table: &mut [f64] = bytemuck::cast_slice_mut(table);
    let columns = (table.len() / FACTS).max(1);
    for (fact, row) in table.chunks_mut(columns).enumerate() {
        row.fill(none()[fact][0]);
    }
}

/// Takes another table in.
pub fn merge_facts(from: &[u8], into: &mut [u8]) {
    let from: &[f64] = cast_slice(from);
    let into: &mut [f64] = bytemuck::cast_slice_mut(into);
    let columns = (into.len() / FACTS).max(1);
    for (position, (into, from)) in into.iter_mut().zip(from).enumerate() {
        *into = joined(position / columns, *into, *from);
    }
}
