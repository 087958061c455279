//! Facts of columns against a loop over each of them.

use bytemuck::cast_slice;
use outcore_kernels::{clear_facts, describe, merge_facts, FACTS};

/// Rows of a table.
const LEAST: usize = 2;
const GREATEST: usize = 3;

fn facts_of(x: &[f64], centers: &[f64]) -> Vec<f64> {
    let mut table = vec![0.0; FACTS * centers.len()];
    clear_facts(bytemuck::cast_slice_mut(&mut table));
    describe(cast_slice(x), cast_slice(centers), bytemuck::cast_slice_mut(&mut table));
    table
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
            let centers: Vec<f64> = (0..columns).map(|column| column as f64 - 2.0).collect();
            let table = facts_of(&x, &centers);
            for column in 0..columns {
                let own = x.iter().skip(column).step_by(columns).filter(|x| !x.is_nan());
                let mut expected = [0.0; FACTS];
                (expected[LEAST], expected[GREATEST]) = (f64::INFINITY, f64::NEG_INFINITY);
                for x in own {
                    let a = x - centers[column];
                    let of_one = [
                        1.0,
                        f64::from(*x != 0.0),
                        *x,
                        *x,
                        x.abs(),
                        x * x,
                        a,
                        a * a,
                        a * a * a,
                        a * a * a * a,
                    ];
                    for fact in 0..FACTS {
                        expected[fact] = match fact {
                            LEAST => expected[fact].min(of_one[fact]),
                            GREATEST => expected[fact].max(of_one[fact]),
                            _ => expected[fact] + of_one[fact],
                        };
                    }
                }
                // Whole numbers: sums are exact in any order.
                for fact in 0..FACTS {
                    assert_eq!(
                        table[fact * columns + column],
                        expected[fact],
                        "{columns} {rows} {fact}"
                    );
                }
            }
        }
    }
}

#[test]
fn tables_merge() {
    let x: Vec<f64> = (0..300).map(f64::from).collect();
    let centers = [1.0, 2.0, 3.0];
    let (mut left, right) = (facts_of(&x[..120], &centers), facts_of(&x[120..], &centers));
    merge_facts(cast_slice(&right), bytemuck::cast_slice_mut(&mut left));
    assert_eq!(left, facts_of(&x, &centers));
}
