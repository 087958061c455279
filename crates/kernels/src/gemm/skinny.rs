//! Products with a vector, at the speed of reading the matrix.
//!
//! Packing costs as much as a product with a vector, so the matrix is read where it lies: rows as dot products, columns
//! as weighted sums. Sums run in a fixed number of lanes and fold in halves: the same bits on every processor.

use crate::fence::operands::{at, GemmOperands, Matrix, MatrixMut};
use crate::fence::shells::ProductBody;
use bytemuck::Pod;
use outcore_dtype::DType;
use std::marker::PhantomData;
use std::ops::{Add, Mul};

/// Lanes of a dot product.
const LANES: usize = 16;

trait Float: Pod + Add<Output = Self> + Mul<Output = Self> {}
impl Float for f32 {}
impl Float for f64 {}

/// Whether the loops here beat the packed product: a vector on either side.
pub fn suits(m: usize, n: usize, k: usize) -> bool {
    k > 0 && (n == 1 || m == 1)
}

struct SkinnyProduct<T>(PhantomData<T>);

impl<T: Float> ProductBody for SkinnyProduct<T> {
    #[inline(always)]
    fn run(product: GemmOperands<'_>) {
        // x A = (A^T x)^T
        let GemmOperands {
            m,
            k,
            a,
            b,
            c,
            accumulate,
            ..
        } = if product.n == 1 { product } else { product.transposed() };
        vector::<T>(m, k, a, (b.data, b.offset, b.row_stride), c, accumulate);
    }
}

/// `C = A x`: dot products where rows of A are contiguous, a sum of columns otherwise.
#[inline(always)]
fn vector<T: Float>(
    m: usize,
    k: usize,
    a: Matrix<'_>,
    (x, x_offset, x_stride): (&[u8], usize, isize),
    c: MatrixMut<'_>,
    accumulate: bool,
) {
    let a_data: &[T] = bytemuck::cast_slice(a.data);
    let x: &[T] = bytemuck::cast_slice(x);
    let c_data: &mut [T] = bytemuck::cast_slice_mut(c.data);
    let mut put = |i: usize, value: T, accumulate: bool| {
        let target = &mut c_data[at(c.offset, c.row_stride, i)];
        *target = if accumulate { *target + value } else { value };
    };
    // A piece of x at a time, gathered where it is not contiguous.
    const PIECE: usize = 512;
    let mut piece = [T::zeroed(); PIECE];
    for first in (0..k).step_by(PIECE) {
        let length = PIECE.min(k - first);
        let start = at(x_offset, x_stride, first);
        let x = if x_stride == 1 {
            &x[start..start + length]
        } else {
            for (p, value) in piece[..length].iter_mut().enumerate() {
                *value = x[at(start, x_stride, p)];
            }
            &piece[..length]
        };
        let accumulate = accumulate || first > 0;
        let start = at(a.offset, a.column_stride, first);
        if a.column_stride == 1 {
            for i in 0..m {
                let row = at(start, a.row_stride, i);
                put(i, dot(&a_data[row..row + length], x), accumulate);
            }
        } else {
            columns(m, x, a_data, start, (a.row_stride, a.column_stride), |i, value| {
                put(i, value, accumulate)
            });
        }
    }
}

/// The sum of columns of A weighted by x, a chunk of rows at a time.
#[inline(always)]
fn columns<T: Float>(
    m: usize,
    x: &[T],
    a: &[T],
    start: usize,
    (row_stride, column_stride): (isize, isize),
    mut put: impl FnMut(usize, T),
) {
    const ROWS: usize = 64;
    for first in (0..m).step_by(ROWS) {
        let height = ROWS.min(m - first);
        let mut sums = [T::zeroed(); ROWS];
        for (p, weight) in x.iter().enumerate() {
            let top = at(at(start, row_stride, first), column_stride, p);
            if row_stride == 1 && height == ROWS {
                let column: &[T; ROWS] = a[top..].first_chunk().expect("a whole chunk of rows");
                for lane in 0..ROWS {
                    sums[lane] = sums[lane] + column[lane] * *weight;
                }
            } else {
                for (lane, sum) in sums[..height].iter_mut().enumerate() {
                    *sum = *sum + a[at(top, row_stride, lane)] * *weight;
                }
            }
        }
        for (lane, sum) in sums[..height].iter().enumerate() {
            put(first + lane, *sum);
        }
    }
}

#[inline(always)]
fn dot<T: Float>(a: &[T], b: &[T]) -> T {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [T::zeroed(); LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane] + a[lane] * b[lane];
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane = *lane + *a * *b;
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

pub fn product(dtype: DType, product: GemmOperands<'_>) {
    match dtype {
        DType::F32 => <SkinnyProduct<f32> as ProductBody>::kernel()(product),
        _ => <SkinnyProduct<f64> as ProductBody>::kernel()(product),
    }
}
