//! Any bytes as `zarr.json`, or as what describes a volume, its disks and its files: an answer or an error, never a panic or a large allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = outcore_store::parse_zarr_json(bytes);
    let _ = outcore_store::volumes::Description::parse(bytes);
    let _ = outcore_store::volumes::parse_member(bytes);
    let _ = outcore_store::volumes::Stub::parse(bytes);
});
