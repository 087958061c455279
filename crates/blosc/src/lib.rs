//! Blosc's compressor and decompressor behind safe functions.
//!
//! Architecture invariant: a leaf with one reason to say `unsafe`, the calls into c-blosc.

use std::ffi::{c_int, CString};

/// The most bytes that are compressed at once, and those that a buffer has beyond them at most.
pub const SOURCE_BYTES_MAX: usize = i32::MAX as usize - OVERHEAD_BYTES;
pub const OVERHEAD_BYTES: usize = 16;

/// How a buffer is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloscSettings {
    /// From 0, which copies, to 9.
    pub level: u8,
    /// 0 for none, 1 by bytes, 2 by bits.
    pub shuffle: u8,
    /// Bytes of an element.
    pub item: usize,
    /// `blosclz`, `lz4`, `lz4hc`, `snappy`, `zlib` or `zstd`.
    pub compressor: String,
    /// Bytes of a block; 0 leaves them to Blosc.
    pub block: usize,
}

/// Compresses bytes into the front of `out`, in this thread, and gives how many came; nothing where there are too many, `out` has not
/// `OVERHEAD_BYTES` more than they, or the settings are none.
pub fn compress_into(bytes: &[u8], out: &mut [u8], settings: &BloscSettings) -> Option<usize> {
    const THREADS: c_int = 1;
    let compressor = CString::new(settings.compressor.as_str()).ok()?;
    let is_valid = settings.level <= 9 && settings.shuffle <= 2 && settings.item > 0;
    if bytes.len() > SOURCE_BYTES_MAX || out.len() < bytes.len() + OVERHEAD_BYTES || !is_valid {
        return None;
    }
    // SAFETY: c-blosc reads so many bytes, and writes at most as many as it is told, for which there is room; the name ends in zero.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            c_int::from(settings.level),
            c_int::from(settings.shuffle),
            settings.item,
            bytes.len(),
            bytes.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            compressor.as_ptr(),
            settings.block,
            THREADS,
        )
    };
    usize::try_from(written).ok().filter(|&written| written > 0)
}

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
    use super::{compress_into, decompress_into, decompressed_bytes, BloscSettings, OVERHEAD_BYTES};

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
    fn compressed_bytes_decompress_to_themselves() {
        let content: Vec<u8> = (0..40_000u32).flat_map(|at| (at / 3).to_le_bytes()).collect();
        for compressor in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
            for (level, shuffle) in [(0, 0), (1, 1), (5, 2), (9, 1)] {
                let settings = BloscSettings {
                    level,
                    shuffle,
                    item: 4,
                    compressor: compressor.into(),
                    block: 0,
                };
                let mut out = vec![0; content.len() + OVERHEAD_BYTES];
                let length = compress_into(&content, &mut out, &settings).unwrap();
                let mut again = vec![0; content.len()];
                assert_eq!(decompress_into(&out[..length], &mut again), Some(content.len()));
                assert_eq!(again, content, "{settings:?}");
                assert_eq!(compress_into(&content, &mut out[1..], &settings), None);
            }
        }
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
