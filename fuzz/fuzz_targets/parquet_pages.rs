//! Any bytes as a chunk of a column of Parquet: as many elements as the chunk has, or an error, never a panic or a large allocation.
#![no_main]

const TYPES: [(&str, &str, usize); 7] = [
    ("BOOLEAN", "bool", 1),
    ("INT32", "int8", 1),
    ("INT32", "uint32", 4),
    ("INT32", "int64", 8),
    ("INT64", "int64", 8),
    ("FLOAT", "float32", 4),
    ("DOUBLE", "float64", 8),
];
const CODECS: [&str; 5] = ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, codec, levels, length], chunk)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let (physical, name, size) = TYPES[usize::from(*kind) % TYPES.len()];
    let codec = CODECS[usize::from(*codec) % CODECS.len()];
    let missing = ["refused", "zero"][usize::from(levels >> 1) % 2];
    let (optional, length) = (levels % 2 == 0, 1 + 5 * usize::from(*length));
    let fill = if name == "bool" { "false" } else { "0" };
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{length}], "data_type": "{name}", "fill_value": {fill},
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{length}]}}}},
            "chunk_key_encoding": {{"name": "default"}}, "codecs":
            [{{"name": "bytes", "configuration": {{"endian": "little"}}}}, {{"name": "outcore.parquet", "configuration":
            {{"physical": "{physical}", "compression": "{codec}", "optional": {optional}, "missing": "{missing}"}}}}]}}"#
    );
    if let Ok(decoded) = outcore_store::decode_listed_chunk(document.as_bytes(), chunk) {
        assert_eq!(decoded.len(), length * size);
    }
});
