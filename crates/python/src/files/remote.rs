//! Stores of objects whose transport is Python's. The interpreter is held for each request's beginning and end, not while the
//! request is under way: the transport lets go of it.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use numpy::PyReadonlyArray1;
use outcore_store::remote::{self, RemoteFacts, RemoteStore, RemoteVisit};
use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
use pyo3::prelude::*;

/// A store by an object of `outcore._objects`.
struct PyRemoteStore {
    transport: Py<PyAny>,
    endpoint: String,
    is_listed: bool,
}

/// The length of an object, and its entity tag.
type PyFacts = (u64, String);

fn facts_of((bytes, tag): &PyFacts) -> RemoteFacts {
    RemoteFacts {
        bytes: *bytes,
        tag: remote::tag_of(tag),
    }
}

/// A failed request, in the transport's words.
fn failed(py: Python<'_>, error: &PyErr) -> Error {
    let kind = if error.is_instance_of::<PyFileNotFoundError>(py) {
        ErrorKind::NotFound
    } else if error.is_instance_of::<PyPermissionError>(py) {
        ErrorKind::PermissionDenied
    } else {
        ErrorKind::Other
    };
    Error::new(kind, error.value(py).to_string())
}

impl PyRemoteStore {
    fn ask<T>(&self, request: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| request(self.transport.bind(py)).map_err(|error| failed(py, &error)))
    }
}

impl RemoteStore for PyRemoteStore {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn is_listed(&self) -> bool {
        self.is_listed
    }

    fn facts(&self, key: &str) -> Result<RemoteFacts> {
        let facts: PyFacts = self.ask(|transport| transport.call_method1("facts", (key,))?.extract())?;
        Ok(facts_of(&facts))
    }

    fn read_at(&self, key: &str, buffer: &mut [u8], offset: u64) -> Result<(usize, RemoteFacts)> {
        self.ask(|transport| {
            let answer = transport.call_method1("read", (key, offset, offset + buffer.len() as u64))?;
            let (content, facts): (PyReadonlyArray1<'_, u8>, PyFacts) = answer.extract()?;
            let content = content.as_slice()?;
            let read = content.len().min(buffer.len());
            // Others begin requests meanwhile.
            transport
                .py()
                .detach(|| buffer[..read].copy_from_slice(&content[..read]));
            Ok((read, facts_of(&facts)))
        })
    }

    fn content(&self, key: &str, most: u64) -> Result<(Vec<u8>, RemoteFacts)> {
        self.ask(|transport| {
            let answer = transport.call_method1("content", (key, most))?;
            let (content, facts): (Vec<u8>, PyFacts) = answer.extract()?;
            Ok((content, facts_of(&facts)))
        })
    }

    fn list(&self, prefix: &str, each: RemoteVisit<'_>) -> Result<()> {
        let pages = self.ask(|transport| Ok(transport.call_method1("pages", (prefix,))?.unbind()))?;
        loop {
            // Parts of a list, each without the interpreter while it is looked at.
            let page: Option<Vec<(String, u64, String)>> = Python::attach(|py| {
                let page = pages.bind(py).call0().and_then(|page| page.extract());
                page.map_err(|error| failed(py, &error))
            })?;
            let Some(page) = page else { return Ok(()) };
            for (key, bytes, tag) in page {
                each(&key, facts_of(&(bytes, tag)))?;
            }
        }
    }

    fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        self.ask(|transport| transport.call_method1("folders", (prefix,))?.extract())
    }

    fn facts_of_many(&self, keys: &[String]) -> Result<Vec<Option<RemoteFacts>>> {
        let facts: Vec<Option<PyFacts>> =
            self.ask(|transport| transport.call_method1("facts_of_many", (keys.to_vec(),))?.extract())?;
        Ok(facts.iter().map(|facts| facts.as_ref().map(facts_of)).collect())
    }
}

/// Makes a store known by the URL of its bucket or host.
#[pyfunction]
fn mount(url: &str, endpoint: String, is_listed: bool, transport: Py<PyAny>) {
    let store = PyRemoteStore {
        transport,
        endpoint,
        is_listed,
    };
    remote::mount(url, Arc::new(store));
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(mount, module)?)
}
