//! Python functions over tiles.

use outcore_dtype::DType;
use outcore_engine::expr::{Block, BlockFunction};
use outcore_engine::FunctionError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::convert::{block_array, copy_out};
use crate::base::raised::Raised;

/// The name of a function in messages.
pub fn name_of(function: &Bound<'_, PyAny>) -> String {
    let name = function.getattr("__name__").and_then(|name| name.extract());
    name.unwrap_or_else(|_| "function".into())
}

/// A callable that takes NumPy arrays and returns one of the same shape.
pub struct PyFunction {
    function: Py<PyAny>,
    name: String,
    workspace: usize,
}

impl PyFunction {
    pub fn new(function: &Bound<'_, PyAny>, workspace: usize) -> PyFunction {
        PyFunction {
            function: function.clone().unbind(),
            name: name_of(function),
            workspace,
        }
    }

    pub fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    fn call_python(&self, py: Python<'_>, inputs: &[Block<'_>], output: &mut [u8], dtype: DType) -> PyResult<()> {
        let arrays = inputs
            .iter()
            .map(|block| block_array(py, block.data, block.shape, block.dtype))
            .collect::<PyResult<Vec<_>>>()?;
        let shape = inputs[0].shape.to_vec();
        let result = self.function.bind(py).call1(PyTuple::new(py, arrays)?)?;
        let numpy = py.import("numpy")?;
        let result = numpy.call_method1("ascontiguousarray", (result, dtype.name()))?;
        let returned: Vec<usize> = result.getattr("shape")?.extract()?;
        if returned != shape && !(shape.is_empty() && returned == [1]) {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "map_blocks: {} returned shape {returned:?} for a block of shape {shape:?}",
                self.name
            )));
        }
        copy_out(&result, output)?;
        if dtype == DType::Bool {
            // Kernels take bools to be 0 or 1; a view of other bytes may be anything.
            outcore_store::normalize_bools(output);
        }
        Ok(())
    }
}

impl BlockFunction for PyFunction {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn workspace_bytes(&self) -> usize {
        self.workspace
    }

    fn call(&self, inputs: &[Block<'_>], output: &mut [u8], dtype: DType) -> Result<(), FunctionError> {
        Python::attach(|py| {
            self.call_python(py, inputs, output, dtype)
                .map_err(|error| Raised::new(&self.name, error).into())
        })
    }
}
