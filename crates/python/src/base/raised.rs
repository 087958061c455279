//! The exception of a user's function, on its way through the engine.

use pyo3::prelude::*;

/// The exception of a user's function, on its way through the engine to the caller.
#[derive(Debug)]
pub struct Raised {
    function: String,
    pub error: PyErr,
}

impl Raised {
    pub fn new(function: &str, error: PyErr) -> Raised {
        Raised {
            function: function.to_string(),
            error,
        }
    }
}

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.function, self.error)
    }
}

impl std::error::Error for Raised {}
