//! The calls into `faer`, each between copies from rows to columns and back.

use faer::diag::DiagMut;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd;
use faer::linalg::householder::apply_block_householder_sequence_on_the_left_in_place_with_conj as apply;
use faer::linalg::lu::partial_pivoting as lu;
use faer::linalg::qr::no_pivoting::factor as qr;
use faer::linalg::svd;
use faer::perm::PermRef;
use faer::{Conj, MatMut, MatRef, Par};
use outcore_dtype::{Complex, DType};

use super::failure::Failure;
use super::scalar::{rows, EigenScalar, FactorScalar};
use super::sizes::{Factor, Factorization};
use crate::spare::Spare;

impl Factorization {
    /// Factorizes a matrix: `inputs` is A and, for [`Factor::Solve`], B; `outputs` are the results in order. `workspace` is
    /// [`Factorization::workspace_bytes`] long at least.
    ///
    /// # Errors
    /// A matrix that has no such factors.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], workspace: &mut [u8]) -> Result<(), Failure> {
        match self.dtype {
            DType::F64 => factorize::<f64>(self, inputs, outputs, Spare::new(workspace)),
            _ => factorize::<Complex<f64>>(self, inputs, outputs, Spare::new(workspace)),
        }
    }
}

/// As [`Factorization::run`], in one element type.
fn factorize<T: EigenScalar>(
    sizes: &Factorization,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    mut spare: Spare<'_>,
) -> Result<(), Failure> {
    let a = MatRef::from_row_major_slice(bytemuck::cast_slice::<u8, T>(inputs[0]), sizes.rows, sizes.columns);
    if sizes.factor.is_iterative() && !a.is_all_finite() {
        return Err(Failure::NotFinite);
    }
    match sizes.factor {
        Factor::Cholesky => cholesky(a, outputs, &mut spare),
        Factor::Qr | Factor::QrComplete | Factor::Triangle => {
            orthogonal(sizes, a, outputs, &mut spare);
            Ok(())
        }
        Factor::Svd | Factor::SvdComplete | Factor::SingularValues => singular(sizes, a, outputs, &mut spare),
        Factor::Eigh | Factor::Eigvalsh => hermitian(a, outputs, &mut spare),
        Factor::Eig | Factor::Eigvals => {
            let (values, vectors) = outputs.split_at_mut(1);
            let vectors = vectors.first_mut().map(|vectors| bytemuck::cast_slice_mut(vectors));
            T::eig(a, bytemuck::cast_slice_mut(values[0]), vectors, &mut spare)
        }
        Factor::Inverse => {
            let n = sizes.rows;
            let (factors, order, _) = eliminated(a, &mut spare);
            check_regular(&factors)?;
            let mut inverse = MatMut::from_column_major_slice_mut(spare.take::<T>(n * n), n, n);
            let both = factors.as_ref();
            lu::inverse::inverse(inverse.as_mut(), both, both, order, Par::Seq, spare.stack());
            rows(bytemuck::cast_slice_mut(outputs[0]), n, n).copy_from(inverse);
            Ok(())
        }
        Factor::Solve => {
            let (n, right) = (sizes.rows, sizes.right);
            let (factors, order, _) = eliminated(a, &mut spare);
            check_regular(&factors)?;
            let b = MatRef::from_row_major_slice(bytemuck::cast_slice::<u8, T>(inputs[1]), n, right);
            let mut x = columns(b, &mut spare);
            let both = factors.as_ref();
            lu::solve::solve_in_place(both, both, order, x.as_mut(), Par::Seq, spare.stack());
            rows(bytemuck::cast_slice_mut(outputs[0]), n, right).copy_from(x);
            Ok(())
        }
        Factor::Determinant => {
            let (factors, _, swaps) = eliminated(a, &mut spare);
            determinant(&factors, swaps, outputs);
            Ok(())
        }
    }
}

fn singular<T: FactorScalar>(
    sizes: &Factorization,
    a: MatRef<'_, T>,
    outputs: &mut [&mut [u8]],
    spare: &mut Spare<'_>,
) -> Result<(), Failure> {
    let (m, n) = a.shape();
    let values = spare.take::<T>(sizes.short());
    values.fill(T::of(0.0));
    let with_vectors = sizes.factor != Factor::SingularValues;
    let (left, right) = sizes.singular_lengths();
    let mut matrix = |length: usize, side: usize| {
        let slice = spare.take::<T>(length);
        slice.fill(T::of(0.0)); // not all of it is written
        with_vectors.then(|| MatMut::from_column_major_slice_mut(slice, side, length / side))
    };
    let (mut u, mut v) = (matrix(left, m), matrix(right, n));
    svd::svd(
        a,
        DiagMut::from_slice_mut(values),
        u.as_mut().map(|u| u.as_mut()),
        v.as_mut().map(|v| v.as_mut()),
        Par::Seq,
        spare.stack(),
        Default::default(),
    )
    .map_err(|_| Failure::NoConvergence)?;
    reals(values, outputs[usize::from(with_vectors)]);
    if let (Some(u), Some(v)) = (u, v) {
        rows(bytemuck::cast_slice_mut(outputs[0]), m, u.ncols()).copy_from(&u);
        let adjoint: &mut [T] = bytemuck::cast_slice_mut(outputs[2]);
        rows(adjoint, v.ncols(), n).copy_from(v.transpose());
        adjoint.iter_mut().for_each(|value| *value = value.conjugate());
    }
    Ok(())
}

/// A = Pᵀ L U in one matrix, the order of the rows, and how many of them were swapped.
fn eliminated<'a, T: FactorScalar>(
    a: MatRef<'_, T>,
    spare: &mut Spare<'a>,
) -> (MatMut<'a, T>, PermRef<'a, usize>, usize) {
    let n = a.nrows();
    let (forward, backward) = (spare.take::<usize>(n), spare.take::<usize>(n));
    let mut factors = columns(a, spare);
    let both = factors.as_mut();
    let (info, order) = lu::factor::lu_in_place(both, forward, backward, Par::Seq, spare.stack(), Default::default());
    (factors, order, info.transposition_count)
}

fn check_regular<T: FactorScalar>(factors: &MatMut<'_, T>) -> Result<(), Failure> {
    let mut pivots = (0..factors.nrows()).map(|place| factors[(place, place)]);
    if pivots.any(|pivot| pivot.size() == 0.0) {
        return Err(Failure::Singular);
    }
    Ok(())
}

/// The product of the pivots: its sign (or direction, for complex numbers), the logarithm of its size, and itself.
fn determinant<T: FactorScalar>(factors: &MatMut<'_, T>, swaps: usize, outputs: &mut [&mut [u8]]) {
    let sign = T::of(if swaps.is_multiple_of(2) { 1.0 } else { -1.0 });
    let (mut value, mut direction, mut logarithm) = (sign, sign, 0.0);
    for place in 0..factors.nrows() {
        let pivot = factors[(place, place)];
        let size = pivot.size();
        if size == 0.0 {
            // What follows a pivot of zero was divided by it.
            (value, direction, logarithm) = (T::of(0.0), T::of(0.0), f64::NEG_INFINITY);
            break;
        }
        value = value.times(pivot);
        logarithm += size.ln();
        direction = direction.times(pivot).times(T::of(1.0 / size));
    }
    outputs[0].copy_from_slice(bytemuck::bytes_of(&direction));
    outputs[1].copy_from_slice(bytemuck::bytes_of(&logarithm));
    outputs[2].copy_from_slice(bytemuck::bytes_of(&value));
}

/// A copy of a matrix, column by column.
fn columns<'a, T: FactorScalar>(a: MatRef<'_, T>, spare: &mut Spare<'a>) -> MatMut<'a, T> {
    let (m, n) = a.shape();
    let mut copy = MatMut::from_column_major_slice_mut(spare.take::<T>(m * n), m, n);
    copy.copy_from(a);
    copy
}

fn reals<T: FactorScalar>(values: &[T], out: &mut [u8]) {
    let out: &mut [f64] = bytemuck::cast_slice_mut(out);
    out.iter_mut().zip(values).for_each(|(out, value)| *out = value.real());
}

fn cholesky<T: FactorScalar>(
    a: MatRef<'_, T>,
    outputs: &mut [&mut [u8]],
    spare: &mut Spare<'_>,
) -> Result<(), Failure> {
    let n = a.nrows();
    let mut factor = columns(a, spare);
    llt::cholesky_in_place(
        factor.as_mut(),
        Default::default(),
        Par::Seq,
        spare.stack(),
        Default::default(),
    )
    .map_err(|_| Failure::NotPositiveDefinite)?;
    let out: &mut [T] = bytemuck::cast_slice_mut(outputs[0]);
    for row in 0..n {
        for column in 0..n {
            out[row * n + column] = if column <= row {
                factor[(row, column)]
            } else {
                T::of(0.0)
            };
        }
    }
    Ok(())
}

fn orthogonal<T: FactorScalar>(
    sizes: &Factorization,
    a: MatRef<'_, T>,
    outputs: &mut [&mut [u8]],
    spare: &mut Spare<'_>,
) {
    let (m, n) = a.shape();
    let (k, wide) = (sizes.short(), sizes.basis_columns());
    let block = qr::recommended_block_size::<T>(m, n);
    let mut factor = columns(a, spare);
    let mut coefficients = MatMut::from_column_major_slice_mut(spare.take::<T>(block * k), block, k);
    let both = (factor.as_mut(), coefficients.as_mut());
    qr::qr_in_place(both.0, both.1, Par::Seq, spare.stack(), Default::default());
    let (r, q) = outputs.split_last_mut().expect("R is always a result");
    let r: &mut [T] = bytemuck::cast_slice_mut(r);
    for (row, out) in r.chunks_exact_mut(n).enumerate() {
        for (column, out) in out.iter_mut().enumerate() {
            *out = if column >= row {
                factor[(row, column)]
            } else {
                T::of(0.0)
            };
        }
    }
    let Some(q) = q.first_mut() else { return };
    let mut basis = MatMut::from_column_major_slice_mut(spare.take::<T>(m * wide), m, wide);
    basis.fill(T::of(0.0));
    (0..wide).for_each(|place| basis[(place, place)] = T::of(1.0));
    let reflections = (factor.as_ref().subcols(0, k), coefficients.as_ref());
    apply(
        reflections.0,
        reflections.1,
        Conj::No,
        basis.as_mut(),
        Par::Seq,
        spare.stack(),
    );
    rows(bytemuck::cast_slice_mut(q), m, wide).copy_from(basis);
}

fn hermitian<T: FactorScalar>(
    a: MatRef<'_, T>,
    outputs: &mut [&mut [u8]],
    spare: &mut Spare<'_>,
) -> Result<(), Failure> {
    let n = a.nrows();
    let values = spare.take::<T>(n);
    let mut vectors = (outputs.len() == 2).then(|| MatMut::from_column_major_slice_mut(spare.take::<T>(n * n), n, n));
    evd::self_adjoint_evd(
        a,
        DiagMut::from_slice_mut(values),
        vectors.as_mut().map(|vectors| vectors.as_mut()),
        Par::Seq,
        spare.stack(),
        Default::default(),
    )
    .map_err(|_| Failure::NoConvergence)?;
    reals(values, outputs[0]);
    if let Some(vectors) = vectors {
        rows(bytemuck::cast_slice_mut(outputs[1]), n, n).copy_from(vectors);
    }
    Ok(())
}
