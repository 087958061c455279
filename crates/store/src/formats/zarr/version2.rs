//! Documents of Zarr v2 (`.zarray`, `.zgroup`, `.zattrs`) as those of v3 would be.

use outcore_dtype::DType;
use serde_json::{json, Map, Value};

/// The `zarr.json` that says of an array what `.zarray` says.
///
/// # Errors
/// One line: a member that is missing, or what v3 has nothing for, by name.
pub(super) fn array_as_v3(old: &Value) -> Result<Value, String> {
    if old.get("zarr_format").and_then(Value::as_u64) != Some(2) {
        return Err(".zarray is not of Zarr format 2".into());
    }
    let member = |name: &str| old.get(name).ok_or_else(|| format!(".zarray has no {name}"));
    let shape = member("shape")?;
    let axes = shape.as_array().map_or(0, Vec::len);
    let (data_type, endian) = data_type(member("dtype")?)?;
    let mut codecs = vec![];
    match member("order")?.as_str() {
        Some("C") => {}
        Some("F") => codecs
            .push(json!({"name": "transpose", "configuration": {"order": (0..axes).rev().collect::<Vec<usize>>()}})),
        _ => return Err("the order of .zarray is neither \"C\" nor \"F\"".into()),
    }
    let filters = old.get("filters").and_then(Value::as_array).into_iter().flatten();
    let compressor = Some(member("compressor")?).filter(|compressor| !compressor.is_null());
    // The filters that are of elements come before their bytes in v3.
    let is_of_elements = |codec: &&Value| {
        let id = codec.get("id").and_then(Value::as_str);
        matches!(id, Some("packbits" | "fixedscaleoffset"))
    };
    let mut rest = filters.chain(compressor).peekable();
    while let Some(filter) = rest.next_if(is_of_elements) {
        codecs.push(codec_as_v3(filter)?);
    }
    codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
    for codec in rest {
        codecs.push(codec_as_v3(codec)?);
    }
    let separator = old.get("dimension_separator").and_then(Value::as_str).unwrap_or(".");
    Ok(json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": member("chunks")?}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": separator}},
        "fill_value": fill_value(member("fill_value")?, data_type),
        "codecs": codecs,
    }))
}

/// The type's name in v3, and its byte order.
fn data_type(dtype: &Value) -> Result<(&'static str, &'static str), String> {
    let text = dtype.as_str().ok_or(".zarray has records, which are not supported")?;
    let dtype = text.get(1..).and_then(DType::from_letters);
    let name = dtype
        .ok_or_else(|| format!("data type {text:?} is not supported"))?
        .name();
    match &text[..1] {
        "<" | "|" => Ok((name, "little")),
        ">" => Ok((name, "big")),
        _ => Err(format!("data type {text:?} has no byte order")),
    }
}

/// What chunks that are not there hold; v2 leaves that open by `null`, and zarr-python reads zeros.
fn fill_value(value: &Value, data_type: &str) -> Value {
    match (value, data_type) {
        (Value::Null, "bool") => json!(false),
        (Value::Null, name) if name.starts_with("complex") => json!([0.0, 0.0]),
        (Value::Null, _) => json!(0),
        (Value::Number(number), name) if name.starts_with("complex") => json!([number, 0.0]),
        // Booleans are numbers to some writers, and whole numbers have a fraction.
        (Value::Number(number), "bool") => json!(number.as_f64().is_some_and(|number| number != 0.0)),
        (Value::Number(number), name) if name.contains("int") && number.is_f64() => {
            let number = number.as_f64().unwrap_or(0.5);
            let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
            if is_whole {
                json!(number as i64)
            } else {
                value.clone()
            }
        }
        _ => value.clone(),
    }
}

fn codec_as_v3(codec: &Value) -> Result<Value, String> {
    let id = codec.get("id").and_then(Value::as_str);
    let id = id.ok_or("a compressor or filter of .zarray has no id")?;
    let name = match id {
        "gzip" | "blosc" | "zstd" => id.to_string(),
        other => format!("numcodecs.{other}"),
    };
    let mut configuration = codec.as_object().cloned().unwrap_or_else(Map::new);
    configuration.remove("id");
    Ok(json!({"name": name, "configuration": configuration}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_orders_and_codecs_are_told_in_terms_of_v3() {
        let old = json!({
            "zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": ">f4", "order": "F", "fill_value": null,
            "filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 1},
        });
        let new = array_as_v3(&old).unwrap();
        assert_eq!(new["data_type"], "float32");
        let names: Vec<&str> = new["codecs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|codec| codec["name"].as_str())
            .collect();
        assert_eq!(names, ["transpose", "bytes", "numcodecs.shuffle", "numcodecs.zlib"]);
        assert_eq!(new["codecs"][0]["configuration"]["order"], json!([1, 0]));
        assert_eq!(new["codecs"][1]["configuration"]["endian"], "big");
        assert_eq!(new["fill_value"], 0);
    }

    #[test]
    fn what_is_no_array_of_numbers_is_refused() {
        let old = |dtype: Value| {
            json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "order": "C", "fill_value": 0,
                   "filters": null, "compressor": null})
        };
        for dtype in [
            json!("<M8[ns]"),
            json!("|O"),
            json!([["a", "<i4"]]),
            json!("f4"),
            json!("é4"),
        ] {
            assert!(array_as_v3(&old(dtype)).is_err());
        }
        assert!(array_as_v3(&json!({"zarr_format": 2})).is_err());
    }
}
