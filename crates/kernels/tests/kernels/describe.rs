//! Facts of columns against a loop over each of them.

use bytemuck::cast_slice;
use outcore_kernels::{clear_facts, describe, merge_facts, FACTS};

/// Rows of a table whose sums of whole numbers are exact: counts, bounds, Σ|x|, Σx².
const EXACT: usize = 6;

fn facts_of(x: &[f64], columns: usize) -> Vec<f64> {
    let mut table = vec![0.0; FACTS * columns];
    clear_facts(bytemuck::cast_slice_mut(&mut table));
    describe(cast_slice(x), bytemuck::cast_slice_mut(&mut table));
    table
}

/// The exact facts of a column, its mean and its central sums, by a loop over it.
fn expected(own: &[f64]) -> ([f64; EXACT], [f64; 4]) {
    let mut facts = [0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0];
    for &x in own {
        facts[0] += 1.0;
        facts[1] += f64::from(x != 0.0);
        facts[2] = facts[2].min(x);
        facts[3] = facts[3].max(x);
        facts[4] += x.abs();
        facts[5] += x * x;
    }
    let count = facts[0].max(1.0);
    let near = own.first().copied().unwrap_or(0.0);
    let rest = own.iter().map(|x| x - near).sum::<f64>() / count;
    let power = |k: i32| own.iter().map(|x| ((x - near) - rest).powi(k)).sum::<f64>();
    (facts, [near + rest, power(2), power(3), power(4)])
}

fn assert_facts(table: &[f64], columns: usize, column: usize, own: &[f64]) {
    let at = |fact: usize| table[fact * columns + column];
    let (exact, [mean, powers @ ..]) = expected(own);
    for (fact, value) in exact.into_iter().enumerate() {
        assert_eq!(at(fact), value, "{columns} {} {fact}", own.len());
    }
    assert!(
        (at(6) + at(7) - mean).abs() <= 1e-13 * (1.0 + mean.abs()),
        "{columns} {}",
        own.len()
    );
    let scale = powers[0] / exact[0].max(1.0);
    for (fact, value) in powers.into_iter().enumerate() {
        let size = exact[0] * scale.powf(1.0 + fact as f64 / 2.0);
        let found = at(8 + fact);
        assert!(
            (found - value).abs() <= 1e-11 * size,
            "{columns} {} {fact}: {found} {value}",
            own.len()
        );
    }
}

#[test]
fn every_width_tells_what_its_columns_tell_alone() {
    for columns in [1, 2, 3, 5, 7, 8, 9, 16, 19] {
        for rows in [0, 1, 2, 63, 64, 65, 200, 5000] {
            let x: Vec<f64> = (0..rows * columns)
                .map(|i| match i % 11 {
                    3 => f64::NAN,
                    5 => 0.0,
                    _ => (i * 7919 % 101) as f64 - 50.0,
                })
                .collect();
            let table = facts_of(&x, columns);
            for column in 0..columns {
                let own = x.iter().skip(column).step_by(columns).copied();
                let own: Vec<f64> = own.filter(|x| !x.is_nan()).collect();
                assert_facts(&table, columns, column, &own);
            }
        }
    }
}

#[test]
fn no_digits_are_lost_to_missing_or_distant_first_rows() {
    for far in [0.0, 1.7e9, 1e15] {
        let mut x: Vec<f64> = (0..10_000).map(|i| far + (i * 7919 % 101) as f64).collect();
        x[..3000].fill(f64::NAN);
        let own: Vec<f64> = x.iter().copied().filter(|x| !x.is_nan()).collect();
        let table = facts_of(&x, 1);
        let (_, [mean, powers @ ..]) = expected(&own);
        assert!((table[6] + table[7] - mean).abs() <= 1e-15 * mean);
        for (found, value) in table[8..].iter().zip(powers).step_by(2) {
            assert!((found - value).abs() <= 1e-12 * value, "{far}: {found} {value}");
        }
    }
}

#[test]
fn equal_elements_have_no_spread() {
    for value in [0.1, -1e300, 5e-324, f64::MAX] {
        let table = facts_of(&vec![value; 1000], 1);
        assert_eq!(
            [table[6], table[7], table[8], table[9], table[10]],
            [value, 0.0, 0.0, 0.0, 0.0]
        );
    }
}

#[test]
fn an_infinity_is_the_mean_and_has_no_spread() {
    let mut x = vec![1.0; 200];
    x[150] = f64::INFINITY;
    let table = facts_of(&x, 1);
    assert_eq!(table[6] + table[7], f64::INFINITY);
    assert!(table[8].is_nan());
    x[20] = f64::NEG_INFINITY;
    assert!(facts_of(&x, 1)[6].is_nan());
}

#[test]
fn the_largest_numbers_of_both_signs_have_a_mean() {
    let x: Vec<f64> = (0..200)
        .map(|i| if i % 2 == 0 { f64::MAX } else { -f64::MAX })
        .collect();
    let table = facts_of(&x, 1);
    assert!((table[6] + table[7]).abs() <= 1e-10 * f64::MAX, "{}", table[6]);
}

#[test]
fn tables_merge() {
    let x: Vec<f64> = (0..300).map(f64::from).collect();
    let (mut left, right) = (facts_of(&x[..120], 3), facts_of(&x[120..], 3));
    merge_facts(cast_slice(&right), bytemuck::cast_slice_mut(&mut left));
    for column in 0..3 {
        let own: Vec<f64> = x.iter().skip(column).step_by(3).copied().collect();
        assert_facts(&left, 3, column, &own);
    }
}
