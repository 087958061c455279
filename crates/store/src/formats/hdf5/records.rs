//! Types of records and of text, as JSON.

use outcore_dtype::DType;
use outcore_hdf5::{Datatype, TypeClass};
use serde_json::{json, Value};

use super::types::element_type;

/// The type of elements that are records, or text of a fixed length; nothing for others.
pub(super) fn record_type(datatype: &Datatype) -> Option<Value> {
    match datatype.class {
        _ if datatype.bytes == 0 => None,
        TypeClass::Compound { .. } | TypeClass::FixedText { .. } | TypeClass::Array { .. } => Some(described(datatype)),
        _ => None,
    }
}

fn described(datatype: &Datatype) -> Value {
    let bytes = datatype.bytes;
    if let Some((dtype, is_swapped)) = element_type(datatype) {
        return json!({"bytes": bytes, "type": dtype.name(), "swapped": is_swapped && dtype != DType::Bool});
    }
    match &datatype.class {
        TypeClass::Compound { fields } => {
            let fields = fields
                .iter()
                .map(|field| json!([field.name, field.offset, described(&field.datatype)]));
            json!({"bytes": bytes, "fields": fields.collect::<Vec<Value>>()})
        }
        TypeClass::Array { shape, base } => json!({"bytes": bytes, "of": described(base), "shape": shape}),
        TypeClass::FixedText { .. } => json!({"bytes": bytes, "type": format!("S{bytes}"), "swapped": false}),
        _ => json!({"bytes": bytes, "type": format!("V{bytes}"), "swapped": false}),
    }
}
