//! Any bytes as a chunk of TIFF's codecs: as many bytes as the chunk has elements for, or an error, never a panic or a large
//! allocation.
#![no_main]

const CODECS: [&str; 4] = ["imagecodecs_lzw", "outcore.differences", "numcodecs.zlib", "zstd"];
const TYPES: [(&str, usize); 3] = [("uint8", 1), ("int16", 2), ("uint64", 8)];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([first, second, kind, length, row], chunk)) = bytes.split_first_chunk::<5>() else {
        return;
    };
    let codec = |number: &u8| {
        let name = CODECS[usize::from(*number) % CODECS.len()];
        format!(r#"{{"name": "{name}", "configuration": {{"row": {row}, "distance": 1}}}}"#)
    };
    let (name, size) = TYPES[usize::from(*kind) % TYPES.len()];
    let length = 1 + 8 * usize::from(*length);
    let endian = if kind % 2 == 0 { "little" } else { "big" };
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{length}], "data_type": "{name}", "fill_value": 0,
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{length}]}}}},
            "chunk_key_encoding": {{"name": "default"}}, "codecs":
            [{{"name": "bytes", "configuration": {{"endian": "{endian}"}}}}, {}, {}]}}"#,
        codec(first),
        codec(second)
    );
    if let Ok(decoded) = outcore_store::decode_listed_chunk(document.as_bytes(), chunk) {
        assert_eq!(decoded.len(), length * size);
    }
});
