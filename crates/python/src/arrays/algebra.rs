//! Products, factorizations and transforms.

use outcore_engine::{linalg, ops};
use outcore_kernels::{Factor, Fourier};
use pyo3::prelude::*;

use super::node::{built, variant, Built, PyExpr};
use crate::base::errors::to_python;

#[pyfunction]
fn matmul(x: &PyExpr, y: &PyExpr) -> Built {
    built(ops::matmul(&x.0, &y.0))
}

/// The factors of every matrix along the last two axes.
#[pyfunction]
fn factorize(name: &str, x: &PyExpr, right: Option<PyRef<'_, PyExpr>>) -> PyResult<Vec<PyExpr>> {
    let factor = variant("factorization", name, Factor::named)?;
    let right = right.map(|right| right.0.clone());
    let factors = linalg::factorize(factor, &x.0, right.as_ref()).map_err(to_python)?;
    Ok(factors.into_iter().map(PyExpr::new).collect())
}

/// Whether QR of the matrix goes by tiles.
#[pyfunction]
fn is_tall(x: &PyExpr) -> bool {
    linalg::is_tall(&x.0)
}

/// The Fourier transform along an axis; `length` is that of the real side. The result is cut along it, if `cut` is given.
#[pyfunction]
fn fourier(name: &str, x: &PyExpr, axis: usize, length: u64, scale: f64, cut: Option<u64>) -> Built {
    let kind = variant("transform", name, Fourier::named)?;
    built(ops::fourier(kind, &x.0, axis, length, scale, cut))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(matmul, module)?)?;
    module.add_function(wrap_pyfunction!(factorize, module)?)?;
    module.add_function(wrap_pyfunction!(is_tall, module)?)?;
    module.add_function(wrap_pyfunction!(fourier, module)?)
}
