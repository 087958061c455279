//! NumPy arrays in and out.

use std::sync::Arc;

use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use outcore_dtype::DType;
use outcore_engine::expr::Expr;
use outcore_engine::ops;
use outcore_store::{Frame, MemorySource};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::base::errors::{store_error, to_python};
use crate::base::held::results;

/// The memory of a NumPy array, kept alive by a reference to it.
struct Borrowed {
    start: usize,
    bytes: usize,
    _owner: Py<PyAny>,
}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: `start..start + bytes` lies within the array that `_owner` keeps alive (found from its shape and
        // strides below). The caller has promised not to write to it while outcore reads, as the docstring says.
        unsafe { std::slice::from_raw_parts(self.start as *const u8, self.bytes) }
    }
}

/// The node of a NumPy array. It is borrowed: the caller must not write to it while results that depend on it are due. Where
/// `known` names what it is, an array of that name is the same in all processes.
pub fn from_numpy(array: &Bound<'_, PyUntypedArray>, known: Option<&str>) -> PyResult<Expr> {
    let name: String = array.dtype().getattr("name")?.extract()?;
    let dtype = DType::from_name(&name).ok_or_else(|| {
        to_python(outcore_engine::EngineError::DType(format!(
            "arrays of {name} are not supported; use one of the numeric types or bool"
        )))
    })?;
    let native = array.dtype().is_native_byteorder().unwrap_or(true);
    if !native {
        return Err(to_python(outcore_engine::EngineError::DType(
            "arrays in memory must be in native byte order".into(),
        )));
    }
    let item = dtype.size() as isize;
    let shape: Vec<u64> = array.shape().iter().map(|&length| length as u64).collect();
    let strides: Vec<isize> = array.strides().to_vec();
    if strides.iter().any(|stride| stride % item != 0) {
        return Err(to_python(outcore_engine::EngineError::DType(
            "the array's strides are not whole elements; copy it first".into(),
        )));
    }
    let interface: Bound<'_, PyAny> = array.getattr("ctypes")?.getattr("data")?;
    let origin: usize = interface.extract()?;
    if !origin.is_multiple_of(item as usize) && !shape.contains(&0) {
        return Err(to_python(outcore_engine::EngineError::DType(
            "the array is not aligned to its elements; copy it first".into(),
        )));
    }
    let empty = shape.contains(&0);
    let reach = |backwards: bool| -> isize {
        shape
            .iter()
            .zip(&strides)
            .filter(|(_, &stride)| (stride < 0) == backwards)
            .map(|(&length, &stride)| (length as isize - 1) * stride)
            .sum()
    };
    let (low, high) = if empty {
        (0, 0)
    } else {
        (reach(true), reach(false) + item)
    };
    let owner = Borrowed {
        start: (origin as isize + low) as usize,
        bytes: (high - low) as usize,
        _owner: array.clone().into_any().unbind(),
    };
    let element_strides: Vec<i64> = strides.iter().map(|&stride| (stride / item) as i64).collect();
    let offset = (-low / item) as usize;
    let source = MemorySource::new(Arc::new(owner), dtype, offset, &shape, &element_strides).map_err(store_error)?;
    let source = match known {
        None => source,
        Some(name) => source.known_as(name),
    };
    ops::source(Arc::new(source)).map_err(to_python)
}

/// A result's frame, exported through the buffer protocol: NumPy views it and gives it back when done.
#[pyclass(frozen, name = "Result")]
struct ResultBuffer {
    frame: Frame,
    bytes: usize,
    /// Its place in the register of results.
    number: u64,
}

impl Drop for ResultBuffer {
    fn drop(&mut self) {
        results().remove(&self.number);
    }
}

#[pymethods]
impl ResultBuffer {
    // SAFETY: the buffer points into a frame that this object owns and never moves; the view holds a reference to the
    // object, and the frame is written by nobody else once it has been handed over.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: std::ffi::c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let this = slf.get();
        let start = this.frame.as_ptr() as *mut std::ffi::c_void;
        let object = slf.as_ptr();
        // SAFETY: `start` and `bytes` describe the frame; PyBuffer_FillInfo takes its own reference to `object`.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, object, start, this.bytes as isize, 0, flags) };
        if status == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// A result in memory as a NumPy array of the given shape.
pub fn to_numpy(py: Python<'_>, frame: Frame, shape: &[u64], dtype: DType) -> PyResult<Py<PyAny>> {
    let bytes = shape.iter().product::<u64>() as usize * dtype.size();
    let name = format!("{} {}", dtype.name(), shown(shape));
    let number = {
        let mut results = results();
        let number = results.last_key_value().map_or(0, |(last, _)| last + 1);
        results.insert(number, (frame.len() as u64, name));
        number
    };
    let owner = Bound::new(py, ResultBuffer { frame, bytes, number })?;
    let numpy = py.import("numpy")?;
    let flat = numpy.call_method1("frombuffer", (PyMemoryView::from(owner.as_any())?, dtype.name()))?;
    let shape: Vec<usize> = shape.iter().map(|&length| length as usize).collect();
    Ok(flat.call_method1("reshape", (shape,))?.unbind())
}

/// A shape as Python writes it.
fn shown(shape: &[u64]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A read-only NumPy view of a block, valid during one call only.
pub fn block_array<'py>(py: Python<'py>, data: &[u8], shape: &[usize], dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let bytes = pyo3::types::PyByteArray::new(py, data);
    let flat = numpy.call_method1("frombuffer", (bytes, dtype.name()))?;
    flat.call_method1("reshape", (shape.to_vec(),))
}

/// Copies a C-contiguous NumPy array's bytes; others run Python meanwhile.
pub fn copy_out(array: &Bound<'_, PyAny>, output: &mut [u8]) -> PyResult<()> {
    let flat = array.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    let flat: PyReadonlyArray1<'_, u8> = flat.extract()?;
    let bytes = flat.as_slice()?;
    if bytes.len() != output.len() {
        let reason = format!("an array of {} bytes where {} are expected", bytes.len(), output.len());
        return Err(PyValueError::new_err(reason));
    }
    array.py().detach(|| output.copy_from_slice(bytes));
    Ok(())
}
