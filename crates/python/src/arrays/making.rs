//! Nodes without inputs: arrays in memory, of Python functions, of numbers that follow a rule.

use std::sync::Arc;

use numpy::PyUntypedArray;
use outcore_engine::{ops, EngineError};
use outcore_kernels::Generator;
use pyo3::prelude::*;

use super::blocks::BlockSource;
use super::convert;
use super::node::{built, dtype_named, scalar, Built, PyExpr};
use crate::base::errors::to_python;

#[pyfunction]
fn from_blocks(read: &Bound<'_, PyAny>, shape: Vec<u64>, dtype: &str, chunks: Option<Vec<u64>>, name: String) -> Built {
    let source = BlockSource::new(read, shape, dtype_named(dtype)?, chunks, name);
    built(ops::source(Arc::new(source)))
}

#[pyfunction]
#[pyo3(signature = (array, known=None))]
fn from_numpy(array: &Bound<'_, PyUntypedArray>, known: Option<&str>) -> Built {
    convert::from_numpy(array, known).map(PyExpr::new)
}

#[pyfunction]
fn full(shape: Vec<u64>, value: &Bound<'_, PyAny>, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Full(scalar(value)?),
        shape,
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn arange(start: &Bound<'_, PyAny>, step: &Bound<'_, PyAny>, count: u64, dtype: &str) -> Built {
    let generator = Generator::Arange {
        start: scalar(start)?,
        step: scalar(step)?,
    };
    built(ops::generate(generator, vec![count], dtype_named(dtype)?))
}

#[pyfunction]
fn linspace(start: f64, stop: f64, count: u64, endpoint: bool, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Linspace {
            start,
            stop,
            count,
            endpoint,
        },
        vec![count],
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn eye(rows: u64, columns: u64, k: i64, dtype: &str) -> Built {
    built(ops::generate(
        Generator::Eye { k },
        vec![rows, columns],
        dtype_named(dtype)?,
    ))
}

#[pyfunction]
fn random(
    kind: &str,
    shape: Vec<u64>,
    seed: u64,
    low_or_mean: &Bound<'_, PyAny>,
    high_or_deviation: &Bound<'_, PyAny>,
    dtype: &str,
) -> Built {
    let generator = match kind {
        "uniform" => Generator::Uniform {
            seed,
            low: low_or_mean.extract()?,
            high: high_or_deviation.extract()?,
        },
        "normal" => Generator::Normal {
            seed,
            mean: low_or_mean.extract()?,
            deviation: high_or_deviation.extract()?,
        },
        "integers" => Generator::Integers {
            seed,
            low: low_or_mean.extract()?,
            high: high_or_deviation.extract()?,
        },
        _ => {
            return Err(to_python(EngineError::Plan(format!(
                "there is no random distribution {kind}"
            ))))
        }
    };
    built(ops::generate(generator, shape, dtype_named(dtype)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(arange, module)?)?;
    module.add_function(wrap_pyfunction!(linspace, module)?)?;
    module.add_function(wrap_pyfunction!(eye, module)?)?;
    module.add_function(wrap_pyfunction!(random, module)?)
}
