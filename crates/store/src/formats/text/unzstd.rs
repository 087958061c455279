//! Text packed by Zstandard, unpacked some at a time: frames one after the other, as concatenated files have them, and
//! skippable ones between them.

use std::path::{Path, PathBuf};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::StoreError;

/// Unpacks bytes as they come.
pub struct Unzstd {
    /// The file, as errors name it.
    name: PathBuf,
    decoder: Decoder<'static>,
    /// All that has come are whole frames.
    is_between: bool,
}

impl Unzstd {
    /// # Errors
    /// There is no memory for it.
    pub fn new(name: &Path) -> Result<Unzstd, StoreError> {
        let decoder = Decoder::new().map_err(|cause| StoreError::io(name, 0, "unpack", cause))?;
        Ok(Unzstd {
            name: name.to_path_buf(),
            decoder,
            is_between: true,
        })
    }

    /// Whether the text may end here: not within a frame.
    pub fn is_between(&self) -> bool {
        self.is_between
    }

    /// Unpacks as much of `packed` as there is room for in `out`; how many bytes of each. Where there are no more of
    /// `packed`, what was kept back goes on to come.
    ///
    /// # Errors
    /// Bytes that are no frame.
    pub fn unpack(&mut self, packed: &[u8], out: &mut [u8]) -> Result<(usize, usize), StoreError> {
        let (mut read, mut written) = (0, 0);
        loop {
            if self.is_between && read == packed.len() {
                break;
            }
            let mut input = InBuffer::around(&packed[read..]);
            let mut output = OutBuffer::around(&mut out[written..]);
            let left = self.decoder.run(&mut input, &mut output);
            let left = left.map_err(|cause| StoreError::format(&self.name, format!("cannot be unpacked: {cause}")))?;
            let (more_read, more_written) = (input.pos(), output.pos());
            (read, written) = (read + more_read, written + more_written);
            self.is_between = left == 0;
            // Skippable frames are read and give nothing.
            let goes_on = more_read > 0 || more_written > 0;
            if written == out.len() || !goes_on {
                break;
            }
        }
        Ok((read, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], at_once: usize) -> Option<Vec<u8>> {
        let mut unzstd = Unzstd::new("text".as_ref()).unwrap();
        let (mut found, mut room) = (vec![], [0; 100]);
        for part in packed.chunks(at_once) {
            let mut part = part;
            loop {
                let (read, written) = unzstd.unpack(part, &mut room).ok()?;
                found.extend_from_slice(&room[..written]);
                part = &part[read..];
                if part.is_empty() && written < room.len() {
                    break;
                }
            }
        }
        unzstd.is_between().then_some(found)
    }

    #[test]
    fn frames_one_after_the_other_and_skippable_ones() {
        let text: Vec<u8> = (0..3000u32)
            .flat_map(|number| format!("{number}\n").into_bytes())
            .collect();
        let frame = |text: &[u8]| zstd::bulk::compress(text, 3).unwrap();
        let skipped = [&[0x52, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"hello"].concat();
        let (first, second) = text.split_at(7000);
        let packed = [
            &skipped[..],
            &frame(first),
            &skipped,
            &frame(b""),
            &frame(second),
            &skipped,
        ]
        .concat();
        for at_once in [1, 7, 4096, packed.len()] {
            assert_eq!(unpacked(&packed, at_once).as_ref(), Some(&text), "{at_once}");
        }
        assert_eq!(unpacked(&skipped, 3), Some(vec![]));
    }

    #[test]
    fn text_that_ends_within_a_frame_is_not_whole() {
        let packed = zstd::bulk::compress(&b"0 1\n1 2\n".repeat(1000), 3).unwrap();
        assert!((1..packed.len()).all(|length| unpacked(&packed[..length], 16).is_none()));
        assert!(unpacked(&[&packed[..], b"rest"].concat(), 16).is_none());
    }
}
