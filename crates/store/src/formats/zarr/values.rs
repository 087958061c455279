//! `scale_offset` and `cast_value` (zarr-extensions), as their configurations have them.

use outcore_dtype::DType;
use serde_json::Value;

use super::fill::fill_bytes;
use super::json::Extension;
use crate::chunked::casting::{is_number, AnyNumber, OutOfRange, Rounding, ValueCast, ValueScale};

/// The side of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CastDirection {
    Encode,
    Decode,
}

/// `scale_offset` of numbers of a type.
///
/// # Errors
/// One line: another type, or a scale or an offset that is no number of the type.
pub(super) fn value_scale(codec: &Extension, dtype: DType) -> Result<ValueScale, String> {
    check_settings(codec, &["offset", "scale"])?;
    check_number(codec, dtype)?;
    let number = |name: &str, otherwise: i64| {
        let value = codec.setting(name).cloned().unwrap_or_else(|| otherwise.into());
        let number = number_of(dtype, &value);
        number.ok_or_else(|| format!("scale_offset: {name} {value} is no {dtype}"))
    };
    let scale = ValueScale {
        dtype,
        offset: number("offset", 0)?,
        scale: number("scale", 1)?,
    };
    match scale.is_supported() {
        true => Ok(scale),
        false => Err("scale_offset: the scale is zero".into()),
    }
}

/// `cast_value` of numbers of a type to those stored, or back.
///
/// # Errors
/// One line: types that are no numbers, settings that there are not, and mapped numbers that the types do not have.
pub(super) fn value_cast(codec: &Extension, dtype: DType, direction: CastDirection) -> Result<ValueCast, String> {
    check_settings(codec, &["data_type", "rounding", "out_of_range", "scalar_map"])?;
    let stored = codec.setting("data_type").and_then(Extension::from_value);
    let stored = stored.ok_or("cast_value has no valid data_type")?.name;
    let stored = DType::from_name(&stored).ok_or_else(|| format!("cast_value to {stored:?} is not supported"))?;
    check_number(codec, dtype)?;
    check_number(codec, stored)?;
    let text = |name: &str, otherwise: &'static str| {
        codec
            .setting(name)
            .filter(|value| !value.is_null())
            .map_or(Some(otherwise), Value::as_str)
    };
    let rounding = match text("rounding", "nearest-even") {
        Some("nearest-even") => Rounding::NearestEven,
        Some("nearest-away") => Rounding::NearestAway,
        Some("towards-zero") => Rounding::TowardsZero,
        Some("towards-positive") => Rounding::TowardsPositive,
        Some("towards-negative") => Rounding::TowardsNegative,
        _ => return Err("cast_value has no valid rounding".into()),
    };
    let out_of_range = match text("out_of_range", "error") {
        Some("error") => OutOfRange::Refused,
        Some("clamp") => OutOfRange::Clamped,
        Some("wrap") if stored.is_integer() => OutOfRange::Wrapped,
        Some("wrap") => {
            return Err(format!(
                "cast_value: out_of_range \"wrap\" for {stored}, which is no integer"
            ))
        }
        _ => return Err("cast_value has no valid out_of_range".into()),
    };
    let (encode, decode) = (
        mapped(codec, "encode", dtype, stored)?,
        mapped(codec, "decode", stored, dtype)?,
    );
    let (from, to, map) = match direction {
        CastDirection::Encode => (dtype, stored, encode),
        CastDirection::Decode => (stored, dtype, decode),
    };
    Ok(ValueCast {
        from,
        to,
        rounding,
        out_of_range,
        map,
    })
}

/// The numbers that one side of the scalar map names, and what each becomes.
fn mapped(codec: &Extension, side: &str, from: DType, to: DType) -> Result<Vec<(AnyNumber, Vec<u8>)>, String> {
    let Some(map) = codec.setting("scalar_map").filter(|map| !map.is_null()) else {
        return Ok(vec![]);
    };
    let members = map.as_object().ok_or("cast_value: scalar_map is no object")?;
    if let Some(other) = members
        .keys()
        .find(|name| !matches!(name.as_str(), "encode" | "decode"))
    {
        return Err(format!("cast_value: scalar_map has no side {other:?}"));
    }
    let pairs = match members.get(side) {
        None | Some(Value::Null) => return Ok(vec![]),
        Some(pairs) => pairs.as_array(),
    };
    let pairs = pairs.ok_or_else(|| format!("cast_value: scalar_map: {side} is no list"))?;
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([key, value]) => {
            let number = number_of(from, key);
            let number = number.ok_or_else(|| format!("cast_value: scalar_map: {side}: {key} is no {from}"))?;
            let element = little_endian(to, value);
            let element = element.ok_or_else(|| format!("cast_value: scalar_map: {side}: {value} is no {to}"))?;
            Ok((number, element))
        }
        _ => Err(format!("cast_value: scalar_map: {side} has an entry that is no pair")),
    };
    pairs.iter().map(pair).collect()
}

/// The bytes of an element by its fill value in JSON, the lowest first.
fn little_endian(dtype: DType, value: &Value) -> Option<Vec<u8>> {
    let mut bytes = fill_bytes(dtype, value)?;
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    Some(bytes)
}

fn number_of(dtype: DType, value: &Value) -> Option<AnyNumber> {
    Some(AnyNumber::from_bytes(dtype, &little_endian(dtype, value)?))
}

/// Members that the specification does not name make a configuration invalid.
fn check_settings(codec: &Extension, known: &[&str]) -> Result<(), String> {
    match codec.has_only(known) {
        true => Ok(()),
        false => Err(format!("{} has other settings than {}", codec.name, known.join(", "))),
    }
}

fn check_number(codec: &Extension, dtype: DType) -> Result<(), String> {
    match is_number(dtype) {
        true => Ok(()),
        false => Err(format!("{} of {dtype} is not supported", codec.name)),
    }
}
