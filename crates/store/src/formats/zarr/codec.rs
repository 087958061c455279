//! The codecs of an array's metadata.

use serde_json::Value;

use super::json::Extension;
use crate::chunked::chain::{CodecChain, CodecStage};

/// The chain that codecs of an array of so many axes make.
pub(super) fn codec_chain(codecs: &[Extension], axes: usize) -> Result<CodecChain, String> {
    let (mut order, mut is_big_endian, mut stages) = (None, false, vec![]);
    let mut serialized = false;
    for codec in codecs {
        let stage = match codec.name.as_str() {
            "transpose" if !serialized => {
                order = Some(transposed(order, codec, axes)?);
                continue;
            }
            "bytes" if !serialized => {
                is_big_endian = big_endian(codec)?;
                serialized = true;
                continue;
            }
            "gzip" | "numcodecs.gzip" => CodecStage::Gzip,
            "numcodecs.zlib" => CodecStage::Zlib,
            "zstd" | "numcodecs.zstd" => CodecStage::Zstd,
            "blosc" | "numcodecs.blosc" => CodecStage::Blosc,
            "crc32c" => CodecStage::Crc32c,
            "numcodecs.fletcher32" => CodecStage::Fletcher32,
            "numcodecs.shuffle" => {
                let item = codec.setting("elementsize").map_or(Some(4), Value::as_u64);
                let item = item.and_then(|item| item.try_into().ok()).filter(|&item| item > 0);
                CodecStage::Shuffle(item.ok_or("numcodecs.shuffle has no valid elementsize")?)
            }
            "transpose" | "bytes" => return Err(format!("codec {:?} is in the wrong place", codec.name)),
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
    Ok(CodecChain::new(order, is_big_endian, stages))
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

fn big_endian(codec: &Extension) -> Result<bool, String> {
    match codec.setting("endian").map(Value::as_str) {
        None | Some(Some("little")) => Ok(false),
        Some(Some("big")) => Ok(true),
        Some(_) => Err("the endian of \"bytes\" is neither \"little\" nor \"big\"".into()),
    }
}
