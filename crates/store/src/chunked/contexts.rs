//! States of decompressors, from one chunk to the next.

use std::io::Read;

/// Decompressors that were needed so far.
#[derive(Default)]
pub(crate) struct Decompressors {
    deflate: Option<libdeflater::Decompressor>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Decompressors {
    pub fn inflater(&mut self) -> &mut libdeflater::Decompressor {
        self.deflate.get_or_insert_with(libdeflater::Decompressor::new)
    }

    /// How many bytes a frame decompresses to, which are at most those of `out`.
    pub fn unzstd(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(|error| format!("zstd: {error}"))?),
        };
        context
            .decompress_to_buffer(bytes, out)
            .map_err(|error| format!("zstd: {error}"))
    }

    /// Inflates the members of a gzip file: most are one, which the fast decompressor does alone.
    pub fn gunzip(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        // It passes over members after the first: where all that may come has come, there are none, or empty ones.
        if self.inflater().gzip_decompress(bytes, out) == Ok(out.len()) {
            return Ok(out.len());
        }
        let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
        let mut length = 0;
        while length < out.len() {
            match decoder
                .read(&mut out[length..])
                .map_err(|error| format!("gzip: {error}"))?
            {
                0 => return Ok(length),
                more => length += more,
            }
        }
        match decoder.read(&mut [0]).map_err(|error| format!("gzip: {error}"))? {
            0 => Ok(length),
            _ => Err(format!("gzip: a chunk is larger than the {} bytes expected", out.len())),
        }
    }
}
