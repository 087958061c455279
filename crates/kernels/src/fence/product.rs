//! The call into the `gemm` crate.

use super::operands::GemmOperands;
use bytemuck::Pod;

/// `C = [C +] A B` by the `gemm` crate, in this thread.
pub fn product<T: Pod>(product: GemmOperands<'_>, one: T) {
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
    // SAFETY: `gemm` reads `a[i, p]`, `b[p, j]` and writes `c[i, j]` for indices below m, n, k at these strides; each of
    // those was checked to lie in its slice when the product was made, and `c` is borrowed apart from `a` and `b`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c_data.as_mut_ptr().add(c.offset),
            c.column_stride,
            c.row_stride,
            accumulate,
            a_data.as_ptr().add(a.offset),
            a.column_stride,
            a.row_stride,
            b_data.as_ptr().add(b.offset),
            b.column_stride,
            b.row_stride,
            one,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
