//! Stores of objects whose transport is Python's. The interpreter is held for each request's beginning and end, not while the
//! request is under way: the transport lets go of it. Requests have threads of their own (`requests.rs`).

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use outcore_store::remote::{self, RemoteFacts, RemoteStore, RemoteVisit};
use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
use pyo3::prelude::*;

use super::requests::{self, Answer};

/// Requests at once, where objects are asked for one by one.
const HEADS: usize = 32;

/// A store by an object of `outcore._objects`.
struct PyRemoteStore {
    transport: Arc<Py<PyAny>>,
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

/// A part of an answer to a read.
enum ReadAnswer {
    Facts(PyFacts),
    Bytes(Py<PyArray1<u8>>),
}

impl PyRemoteStore {
    /// A request of one answer.
    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        let transport = self.transport.clone();
        let answers = requests::begin([move |answer: Answer<'_, T>| {
            answer(Python::attach(|py| request(transport.bind(py))));
        }])?;
        answered(answers.next()?)
    }
}

fn answered<T>(answer: Option<PyResult<T>>) -> Result<T> {
    let answer = answer.ok_or_else(|| Error::other("a request ended without an answer"))?;
    answer.map_err(|error| Python::attach(|py| failed(py, &error)))
}

/// Reads a range: facts of the object, and then its bytes in parts, each as soon as it is there.
fn read_in_parts(
    transport: &Bound<'_, PyAny>,
    range: (String, u64, u64),
    answer: Answer<'_, ReadAnswer>,
) -> PyResult<()> {
    let reading = transport.call_method1("read", range)?;
    let (facts, parts): (PyFacts, Bound<'_, PyAny>) = reading.extract()?;
    let mut goes_on = answer(Ok(ReadAnswer::Facts(facts)));
    let mut parts = parts.try_iter()?;
    while goes_on {
        let Some(part) = parts.next() else { break };
        let part = part?.cast_into::<PyArray1<u8>>()?.unbind();
        // The interpreter is free for others while the part before is copied.
        goes_on = transport.py().detach(|| answer(Ok(ReadAnswer::Bytes(part))));
    }
    Ok(())
}

impl RemoteStore for PyRemoteStore {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn is_listed(&self) -> bool {
        self.is_listed
    }

    fn facts(&self, key: &str) -> Result<RemoteFacts> {
        let key = key.to_string();
        let facts: PyFacts = self.ask(move |transport| transport.call_method1("facts", (key,))?.extract())?;
        Ok(facts_of(&facts))
    }

    fn read_at(&self, key: &str, buffer: &mut [u8], offset: u64) -> Result<(usize, RemoteFacts)> {
        let (transport, range) = (
            self.transport.clone(),
            (key.to_string(), offset, offset + buffer.len() as u64),
        );
        let answers = requests::begin([move |answer: Answer<'_, ReadAnswer>| {
            Python::attach(|py| {
                if let Err(error) = read_in_parts(transport.bind(py), range, answer) {
                    py.detach(|| answer(Err(error)));
                }
            });
        }])?;
        let (mut facts, mut read) = (None, 0);
        while let Some(answer) = answers.next()? {
            match answered(Some(answer))? {
                ReadAnswer::Facts(begun) => facts = Some(facts_of(&begun)),
                ReadAnswer::Bytes(part) => Python::attach(|py| {
                    let part = part.into_bound(py).readonly();
                    let part = part.as_slice().map_err(Error::other)?;
                    let room = buffer.get_mut(read..read + part.len());
                    let room = room.ok_or_else(|| Error::other("the answer is longer than what was asked for"))?;
                    read += part.len();
                    // Others begin requests meanwhile.
                    py.detach(|| room.copy_from_slice(part));
                    Ok::<_, Error>(())
                })?,
            }
        }
        let facts = facts.ok_or_else(|| Error::other("a request ended without an answer"))?;
        Ok((read, facts))
    }

    fn content(&self, key: &str, most: u64) -> Result<(Vec<u8>, RemoteFacts)> {
        let key = key.to_string();
        let (content, facts): (Vec<u8>, PyFacts) =
            self.ask(move |transport| transport.call_method1("content", (key, most))?.extract())?;
        Ok((content, facts_of(&facts)))
    }

    fn list(&self, prefix: &str, each: RemoteVisit<'_>) -> Result<()> {
        let prefix = prefix.to_string();
        let pages = self.ask(move |transport| Ok(transport.call_method1("pages", (prefix,))?.unbind()))?;
        loop {
            // Parts of a list, each without the interpreter while it is looked at.
            let next = Python::attach(|py| pages.clone_ref(py));
            let page = self.ask(move |transport| next.bind(transport.py()).call0()?.extract())?;
            let Some(page): Option<Vec<(String, u64, String)>> = page else {
                return Ok(());
            };
            for (key, bytes, tag) in page {
                each(&key, facts_of(&(bytes, tag)))?;
            }
        }
    }

    fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.to_string();
        self.ask(move |transport| transport.call_method1("folders", (prefix,))?.extract())
    }

    fn facts_of_many(&self, keys: &[String]) -> Result<Vec<Option<RemoteFacts>>> {
        let (next, shared): (Arc<AtomicUsize>, Arc<[String]>) = (Arc::default(), keys.into());
        let requests = (0..HEADS.min(keys.len())).map(|_| {
            let (transport, next, keys) = (self.transport.clone(), next.clone(), shared.clone());
            move |answer: Answer<'_, (usize, Option<PyFacts>)>| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(key) = keys.get(number) else { return };
                let facts = Python::attach(|py| facts_or_none(transport.bind(py), key));
                if !answer(facts.map(|facts| (number, facts))) {
                    return;
                }
            }
        });
        let answers = requests::begin(requests)?;
        let mut all = vec![None; keys.len()];
        while let Some(answer) = answers.next()? {
            let (number, facts) = answered(Some(answer))?;
            all[number] = facts.as_ref().map(facts_of);
        }
        Ok(all)
    }
}

fn facts_or_none(transport: &Bound<'_, PyAny>, key: &str) -> PyResult<Option<PyFacts>> {
    match transport.call_method1("facts", (key,)) {
        Err(error) if error.is_instance_of::<PyFileNotFoundError>(transport.py()) => Ok(None),
        facts => facts?.extract().map(Some),
    }
}

/// Makes a store known by the URL of its bucket or host.
#[pyfunction]
fn mount(url: &str, endpoint: String, is_listed: bool, transport: Py<PyAny>) {
    let store = PyRemoteStore {
        transport: Arc::new(transport),
        endpoint,
        is_listed,
    };
    remote::mount(url, Arc::new(store));
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(mount, module)?)
}
