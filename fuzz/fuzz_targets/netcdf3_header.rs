//! Any bytes as the head of a NetCDF-3 file: an answer or an error, never a panic or a large allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for file_bytes in [bytes.len() as u64, u64::MAX] {
        let _ = outcore_store::parse_netcdf3_header(bytes, file_bytes);
    }
});
