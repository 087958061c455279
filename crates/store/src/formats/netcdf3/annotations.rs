//! What a NetCDF-3 file says of variables beside elements.

use super::header::{NcAttribute, NcType, NcVariable, NetCdf3Header};
use crate::array::annotations::{Annotation, AnnotationValue, Annotations};
use crate::array::rowmajor::make_native;

/// Those of a variable.
pub(super) fn of_variable(header: &NetCdf3Header, variable: &NcVariable) -> Annotations {
    let dims = variable.dimensions.iter();
    Annotations {
        name: Some(variable.name.clone()),
        dims: dims.map(|&at| Some(header.dimensions[at].name.clone())).collect(),
        attributes: attributes_of(&variable.attributes),
    }
}

pub(super) fn attributes_of(attributes: &[NcAttribute]) -> Vec<Annotation> {
    let named = attributes.iter().map(|attribute| Annotation {
        name: attribute.name.clone(),
        value: value_of(attribute),
    });
    named.collect()
}

/// A list of one is its only value. Text in no encoding that is known is Latin-1; zeros at its end are padding.
fn value_of(attribute: &NcAttribute) -> AnnotationValue {
    let bytes = &attribute.bytes;
    match attribute.kind {
        NcType::Char => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let text = std::str::from_utf8(&bytes[..end]).map(String::from);
            AnnotationValue::Text(text.unwrap_or_else(|_| bytes[..end].iter().copied().map(char::from).collect()))
        }
        NcType::Number(dtype) => {
            let mut numbers = bytes.clone();
            make_native(&mut numbers, dtype, cfg!(target_endian = "little"));
            let count = (bytes.len() / dtype.size()) as u64;
            AnnotationValue::Numbers {
                dtype,
                shape: if count == 1 { vec![] } else { vec![count] },
                bytes: numbers,
            }
        }
    }
}
