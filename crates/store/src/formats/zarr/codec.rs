//! The codecs of an array's metadata.

use outcore_dtype::DType;
use serde_json::Value;

use super::json::Extension;
use super::values::{value_cast, value_scale, CastDirection};
use crate::chunked::chain::{CodecChain, CodecStage};
use crate::chunked::differences::Differences;
use crate::chunked::pages::{ColumnPages, MissingElements, PageCodec, Physical};
use crate::chunked::scaling::FixedScaleOffset;

/// The chain that codecs of an array of so many axes make.
pub(super) fn codec_chain(codecs: &[Extension], axes: usize, dtype: DType) -> Result<CodecChain, String> {
    let (mut order, mut is_big_endian, mut stages) = (None, false, vec![]);
    let mut serialized = false;
    // The type of elements behind the codecs so far.
    let mut stored = dtype;
    for codec in codecs {
        let stage = match codec.name.as_str() {
            "transpose" if !serialized => {
                order = Some(transposed(order, codec, axes)?);
                continue;
            }
            "numcodecs.packbits" | "numcodecs.fixedscaleoffset" if !serialized && stages.is_empty() => {
                let stage = filter(codec, dtype)?;
                if let CodecStage::FixedScaleOffset(scaling) = &stage {
                    stored = scaling.stored;
                }
                stages.push(stage);
                continue;
            }
            "numcodecs.delta" if !serialized => {
                stages.push(differences(codec, stored, false)?);
                continue;
            }
            "scale_offset" if !serialized => {
                stages.push(CodecStage::Scale(value_scale(codec, stored)?));
                continue;
            }
            "cast_value" if !serialized => {
                let cast = value_cast(codec, stored, CastDirection::Decode)?;
                stored = cast.from;
                stages.push(CodecStage::Cast(cast));
                continue;
            }
            "bytes" if !serialized => {
                is_big_endian = big_endian(codec)?;
                if is_big_endian && stages.iter().any(is_value_stage) {
                    stages.push(CodecStage::Swap(stored.size()));
                    is_big_endian = false;
                }
                serialized = true;
                continue;
            }
            "gzip" | "numcodecs.gzip" => CodecStage::Gzip,
            "numcodecs.zlib" => CodecStage::Zlib,
            "numcodecs.lz4" => CodecStage::Lz4,
            "zstd" | "numcodecs.zstd" => CodecStage::Zstd,
            "blosc" | "numcodecs.blosc" => CodecStage::Blosc,
            "crc32c" => CodecStage::Crc32c,
            "numcodecs.fletcher32" => CodecStage::Fletcher32,
            "numcodecs.shuffle" => shuffle(codec)?,
            "outcore.parquet" => CodecStage::Pages(column_pages(codec, stored)?),
            "imagecodecs_lzw" | "numcodecs.imagecodecs_lzw" => CodecStage::Lzw,
            "numcodecs.imagecodecs_zstd" => CodecStage::Zstd,
            "outcore.differences" | "numcodecs.delta" => differences(codec, stored, is_big_endian)?,
            "transpose"
            | "bytes"
            | "numcodecs.packbits"
            | "numcodecs.fixedscaleoffset"
            | "scale_offset"
            | "cast_value" => return Err(format!("codec {:?} is in the wrong place", codec.name)),
            "sharding_indexed" => return Err("shards within shards are not supported".into()),
            other => return Err(format!("codec {other:?} is not supported")),
        };
        if !serialized {
            return Err(format!("codec {:?} stands before \"bytes\"", codec.name));
        }
        stages.push(stage);
    }
    if !serialized {
        return Err("the codecs have no \"bytes\"".into());
    }
    check_filter(&stages, order.is_some() || is_big_endian)?;
    Ok(CodecChain::new(order, is_big_endian, stages))
}

/// Bytes of elements by their places, all first ones first.
fn shuffle(codec: &Extension) -> Result<CodecStage, String> {
    let item = codec.setting("elementsize").map_or(Some(4), Value::as_u64);
    let item = item.and_then(|item| item.try_into().ok()).filter(|&item| item > 0);
    item.map(CodecStage::Shuffle)
        .ok_or_else(|| "numcodecs.shuffle has no valid elementsize".into())
}

/// Refuses a filter of elements that are not as they lie in memory.
fn check_filter(stages: &[CodecStage], is_otherwise: bool) -> Result<(), String> {
    let first = stages.first();
    let has_filter = first.is_some_and(|stage| matches!(stage, CodecStage::PackBits | CodecStage::FixedScaleOffset(_)));
    match has_filter && is_otherwise {
        true => Err("a filter of numcodecs beside transposed axes or big-endian numbers is not supported".into()),
        false => Ok(()),
    }
}

/// Whether a stage is about numbers, the lowest byte first.
fn is_value_stage(stage: &CodecStage) -> bool {
    matches!(
        stage,
        CodecStage::Cast(_) | CodecStage::Scale(_) | CodecStage::Differences(_)
    )
}

/// A codec of numcodecs from elements to elements.
fn filter(codec: &Extension, dtype: DType) -> Result<CodecStage, String> {
    let refused = |what: &str| Err(format!("{} {what}", codec.name));
    if codec.name == "numcodecs.packbits" {
        return match dtype {
            DType::Bool => Ok(CodecStage::PackBits),
            _ => refused(&format!("of {dtype} is not supported")),
        };
    }
    let number = |name: &str| codec.setting(name).and_then(Value::as_f64);
    let kind = |name: &str| match codec.setting(name) {
        None | Some(Value::Null) => Some(dtype),
        Some(name) => name.as_str().and_then(numpy_type),
    };
    let (Some(scale), Some(offset)) = (number("scale"), number("offset")) else {
        return refused("has no valid scale and offset");
    };
    let (Some(stored), Some(decoded)) = (kind("astype"), kind("dtype")) else {
        return refused("has no valid types");
    };
    let scaling = FixedScaleOffset {
        scale,
        offset,
        stored,
        dtype: decoded,
    };
    match decoded == dtype && scaling.is_supported() {
        true => Ok(CodecStage::FixedScaleOffset(scaling)),
        false => refused(&format!(
            "from {stored} to {decoded} in an array of {dtype} is not supported"
        )),
    }
}

/// Pages of a column, which come first of all that was done to its elements.
fn column_pages(codec: &Extension, dtype: DType) -> Result<ColumnPages, String> {
    let setting = |name: &str| codec.setting(name).and_then(Value::as_str).unwrap_or("");
    let physical = match setting("physical") {
        "BOOLEAN" => Physical::Boolean,
        "INT32" => Physical::Int32,
        "INT64" => Physical::Int64,
        "FLOAT" => Physical::Float,
        "DOUBLE" => Physical::Double,
        other => return Err(format!("outcore.parquet of {other:?} is not supported")),
    };
    let pages = match setting("compression") {
        "UNCOMPRESSED" => PageCodec::Plain,
        "SNAPPY" => PageCodec::Snappy,
        "GZIP" => PageCodec::Gzip,
        "ZSTD" => PageCodec::Zstd,
        "LZ4" => PageCodec::Lz4Raw,
        other => return Err(format!("outcore.parquet with {other:?} is not supported")),
    };
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    let missing = match setting("missing") {
        "refused" => MissingElements::Refused,
        "nan" if is_float => MissingElements::NotANumber,
        "nat" if dtype == DType::I64 => MissingElements::NotATime,
        "zero" => MissingElements::Zero,
        other => return Err(format!("outcore.parquet of {dtype} has no {other:?} elements")),
    };
    let is_same_kind = match physical {
        Physical::Boolean => dtype == DType::Bool,
        Physical::Int32 | Physical::Int64 => dtype.is_integer(),
        Physical::Float | Physical::Double => is_float,
    };
    if !is_same_kind || !physical.decodes_to(dtype.size()) {
        return Err(format!(
            "outcore.parquet of {physical:?} in an array of {dtype} is not supported"
        ));
    }
    Ok(ColumnPages {
        physical,
        codec: pages,
        is_optional: codec.setting("optional") == Some(&Value::Bool(true)),
        missing,
        item: dtype.size(),
    })
}

/// Rows that are told by differences: as TIFF has them, or all numbers as one row.
fn differences(codec: &Extension, dtype: DType, big_endian: bool) -> Result<CodecStage, String> {
    let is_same = |name: &str| {
        let kind = codec.setting(name).filter(|kind| !kind.is_null());
        kind.is_none_or(|kind| kind.as_str().and_then(numpy_type) == Some(dtype))
    };
    if !dtype.is_integer() || !is_same("dtype") || !is_same("astype") {
        return Err(format!("{} in an array of {dtype} is not supported", codec.name));
    }
    let number = |name: &str, otherwise: u32| match codec.setting(name) {
        None => Ok(otherwise),
        Some(number) => {
            let number = number.as_u64().filter(|&number| number > 0);
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| format!("{} has no valid {name}", codec.name))
        }
    };
    Ok(CodecStage::Differences(Differences {
        row: number("row", 0)?,
        distance: number("distance", 1)?,
        item: dtype.size() as u32,
        big_endian,
    }))
}

/// A type of little-endian numbers by its name in NumPy, as `<f8` or `float64`.
fn numpy_type(name: &str) -> Option<DType> {
    let letters = name.strip_prefix(['<', '|']).unwrap_or(name);
    DType::from_letters(letters).or_else(|| DType::from_name(name))
}

/// The order of axes after a transposition of one that may be transposed already.
fn transposed(before: Option<Vec<usize>>, codec: &Extension, axes: usize) -> Result<Vec<usize>, String> {
    let order = codec.setting("order").and_then(Value::as_array);
    let order: Option<Vec<usize>> = order.and_then(|order| {
        order
            .iter()
            .map(|axis| axis.as_u64().and_then(|axis| axis.try_into().ok()))
            .collect()
    });
    let order = order.ok_or("transpose has no valid order")?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..axes) {
        return Err(format!("transpose order {order:?} is not a permutation of {axes} axes"));
    }
    Ok(match before {
        Some(before) => order.iter().map(|axis| before[*axis]).collect(),
        None => order,
    })
}

pub(super) fn big_endian(codec: &Extension) -> Result<bool, String> {
    match codec.setting("endian").map(Value::as_str) {
        None | Some(Some("little")) => Ok(false),
        Some(Some("big")) => Ok(true),
        Some(_) => Err("the endian of \"bytes\" is neither \"little\" nor \"big\"".into()),
    }
}
