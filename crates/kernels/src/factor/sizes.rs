//! What is computed, of matrices of which size, and the memory it takes.

use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::householder::apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch;
use faer::linalg::lu::partial_pivoting as lu;
use faer::linalg::qr::no_pivoting::factor as qr;
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::traits::ComplexField;
use faer::Par;
use outcore_dtype::{Complex, DType};

use crate::fence::stack::StackReq;
use crate::names::names;
use crate::spare::{taken, SKIPPED};

/// What is computed of a matrix A with m rows and n columns, k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    /// A = L Lᴴ of a Hermitian positive definite matrix, of which the lower triangle is read: L (n, n).
    Cholesky,
    /// A = Q R with orthonormal columns: Q (m, k), R (k, n).
    Qr,
    /// The same with Q (m, m), R (m, n).
    QrComplete,
    /// R (k, n) alone.
    Triangle,
    /// A = U diag(S) Vᴴ: U (m, k), S (k,) descending, Vᴴ (k, n).
    Svd,
    /// The same with U (m, m), Vᴴ (n, n).
    SvdComplete,
    /// S (k,) alone.
    SingularValues,
    /// A = V diag(W) Vᴴ of a Hermitian matrix, of which the lower triangle is read: W (n,) ascending, V (n, n).
    Eigh,
    /// W (n,) alone.
    Eigvalsh,
    /// A V = V diag(W) of any square matrix, columns of V of length one: W (n,), V (n, n), both complex.
    Eig,
    /// W (n,) alone.
    Eigvals,
    /// A⁻¹ (n, n).
    Inverse,
    /// X of A X = B for the second operand B (n, r).
    Solve,
    /// Sign, logarithm of the absolute value, and value of the determinant, each ().
    Determinant,
}

names!(Factor {
    Cholesky => "cholesky",
    Qr => "qr",
    QrComplete => "qr_complete",
    Triangle => "triangle",
    Svd => "svd",
    SvdComplete => "svd_complete",
    SingularValues => "svdvals",
    Eigh => "eigh",
    Eigvalsh => "eigvalsh",
    Eig => "eig",
    Eigvals => "eigvals",
    Inverse => "inv",
    Solve => "solve",
    Determinant => "det",
});

impl Factor {
    /// Whether eigenvalues or singular values are approached step by step.
    pub(super) fn is_iterative(self) -> bool {
        use Factor::{Eig, Eigh, Eigvals, Eigvalsh, SingularValues, Svd, SvdComplete};
        matches!(
            self,
            Eig | Eigh | Eigvals | Eigvalsh | SingularValues | Svd | SvdComplete
        )
    }
}

/// A factorization and the sizes it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factorization {
    pub factor: Factor,
    /// `F64` or `C128`.
    pub dtype: DType,
    pub rows: usize,
    pub columns: usize,
    /// Columns of the second operand of [`Factor::Solve`]; else 0.
    pub right: usize,
}

impl Factorization {
    /// k.
    pub(super) fn short(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// Shape and type of each result.
    pub fn results(&self) -> Vec<(Vec<usize>, DType)> {
        let (m, n, k) = (self.rows, self.columns, self.short());
        let (own, real, complex) = (self.dtype, DType::F64, DType::C128);
        match self.factor {
            Factor::Cholesky | Factor::Inverse => vec![(vec![n, n], own)],
            Factor::Qr => vec![(vec![m, k], own), (vec![k, n], own)],
            Factor::QrComplete => vec![(vec![m, m], own), (vec![m, n], own)],
            Factor::Triangle => vec![(vec![k, n], own)],
            Factor::Svd => vec![(vec![m, k], own), (vec![k], real), (vec![k, n], own)],
            Factor::SvdComplete => vec![(vec![m, m], own), (vec![k], real), (vec![n, n], own)],
            Factor::SingularValues => vec![(vec![k], real)],
            Factor::Eigh => vec![(vec![n], real), (vec![n, n], own)],
            Factor::Eigvalsh => vec![(vec![n], real)],
            Factor::Eig => vec![(vec![n], complex), (vec![n, n], complex)],
            Factor::Eigvals => vec![(vec![n], complex)],
            Factor::Solve => vec![(vec![n, self.right], own)],
            Factor::Determinant => vec![(vec![], own), (vec![], real), (vec![], own)],
        }
    }

    /// Operations, for estimates of time.
    pub fn operations(&self) -> f64 {
        let (m, n) = (self.rows as f64, self.columns as f64);
        let short = m.min(n);
        let each = match self.factor {
            Factor::Cholesky => n * n / 3.0,
            Factor::Determinant => n * n * 2.0 / 3.0,
            Factor::Inverse => n * n * 2.0,
            Factor::Solve => n * (n * 2.0 / 3.0 + 2.0 * self.right as f64),
            Factor::Qr | Factor::QrComplete => 4.0 * m * short,
            Factor::Triangle => 2.0 * m * short,
            Factor::SingularValues | Factor::Eigvalsh => 4.0 * m * short,
            Factor::Svd | Factor::SvdComplete | Factor::Eigh => 12.0 * m * short,
            Factor::Eig | Factor::Eigvals => 25.0 * n * n,
        };
        each * n
    }

    /// Memory that [`Factorization::run`] needs beside its operands and results.
    pub fn workspace_bytes(&self) -> usize {
        match self.dtype {
            DType::F64 => self.spare_bytes::<f64>(),
            _ => self.spare_bytes::<Complex<f64>>(),
        }
    }

    fn spare_bytes<T: ComplexField>(&self) -> usize {
        let (m, n, k) = (self.rows, self.columns, self.short());
        let seq = Par::Seq;
        let (own, request) = match self.factor {
            Factor::Cholesky => (
                taken::<T>(&[n * n]),
                llt::cholesky_in_place_scratch::<T>(n, seq, Default::default()),
            ),
            Factor::Qr | Factor::QrComplete | Factor::Triangle => {
                let block = qr::recommended_block_size::<T>(m, n);
                let wide = self.basis_columns();
                (
                    taken::<T>(&[m * n, block * k, m * wide]),
                    StackReq::any_of(&[
                        qr::qr_in_place_scratch::<T>(m, n, block, seq, Default::default()),
                        apply_scratch::<T>(m, block, wide),
                    ]),
                )
            }
            Factor::Svd | Factor::SvdComplete | Factor::SingularValues => {
                let vectors = self.singular_vectors();
                let (left, right) = self.singular_lengths();
                (
                    taken::<T>(&[k, left, right]),
                    svd::svd_scratch::<T>(m, n, vectors, vectors, seq, Default::default()),
                )
            }
            Factor::Eigh | Factor::Eigvalsh => {
                let (vectors, length) = match self.factor {
                    Factor::Eigh => (ComputeEigenvectors::Yes, n * n),
                    _ => (ComputeEigenvectors::No, 0),
                };
                (
                    taken::<T>(&[n, length]),
                    evd::self_adjoint_evd_scratch::<T>(n, vectors, seq, Default::default()),
                )
            }
            Factor::Eig | Factor::Eigvals => {
                let (vectors, length) = match self.factor {
                    Factor::Eig => (ComputeEigenvectors::Yes, n * n),
                    _ => (ComputeEigenvectors::No, 0),
                };
                (
                    taken::<T>(&[length, n, n]),
                    evd::evd_scratch::<T>(n, ComputeEigenvectors::No, vectors, seq, Default::default()),
                )
            }
            Factor::Inverse | Factor::Solve | Factor::Determinant => {
                let beside = match self.factor {
                    Factor::Inverse => n * n,
                    Factor::Solve => n * self.right,
                    _ => 0,
                };
                (
                    taken::<T>(&[n * n, beside]) + taken::<usize>(&[n, n]),
                    StackReq::any_of(&[
                        lu::factor::lu_in_place_scratch::<usize, T>(n, n, seq, Default::default()),
                        lu::inverse::inverse_scratch::<usize, T>(n, seq),
                        lu::solve::solve_in_place_scratch::<usize, T>(n, self.right, seq),
                    ]),
                )
            }
        };
        own + request.size_bytes() + request.align_bytes() + SKIPPED
    }

    /// Columns of Q.
    pub(super) fn basis_columns(&self) -> usize {
        match self.factor {
            Factor::Qr => self.short(),
            Factor::QrComplete => self.rows,
            _ => 0,
        }
    }

    fn singular_vectors(&self) -> ComputeSvdVectors {
        match self.factor {
            Factor::Svd => ComputeSvdVectors::Thin,
            Factor::SvdComplete => ComputeSvdVectors::Full,
            _ => ComputeSvdVectors::No,
        }
    }

    /// Elements of U and V.
    pub(super) fn singular_lengths(&self) -> (usize, usize) {
        let (m, n, k) = (self.rows, self.columns, self.short());
        match self.factor {
            Factor::Svd => (m * k, n * k),
            Factor::SvdComplete => (m * m, n * n),
            _ => (0, 0),
        }
    }
}
