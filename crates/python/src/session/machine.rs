//! What the build and the process say of themselves.

use std::path::PathBuf;

use outcore_store::Io;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::base::errors::store_error;

#[pyfunction]
fn info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let opened = py.detach(|| outcore_store::open(&path, &Io::direct()));
    let opened = opened.map_err(store_error)?;
    let source = opened.source;
    let kind = opened.format;
    let chunks = match source.layout() {
        outcore_store::Layout::Chunks(chunks) => format!("{chunks:?}"),
        _ => "null".into(),
    };
    let mut shape = source.shape().to_vec();
    if opened.transposed {
        shape.reverse();
    }
    let bytes = shape.iter().product::<u64>() * source.dtype().size() as u64;
    let order = if opened.transposed { "F" } else { "C" };
    Ok(format!(
        "{{\"format\":\"{kind}\",\"shape\":{shape:?},\"dtype\":\"{}\",\"nbytes\":{bytes},\"chunks\":{chunks},\"order\":\"{order}\"}}",
        source.dtype()
    ))
}

#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Resident bytes of this process, now and at most, as the kernel counts them.
#[pyfunction]
fn rss(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or("");
        line.split_whitespace()
            .nth(1)
            .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    };
    let dict = PyDict::new(py);
    dict.set_item("current", field("VmRSS:"))?;
    dict.set_item("peak", field("VmHWM:"))?;
    Ok(dict)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(info, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(rss, module)?)
}
