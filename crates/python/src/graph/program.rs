//! What vertex programs in Python are made of: lists part by part, who is active next, messages that are combined.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{Element, PyArray1, PyReadonlyArray1};
use outcore_engine::graph::{Combine, Frontier, Mail, MessageNumber, NeighbourLists};
use outcore_engine::EngineError;
use pyo3::prelude::*;

use super::run::PyLiveRun;
use crate::base::errors::to_python;

/// Vertices that are active next.
#[pyclass(frozen, name = "Frontier", module = "outcore._core")]
pub struct PyFrontier(Mutex<Frontier>);

#[pymethods]
impl PyFrontier {
    #[new]
    fn new(vertices: usize) -> PyFrontier {
        PyFrontier(Mutex::new(Frontier::none(vertices)))
    }

    fn extend(&self, vertices: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let vertices = vertices.as_slice()?;
        let mut frontier = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frontier.extend(vertices).map_err(to_python)
    }

    fn __len__(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count() as usize
    }

    /// Those that are in it, ascending; then it is empty.
    fn take<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        PyArray1::from_vec(py, found)
    }
}

/// Messages of one type of values.
trait Sent: Send {
    fn send(&mut self, to: &[u32], values: &Bound<'_, PyAny>) -> PyResult<()>;
    fn multicast(&mut self, begins: &[i64], neighbours: &[u32], values: &Bound<'_, PyAny>) -> PyResult<()>;
    fn count(&mut self) -> PyResult<u64>;
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>)>;
}

impl<T: MessageNumber + Element> Sent for Mail<T> {
    fn send(&mut self, to: &[u32], values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values: PyReadonlyArray1<'_, T> = values.extract()?;
        Mail::send(self, to, values.as_slice()?).map_err(to_python)
    }

    fn multicast(&mut self, begins: &[i64], neighbours: &[u32], values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values: PyReadonlyArray1<'_, T> = values.extract()?;
        Mail::multicast(self, begins, neighbours, values.as_slice()?).map_err(to_python)
    }

    fn count(&mut self) -> PyResult<u64> {
        Mail::count(self).map_err(to_python)
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>)> {
        let (ids, values) = Mail::take(self).map_err(to_python)?;
        Ok((PyArray1::from_vec(py, ids), PyArray1::from_vec(py, values).into_any()))
    }
}

fn mail<T: MessageNumber + Element + 'static>(
    py: Python<'_>,
    run: &PyLiveRun,
    vertices: usize,
    combine: Combine,
) -> PyResult<Box<dyn Sent>> {
    let held = py.detach(|| Mail::<T>::held(&run.live, vertices, combine));
    Ok(Box::new(held.map_err(to_python)?))
}

/// Messages that are combined as they come.
#[pyclass(frozen, name = "Mail", module = "outcore._core")]
pub struct PyMail(Mutex<Box<dyn Sent>>);

impl PyMail {
    fn sent(&self) -> MutexGuard<'_, Box<dyn Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyMail {
    #[new]
    fn new(
        py: Python<'_>,
        run: &Bound<'_, PyLiveRun>,
        vertices: usize,
        combine: &str,
        dtype: &str,
    ) -> PyResult<PyMail> {
        let combine = match combine {
            "min" => Combine::Min,
            "max" => Combine::Max,
            "sum" => Combine::Sum,
            other => {
                let text = format!("combine={other:?}; min, max and sum are right");
                return Err(to_python(EngineError::Argument(text)));
            }
        };
        let of = match dtype {
            "int8" => mail::<i8>,
            "int16" => mail::<i16>,
            "int32" => mail::<i32>,
            "int64" => mail::<i64>,
            "uint8" => mail::<u8>,
            "uint16" => mail::<u16>,
            "uint32" => mail::<u32>,
            "uint64" => mail::<u64>,
            "float32" => mail::<f32>,
            "float64" => mail::<f64>,
            other => {
                let text = format!("send: values that are combined are numbers of 8 to 64 bits, not {other}");
                return Err(to_python(EngineError::DType(text)));
            }
        };
        Ok(PyMail(Mutex::new(of(py, run.get(), vertices, combine)?)))
    }

    /// A value to each of some vertices.
    fn send(&self, to: PyReadonlyArray1<'_, u32>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sent().send(to.as_slice()?, values)
    }

    /// A value to the neighbours of each of some lists.
    fn multicast(
        &self,
        begins: PyReadonlyArray1<'_, i64>,
        neighbours: PyReadonlyArray1<'_, u32>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.sent()
            .multicast(begins.as_slice()?, neighbours.as_slice()?, values)
    }

    /// How many vertices were told something.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.sent().count()? as usize)
    }

    /// Who was told something, ascending, and what; then there are no messages.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>)> {
        self.sent().take(py)
    }
}

/// Calls a function with lists: the first of those that were asked for and the one behind the last, where each begins,
/// neighbours, weights.
pub fn give(py: Python<'_>, call: &Py<PyAny>, found: NeighbourLists) -> PyResult<()> {
    let (begins, neighbours) = (
        PyArray1::from_vec(py, found.begins),
        PyArray1::from_vec(py, found.neighbours),
    );
    let weights = PyArray1::from_vec(py, found.weights);
    let what = (found.places.start, found.places.end, begins, neighbours, weights);
    call.call1(py, what).map(|_| ())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFrontier>()?;
    module.add_class::<PyMail>()
}
