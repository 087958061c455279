//! Arrays of other libraries, read block by block through Python.

use std::path::PathBuf;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{normalize_bools, Io, Layout, ReadCost, Region, Source, StoreError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use super::convert::copy_out;
use crate::base::raised::Raised;

/// An array that a Python callable reads: given one slice per axis it returns a NumPy array of that shape.
///
/// Its bytes are counted as read when they are handed over; what the other library reads for them it knows alone.
pub struct BlockSource {
    read: Py<PyAny>,
    shape: Vec<u64>,
    dtype: DType,
    chunks: Option<Vec<u64>>,
    name: String,
    identity: String,
}

impl BlockSource {
    pub fn new(
        read: &Bound<'_, PyAny>,
        shape: Vec<u64>,
        dtype: DType,
        chunks: Option<Vec<u64>>,
        name: String,
    ) -> BlockSource {
        BlockSource {
            read: read.clone().unbind(),
            shape,
            dtype,
            chunks,
            name,
            identity: outcore_store::identity_of_its_own("blocks"),
        }
    }

    fn bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.dtype.size()
    }

    fn read_python(&self, py: Python<'_>, region: &Region, frame: &mut [u8]) -> PyResult<()> {
        let slices = region
            .start
            .iter()
            .zip(&region.shape)
            .map(|(&start, &length)| PySlice::new(py, start as isize, (start + length) as isize, 1));
        let slices = PyTuple::new(py, slices)?;
        let block = self.read.bind(py).call1((slices,))?;
        let block = py
            .import("numpy")?
            .call_method1("ascontiguousarray", (block, self.dtype.name()))?;
        let returned: Vec<u64> = block.getattr("shape")?.extract()?;
        if returned != region.shape && !(region.shape.is_empty() && returned == [1]) {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "a block of shape {returned:?} came where one of {:?} was asked for",
                region.shape
            )));
        }
        copy_out(&block, frame)
    }
}

impl std::fmt::Debug for BlockSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "blocks({}, {:?}, {})", self.name, self.shape, self.dtype)
    }
}

impl Source for BlockSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn layout(&self) -> Layout {
        self.chunks.clone().map_or(Layout::RowMajor, Layout::Chunks)
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn goes_with_readers(&self) -> bool {
        true // its identity is its own, and so only its readers know it
    }

    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        Ok(ReadCost {
            read_bytes: self.bytes(region) as u64,
            frame_bytes: self.bytes(region),
            // What the other library returns, and that in our element type and order.
            workspace_bytes: 2 * self.bytes(region),
        })
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let frame = &mut frame[..self.bytes(region)];
        let outcome = Python::attach(|py| self.read_python(py, region, frame));
        outcome.map_err(|error| StoreError::Io {
            path: PathBuf::from(&self.name),
            offset: 0,
            action: "read a block",
            cause: Arc::new(std::io::Error::other(Raised::new(&self.name, error))),
        })?;
        if self.dtype == DType::Bool {
            normalize_bools(frame);
        }
        io.count_read(frame.len() as u64);
        Ok(0)
    }
}
