//! Incomplete factors of small matrices.

use outcore_sparse::{Broken, Incomplete};

/// The rows of a dense matrix.
fn rows(dense: &[&[f64]], lower: bool) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
    for (number, row) in dense.iter().enumerate() {
        for (column, value) in row.iter().enumerate() {
            if *value != 0.0 && (column <= number || !lower) {
                columns.push(column as u32);
                values.push(*value);
            }
        }
        starts.push(columns.len());
    }
    (starts, columns, values)
}

#[test]
fn tridiagonal_systems_are_solved_exactly() {
    let dense: [&[f64]; 3] = [&[4.0, 1.0, 0.0], &[1.0, 4.0, 1.0], &[0.0, 1.0, 4.0]];
    for hermitian in [false, true] {
        let (starts, columns, values) = rows(&dense, hermitian);
        let made = Incomplete::new(starts, columns, values, hermitian, 1.0).expect("pivots");
        for adjoint in [false, true] {
            let mut x = [6.0, 12.0, 14.0];
            made.solve(&mut x, 1, adjoint);
            for (got, wanted) in x.iter().zip([1.0, 2.0, 3.0]) {
                assert!((got - wanted).abs() < 1e-14, "{x:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_factored_says_where() {
    let broken = |dense: &[&[f64]], hermitian| {
        let (starts, columns, values) = rows(dense, hermitian);
        Incomplete::new(starts, columns, values, hermitian, 1.0).expect_err("no factors")
    };
    assert_eq!(broken(&[&[1.0, 2.0], &[2.0, 0.0]], false), Broken::NoDiagonal(1));
    assert_eq!(broken(&[&[1.0, 2.0], &[2.0, 4.0]], false), Broken::Pivot(1, 0.0, 0.0));
    assert_eq!(broken(&[&[1.0, 2.0], &[2.0, 1.0]], true), Broken::Pivot(1, -3.0, 0.0));
    let malformed = |starts: &[usize], columns: &[u32]| {
        let values = vec![1.0; columns.len()];
        Incomplete::<f64>::new(starts.to_vec(), columns.to_vec(), values, false, 1.0).expect_err("malformed")
    };
    for (starts, columns) in [
        (&[0, 1][..], &[1][..]),
        (&[0, 2], &[0, 0]),
        (&[0, 2, 1], &[0]),
        (&[], &[]),
    ] {
        assert_eq!(malformed(starts, columns), Broken::Malformed);
    }
}
