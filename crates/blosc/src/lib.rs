//! Blosc's decompressor behind safe functions.
//!
//! Architecture invariant: a leaf with one reason to say `unsafe`, the calls into c-blosc.

use std::ffi::c_int;

/// The bytes that a buffer decompresses to, by its checked header; nothing where the header is damaged.
pub fn decompressed_bytes(compressed: &[u8]) -> Option<usize> {
    let mut size = 0;
    // SAFETY: c-blosc reads no more than the length that it is told.
    let code =
        unsafe { blosc_src::blosc_cbuffer_validate(compressed.as_ptr().cast(), compressed.len(), &raw mut size) };
    (code == 0).then_some(size)
}

/// Decompresses a buffer into the front of `out`, in this thread, and gives how many bytes came; nothing where the buffer is damaged or
/// holds more.
pub fn decompress_into(compressed: &[u8], out: &mut [u8]) -> Option<usize> {
    const THREADS: c_int = 1;
    if decompressed_bytes(compressed)? > out.len() {
        return None;
    }
    // SAFETY: the header was checked against the length of the buffer, and c-blosc writes at most as many bytes as it is told, for
    // which there is room.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(compressed.as_ptr().cast(), out.as_mut_ptr().cast(), out.len(), THREADS)
    };
    usize::try_from(written).ok().filter(|&written| written > 0)
}

#[cfg(test)]
mod tests {
    use super::{decompress_into, decompressed_bytes};

    /// `b"outcore ".repeat(8)`, stored as it lies.
    fn stored() -> Vec<u8> {
        let content = b"outcore ".repeat(8);
        let mut buffer = vec![2, 1, 0b10, 1];
        for length in [content.len(), content.len(), content.len() + 16] {
            buffer.extend((length as u32).to_le_bytes());
        }
        buffer.extend(content);
        buffer
    }

    #[test]
    fn a_buffer_decompresses_within_its_limit() {
        let buffer = stored();
        assert_eq!(decompressed_bytes(&buffer), Some(64));
        let mut out = [0; 65];
        assert_eq!(decompress_into(&buffer, &mut out[..64]), Some(64));
        assert_eq!(&out[..64], b"outcore ".repeat(8));
        assert_eq!(decompress_into(&buffer, &mut out[..63]), None);
    }

    #[test]
    fn damaged_headers_are_refused() {
        let buffer = stored();
        for length in 0..buffer.len() {
            assert_eq!(decompressed_bytes(&buffer[..length]), None, "{length} bytes");
            assert_eq!(decompress_into(&buffer[..length], &mut [0; 64]), None, "{length} bytes");
        }
    }
}
