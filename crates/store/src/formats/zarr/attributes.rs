//! Attributes as the JSON of Zarr documents.

use outcore_dtype::{f16, DType};
use serde_json::{json, Map, Number, Value};

use crate::array::annotations::{Annotation, AnnotationValue};

/// The object of attributes by name.
pub(super) fn attributes_json(attributes: &[Annotation]) -> Value {
    let members = attributes.iter().map(|own| (own.name.clone(), value_json(&own.value)));
    Value::Object(members.collect::<Map<String, Value>>())
}

fn value_json(value: &AnnotationValue) -> Value {
    match value {
        AnnotationValue::Text(text) => json!(text),
        AnnotationValue::Texts(texts) => json!(texts),
        AnnotationValue::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        AnnotationValue::Numbers { dtype, shape, bytes } => {
            let mut numbers = bytes.chunks_exact(dtype.size()).map(|bytes| number_json(*dtype, bytes));
            nested(shape, &mut numbers)
        }
    }
}

/// Numbers in C order as lists of lists, or the single one.
fn nested(shape: &[u64], numbers: &mut dyn Iterator<Item = Value>) -> Value {
    match shape {
        [] => numbers.next().unwrap_or(Value::Null),
        [length, inner @ ..] => (0..*length).map(|_| nested(inner, numbers)).collect(),
    }
}

fn number_json(dtype: DType, bytes: &[u8]) -> Value {
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&bytes[..N]);
        array
    }
    match dtype {
        DType::Bool => json!(bytes[0] != 0),
        DType::I8 => json!(i8::from_ne_bytes(array(bytes))),
        DType::I16 => json!(i16::from_ne_bytes(array(bytes))),
        DType::I32 => json!(i32::from_ne_bytes(array(bytes))),
        DType::I64 => json!(i64::from_ne_bytes(array(bytes))),
        DType::U8 => json!(bytes[0]),
        DType::U16 => json!(u16::from_ne_bytes(array(bytes))),
        DType::U32 => json!(u32::from_ne_bytes(array(bytes))),
        DType::U64 => json!(u64::from_ne_bytes(array(bytes))),
        DType::F16 => single(f16::from_ne_bytes(array(bytes)).to_f32()),
        DType::F32 => single(f32::from_ne_bytes(array(bytes))),
        DType::F64 => double(f64::from_ne_bytes(array(bytes))),
        DType::C64 => json!([
            number_json(DType::F32, &bytes[..4]),
            number_json(DType::F32, &bytes[4..])
        ]),
        DType::C128 => json!([
            number_json(DType::F64, &bytes[..8]),
            number_json(DType::F64, &bytes[8..])
        ]),
    }
}

/// The shortest digits that give the single again.
fn single(value: f32) -> Value {
    double(value.to_string().parse().unwrap_or(f64::from(value)))
}

fn double(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => json!("NaN"),
        None if value > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        let numbers = |dtype, shape: &[u64], bytes: Vec<u8>| {
            let shape = shape.to_vec();
            value_json(&AnnotationValue::Numbers { dtype, shape, bytes })
        };
        assert_eq!(numbers(DType::F32, &[], 0.1f32.to_ne_bytes().to_vec()), json!(0.1));
        let pair = [f64::NAN.to_ne_bytes(), 2.5f64.to_ne_bytes()].concat();
        assert_eq!(numbers(DType::F64, &[2], pair.clone()), json!(["NaN", 2.5]));
        assert_eq!(numbers(DType::F64, &[1, 2], pair), json!([["NaN", 2.5]]));
        assert_eq!(numbers(DType::I16, &[], (-3i16).to_ne_bytes().to_vec()), json!(-3));
        assert_eq!(
            value_json(&AnnotationValue::Json("{\"a\": [1]}".into())),
            json!({"a": [1]})
        );
    }
}
