//! What stands under the name of a file whose bytes are on the disks of a volume.
//!
//! A stub begins with these 72 bytes and is as long as the file it stands for; the rest of it is a hole. So whoever asks
//! the system how long the file is, when it was written or which file it is gets the answer, and names are given, taken
//! and exchanged as those of any file. It has the number of its own inode: that stays when names change, and a copy of its
//! bytes is known as one.

use std::fs::{File, Metadata};
use std::io::Result;
use std::os::unix::fs::{FileExt, MetadataExt};

use crc32c::crc32c;

pub(crate) const STUB_BYTES: usize = 72;
/// As for `.npy`: no text begins so, and what passes it on as text is found out.
pub(crate) const MAGIC: [u8; 16] = *b"\x93OUTCORE-VOLUME\n";
const VERSION: u32 = 2;
/// Where its checksum, of all before it, stands.
const CHECKSUM: usize = STUB_BYTES - 4;

pub(crate) type Id = [u8; 16];

/// Of which volume, by which of its generations, what its parts are called, in which inode it was written, and what the
/// generation was (`Description::layout_sum`), or 0 where it does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub {
    pub volume: Id,
    pub file: Id,
    pub generation: u32,
    pub inode: u64,
    pub layout_sum: u32,
}

impl Stub {
    pub fn bytes(&self) -> [u8; STUB_BYTES] {
        let mut bytes = [0; STUB_BYTES];
        bytes[..16].copy_from_slice(&MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.volume);
        bytes[40..56].copy_from_slice(&self.file);
        bytes[56..64].copy_from_slice(&self.inode.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.layout_sum.to_le_bytes());
        let checksum = crc32c(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What a file's first bytes say: nothing where they are no stub's.
    ///
    /// # Errors
    /// They begin as a stub and are none.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Option<Stub>, String> {
        if bytes.get(..16) != Some(&MAGIC[..]) {
            return Ok(None);
        }
        let Some(bytes) = bytes.first_chunk::<STUB_BYTES>() else {
            return Err("the stub of a file of a volume, cut short".into());
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(16) != VERSION {
            return Err(format!("a file of a volume, version {}; {VERSION} is known", word(16)));
        }
        if word(CHECKSUM) != crc32c(&bytes[..CHECKSUM]) {
            return Err("the stub of a file of a volume, damaged: its checksum differs".into());
        }
        let id = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        Ok(Some(Stub {
            generation: word(20),
            volume: id(24),
            file: id(40),
            inode: u64::from(word(56)) | u64::from(word(60)) << 32,
            layout_sum: word(64),
        }))
    }

    /// Whether it stands where it was written, and not in a copy, whose parts are another's.
    pub(crate) fn is_in(&self, found: &Metadata) -> bool {
        self.inode == found.ino()
    }

    /// As `parse`, of an open file.
    pub(crate) fn of(file: &File) -> Result<Option<Stub>> {
        let mut bytes = [0; STUB_BYTES];
        let mut filled = 0;
        while filled < STUB_BYTES {
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Stub::parse(&bytes[..filled]).map_err(|reason| std::io::Error::new(std::io::ErrorKind::InvalidData, reason))
    }
}

/// An identifier as it is written: 32 hexadecimal digits.
pub(crate) fn hex(id: &Id) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Id> {
    let digits = text.as_bytes();
    let plain = digits.len() == 32 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    plain
        .then(|| u128::from_str_radix(text, 16).map(u128::to_be_bytes).ok())
        .flatten()
}

/// An identifier that nothing else has.
pub(crate) fn new_id() -> Id {
    let halves = [crate::base::directory::random(), crate::base::directory::random()];
    (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_says_what_was_written_and_nothing_else_is_believed() {
        let stub = Stub {
            volume: new_id(),
            file: new_id(),
            generation: 7,
            inode: u64::MAX - 7,
            layout_sum: 0x1234_5678,
        };
        let bytes = stub.bytes();
        assert_eq!(Stub::parse(&bytes), Ok(Some(stub)));
        assert_eq!(Stub::parse(b"\x93NUMPY"), Ok(None));
        assert_eq!(Stub::parse(&[]), Ok(None));
        for at in 0..STUB_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            // Without its magic it is no stub.
            assert_eq!(Stub::parse(&damaged).is_err(), at >= 16, "{at}");
        }
        assert!(Stub::parse(&bytes[..STUB_BYTES - 1]).is_err());
    }

    #[test]
    fn identifiers_are_written_and_read() {
        let id = new_id();
        assert_eq!(from_hex(&hex(&id)), Some(id));
        for text in [
            "",
            "00",
            "+0000000000000000000000000000000",
            "../0000000000000000000000000000",
        ] {
            assert_eq!(from_hex(text), None);
        }
        assert_ne!(new_id(), id);
    }
}
