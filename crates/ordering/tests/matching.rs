//! Matchings have the largest product of all, scales bound every entry, and pairs cover what has no diagonal entry.

mod support;

use outcore_ordering::{
    compress, match_entries, min_degree, symmetric_matching, Matching, OrderingWatch, SparseColumns, Stopped,
    SymmetricMatching,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::columns::{random_columns, OwnedColumns};
use support::{random_numbers, Owned};

const NONE: u32 = u32::MAX;
const ROUNDING: f64 = 1e-12;

fn watch() -> OrderingWatch<'static> {
    OrderingWatch {
        threads: 1,
        stop: &|| false,
    }
}

fn matching(matrix: &OwnedColumns) -> Matching {
    match_entries(matrix.columns(), &watch()).expect("is not stopped")
}

fn symmetric(matrix: &OwnedColumns) -> SymmetricMatching {
    symmetric_matching(matrix.columns(), &watch()).expect("is not stopped")
}

/// The number of matched columns, and the logarithm of the largest product of as many entries, by all ways to match.
fn brute_force(matrix: &OwnedColumns) -> (u32, f64) {
    fn best(matrix: &OwnedColumns, column: usize, taken: u32) -> (u32, f64) {
        if column == matrix.width() {
            return (0, 0.0);
        }
        let mut most = best(matrix, column + 1, taken);
        for (row, size) in matrix.entries(column).filter(|entry| entry.1 != 0.0) {
            if taken >> row & 1 == 0 {
                let (matched, sum) = best(matrix, column + 1, taken | 1 << row);
                let found = (matched + 1, sum + size.log2());
                if found.0 > most.0 || (found.0 == most.0 && found.1 > most.1) {
                    most = found;
                }
            }
        }
        most
    }
    best(matrix, 0, 0)
}

/// The matched entries are distinct, and scaled entries are at most 1. Unless the scales have no room, those matched
/// are 1, and so is the largest of each row and column.
fn check(matrix: &OwnedColumns, is_in_range: bool) -> Matching {
    let found = matching(matrix);
    let mut column_of_row = vec![NONE; matrix.rows as usize];
    let mut matched = 0;
    let (mut row_most, mut column_most) = (vec![0.0f64; matrix.rows as usize], Vec::new());
    for column in 0..matrix.width() {
        let row = found.row_of_column[column];
        if row != NONE {
            assert_eq!(column_of_row[row as usize], NONE, "row {row} is matched twice");
            column_of_row[row as usize] = column as u32;
            matched += 1;
        }
        let (mut is_entry, mut most) = (false, 0.0f64);
        for (row, size) in matrix.entries(column).filter(|entry| entry.1 != 0.0) {
            let scaled = size * found.row_scale[row as usize] * found.column_scale[column];
            assert!(scaled <= 1.0 + ROUNDING, "({row}, {column}) is {scaled}");
            row_most[row as usize] = scaled.max(row_most[row as usize]);
            most = scaled.max(most);
            if row == found.row_of_column[column] {
                is_entry = true;
                assert!(
                    !is_in_range || scaled >= 1.0 - ROUNDING,
                    "({row}, {column}) is {scaled}"
                );
            }
        }
        assert!(is_entry || row == NONE, "({row}, {column}) is no entry");
        column_most.push(most);
    }
    assert_eq!(found.matched, matched);
    let mut most = row_most.into_iter().chain(column_most);
    assert!(!is_in_range || most.all(|most| most == 0.0 || most >= 1.0 - ROUNDING));
    let scales = found.row_scale.iter().chain(&found.column_scale);
    assert!(scales.into_iter().all(|&scale| scale > 0.0 && scale.is_finite()));
    found
}

fn sum_of_logarithms(matrix: &OwnedColumns, found: &Matching) -> f64 {
    let of = |column: usize| {
        matrix
            .entries(column)
            .find(|entry| entry.0 == found.row_of_column[column])
    };
    (0..matrix.width()).filter_map(of).map(|entry| entry.1.log2()).sum()
}

/// Scaled entries are at most 1, and pairs are entries of size 1.
fn check_symmetric(matrix: &OwnedColumns) -> SymmetricMatching {
    let found = symmetric(matrix);
    for column in 0..matrix.width() {
        let partner = found.partner[column];
        assert_eq!(found.partner[partner as usize], column as u32);
        for (row, size) in matrix.entries(column).filter(|entry| entry.1 != 0.0) {
            let scaled = found.scale[row as usize] * size * found.scale[column];
            assert!(scaled <= 1.0 + ROUNDING, "({row}, {column}) is {scaled}");
            if row == partner && row != column as u32 {
                assert!(scaled >= 1.0 - ROUNDING, "pair ({row}, {column}) is {scaled}");
            }
        }
        let is_entry = matrix.entries(column).any(|entry| entry.0 == partner && entry.1 != 0.0);
        assert!(
            is_entry || partner == column as u32,
            "({partner}, {column}) is no entry"
        );
    }
    assert!(found.scale.iter().all(|&scale| scale > 0.0 && scale.is_finite()));
    found
}

#[test]
fn products_of_small_matrices_are_the_largest() {
    let mut random = random_numbers(88_172_645_463_325_252);
    let mut singular = 0;
    for case in 0..1500 {
        let size = 1 + random(7);
        let percent = 20 + random(81);
        let matrix = OwnedColumns::of_fn(size, size, |_, _| match random(100) < percent {
            // Few different sizes, so that there are ties, or many.
            true if case % 2 == 0 => f64::from(1 + random(4)),
            true => f64::from(1 + random(1 << 20)) * 1e-5,
            false => 0.0,
        });
        let (matched, sum) = brute_force(&matrix);
        let found = check(&matrix, true);
        assert_eq!(found.matched, matched);
        if matched == size {
            assert!((sum_of_logarithms(&matrix, &found) - sum).abs() < 1e-9);
        }
        singular += u32::from(matched < size);
    }
    assert!((200..1300).contains(&singular), "{singular} singular matrices");
}

#[test]
fn matrices_need_not_be_square() {
    let mut random = random_numbers(3);
    for case in 0..500 {
        let (rows, columns) = (random(7), random(7));
        let matrix = OwnedColumns::of_fn(rows, columns, |_, _| f64::from(random(3)) * f64::from(random(1000)));
        let found = check(&matrix, true);
        assert_eq!(found.matched, brute_force(&matrix).0, "case {case}");
        assert_eq!(found.row_scale.len(), rows as usize);
        assert_eq!(found.column_scale.len(), columns as usize);
    }
}

#[test]
fn a_permuted_large_diagonal_is_matched() {
    let size = 2000;
    let mut random = random_numbers(5);
    let mut lists = vec![Vec::new(); size as usize];
    // 1279 and 2000 have no common factor.
    let partner = |column: u32| column * 1279 % size;
    for column in 0..size {
        for _ in 0..20 {
            lists[column as usize].push((random(size.into()), 1e-3 * f64::from(1 + random(500))));
        }
        lists[column as usize].retain(|entry| entry.0 != partner(column));
        lists[column as usize].push((partner(column), 1.0));
    }
    let found = check(&OwnedColumns::of_lists(size, lists), true);
    assert!((0..size).all(|column| found.row_of_column[column as usize] == partner(column)));
}

#[test]
fn bad_scales_are_mended() {
    let mut random = random_numbers(7);
    for _ in 0..300 {
        let size = 2 + random(6);
        let mut exponents = || (0..size).map(|_| f64::from(random(151)) - 75.0).collect::<Vec<_>>();
        let (rows, columns) = (exponents(), exponents());
        let plain = OwnedColumns::of_fn(size, size, |_, _| f64::from(1 + random(1000)));
        let scaled = plain.mapped(|row, column, entry| entry * 10f64.powf(rows[row] + columns[column]));
        let found = check(&scaled, true);
        let sum = sum_of_logarithms(&scaled, &found);
        assert!((brute_force(&scaled).1 - sum).abs() < 1e-8);
        // A full matrix of entries within 1e-150 and 1e150 has scales in the range.
        let wild = OwnedColumns::of_fn(size, size, |_, _| 10f64.powf(f64::from(random(301)) - 150.0));
        let found = check(&wild, true);
        assert!((brute_force(&wild).1 - sum_of_logarithms(&wild, &found)).abs() < 1e-8);
        let sparse = wild.mapped(|_, _, entry| if random(2) == 0 { 0.0 } else { entry });
        let found = check(&sparse, false);
        assert_eq!(found.matched, brute_force(&sparse).0);
    }
}

/// Two entries a column, the larger one beside the diagonal, so that scales shrink by half from row to row.
fn bidiagonal(size: u32) -> OwnedColumns {
    let column = |at: u32| match at {
        0 => vec![(0, 1.0)],
        _ => vec![(at - 1, 2.0), (at, 1.0)],
    };
    OwnedColumns::of_lists(size, (0..size).map(column).collect())
}

#[test]
fn scales_beyond_double_precision_are_cut() {
    let found = check(&bidiagonal(1500), true);
    assert!(found.row_scale.iter().any(|scale| !(1e-200..=1e200).contains(scale)));
    let found = check(&bidiagonal(5000), false);
    assert_eq!(found.matched, 5000);
    let extreme = OwnedColumns::of_fn(3, 3, |row, column| match (row + column) % 3 {
        0 => f64::MAX,
        1 => 5e-324,
        _ => 1.0,
    });
    assert_eq!(check(&extreme, true).matched, 3);
}

#[test]
fn columns_that_contend_for_too_few_rows_keep_their_scales() {
    // Three columns, each of which prefers the first of two rows by another factor.
    let mut lists: Vec<Vec<(u32, f64)>> = (0..30_000).map(|at| vec![(at, 1.0)]).collect();
    for (column, factor) in [(0, 0.4), (1, 0.3), (2, 0.2)] {
        lists[column] = vec![(0, 1.0), (1, factor)];
    }
    let found = check(&OwnedColumns::of_lists(30_000, lists), true);
    assert_eq!(found.matched, 29_999);
    let scales = found.row_scale.iter().chain(&found.column_scale);
    assert!(scales.into_iter().all(|scale| (1e-25..1e25).contains(scale)));
}

#[test]
fn values_that_are_no_numbers_do_no_harm() {
    let numbers = [
        f64::NAN,
        f64::INFINITY,
        -1.0,
        0.0,
        -0.0,
        5e-324,
        f64::MAX,
        f64::NEG_INFINITY,
    ];
    let mut random = random_numbers(11);
    for _ in 0..500 {
        let size = random(8);
        let matrix = OwnedColumns::of_fn(size, size, |_, _| numbers[random(8) as usize]);
        let found = matching(&matrix);
        let scales = found.row_scale.iter().chain(&found.column_scale);
        assert!(scales.into_iter().all(|&scale| scale > 0.0 && scale.is_finite()));
        assert_eq!(symmetric(&matrix).partner.len(), size as usize);
    }
}

#[test]
fn the_smallest_matrices_are_matched() {
    let nothing = SparseColumns {
        rows: 0,
        starts: &[],
        indices: &[],
        sizes: &[],
    };
    assert_eq!(match_entries(nothing, &watch()).expect("is not stopped").matched, 0);
    let found = matching(&OwnedColumns::of_lists(3, vec![Vec::new(); 3]));
    assert_eq!(
        (found.matched, found.row_scale, found.column_scale),
        (0, vec![1.0; 3], vec![1.0; 3])
    );
    let found = symmetric(&OwnedColumns::of_lists(3, vec![Vec::new(); 3]));
    assert_eq!((found.partner, found.scale), (vec![0, 1, 2], vec![1.0; 3]));
    let found = matching(&OwnedColumns::of_lists(1, vec![vec![(0, 4.0)]]));
    assert_eq!(4.0 * found.row_scale[0] * found.column_scale[0], 1.0);
}

/// `[[H, B'], [B, 0]]` for a random diagonally dominant H and a B of full rank.
fn constrained(unknowns: u32, constraints: u32, seed: u64) -> OwnedColumns {
    let mut random = random_numbers(seed);
    let mut entries = std::collections::BTreeMap::new();
    for at in 0..unknowns {
        entries.insert((at, at), 1e-3 * f64::from(1 + random(1000)));
        let (other, size) = (random(unknowns.into()), f64::from(random(100)));
        if other != at {
            entries.insert((at, other), size);
            entries.insert((other, at), size);
        }
    }
    for constraint in 0..constraints {
        let own = unknowns + constraint;
        for step in 0..3 {
            let other = if step == 0 { constraint } else { random(unknowns.into()) };
            let size = f64::from(1 + random(1000)) * 10f64.powi(random(9) as i32 - 4);
            entries.insert((own, other), size);
            entries.insert((other, own), size);
        }
    }
    OwnedColumns::of_entries(unknowns + constraints, &entries)
}

#[test]
fn constraints_are_paired() {
    for (unknowns, constraints) in [(1, 1), (5, 3), (60, 60), (2000, 700)] {
        for seed in 1..=10 {
            let found = check_symmetric(&constrained(unknowns, constraints, seed));
            assert_eq!(found.matched, unknowns + constraints);
            let mut multipliers = (unknowns..unknowns + constraints).map(|at| (at, found.partner[at as usize]));
            assert!(multipliers.all(|(at, partner)| partner != at && partner < unknowns));
        }
    }
}

#[test]
fn symmetric_matrices_are_matched_within_their_structural_rank() {
    let mut random = random_numbers(13);
    let mut lone = 0;
    for _ in 0..3000 {
        let size = 1 + random(7);
        let percent = 10 + random(60);
        let mut upper = vec![0.0; (size * size) as usize];
        for entry in &mut upper {
            *entry = if random(100) < percent {
                f64::from(1 + random(1000))
            } else {
                0.0
            };
        }
        let matrix = OwnedColumns::of_fn(size, size, |row, column| {
            upper[row.min(column) * size as usize + row.max(column)]
        });
        let found = check_symmetric(&matrix);
        assert_eq!(found.matched, brute_force(&matrix).0);
        let diagonal = |at: usize| matrix.entries(at).any(|entry| entry.0 == at as u32 && entry.1 != 0.0);
        let alone = (0..size as usize).filter(|&at| found.partner[at] == at as u32 && !diagonal(at));
        lone += u32::from(alone.count() > 0);
    }
    assert!(lone > 0);
}

fn ring(size: u32, diagonal: impl Fn(u32) -> f64) -> OwnedColumns {
    OwnedColumns::of_fn(size, size, |row, column| {
        let apart = (row as u32 + size - column as u32) % size;
        match apart {
            0 => diagonal(row as u32),
            1 => 1.0,
            _ if apart == size - 1 => 1.0,
            _ => 0.0,
        }
    })
}

#[test]
fn cycles_are_split_into_pairs() {
    // An odd cycle without its diagonal has but two matchings, once around.
    let found = check_symmetric(&ring(9, |at| if at == 4 { 1e-3 } else { 0.0 }));
    assert_eq!(
        (0..9)
            .filter(|&at| found.partner[at as usize] == at)
            .collect::<Vec<_>>(),
        [4]
    );
    let found = check_symmetric(&ring(7, |_| 0.0));
    assert_eq!((0..7).filter(|&at| found.partner[at as usize] == at).count(), 1);
    let found = check_symmetric(&ring(8, |_| 0.0));
    assert!((0..8).all(|at| found.partner[at as usize] != at));
}

#[test]
fn singular_symmetric_matrices_have_as_many_pairs_as_can_be() {
    let pairs = |graph: &Owned| {
        let matrix = OwnedColumns::of_graph(graph, |one, other| f64::from(1 + one.min(other) % 5));
        let found = check_symmetric(&matrix);
        let paired = (0..matrix.rows).filter(|&at| found.partner[at as usize] != at).count();
        assert_eq!(found.matched as usize, paired);
        paired / 2
    };
    for half in [1, 2, 10, 1000] {
        assert_eq!(pairs(&support::path(2 * half + 1)), half as usize);
        assert_eq!(pairs(&support::star(half + 1)), 1);
    }
}

#[test]
fn pairs_are_one_vertex_and_stay_beside_each_other() {
    let graph = support::kkt(6);
    let half = graph.vertices() as u32 / 2;
    let partner: Vec<u32> = (0..2 * half).map(|at| (at + half) % (2 * half)).collect();
    let paired = compress(&graph.graph(), &partner, &watch()).expect("is not stopped");
    let edges: Vec<_> = (0..graph.vertices())
        .flat_map(|at| {
            let list = &graph.neighbours[graph.starts[at] as usize..graph.starts[at + 1] as usize];
            list.iter().map(move |&other| (at as u32 % half, other % half))
        })
        .collect();
    let expected = Owned::of_edges(half as usize, &edges);
    assert_eq!(
        (&paired.starts, &paired.neighbours),
        (&expected.starts, &expected.neighbours)
    );
    let order = min_degree(paired.graph(), &watch()).expect("is not stopped");
    let mut expanded = paired.expand(&order);
    assert!(expanded.chunks(2).all(|pair| partner[pair[0] as usize] == pair[1]));
    expanded.sort_unstable();
    assert_eq!(expanded, (0..2 * half).collect::<Vec<_>>());
}

#[test]
fn large_matrices_are_matched() {
    let size = 1_000_000;
    assert_eq!(check(&bidiagonal(size), false).matched, size);
    // A path without diagonal entries, where one end's partner decides all others.
    let path = OwnedColumns::of_graph(&support::path(size), |_, _| 1.0);
    let found = check_symmetric(&path);
    assert!((0..size).all(|at| found.partner[at as usize] == at ^ 1));
    let rising = OwnedColumns::of_graph(&support::path(200_001), |one, other| f64::from(1 + one.min(other)));
    assert_eq!(check(&rising, false).matched, 200_000);
    let star = OwnedColumns::of_graph(&support::star(size), |one, other| f64::from(one + other));
    assert_eq!(check(&star, true).matched, 2);
    assert_eq!(check_symmetric(&star).matched, 2);
    let random = random_columns(200_000, 5, |number| f64::from(1 + number % 1_000_000));
    assert!(check(&random, true).matched > 198_000);
    let grid = OwnedColumns::of_graph(&support::grid(40, 3, false), |one, other| {
        f64::from(1 + (one ^ other) % 97)
    });
    assert_eq!(check(&grid, true).matched, 64_000);
    assert_eq!(check_symmetric(&grid).matched, 64_000);
    let mut number = random_numbers(17);
    let dense = OwnedColumns::of_fn(700, 700, |_, _| f64::from(1 + number(1 << 30)));
    assert_eq!(check(&dense, true).matched, 700);
}

#[test]
fn a_stop_ends_a_matching_whenever_it_comes() {
    let matrix = random_columns(300_000, 5, |number| f64::from(1 + number % 1000));
    let graph = support::random(300_000, 900_000);
    let twins = OwnedColumns::of_graph(&graph, |_, _| 1.0);
    let partner: Vec<u32> = (0..300_000).collect();
    for after in [0, 1, 5, 9] {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= after;
        let watch = OrderingWatch {
            threads: 1,
            stop: &stop,
        };
        assert_eq!(match_entries(matrix.columns(), &watch), Err(Stopped));
        asked.store(0, Ordering::Relaxed);
        assert_eq!(symmetric_matching(twins.columns(), &watch), Err(Stopped));
        asked.store(0, Ordering::Relaxed);
        assert_eq!(compress(&graph.graph(), &partner, &watch), Err(Stopped));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_matrices_are_matched(
        rows in 1u32..300,
        columns in 1u32..300,
        entries in prop::collection::vec((any::<u32>(), any::<u32>(), -40i32..40), 0..2000),
    ) {
        let entries = entries
            .into_iter()
            .map(|(row, column, exponent)| ((row % rows, column % columns), 2f64.powi(exponent) * 1.1))
            .collect();
        let matrix = OwnedColumns::of_map(rows, columns, &entries);
        prop_assert_eq!(check(&matrix, true).clone(), matching(&matrix));
        if rows == columns {
            check_symmetric(&matrix.with_transpose());
        }
    }
}
