//! Products of integers and booleans, and the naive loop that every type can fall back to.

use crate::fence::operands::GemmOperands;
use crate::fence::shells::ProductBody;
use bytemuck::Pod;
use outcore_dtype::{with_dtype, DType};
use std::marker::PhantomData;

/// The two operations of a product.
trait ProductAlgebra: Pod {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($T:ty),*) => {$(
        impl ProductAlgebra for $T {
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn multiply(self, other: $T) -> $T {
                self.wrapping_mul(other)
            }
        }
    )*};
}

// Two's complement makes the signed products the unsigned ones.
wrapping!(u8, u16, u32, u64);

/// A truth value, whose sum is or and whose product is and.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct TruthAlgebra(u8);

impl ProductAlgebra for TruthAlgebra {
    #[inline(always)]
    fn add(self, other: TruthAlgebra) -> TruthAlgebra {
        TruthAlgebra(self.0 | other.0)
    }
    #[inline(always)]
    fn multiply(self, other: TruthAlgebra) -> TruthAlgebra {
        TruthAlgebra(self.0 & other.0)
    }
}

struct PlainProduct<T>(PhantomData<T>);

/// Columns of C kept on the stack while all of k passes.
const COLUMNS: usize = 256;

impl<T: ProductAlgebra> ProductBody for PlainProduct<T> {
    #[inline(always)]
    fn run(product: GemmOperands<'_>) {
        let GemmOperands {
            m,
            n,
            k,
            a,
            b,
            c,
            accumulate,
        } = product;
        let (a_data, b_data): (&[T], &[T]) = (bytemuck::cast_slice(a.data), bytemuck::cast_slice(b.data));
        let c_data: &mut [T] = bytemuck::cast_slice_mut(c.data);
        let at = |offset: usize, stride: isize, index: usize| offset.wrapping_add_signed(stride * index as isize);
        for first in (0..n).step_by(COLUMNS) {
            let width = COLUMNS.min(n - first);
            for i in 0..m {
                let mut sums = [T::zeroed(); COLUMNS];
                let sums = &mut sums[..width];
                for p in 0..k {
                    let factor = a_data[at(at(a.offset, a.row_stride, i), a.column_stride, p)];
                    let start = at(at(b.offset, b.row_stride, p), b.column_stride, first);
                    if b.column_stride == 1 {
                        for (sum, value) in sums.iter_mut().zip(&b_data[start..start + width]) {
                            *sum = sum.add(factor.multiply(*value));
                        }
                    } else {
                        for (j, sum) in sums.iter_mut().enumerate() {
                            *sum = sum.add(factor.multiply(b_data[at(start, b.column_stride, j)]));
                        }
                    }
                }
                let start = at(at(c.offset, c.row_stride, i), c.column_stride, first);
                for (j, sum) in sums.iter().enumerate() {
                    let target = &mut c_data[at(start, c.column_stride, j)];
                    *target = if accumulate { target.add(*sum) } else { *sum };
                }
            }
        }
    }
}

/// The product of integers or booleans; for other types only the empty one (`k == 0`), which is 0.
pub fn product(dtype: DType, product: GemmOperands<'_>) {
    match dtype {
        DType::Bool => <PlainProduct<TruthAlgebra> as ProductBody>::kernel()(product),
        DType::I8 | DType::U8 => <PlainProduct<u8> as ProductBody>::kernel()(product),
        DType::I16 | DType::U16 => <PlainProduct<u16> as ProductBody>::kernel()(product),
        DType::I32 | DType::U32 => <PlainProduct<u32> as ProductBody>::kernel()(product),
        DType::I64 | DType::U64 => <PlainProduct<u64> as ProductBody>::kernel()(product),
        _ => with_dtype!(dtype, T => zero::<T>(product)),
    }
}

fn zero<T: Pod>(product: GemmOperands<'_>) {
    assert_eq!(product.k, 0, "only an empty product is zero");
    let c: &mut [T] = bytemuck::cast_slice_mut(product.c.data);
    for i in 0..product.m {
        for j in 0..product.n {
            let row = product.c.offset.wrapping_add_signed(product.c.row_stride * i as isize);
            c[row.wrapping_add_signed(product.c.column_stride * j as isize)] = T::zeroed();
        }
    }
}
