//! Real and complex numbers as the factorizations need them.

use bytemuck::Pod;
use faer::diag::DiagMut;
use faer::linalg::evd;
use faer::linalg::matmul::matmul_with_conj;
use faer::traits::ComplexField;
use faer::{Accum, Conj, MatMut, MatRef, Par};
use outcore_dtype::Complex;

use super::failure::Failure;
use crate::spare::Spare;

/// Element types that `faer` works in.
pub trait FactorScalar: ComplexField + Pod {
    fn conjugate(self) -> Self;
    fn real(self) -> f64;
    fn size(self) -> f64;
    fn of(value: f64) -> Self;
    fn times(self, other: Self) -> Self;
    fn inverse(self) -> Self;
    fn over(self, other: Self) -> Self;
    /// The sum of the sizes of real and imaginary part, by which LAPACK chooses pivots.
    fn sum_of_parts(self) -> f64;
}

/// Element types of matrices whose eigenvalues are found.
pub trait EigenScalar: FactorScalar {
    /// Eigenvalues and, where asked for, the vectors of unit length, row by row.
    fn eig(
        a: MatRef<'_, Self>,
        values: &mut [Complex<f64>],
        vectors: Option<&mut [Complex<f64>]>,
        spare: &mut Spare<'_>,
    ) -> Result<(), Failure>;
}

macro_rules! real_scalar {
    ($real:ty) => {
        impl FactorScalar for $real {
            fn conjugate(self) -> Self {
                self
            }
            fn real(self) -> f64 {
                self.into()
            }
            fn size(self) -> f64 {
                self.abs().into()
            }
            fn of(value: f64) -> Self {
                value as $real
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn inverse(self) -> Self {
                1.0 / self
            }
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn sum_of_parts(self) -> f64 {
                self.abs().into()
            }
        }
    };
}

macro_rules! complex_scalar {
    ($real:ty) => {
        impl FactorScalar for Complex<$real> {
            fn conjugate(self) -> Self {
                self.conj()
            }
            fn real(self) -> f64 {
                self.re.into()
            }
            fn size(self) -> f64 {
                self.norm().into()
            }
            fn of(value: f64) -> Self {
                Complex::new(value as $real, 0.0)
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn inverse(self) -> Self {
                self.inv()
            }
            fn over(self, other: Self) -> Self {
                // Smith's way, which does not overflow where the quotient does not: by the larger part of the divisor.
                if other.re.abs() >= other.im.abs() {
                    let ratio = other.im / other.re;
                    let divisor = other.re + other.im * ratio;
                    Complex::new(
                        (self.re + self.im * ratio) / divisor,
                        (self.im - self.re * ratio) / divisor,
                    )
                } else {
                    let ratio = other.re / other.im;
                    let divisor = other.re * ratio + other.im;
                    Complex::new(
                        (self.re * ratio + self.im) / divisor,
                        (self.im * ratio - self.re) / divisor,
                    )
                }
            }
            fn sum_of_parts(self) -> f64 {
                (self.re.abs() + self.im.abs()).into()
            }
        }
    };
}

real_scalar!(f32);
real_scalar!(f64);
complex_scalar!(f32);
complex_scalar!(f64);

impl EigenScalar for f64 {
    fn eig(
        a: MatRef<'_, f64>,
        values: &mut [Complex<f64>],
        vectors: Option<&mut [Complex<f64>]>,
        spare: &mut Spare<'_>,
    ) -> Result<(), Failure> {
        let n = a.nrows();
        let (re, im) = (spare.take::<f64>(n), spare.take::<f64>(n));
        let packed = vectors.is_some().then(|| spare.take::<f64>(n * n));
        let right = packed.map(|packed| MatMut::from_column_major_slice_mut(packed, n, n));
        let mut right = right;
        evd::evd_real(
            a,
            DiagMut::from_slice_mut(re),
            DiagMut::from_slice_mut(im),
            None,
            right.as_mut().map(|right| right.as_mut()),
            Par::Seq,
            spare.stack(),
            Default::default(),
        )
        .map_err(|_| Failure::NoConvergence)?;
        for ((value, &re), &im) in values.iter_mut().zip(&*re).zip(&*im) {
            *value = Complex::new(re, im);
        }
        if let (Some(vectors), Some(right)) = (vectors, right) {
            // A pair of conjugate values has the real and the imaginary part of its vector in its two columns.
            let mut column = 0;
            while column < n {
                let is_pair = values[column].im != 0.0 && column + 1 < n;
                for row in 0..n {
                    let re = right[(row, column)];
                    if is_pair {
                        let im = right[(row, column + 1)];
                        vectors[row * n + column] = Complex::new(re, im);
                        vectors[row * n + column + 1] = Complex::new(re, -im);
                    } else {
                        vectors[row * n + column] = Complex::new(re, 0.0);
                    }
                }
                column += 1 + usize::from(is_pair);
            }
            normalize(vectors, n);
        }
        Ok(())
    }
}

impl EigenScalar for Complex<f64> {
    fn eig(
        a: MatRef<'_, Self>,
        values: &mut [Complex<f64>],
        vectors: Option<&mut [Complex<f64>]>,
        spare: &mut Spare<'_>,
    ) -> Result<(), Failure> {
        let n = a.nrows();
        let asked = vectors.is_some();
        let mut right = asked.then(|| MatMut::from_column_major_slice_mut(spare.take::<Complex<f64>>(n * n), n, n));
        evd::evd_cplx(
            a,
            DiagMut::from_slice_mut(values),
            None,
            right.as_mut().map(|right| right.as_mut()),
            Par::Seq,
            spare.stack(),
            Default::default(),
        )
        .map_err(|_| Failure::NoConvergence)?;
        if let (Some(vectors), Some(right)) = (vectors, right) {
            rows(vectors, n, n).copy_from(right);
            normalize(vectors, n);
        }
        Ok(())
    }
}

/// Columns of unit length.
fn normalize(vectors: &mut [Complex<f64>], n: usize) {
    for column in 0..n {
        let square: f64 = (0..n).map(|row| vectors[row * n + column].norm_sqr()).sum();
        let length = square.sqrt();
        if length > 0.0 {
            (0..n).for_each(|row| vectors[row * n + column] /= length);
        }
    }
}

/// The matrix in the bytes of a tile, which lie row by row.
pub fn tile<T: FactorScalar>(data: &[u8], height: usize, width: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(bytemuck::cast_slice(data), height, width)
}

/// `C := f A B`, or added to C.
pub fn times<T: FactorScalar>(
    c: MatMut<'_, T>,
    accum: Accum,
    (a, a_conj): (MatRef<'_, T>, Conj),
    (b, b_conj): (MatRef<'_, T>, Conj),
    factor: f64,
) {
    matmul_with_conj(c, accum, a, a_conj, b, b_conj, T::of(factor), Par::Seq);
}

pub fn rows<T>(slice: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(slice, rows, columns)
}
