//! Products against three loops, over layouts, types and shapes.

use bytemuck::Pod;
use outcore_dtype::{with_dtype, DType, Scalar};
use outcore_kernels::{cast_kernel, gemm, Matrix, MatrixMut};

fn small(dtype: DType, count: usize, salt: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|i| {
            Scalar::Int(((i * 7 + salt) % 4) as i64 % if dtype == DType::Bool { 2 } else { 4 })
                .to_bytes(dtype)
                .unwrap()
        })
        .collect()
}

fn read(dtype: DType, data: &[u8], at: usize) -> f64 {
    let mut value = [0u8; 8];
    let size = dtype.size();
    let mut element = [0u128; 1];
    bytemuck::cast_slice_mut::<u128, u8>(&mut element)[..size].copy_from_slice(&data[at * size..(at + 1) * size]);
    cast_kernel(dtype, DType::F64)(
        &bytemuck::cast_slice(&element)[..size],
        bytemuck::cast_slice_mut(&mut value),
    );
    f64::from_ne_bytes(value)
}

fn aligned<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// Small integers are exact in every type, so the results are equal, not close.
#[test]
fn products_are_those_of_three_loops() {
    for dtype in DType::ALL {
        for (m, n, k) in [
            (1, 1, 1),
            (3, 4, 5),
            (17, 1, 40),
            (1, 19, 33),
            (70, 1, 600),
            (33, 10, 20),
            (10, 20, 33),
            (2, 300, 3),
            (5, 6, 0),
            (66, 3, 130),
            (70, 10, 20),
            (9, 90, 130),
            (131, 4, 300),
            (69, 16, 9),
            (300, 32, 140),
        ] {
            for layout in 0..8 {
                for accumulate in [false, true] {
                    check_product(dtype, [m, n, k], layout, accumulate);
                }
            }
        }
    }
}

fn check_product(dtype: DType, [m, n, k]: [usize; 3], layout: usize, accumulate: bool) {
    let (a, b, c) = (
        small(dtype, m * k + 2, 1),
        small(dtype, k * n + 2, 2),
        small(dtype, m * n + 2, 3),
    );
    let strides = |rows: usize, columns: usize, transposed: bool| {
        if transposed {
            (1, rows as isize)
        } else {
            (columns as isize, 1)
        }
    };
    let (a_strides, b_strides, c_strides) = (
        strides(m, k, layout & 1 != 0),
        strides(k, n, layout & 2 != 0),
        strides(m, n, layout & 4 != 0),
    );
    let at = |(row, column): (isize, isize), i: usize, j: usize| (2 + row * i as isize + column * j as isize) as usize;
    let (result, _) = with_dtype!(dtype, T => {
        let (a, b, mut c) = (aligned::<T>(&a), aligned::<T>(&b), aligned::<T>(&c));
        gemm(dtype, [m, n, k], Matrix { data: bytemuck::cast_slice(&a), offset: 2, row_stride: a_strides.0, column_stride: a_strides.1 }, Matrix { data: bytemuck::cast_slice(&b), offset: 2, row_stride: b_strides.0, column_stride: b_strides.1 }, MatrixMut { data: bytemuck::cast_slice_mut(&mut c), offset: 2, row_stride: c_strides.0, column_stride: c_strides.1 }, accumulate);
        (bytemuck::cast_slice::<T, u8>(&c).to_vec(), ())
    });
    for i in 0..m {
        for j in 0..n {
            let mut sum = if accumulate {
                read(dtype, &c, at(c_strides, i, j))
            } else {
                0.0
            };
            for p in 0..k {
                sum += read(dtype, &a, at(a_strides, i, p)) * read(dtype, &b, at(b_strides, p, j));
            }
            let sum = match dtype {
                DType::Bool => f64::from(sum > 0.0),
                DType::U8 => sum % 256.0,
                DType::I8 => f64::from(sum as i64 as i8),
                _ => sum,
            };
            let found = read(dtype, &result, at(c_strides, i, j));
            // Halves are rounded between blocks of k.
            let tolerance = if dtype == DType::F16 { 6e-3 * sum.abs() } else { 0.0 };
            assert!(
                (found - sum).abs() <= tolerance,
                "{dtype} {m}x{n}x{k} layout {layout} {accumulate} at {i},{j}: {found}, {sum}"
            );
        }
    }
}

#[test]
fn reversed_rows_are_negative_strides() {
    let a = [1.0f64, 2.0, 3.0, 4.0];
    let b = [1.0f64, 10.0];
    let mut c = [0.0f64; 2];
    gemm(
        DType::F64,
        [2, 1, 2],
        Matrix {
            data: bytemuck::cast_slice(&a),
            offset: 3,
            row_stride: -2,
            column_stride: -1,
        },
        Matrix {
            data: bytemuck::cast_slice(&b),
            offset: 0,
            row_stride: 1,
            column_stride: 1,
        },
        MatrixMut {
            data: bytemuck::cast_slice_mut(&mut c),
            offset: 0,
            row_stride: 1,
            column_stride: 1,
        },
        false,
    );
    assert_eq!(c, [34.0, 12.0]);
}

#[test]
#[should_panic(expected = "gemm: B of 2x3")]
fn an_operand_outside_its_slice_is_refused() {
    let data = [0.0f64; 5];
    let mut c = [0.0f64; 6];
    gemm(
        DType::F64,
        [2, 3, 2],
        Matrix {
            data: bytemuck::cast_slice(&data),
            offset: 0,
            row_stride: 2,
            column_stride: 1,
        },
        Matrix {
            data: bytemuck::cast_slice(&data),
            offset: 0,
            row_stride: 3,
            column_stride: 1,
        },
        MatrixMut {
            data: bytemuck::cast_slice_mut(&mut c),
            offset: 0,
            row_stride: 3,
            column_stride: 1,
        },
        false,
    );
}
