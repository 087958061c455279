//! `zarr.json`, read into what the source needs. Everything in it is untrusted.

use std::borrow::Cow;

use outcore_dtype::DType;
use serde_json::Value;

use super::codec::codec_chain;
use super::edges::{edge_runs, EdgeRun};
use super::fill::fill_bytes;
use super::json::{ArrayJson, Extension};
use super::keys::KeyEncoding;
use super::version2::array_as_v3;
use crate::array::region::is_computable;
use crate::chunked::chain::CodecChain;
use crate::chunked::manifest::ChunkGrid;

const AXES_MAX: usize = 64;

/// An array's metadata, checked: no product of its shapes overflows.
#[derive(Clone, Debug)]
pub struct ArrayMetadata {
    pub(super) shape: Vec<u64>,
    pub(super) dtype: DType,
    /// Of a rectilinear grid the largest lengths.
    pub(super) chunk: Vec<u64>,
    /// Chunks along each axis, where their lengths differ.
    pub(super) edges: Option<Vec<Vec<EdgeRun>>>,
    /// One element, native order.
    pub(super) fill: Vec<u8>,
    pub(super) keys: KeyEncoding,
    /// How a chunk, or an inner chunk of a shard, is encoded.
    pub(super) chain: CodecChain,
    pub(super) sharding: Option<Sharding>,
}

impl ArrayMetadata {
    pub(super) fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Chunks along each axis.
    pub(super) fn counts(&self) -> Vec<u64> {
        let regular = |(length, chunk): (&u64, &u64)| length.div_ceil(*chunk);
        let last = |runs: &Vec<EdgeRun>| {
            runs.last()
                .map_or(0, |run| run.first + (run.end - run.start).div_ceil(run.edge))
        };
        match &self.edges {
            Some(axes) => axes.iter().map(last).collect(),
            None => self.shape.iter().zip(&self.chunk).map(regular).collect(),
        }
    }
}

/// Shards: chunks that hold a grid of inner chunks and an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sharding {
    pub inner: Vec<u64>,
    pub index_at_start: bool,
    pub index_crc: bool,
    pub index_big_endian: bool,
}

/// Reads the metadata of an array.
///
/// # Errors
/// One line: not JSON, another node type or version, or something in it that is not supported, by name.
pub fn parse_zarr_json(bytes: &[u8]) -> Result<ArrayMetadata, String> {
    array_of(&json_of(bytes)?)
}

/// The grid of an array by its document, of v3 or v2, where its chunks are listed and lie anywhere.
///
/// # Errors
/// The errors of `parse_zarr_json`; shards; a rectilinear grid.
pub(crate) fn parse_grid(document: &[u8]) -> Result<ChunkGrid, String> {
    let mut value = json_of(document)?;
    if value.get("zarr_format").and_then(Value::as_u64) == Some(2) {
        value = array_as_v3(&value)?;
    }
    let metadata = array_of(&value)?;
    if metadata.sharding.is_some() {
        return Err("shards whose places are listed are not supported".into());
    }
    if metadata.edges.is_some() {
        return Err("rectilinear chunks whose places are listed are not supported".into());
    }
    Ok(ChunkGrid {
        shape: metadata.shape,
        dtype: metadata.dtype,
        cell: metadata.chunk.clone(),
        unit: metadata.chunk,
        fill: metadata.fill,
        chain: metadata.chain,
        is_cut: false,
    })
}

/// JSON in which numbers that are none may stand bare.
///
/// # Errors
/// One line: not JSON.
pub(super) fn json_of(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(&with_numbers_as_text(bytes)).map_err(|error| format!("not valid JSON: {error}"))
}

/// The metadata of an array out of its document.
///
/// # Errors
/// Those of `parse_zarr_json`.
pub(super) fn array_of(value: &Value) -> Result<ArrayMetadata, String> {
    match value.get("zarr_format").and_then(Value::as_u64) {
        Some(3) => {}
        Some(other) => return Err(format!("Zarr format {other} is not supported, only 3")),
        None => return Err("zarr.json has no zarr_format".into()),
    }
    match value.get("node_type").and_then(Value::as_str) {
        Some("array") => {}
        Some("group") => return Err("this is a Zarr group, not an array; name one of its arrays".into()),
        _ => return Err("zarr.json has an unknown node_type".into()),
    }
    refuse_unknown(value)?;
    let metadata =
        ArrayJson::from_value(value).map_err(|error| format!("zarr.json does not describe an array: {error}"))?;
    if let [transformer, ..] = &metadata.storage_transformers[..] {
        return Err(format!("storage transformer {:?} is not supported", transformer.name));
    }
    from_metadata(&metadata)
}

/// `NaN`, `Infinity` and `-Infinity` in quotes. JSON has no such numbers, and writers put them into attributes bare.
fn with_numbers_as_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    const BARE: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    if !bytes.windows(3).any(|part| part == b"NaN" || part == b"Inf") {
        return Cow::Borrowed(bytes);
    }
    let mut text = Vec::with_capacity(bytes.len() + 64);
    let (mut rest, mut in_text) = (bytes, false);
    while let Some(&byte) = rest.first() {
        let bare = BARE.iter().find(|bare| !in_text && rest.starts_with(bare));
        if let Some(bare) = bare {
            text.push(b'"');
            text.extend_from_slice(bare);
            text.push(b'"');
            rest = &rest[bare.len()..];
            continue;
        }
        // What a backslash escapes does not end the text.
        let taken = if in_text && byte == b'\\' { 2.min(rest.len()) } else { 1 };
        in_text ^= byte == b'"';
        text.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(text)
}

/// Members that the specification does not name must be understood unless they say otherwise (Zarr v3, "Extensions").
fn refuse_unknown(value: &Value) -> Result<(), String> {
    const KNOWN: [&str; 12] = [
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
        "attributes",
        "storage_transformers",
        "dimension_names",
        "consolidated_metadata",
    ];
    let members = value.as_object().into_iter().flatten();
    for (name, member) in members.filter(|(name, _)| !KNOWN.contains(&name.as_str())) {
        if member.get("must_understand").and_then(Value::as_bool) != Some(false) {
            return Err(format!(
                "zarr.json has an extension {name:?} that must be understood and is not"
            ));
        }
    }
    Ok(())
}

fn from_metadata(metadata: &ArrayJson) -> Result<ArrayMetadata, String> {
    let name = &metadata.data_type.name;
    let dtype = DType::from_name(name).ok_or_else(|| format!("data type {name:?} is not supported"))?;
    let shape = metadata.shape.clone();
    if shape.len() > AXES_MAX {
        return Err(format!("arrays of more than {AXES_MAX} axes are not supported"));
    }
    check_size(&shape, dtype, "shape")?;
    let (chunk, edges) = match metadata.chunk_grid.name.as_str() {
        "regular" => (chunk_shape(&metadata.chunk_grid, shape.len())?, None),
        "rectilinear" => {
            let axes = edge_runs(&metadata.chunk_grid, &shape)?;
            let largest = |runs: &Vec<EdgeRun>| runs.iter().map(|run| run.edge).max().unwrap_or(1);
            (axes.iter().map(largest).collect(), Some(axes))
        }
        grid => {
            return Err(format!(
                "chunk grid {grid:?} is not supported, only \"regular\" and \"rectilinear\""
            ))
        }
    };
    check_size(&chunk, dtype, "chunk shape")?;
    let fill = fill_bytes(dtype, &metadata.fill_value).ok_or_else(|| {
        let given = metadata.fill_value.to_string();
        format!("fill value {} does not fit {dtype}", short(&given))
    })?;
    let keys = KeyEncoding::from_metadata(&metadata.chunk_key_encoding)?;
    let (chain, sharding) = codecs(&metadata.codecs, &chunk, dtype)?;
    if let (Some(axes), Some(Sharding { inner, .. })) = (&edges, &sharding) {
        check_divided(axes, inner)?;
    }
    Ok(ArrayMetadata {
        shape,
        dtype,
        chunk,
        edges,
        fill,
        keys,
        chain,
        sharding,
    })
}

/// Refuses shards of which one is no whole chunks.
fn check_divided(axes: &[Vec<EdgeRun>], inner: &[u64]) -> Result<(), String> {
    for (runs, inner) in axes.iter().zip(inner) {
        if let Some(run) = runs.iter().find(|run| run.edge % inner != 0) {
            return Err(format!(
                "inner chunks of length {inner} do not divide shards of length {}",
                run.edge
            ));
        }
    }
    Ok(())
}

fn codecs(codecs: &[Extension], chunk: &[u64], dtype: DType) -> Result<(CodecChain, Option<Sharding>), String> {
    let sharding = sharding_of(codecs, chunk)?;
    let chain = match &sharding {
        Some(_) => codec_chain(&inner_codecs(codecs)?, chunk.len(), dtype)?,
        None => codec_chain(codecs, chunk.len(), dtype)?,
    };
    Ok((chain, sharding))
}

/// The shards that codecs make of an array's chunks; nothing where chunks are no shards.
///
/// # Errors
/// One line: codecs around shards, or a configuration that is damaged or not supported.
pub(super) fn sharding_of(codecs: &[Extension], chunk: &[u64]) -> Result<Option<Sharding>, String> {
    if !codecs.iter().any(|codec| codec.name == "sharding_indexed") {
        return Ok(None);
    }
    let [codec] = codecs else {
        return Err("other codecs around sharding_indexed are not supported".into());
    };
    let inner = chunk_shape(codec, chunk.len())?;
    if chunk.iter().zip(&inner).any(|(outer, inner)| outer % inner != 0) {
        return Err(format!("inner chunks {inner:?} do not divide shards {chunk:?}"));
    }
    let index = codec_chain(&list(codec, "index_codecs")?, 0, DType::U64)?;
    let index_crc = match index.is_crc_only() {
        Some(crc) => crc,
        None => return Err("the shard index has codecs other than bytes and crc32c".into()),
    };
    let index_at_start = match codec.setting("index_location").map_or(Some("end"), Value::as_str) {
        Some("start") => true,
        Some("end") => false,
        _ => return Err("index_location is neither \"start\" nor \"end\"".into()),
    };
    Ok(Some(Sharding {
        inner,
        index_at_start,
        index_crc,
        index_big_endian: index.big_endian,
    }))
}

/// The codecs of chunks within shards.
///
/// # Errors
/// One line: codecs that are no list.
pub(super) fn inner_codecs(codecs: &[Extension]) -> Result<Vec<Extension>, String> {
    codecs.first().map_or_else(|| Ok(vec![]), |codec| list(codec, "codecs"))
}

fn list(codec: &Extension, name: &str) -> Result<Vec<Extension>, String> {
    let value = codec
        .setting(name)
        .ok_or_else(|| format!("sharding_indexed has no {name}"))?;
    Extension::list(value).ok_or_else(|| format!("sharding_indexed: {name} is not a list of names"))
}

fn chunk_shape(metadata: &Extension, axes: usize) -> Result<Vec<u64>, String> {
    let shape = metadata.setting("chunk_shape").and_then(Value::as_array);
    let shape: Option<Vec<u64>> = shape.and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let shape = shape.ok_or_else(|| format!("{:?} has no valid chunk_shape", metadata.name))?;
    if shape.len() != axes || shape.contains(&0) {
        return Err(format!("chunk shape {shape:?} does not suit an array of {axes} axes"));
    }
    Ok(shape)
}

fn check_size(shape: &[u64], dtype: DType, what: &str) -> Result<(), String> {
    match is_computable(shape, dtype) {
        true => Ok(()),
        false => Err(format!("{what} {shape:?} of {dtype} overflows")),
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
