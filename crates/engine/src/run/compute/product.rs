//! Products of blocks, and sums of partial products.

use outcore_kernels::{gemm, Binary, Matrix, MatrixMut};

use crate::run::compute::value::Strided;

/// `target (+)= x @ y` for every matrix of the batch; `target` is contiguous.
pub(in crate::run) fn multiply(
    dtype: outcore_dtype::DType,
    operands: [(&Strided, &Vec<usize>); 2],
    data: [&[u8]; 2],
    target: &mut [u8],
    shape: &[usize],
    accumulate: bool,
) {
    let ndim = shape.len();
    let (m, n) = (shape[ndim - 2], shape[ndim - 1]);
    let k = operands[0].1[ndim - 1];
    let batch = &shape[..ndim - 2];
    for index in 0..batch.iter().product::<usize>() {
        let mut rest = index;
        let mut offsets = operands.map(|(value, _)| value.offset as isize);
        for axis in (0..batch.len()).rev() {
            let at = (rest % batch[axis]) as isize;
            rest /= batch[axis];
            for (offset, (value, _)) in offsets.iter_mut().zip(&operands) {
                *offset += at * value.strides[axis];
            }
        }
        let matrix = |side: usize| Matrix {
            data: data[side],
            offset: offsets[side] as usize,
            row_stride: operands[side].0.strides[ndim - 2],
            column_stride: operands[side].0.strides[ndim - 1],
        };
        let result = MatrixMut {
            data: target,
            offset: index * m * n,
            row_stride: n as isize,
            column_stride: 1,
        };
        gemm(dtype, [m, n, k], matrix(0), matrix(1), result, accumulate);
    }
}

/// `left += right` for partial products.
pub fn add_partials(dtype: outcore_dtype::DType, left: &mut [u8], right: &[u8]) {
    let kernel = outcore_kernels::binary_kernel(Binary::Add, dtype).expect("every type adds");
    let strip = crate::strips::STRIP * dtype.size();
    let words = strip.div_ceil(16);
    let mut aligned = vec![0u128; words];
    let buffer: &mut [u8] = bytemuck::cast_slice_mut(&mut aligned);
    for (left, right) in left.chunks_mut(strip).zip(right.chunks(strip)) {
        kernel(left, right, &mut buffer[..left.len()]);
        left.copy_from_slice(&buffer[..left.len()]);
    }
}
