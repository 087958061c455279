//! Names of axes and attributes, which files keep beside the elements of an array.
//!
//! Annotations are no part of an array's value: no identity and no digest depends on them.

use outcore_dtype::DType;

/// The name, the axes' names, and the attributes of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Annotations {
    pub name: Option<String>,
    /// One for each axis; nothing for an axis without a name.
    pub dims: Vec<Option<String>>,
    pub attributes: Vec<Annotation>,
}

/// An attribute by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Annotation {
    pub name: String,
    pub value: AnnotationValue,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnnotationValue {
    Text(String),
    Texts(Vec<String>),
    /// In C order and native byte order; without axes for a single number.
    Numbers {
        dtype: DType,
        shape: Vec<u64>,
        bytes: Vec<u8>,
    },
    /// Anything else that JSON has.
    Json(String),
}

impl Annotations {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.attributes.is_empty() && self.dims.iter().all(Option::is_none)
    }
}
