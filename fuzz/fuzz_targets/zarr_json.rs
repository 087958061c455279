//! Any bytes as `zarr.json`: an answer or an error, never a panic or a large allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = outcore_store::parse_zarr_json(bytes);
});
