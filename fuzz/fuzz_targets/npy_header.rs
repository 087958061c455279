//! Any bytes as the head of a `.npy` file: an answer or an error, never a panic or a large allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = outcore_store::parse_npy_header(bytes);
});
