//! Options and targets as Python gives them.

use std::path::PathBuf;

use outcore_engine::expr::Expr;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::Target;
use outcore_engine::EngineError;
use outcore_store::{ArrayUpdate, FilePart};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::base::errors::to_python;

pub fn option<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    match options.get_item(name)? {
        Some(value) if !value.is_none() => Ok(Some(value.extract()?)),
        _ => Ok(None),
    }
}

pub fn invalid(text: String) -> PyErr {
    to_python(EngineError::Plan(text))
}

pub fn plan_options(options: &Bound<'_, PyDict>) -> PyResult<PlanOptions> {
    let mut plan = PlanOptions::ALL;
    let Some(rewrites) = options.get_item("rewrites")?.filter(|value| !value.is_none()) else {
        return Ok(plan);
    };
    let rewrites = rewrites.cast_into::<PyDict>()?;
    let all: Option<bool> = option(&rewrites, "all")?;
    if let Some(on) = all {
        plan.switch("all", on);
    }
    for (name, on) in rewrites.iter() {
        let name: String = name.extract()?;
        if name != "all" && !plan.switch(&name, on.extract()?) {
            return Err(invalid(format!(
                "rewrites: there is none called {name}; there are {}",
                PlanOptions::NAMES.join(", ")
            )));
        }
    }
    Ok(plan)
}

/// The target of an output, which is told its annotations.
pub fn read_target(target: Option<&Bound<'_, PyDict>>, output: &Expr) -> PyResult<Target> {
    let Some(target) = target else {
        return Ok(Target::Memory);
    };
    let path: PathBuf = option(target, "path")?.ok_or_else(|| invalid("a target needs a path".into()))?;
    Ok(Target::Path {
        path,
        overwrite: option(target, "overwrite")?.unwrap_or(false),
        chunks: option(target, "chunks")?,
        resume: option(target, "resume")?.unwrap_or(false),
        annotations: output.annotations().cloned(),
        update: match target.get_item("update")? {
            Some(update) => Some(read_update(&update.cast_into::<PyDict>()?)?),
            None => None,
        },
        codecs: option::<String>(target, "codecs")?.map(Into::into),
        part: option(target, "part")?.map(|(file, offset): (PathBuf, u64)| FilePart { file, offset }),
    })
}

fn read_update(update: &Bound<'_, PyDict>) -> PyResult<ArrayUpdate> {
    let lengths = |name| Ok::<_, PyErr>(option::<Vec<u64>>(update, name)?.unwrap_or_default());
    Ok(ArrayUpdate {
        shape: lengths("shape")?,
        grown: lengths("grown")?,
        start: lengths("start")?,
    })
}
