//! Products of a tall matrix, its rows contiguous, with a narrow one, at the speed of reading the tall one.
//!
//! A packed product reads the tall matrix in an order that the processor does not foresee, and computes whole vectors
//! of results of which few are wanted. Here rows are read in order, the lines ahead are asked for while these are
//! multiplied, and a row's results are held in registers. Each result is one chain of fused additions over `k`.

use crate::fence::hint::prefetch;
use crate::fence::operands::{at, GemmOperands, Matrix};
use bytemuck::Pod;
use outcore_dtype::DType;
use pulp::x86::V3;
use pulp::NullaryFnOnce;
use std::marker::PhantomData;

/// Vectors of results at most; wider products are the `gemm` crate's.
const VECTORS: usize = 4;
/// Rows of the narrow matrix that are packed at a time: with four vectors each, half of a first-level cache.
const DEPTH: usize = 128;
/// Shorter sums than this are not worth the packing.
const LEAST_DEPTH: usize = 8;
const LINE_BYTES: usize = 64;
/// How far ahead memory is asked for.
const AHEAD_BYTES: usize = 4096;

trait ProductLanes: Pod {
    type Vector: Pod;
    const LANES: usize = size_of::<Self::Vector>() / size_of::<Self>();
    fn splat(simd: V3, value: Self) -> Self::Vector;
    fn multiply_add(simd: V3, left: Self::Vector, right: Self::Vector, sum: Self::Vector) -> Self::Vector;
}

macro_rules! lanes {
    ($Type:ty, $Vector:ty, $splat:ident, $multiply_add:ident) => {
        impl ProductLanes for $Type {
            type Vector = $Vector;
            #[inline(always)]
            fn splat(simd: V3, value: $Type) -> $Vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn multiply_add(simd: V3, left: $Vector, right: $Vector, sum: $Vector) -> $Vector {
                simd.$multiply_add(left, right, sum)
            }
        }
    };
}
lanes!(f32, pulp::f32x8, splat_f32x8, mul_add_f32x8);
lanes!(f64, pulp::f64x4, splat_f64x4, mul_add_f64x4);

fn lanes(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F32 => Some(f32::LANES),
        DType::F64 => Some(f64::LANES),
        _ => None,
    }
}

/// Whether the product is one for the loops here and the processor has their instructions; then also whether the tall
/// matrix is on the right.
pub fn suits(dtype: DType, product: &GemmOperands<'_>) -> Option<(V3, bool)> {
    let widest = VECTORS * lanes(dtype)?;
    let simd = V3::try_new()?;
    let GemmOperands { m, n, k, a, b, .. } = product;
    let suits = |tall: usize, narrow: usize| (2..=widest).contains(&narrow) && tall >= 4 * narrow && *k >= LEAST_DEPTH;
    if a.column_stride == 1 && suits(*m, *n) {
        Some((simd, false))
    } else if b.row_stride == 1 && suits(*n, *m) {
        Some((simd, true))
    } else {
        None
    }
}

/// `C = [C +] A B`; `mirrored` when B is the tall one.
pub fn product(dtype: DType, product: GemmOperands<'_>, (simd, mirrored): (V3, bool)) {
    let product = if mirrored { product.transposed() } else { product };
    match dtype {
        DType::F32 => simd.vectorize(Narrow::<f32>(simd, product, PhantomData)),
        _ => simd.vectorize(Narrow::<f64>(simd, product, PhantomData)),
    }
}

struct Narrow<'a, T>(V3, GemmOperands<'a>, PhantomData<T>);

impl<T: ProductLanes> NullaryFnOnce for Narrow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Narrow(simd, product, _) = self;
        // Enough rows at a time to hide a multiplication's latency, and few enough for sixteen registers.
        match product.n.div_ceil(T::LANES) {
            1 => run::<T, 1, 8>(simd, product),
            2 => run::<T, 2, 4>(simd, product),
            3 => run::<T, 3, 4>(simd, product),
            _ => run::<T, VECTORS, 2>(simd, product),
        }
    }
}

/// The product for a result `V` vectors wide, `R` rows at a time.
#[inline(always)]
fn run<T: ProductLanes, const V: usize, const R: usize>(simd: V3, product: GemmOperands<'_>) {
    let GemmOperands {
        m,
        n,
        k,
        a,
        b,
        c,
        accumulate,
    } = product;
    let mut packed = [[T::splat(simd, T::zeroed()); V]; DEPTH];
    let result: &mut [T] = bytemuck::cast_slice_mut(c.data);
    for first in (0..k).step_by(DEPTH) {
        let packed = &mut packed[..DEPTH.min(k - first)];
        pack::<T, V>(packed, n, &b, first);
        let mut group = ColumnGroup {
            a: bytemuck::cast_slice(a.data),
            packed,
            n,
            result: &mut *result,
            column_stride: c.column_stride,
            accumulate: accumulate || first > 0,
        };
        let start = a.offset + first;
        let mut row = 0;
        while row < m {
            let starts = (at(start, a.row_stride, row), at(c.offset, c.row_stride, row));
            if row + R <= m {
                group.multiply::<R>(simd, starts, (a.row_stride, c.row_stride));
                row += R;
            } else {
                group.multiply::<1>(simd, starts, (a.row_stride, c.row_stride));
                row += 1;
            }
        }
    }
}

/// Rows of B from `first` on, each filled up with zeros to whole vectors.
#[inline(always)]
fn pack<T: ProductLanes, const V: usize>(packed: &mut [[T::Vector; V]], n: usize, b: &Matrix<'_>, first: usize) {
    let elements: &[T] = bytemuck::cast_slice(b.data);
    for (p, vectors) in packed.iter_mut().enumerate() {
        let row: &mut [T] = bytemuck::cast_slice_mut(vectors);
        let start = at(b.offset, b.row_stride, first + p);
        for (j, value) in row[..n].iter_mut().enumerate() {
            *value = elements[at(start, b.column_stride, j)];
        }
    }
}

/// What the rows of one piece of A have in common.
struct ColumnGroup<'a, T: ProductLanes, const V: usize> {
    a: &'a [T],
    packed: &'a [[T::Vector; V]],
    n: usize,
    result: &'a mut [T],
    column_stride: isize,
    accumulate: bool,
}

impl<T: ProductLanes, const V: usize> ColumnGroup<'_, T, V> {
    /// `R` rows of the result from `starts` on, in A and in C.
    #[inline(always)]
    fn multiply<const R: usize>(
        &mut self,
        simd: V3,
        (a_start, c_start): (usize, usize),
        (a_stride, c_stride): (isize, isize),
    ) {
        let line = LINE_BYTES / size_of::<T>();
        let depth = self.packed.len();
        let begins: [usize; R] = std::array::from_fn(|r| at(a_start, a_stride, r));
        let rows: [&[T]; R] = std::array::from_fn(|r| &self.a[begins[r]..][..depth]);
        let mut sums = [[T::splat(simd, T::zeroed()); V]; R];
        if self.accumulate {
            for (r, sums) in sums.iter_mut().enumerate() {
                let start = at(c_start, c_stride, r);
                let sums: &mut [T] = bytemuck::cast_slice_mut(sums);
                for (j, sum) in sums[..self.n].iter_mut().enumerate() {
                    *sum = self.result[at(start, self.column_stride, j)];
                }
            }
        }
        for first in (0..depth).step_by(line) {
            for begin in begins {
                let ahead = begin + first + AHEAD_BYTES / size_of::<T>();
                if let Some(element) = self.a.get(ahead..ahead + 1) {
                    prefetch(bytemuck::cast_slice(element));
                }
            }
            for p in first..depth.min(first + line) {
                let right = self.packed[p];
                for r in 0..R {
                    let left = T::splat(simd, rows[r][p]);
                    for v in 0..V {
                        sums[r][v] = T::multiply_add(simd, left, right[v], sums[r][v]);
                    }
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let start = at(c_start, c_stride, r);
            let sums: &[T] = &bytemuck::cast_slice(sums)[..self.n];
            if self.column_stride == 1 {
                self.result[start..start + self.n].copy_from_slice(sums);
            } else {
                for (j, &sum) in sums.iter().enumerate() {
                    self.result[at(start, self.column_stride, j)] = sum;
                }
            }
        }
    }
}
