//! What the shells and the call into `gemm` are given: the fence is the ground floor and knows none of ours.

/// A matrix to read. Offset and strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    pub data: &'a [u8],
    pub offset: usize,
    pub row_stride: isize,
    pub column_stride: isize,
}

/// A matrix to write. Offset and strides count elements.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    pub data: &'a mut [u8],
    pub offset: usize,
    pub row_stride: isize,
    pub column_stride: isize,
}

/// `C = [C +] A B` with every element of the three known to lie in its slice.
pub struct GemmOperands<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Matrix<'a>,
    pub b: Matrix<'a>,
    pub c: MatrixMut<'a>,
    pub accumulate: bool,
}

impl<'a> GemmOperands<'a> {
    /// The same product as `C^T = [C^T +] B^T A^T`.
    #[inline(always)]
    pub fn transposed(self) -> GemmOperands<'a> {
        let flip = |matrix: Matrix<'a>| Matrix {
            row_stride: matrix.column_stride,
            column_stride: matrix.row_stride,
            ..matrix
        };
        GemmOperands {
            m: self.n,
            n: self.m,
            a: flip(self.b),
            b: flip(self.a),
            c: MatrixMut {
                row_stride: self.c.column_stride,
                column_stride: self.c.row_stride,
                ..self.c
            },
            ..self
        }
    }
}

/// The element `index` strides from `offset`.
#[inline(always)]
pub fn at(offset: usize, stride: isize, index: usize) -> usize {
    offset.wrapping_add_signed(stride * index as isize)
}

/// A C-contiguous `[outer, length, inner]` block, `outer` by its size; the middle axis is reduced.
#[derive(Clone, Copy, Debug)]
pub struct FoldBlock<'a> {
    pub data: &'a [u8],
    pub length: usize,
    pub inner: usize,
    /// Positions along the reduced axis, for the `Arg*` reductions: `index_base + i * index_step`.
    pub index_base: i64,
    pub index_step: i64,
}

/// A tile of a sparse matrix, of whose bytes the crate of sparse kernels knows the meaning.
#[derive(Clone, Copy, Debug)]
pub struct SparseTile<'a> {
    pub bytes: &'a [u8],
    pub segments: usize,
    pub entries: usize,
    pub values: &'a [u8],
    /// Elements beside each other in a row of the dense blocks.
    pub width: usize,
}
