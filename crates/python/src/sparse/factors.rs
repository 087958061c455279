//! Incomplete factors of sparse matrices in memory.

use bytemuck::Pod;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use outcore_dtype::{Complex, DType};
use outcore_engine::sparse::{Broken, Incomplete, Number};
use pyo3::prelude::*;

use crate::base::errors::argument;

/// Factors of some type.
enum TypedFactors {
    F32(Incomplete<f32>),
    F64(Incomplete<f64>),
    C64(Incomplete<Complex<f32>>),
    C128(Incomplete<Complex<f64>>),
}

#[pyclass(frozen, name = "IncompleteFactors", module = "outcore._core")]
pub struct PyFactors(TypedFactors);

#[pymethods]
impl PyFactors {
    /// Puts the solution in the place of the bytes of x (order, width), whose elements are of the factors' type, or if
    /// `wide` of twice its bits.
    fn solve(
        &self,
        py: Python<'_>,
        mut x: PyReadwriteArray1<'_, u8>,
        width: usize,
        wide: bool,
        adjoint: bool,
    ) -> PyResult<()> {
        let x = x.as_slice_mut()?;
        py.detach(|| match &self.0 {
            TypedFactors::F32(factors) => solve(factors, x, width, wide, adjoint),
            TypedFactors::F64(factors) => solve(factors, x, width, wide, adjoint),
            TypedFactors::C64(factors) => solve(factors, x, width, wide, adjoint),
            TypedFactors::C128(factors) => solve(factors, x, width, wide, adjoint),
        })
    }
}

fn solve<T: Number>(factors: &Incomplete<T>, x: &mut [u8], width: usize, wide: bool, adjoint: bool) -> PyResult<()> {
    let elements = factors
        .order()
        .checked_mul(width)
        .ok_or_else(|| argument("x is too large"))?;
    let other = |_| argument("x lies at an odd place");
    let fits = |length: usize| match length == elements {
        true => Ok(()),
        false => Err(argument("x has another length")),
    };
    match wide {
        true => {
            let x: &mut [T::Wide] = bytemuck::try_cast_slice_mut(x).map_err(other)?;
            fits(x.len())?;
            factors.solve_wide(x, width, adjoint);
        }
        false => {
            let x: &mut [T] = bytemuck::try_cast_slice_mut(x).map_err(other)?;
            fits(x.len())?;
            factors.solve(x, width, adjoint);
        }
    }
    Ok(())
}

/// Factors the matrix of some rows. Gives the factors; or the row that has none, and its pivot where it has one.
#[pyfunction]
#[pyo3(signature = (starts, columns, values, dtype, hermitian, scale))]
#[allow(clippy::type_complexity)] // one of two
fn incomplete_factors(
    py: Python<'_>,
    starts: PyReadonlyArray1<'_, u64>,
    columns: PyReadonlyArray1<'_, u32>,
    values: PyReadonlyArray1<'_, u8>,
    dtype: &str,
    hermitian: bool,
    scale: f64,
) -> PyResult<(Option<PyFactors>, Option<(usize, Option<(f64, f64)>)>)> {
    let starts = starts.as_slice()?.iter().map(|start| *start as usize).collect();
    let (columns, values) = (columns.as_slice()?.to_vec(), values.as_slice()?);
    let dtype = DType::from_name(dtype);
    let made = py.detach(|| {
        Ok(match dtype {
            Some(DType::F32) => {
                Incomplete::new(starts, columns, words(values)?, hermitian, scale).map(TypedFactors::F32)
            }
            Some(DType::F64) => {
                Incomplete::new(starts, columns, words(values)?, hermitian, scale).map(TypedFactors::F64)
            }
            Some(DType::C64) => {
                Incomplete::new(starts, columns, words(values)?, hermitian, scale).map(TypedFactors::C64)
            }
            Some(DType::C128) => {
                Incomplete::new(starts, columns, words(values)?, hermitian, scale).map(TypedFactors::C128)
            }
            _ => return Err(argument("values of another type than float32, float64 and complex")),
        })
    })?;
    match made {
        Ok(made) => Ok((Some(PyFactors(made)), None)),
        Err(Broken::Malformed) => Err(argument("rows are malformed")),
        Err(Broken::NoDiagonal(row)) => Ok((None, Some((row, None)))),
        Err(Broken::Pivot(row, re, im)) => Ok((None, Some((row, Some((re, im)))))),
    }
}

/// Values from their bytes.
fn words<T: Pod>(bytes: &[u8]) -> PyResult<Vec<T>> {
    if bytes.is_empty() {
        return Ok(vec![]); // wherever nothing lies
    }
    let words = bytemuck::try_cast_slice(bytes).map_err(|_| argument("values lie at an odd place"))?;
    Ok(words.to_vec())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFactors>()?;
    module.add_function(wrap_pyfunction!(incomplete_factors, module)?)
}
