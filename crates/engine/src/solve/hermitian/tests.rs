//! Small tiles, task by task: each access is allowed, values and vectors are those of the matrix.

use std::collections::HashMap;

use outcore_dtype::{Complex, DType};
use outcore_kernels::{Hermitian, Panel};

use super::*;
use crate::task::{Access, Bound};

type Number = Complex<f64>;

/// Bytes whose first is where numbers may begin.
fn aligned(bytes: usize) -> Vec<u128> {
    vec![0x7ff8_0000_0000_0001_7ff8_0000_0000_0001; bytes.div_ceil(16)]
}

/// Runs the tasks of an algorithm over a matrix, which is one tile; the tiles of its results.
fn run(eigen: &Eigen, matrix: &[u8]) -> HashMap<(usize, u64), Vec<u128>> {
    let mut tiles: HashMap<(usize, u64), Vec<u128>> = HashMap::new();
    let mut whole = aligned(matrix.len());
    bytemuck::cast_slice_mut(&mut whole)[..matrix.len()].copy_from_slice(matrix);
    tiles.insert((0, 0), whole);
    let length = |set: usize, tile: u64| -> usize {
        let result = set.wrapping_sub(1);
        if set == 0 {
            return matrix.len();
        }
        match eigen.listed(result) {
            Some(lengths) => lengths[tile as usize] as usize,
            None => eigen.grids[result].bytes(tile) as usize,
        }
    };
    for work in eigen.works(&[]) {
        for task in 0..work.tasks() {
            let mut named = vec![];
            work.operands(task, &mut |set, tile, access| named.push((set, tile, access)));
            let mut taken: Vec<((usize, u64), Access, Vec<u128>)> = vec![];
            for (set, tile, access) in named {
                let key = (set, tile);
                let of = (work.label(), task, key);
                let own = match access {
                    Access::Create => {
                        assert!(!tiles.contains_key(&key), "{of:?} is created twice");
                        aligned(length(set, tile))
                    }
                    _ => tiles
                        .remove(&key)
                        .unwrap_or_else(|| panic!("{of:?} is not there, or named twice")),
                };
                taken.push((key, access, own));
            }
            let mut bound = Bound::default();
            for ((set, tile), access, own) in &mut taken {
                let own: &mut [u8] = &mut bytemuck::cast_slice_mut(own)[..length(*set, *tile)];
                match access {
                    Access::Read => bound.reads.push(own),
                    _ => bound.writes.push(own),
                }
            }
            let mut workspace = vec![0xffu8; work.workspace_bytes(task) as usize];
            work.run(task, &mut bound, &mut workspace).unwrap();
            drop(bound);
            tiles.extend(taken.into_iter().map(|(key, _, own)| (key, own)));
        }
    }
    tiles
}

fn element(row: usize, column: usize, is_complex: bool) -> Number {
    let number = |a: usize, b: usize| ((a * a + 3 * b * b) as f64 * 0.37 + (a * b) as f64 * 1.3).sin();
    let (a, b) = (row.max(column), row.min(column));
    let imaginary = if is_complex && a != b { number(a + 5, b) } else { 0.0 };
    Number::new(number(a, b), if row >= column { imaginary } else { -imaginary })
}

fn bytes(numbers: &[Number], is_complex: bool) -> Vec<u8> {
    let parts = numbers.iter().flat_map(|number| {
        let parts = [number.re, number.im];
        parts[..if is_complex { 2 } else { 1 }].to_vec()
    });
    parts.flat_map(f64::to_ne_bytes).collect()
}

fn numbers(bytes: &[u8], is_complex: bool) -> Vec<Number> {
    let parts: &[f64] = bytemuck::cast_slice(bytes);
    match is_complex {
        true => parts
            .chunks_exact(2)
            .map(|parts| Number::new(parts[0], parts[1]))
            .collect(),
        false => parts.iter().map(|&re| Number::new(re, 0.0)).collect(),
    }
}

/// The largest error of A V − V Λ and of Vᴴ V − I.
fn errors(n: usize, of: &dyn Fn(usize, usize) -> Number, is_complex: bool, columns: Range<u64>) -> [f64; 2] {
    let matrix: Vec<Number> = (0..n * n).map(|at| of(at / n, at % n)).collect();
    let dtype = if is_complex { DType::C128 } else { DType::F64 };
    let cut = HermitianCut::new(n as u64, dtype, [16, 4], Some(columns.clone())).unwrap();
    let eigen = Eigen {
        grids: cut.grids(),
        cut: Arc::new(cut),
        kernels: Hermitian::new(Panel::new(dtype).unwrap()),
        matrix: DenseRows::new(Grid {
            shape: vec![n as u64; 2],
            tile: vec![n as u64; 2],
            dtype,
        }),
    };
    let tiles = run(&eigen, &bytes(&matrix, is_complex));
    let values: &[f64] = &bytemuck::cast_slice(&tiles[&(1, 0)])[..n];
    assert!(values.is_sorted());
    let grid = &eigen.grids[1];
    let count = (columns.end - columns.start) as usize;
    let mut vectors = vec![Number::default(); n * count];
    for tile in 0..grid.tiles() {
        let region = grid.region(tile);
        let own: &[u8] = &bytemuck::cast_slice(&tiles[&(2, tile)])[..grid.bytes(tile) as usize];
        for (at, value) in numbers(own, is_complex).into_iter().enumerate() {
            let width = region[1].length as usize;
            let row = region[0].start as usize + at / width;
            vectors[row * count + region[1].start as usize + at % width] = value;
        }
    }
    let mut most = [0.0f64; 2];
    for column in 0..count {
        for row in 0..n {
            let product: Number = (0..n).map(|k| matrix[row * n + k] * vectors[k * count + column]).sum();
            let value = vectors[row * count + column] * values[columns.start as usize + column];
            most[0] = most[0].max((product - value).norm());
        }
        for other in 0..count {
            let product: Number = (0..n)
                .map(|k| vectors[k * count + other].conj() * vectors[k * count + column])
                .sum();
            let wanted = if other == column { 1.0 } else { 0.0 };
            most[1] = most[1].max((product - wanted).norm());
        }
    }
    most
}

#[test]
fn vectors_are_orthonormal_and_those_of_the_matrix() {
    for is_complex in [false, true] {
        for n in [17, 18, 19, 31, 32, 33, 34, 47, 64, 65, 81, 100, 133] {
            let most = errors(
                n,
                &|row, column| element(row, column, is_complex),
                is_complex,
                0..n as u64,
            );
            assert!(most[0] < 4e-13 && most[1] < 4e-14, "{n} {is_complex}: {most:?}");
        }
    }
}

#[test]
fn bands_are_of_any_width() {
    for n in [17, 40, 83] {
        for half in [1, 2, 4, 5, 8, 16, 17, 40] {
            let of = |row: usize, column: usize| match row.abs_diff(column) <= half {
                true => element(row, column, true),
                false => Number::default(),
            };
            let most = errors(n, &of, true, 0..n as u64);
            assert!(most[0] < 4e-13 && most[1] < 4e-14, "{n} {half}: {most:?}");
        }
    }
}

#[test]
fn values_that_coincide_have_orthonormal_vectors() {
    type Matrix = (&'static str, fn(usize, usize) -> Number);
    let matrices: [Matrix; 6] = [
        ("zero", |_, _| Number::default()),
        ("identity", |row, column| {
            Number::new(f64::from(u8::from(row == column)), 0.0)
        }),
        ("ones", |_, _| Number::new(1.0, 0.0)),
        ("second differences", |row, column| {
            Number::new([2.0, -1.0, 0.0][row.abs_diff(column).min(2)], 0.0)
        }),
        ("blocks", |row, column| match row / 10 == column / 10 {
            true => element(row % 10, column % 10, false),
            false => Number::default(),
        }),
        ("graded", |row, column| {
            element(row, column, false) * 10f64.powi(-((row + column) as i32) / 4)
        }),
    ];
    for (name, of) in matrices {
        let n = 83;
        let most = errors(n, &of, false, 0..n as u64);
        assert!(most[0] < 4e-13 && most[1] < 4e-14, "{name}: {most:?}");
        let some = errors(n, &of, false, 20..51);
        assert!(some[0] < 4e-13 && some[1] < 4e-14, "{name}, some: {some:?}");
    }
}

#[test]
fn a_matrix_of_one_tile_or_none_and_vectors_beyond_are_refused() {
    for (rows, columns) in [
        (0, None),
        (16, None),
        (1 << 40, None),
        (40, Some(3..3)),
        (40, Some(0..41)),
    ] {
        assert!(HermitianCut::new(rows, DType::F64, [16, 4], columns).is_err());
    }
}

#[test]
fn columns_of_the_smallest_numbers_have_reflectors() {
    let n = 70;
    let tiny = |row: usize, column: usize| Number::new(if row == column { 1.0 } else { 1e-290 }, 0.0);
    let least = |row: usize, column: usize| {
        let (low, high) = (row.min(column), row.max(column));
        let size = match (low < 16, high < 16) {
            (true, false) if (17..20).contains(&high) && low == 0 => 5e-324,
            (true, false) => 0.0,
            _ => element(row, column, false).re,
        };
        Number::new(size, 0.0)
    };
    let kernel = |row: usize, column: usize| {
        let distance = row.abs_diff(column) as f64 * 0.51;
        Number::new((-distance * distance).exp(), 0.0)
    };
    let scaled = |row: usize, column: usize| element(row, column, true) * 1e-305;
    for (of, scale, is_complex) in [
        (&tiny as &dyn Fn(usize, usize) -> Number, 1.0, false),
        (&least, 1.0, false),
        (&kernel, 1.0, false),
        (&scaled, 1e-305, true),
    ] {
        let most = errors(n, of, is_complex, 0..n as u64);
        assert!(most[0] < 4e-13 * scale && most[1] < 4e-14, "{most:?}");
    }
}
