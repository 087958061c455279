//! Names of axes and attributes: from nodes to Python and back.

use outcore_engine::expr::annotations::annotated;
use outcore_store::{Annotation, AnnotationValue, Annotations};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use pyo3::IntoPyObjectExt;

use super::node::{dtype_named, Built, PyExpr};
use crate::base::errors::to_python;

/// Pairs of a name and a tagged value: `("text", str)`, `("texts", list)`, `("json", str)`, `("numbers", dtype, shape, bytes)`.
pub fn attributes_to_python<'py>(py: Python<'py>, attributes: &[Annotation]) -> PyResult<Bound<'py, PyList>> {
    let pairs = attributes.iter().map(|attribute| {
        let value = match &attribute.value {
            AnnotationValue::Text(text) => ("text", text).into_py_any(py)?,
            AnnotationValue::Texts(texts) => ("texts", texts.clone()).into_py_any(py)?,
            AnnotationValue::Json(text) => ("json", text).into_py_any(py)?,
            AnnotationValue::Numbers { dtype, shape, bytes } => {
                ("numbers", dtype.name(), shape.clone(), PyBytes::new(py, bytes)).into_py_any(py)?
            }
        };
        (PyString::new(py, &attribute.name), value).into_py_any(py)
    });
    PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
}

fn attribute_of(name: String, value: &Bound<'_, PyAny>) -> PyResult<Annotation> {
    let kind: String = value.get_item(0)?.extract()?;
    let text = || value.get_item(1)?.extract::<String>();
    let value = match kind.as_str() {
        "text" => AnnotationValue::Text(text()?),
        "texts" => AnnotationValue::Texts(value.get_item(1)?.extract()?),
        "numbers" => AnnotationValue::Numbers {
            dtype: dtype_named(&text()?)?,
            shape: value.get_item(2)?.extract()?,
            bytes: value.get_item(3)?.extract()?,
        },
        _ => AnnotationValue::Json(text()?),
    };
    Ok(Annotation { name, value })
}

/// The array with a name, names of axes, and attributes instead of those that it has.
#[pyfunction]
fn with_annotations(
    x: &PyExpr,
    name: Option<String>,
    dims: Vec<Option<String>>,
    attributes: Vec<(String, Bound<'_, PyAny>)>,
) -> Built {
    if dims.len() != x.0.ndim() {
        let reason = format!("{} names for an array of {} axes", dims.len(), x.0.ndim());
        return Err(to_python(outcore_engine::EngineError::Shape(reason)));
    }
    let attributes: PyResult<Vec<Annotation>> = attributes
        .into_iter()
        .map(|(name, value)| attribute_of(name, &value))
        .collect();
    let annotations = Annotations {
        name,
        dims,
        attributes: attributes?,
    };
    Ok(PyExpr::new(annotated(&x.0, annotations)))
}

/// Name, names of axes, attributes.
type PyAnnotations<'py> = (Option<String>, Vec<Option<String>>, Bound<'py, PyList>);

/// The annotations of an array.
#[pyfunction]
fn annotations<'py>(py: Python<'py>, x: &PyExpr) -> PyResult<PyAnnotations<'py>> {
    match x.0.annotations() {
        Some(own) => Ok((
            own.name.clone(),
            own.dims.clone(),
            attributes_to_python(py, &own.attributes)?,
        )),
        None => Ok((None, vec![None; x.0.ndim()], PyList::empty(py))),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(with_annotations, module)?)?;
    module.add_function(wrap_pyfunction!(annotations, module)?)
}
