//! What the elements of an array have to be, and the refusal of a run that meets others.

use outcore_dtype::Scalar;
use outcore_kernels::Bounds;

use crate::EngineError;

/// Which error it is that an element is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    Argument,
    Index,
}

/// Bounds of all elements. The text says what is wrong, with `{}` in place of the element that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    pub bounds: Bounds,
    pub refusal: Refusal,
    pub text: String,
}

impl Check {
    pub fn error(&self, element: Scalar) -> EngineError {
        let text = self.text.replace("{}", &element.to_string());
        match self.refusal {
            Refusal::Argument => EngineError::Argument(text),
            Refusal::Index => EngineError::Index(text),
        }
    }
}
