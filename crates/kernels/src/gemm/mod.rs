//! Dense products on strided operands, in one thread: the engine has its own.
//!
//! Floating products are the `gemm` crate's where its packing pays, and loops of our own where the time is that of
//! reading one side: the other is a vector (`skinny`), or a few columns (`narrow`). Integers wrap; for booleans `+` is
//! or and `*` is and. The result is a function of the sizes and strides, on one processor.

#[cfg(target_arch = "x86_64")]
mod narrow;
mod plain;
mod skinny;

pub use crate::fence::operands::{Matrix, MatrixMut};

use crate::fence::operands::GemmOperands;
use crate::fence::product::product;
use outcore_dtype::{f16, Complex, DType};

/// Panics unless all of a `rows x columns` matrix lies within `elements`.
fn check(name: &str, elements: usize, offset: usize, shape: [usize; 2], strides: [isize; 2]) {
    if shape[0] == 0 || shape[1] == 0 {
        return;
    }
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (extent, stride) in shape.into_iter().zip(strides) {
        let reach = (extent as i128 - 1) * stride as i128;
        low += reach.min(0);
        high += reach.max(0);
    }
    assert!(
        low >= 0 && high < elements as i128,
        "gemm: {name} of {}x{} at offset {offset} with strides {strides:?} reaches elements {low}..={high} of {elements}",
        shape[0],
        shape[1],
    );
}

/// `C = A B`, or `C += A B`, for `A` of `m x k` and `B` of `k x n`. An empty sum (`k == 0`) is 0.
///
/// # Panics
/// When an operand reaches outside its slice.
pub fn gemm(dtype: DType, [m, n, k]: [usize; 3], a: Matrix<'_>, b: Matrix<'_>, c: MatrixMut<'_>, accumulate: bool) {
    let size = dtype.size();
    check(
        "A",
        a.data.len() / size,
        a.offset,
        [m, k],
        [a.row_stride, a.column_stride],
    );
    check(
        "B",
        b.data.len() / size,
        b.offset,
        [k, n],
        [b.row_stride, b.column_stride],
    );
    check(
        "C",
        c.data.len() / size,
        c.offset,
        [m, n],
        [c.row_stride, c.column_stride],
    );
    if m == 0 || n == 0 || (k == 0 && accumulate) {
        return;
    }
    let operands = GemmOperands {
        m,
        n,
        k,
        a,
        b,
        c,
        accumulate,
    };
    #[cfg(target_arch = "x86_64")]
    if let Some(way) = narrow::suits(dtype, &operands) {
        return narrow::product(dtype, operands, way);
    }
    match dtype {
        DType::F32 | DType::F64 if skinny::suits(m, n, k) => skinny::product(dtype, operands),
        _ if k == 0 => plain::product(dtype, operands),
        DType::F16 => product::<f16>(operands, f16::ONE),
        DType::F32 => product::<f32>(operands, 1.0),
        DType::F64 => product::<f64>(operands, 1.0),
        DType::C64 => product::<Complex<f32>>(operands, Complex::new(1.0, 0.0)),
        DType::C128 => product::<Complex<f64>>(operands, Complex::new(1.0, 0.0)),
        _ => plain::product(dtype, operands),
    }
}
