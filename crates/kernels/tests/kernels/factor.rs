//! Factors multiplied together again give the matrix, for real and complex matrices of all shapes.

use bytemuck::Pod;
use outcore_dtype::{Complex, DType};
use outcore_kernels::{Factor, Factorization, Failure};

type Z = Complex<f64>;

fn matrix(rows: usize, columns: usize, seed: f64, dtype: DType) -> Vec<Z> {
    let wave = |at: usize, f: f64| (at as f64 * f + seed).sin();
    let value = |at| Z::new(wave(at, 0.9), if dtype == DType::C128 { wave(at, 2.3) } else { 0.0 });
    (0..rows * columns).map(value).collect()
}

fn times(a: &[Z], b: &[Z], inner: usize) -> Vec<Z> {
    let (rows, columns) = (a.len() / inner, b.len() / inner);
    let sum = |i: usize, j: usize| (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum();
    (0..rows * columns).map(|at| sum(at / columns, at % columns)).collect()
}

fn adjoint(a: &[Z], columns: usize) -> Vec<Z> {
    let rows = a.len() / columns;
    (0..a.len())
        .map(|at| a[at % rows * columns + at / rows].conj())
        .collect()
}

fn diagonal(values: &[Z], rows: usize, columns: usize) -> Vec<Z> {
    let value = |at| {
        if at / columns == at % columns {
            values[at % columns]
        } else {
            Z::ZERO
        }
    };
    (0..rows * columns).map(value).collect()
}

fn check(found: &[Z], expected: &[Z], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).norm() < 1e-9, "{what}: {found} is not {expected}");
    }
}

fn bytes(values: &[Z], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::C128 => bytemuck::cast_slice(values).to_vec(),
        _ => bytemuck::cast_slice(&values.iter().map(|value| value.re).collect::<Vec<_>>()).to_vec(),
    }
}

/// The numbers in their type, in memory that is aligned for both.
fn aligned_bytes(values: &[Z], dtype: DType) -> Vec<Z> {
    let mut raw = bytes(values, dtype);
    raw.resize(raw.len().next_multiple_of(size_of::<Z>()), 0);
    typed(&raw)
}

fn typed<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

fn run(factor: Factor, dtype: DType, rows: usize, given: &[&[Z]]) -> Result<Vec<Vec<Z>>, Failure> {
    let columns = given[0].len() / rows;
    let right = given.get(1).map_or(0, |b| b.len() / rows);
    let sizes = Factorization {
        factor,
        dtype,
        rows,
        columns,
        right,
    };
    let aligned = |bytes: usize| vec![[0u64; 8]; bytes.div_ceil(64)];
    let inputs: Vec<Vec<Z>> = given.iter().map(|values| aligned_bytes(values, dtype)).collect();
    let lengths = given.iter().map(|values| values.len() * dtype.size());
    let inputs: Vec<&[u8]> = inputs
        .iter()
        .zip(lengths)
        .map(|(raw, length)| &bytemuck::cast_slice(raw)[..length])
        .collect();
    let shapes = sizes.results();
    let lengths: Vec<usize> = shapes
        .iter()
        .map(|(shape, dtype)| shape.iter().product::<usize>() * dtype.size())
        .collect();
    let mut results: Vec<Vec<[u64; 8]>> = lengths.iter().map(|&length| aligned(length)).collect();
    let mut outputs: Vec<&mut [u8]> = results
        .iter_mut()
        .zip(&lengths)
        .map(|(result, &length)| &mut bytemuck::cast_slice_mut(result)[..length])
        .collect();
    // Filled with what nobody may take for a number that was written.
    let mut workspace = vec![[u64::MAX; 8]; sizes.workspace_bytes().div_ceil(64) + 1];
    let workspace: &mut [u8] = bytemuck::cast_slice_mut(&mut workspace);
    sizes.run(&inputs, &mut outputs, &mut workspace[8..8 + sizes.workspace_bytes()])?;
    let wide = |(raw, (_, dtype)): (&&mut [u8], &(Vec<usize>, DType))| match dtype {
        DType::C128 => typed::<Z>(raw),
        _ => typed::<f64>(raw).into_iter().map(|value| Z::new(value, 0.0)).collect(),
    };
    Ok(outputs.iter().zip(&shapes).map(wide).collect())
}

const SHAPES: [(usize, usize); 8] = [(1, 1), (2, 2), (5, 3), (3, 5), (40, 40), (90, 17), (17, 90), (130, 130)];
const DTYPES: [DType; 2] = [DType::F64, DType::C128];

#[test]
fn orthogonal_factors_give_the_matrix_again() {
    for dtype in DTYPES {
        for (m, n) in SHAPES {
            let a = matrix(m, n, 0.3, dtype);
            for (factor, wide) in [(Factor::Qr, m.min(n)), (Factor::QrComplete, m)] {
                let found = run(factor, dtype, m, &[&a]).expect("always there");
                check(&times(&found[0], &found[1], wide), &a, "QR");
                check(
                    &times(&adjoint(&found[0], wide), &found[0], m),
                    &diagonal(&vec![Z::ONE; wide], wide, wide),
                    "QᴴQ",
                );
                let below = (0..wide * n).filter(|at| at / n > at % n);
                below.for_each(|at| assert_eq!(found[1][at], Z::ZERO));
                let alone = run(Factor::Triangle, dtype, m, &[&a]).expect("always there");
                assert_eq!(alone[0], found[1][..m.min(n) * n]);
            }
        }
    }
}

#[test]
fn singular_vectors_and_values_give_the_matrix_again() {
    for dtype in DTYPES {
        for (m, n) in SHAPES {
            let a = matrix(m, n, 1.3, dtype);
            let k = m.min(n);
            let alone = run(Factor::SingularValues, dtype, m, &[&a]).expect("converges");
            for (factor, left, right) in [(Factor::Svd, k, k), (Factor::SvdComplete, m, n)] {
                let found = run(factor, dtype, m, &[&a]).expect("converges");
                let middle = diagonal(&found[1], left, right);
                check(&times(&times(&found[0], &middle, left), &found[2], right), &a, "U S Vᴴ");
                check(&found[1], &alone[0], "S");
                assert!(found[1].windows(2).all(|pair| pair[0].re >= pair[1].re));
                check(
                    &times(&adjoint(&found[0], left), &found[0], m),
                    &diagonal(&vec![Z::ONE; left], left, left),
                    "UᴴU",
                );
            }
        }
    }
}

#[test]
fn hermitian_matrices_are_taken_apart() {
    for dtype in DTYPES {
        for n in [1, 2, 7, 60, 150] {
            let a = matrix(n, n, 0.1, dtype);
            let a: Vec<Z> = a.iter().zip(adjoint(&a, n)).map(|(a, b)| a + b).collect();
            let found = run(Factor::Eigh, dtype, n, &[&a]).expect("converges");
            let scaled = times(&found[1], &diagonal(&found[0], n, n), n);
            check(&times(&scaled, &adjoint(&found[1], n), n), &a, "V W Vᴴ");
            check(
                &run(Factor::Eigvalsh, dtype, n, &[&a]).expect("converges")[0],
                &found[0],
                "W",
            );
            let square = times(&a, &a, n);
            let mut positive = square.clone();
            (0..n).for_each(|place| positive[place * n + place] += Z::ONE);
            let lower = run(Factor::Cholesky, dtype, n, &[&positive]).expect("positive");
            check(&times(&lower[0], &adjoint(&lower[0], n), n), &positive, "L Lᴴ");
        }
    }
}

#[test]
fn other_square_matrices_are_taken_apart() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 20, 90] {
            let mut a = matrix(n, n, 0.7, dtype);
            if n == 2 {
                a = [0.0, -1.0, 1.0, 0.0].map(|value| Z::new(value, 0.0)).to_vec();
            }
            let found = run(Factor::Eig, dtype, n, &[&a]).expect("converges");
            let scaled = times(&found[1], &diagonal(&found[0], n, n), n);
            check(&times(&a, &found[1], n), &scaled, "A V");
            let lengths = (0..n).map(|column| (0..n).map(|row| found[1][row * n + column].norm_sqr()).sum::<f64>());
            lengths.for_each(|length| assert!((length - 1.0).abs() < 1e-12));
            assert_eq!(run(Factor::Eigvals, dtype, n, &[&a]).expect("converges")[0].len(), n);
        }
    }
}

#[test]
fn equations_are_solved_and_determinants_are_products() {
    for dtype in DTYPES {
        for n in [1, 2, 9, 70] {
            let mut a = matrix(n, n, 0.2, dtype);
            (0..n).for_each(|place| a[place * n + (place + 1) % n] += Z::new(3.0, 0.0));
            let identity = diagonal(&vec![Z::ONE; n], n, n);
            let inverse = run(Factor::Inverse, dtype, n, &[&a]).expect("regular");
            check(&times(&a, &inverse[0], n), &identity, "A A⁻¹");
            let b = matrix(n, 4, 0.5, dtype);
            let x = run(Factor::Solve, dtype, n, &[&a, &b]).expect("regular");
            check(&times(&a, &x[0], n), &b, "A X");
            let found = run(Factor::Determinant, dtype, n, &[&a]).expect("always there");
            let value = found[0][0] * found[1][0].re.exp();
            assert!((value - found[2][0]).norm() < 1e-10 * value.norm());
        }
    }
    let swapped: Vec<Z> = [0.0, 2.0, 3.0, 0.0].map(|value| Z::new(value, 0.0)).to_vec();
    let found = run(Factor::Determinant, DType::F64, 2, &[&swapped]).expect("always there");
    check(
        &[found[0][0], found[1][0], found[2][0]],
        &[Z::new(-1.0, 0.0), Z::new(6f64.ln(), 0.0), Z::new(-6.0, 0.0)],
        "det",
    );
}

#[test]
fn matrices_without_factors_are_refused() {
    let zeros = vec![Z::ZERO; 9];
    assert_eq!(run(Factor::Inverse, DType::F64, 3, &[&zeros]), Err(Failure::Singular));
    assert_eq!(
        run(Factor::Solve, DType::C128, 3, &[&zeros, &zeros]),
        Err(Failure::Singular)
    );
    let negative = diagonal(&[Z::ONE, -Z::ONE, Z::ONE], 3, 3);
    assert_eq!(
        run(Factor::Cholesky, DType::F64, 3, &[&negative]),
        Err(Failure::NotPositiveDefinite)
    );
    let nan = vec![Z::new(f64::NAN, 0.0); 9];
    assert_eq!(run(Factor::Eigh, DType::F64, 3, &[&nan]), Err(Failure::NotFinite));
    assert_eq!(run(Factor::Svd, DType::F64, 3, &[&nan]), Err(Failure::NotFinite));
    let none = run(Factor::Determinant, DType::F64, 3, &[&zeros]).expect("always there");
    assert_eq!(
        (none[0][0], none[1][0].re, none[2][0]),
        (Z::ZERO, f64::NEG_INFINITY, Z::ZERO)
    );
}
