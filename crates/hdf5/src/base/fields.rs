//! Fields of the format, one after the other, out of bytes that were read. Nothing here reads or grows.

use super::checksum::lookup3;
use super::error::Hdf5Error;

/// The sizes of addresses and lengths of a file, and the place from which its addresses count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSizes {
    pub address_bytes: u8,
    pub length_bytes: u8,
    /// The file's byte that has address 0: a user block stands before.
    pub base: u64,
}

/// Bytes of the file from the byte `at` on.
#[derive(Clone, Debug)]
pub(crate) struct ByteBlock {
    pub at: u64,
    pub bytes: Vec<u8>,
    pub sizes: FieldSizes,
}

impl ByteBlock {
    pub fn fields(&self) -> ByteFields<'_> {
        ByteFields {
            bytes: &self.bytes,
            place: 0,
            at: self.at,
            sizes: self.sizes,
        }
    }

    /// The fields before the checksum in the last four bytes, which is held against them.
    pub fn checked_fields(&self) -> Result<ByteFields<'_>, Hdf5Error> {
        let split = self.bytes.len().checked_sub(4);
        let split = split.ok_or_else(|| Hdf5Error::damaged(self.at, "no room for a checksum"))?;
        let (covered, stored) = self.bytes.split_at(split);
        if lookup3(covered).to_le_bytes() != stored {
            return Err(Hdf5Error::damaged(self.at, "a checksum does not match"));
        }
        Ok(ByteFields {
            bytes: covered,
            ..self.fields()
        })
    }
}

/// Bytes with a place from which the next field is taken.
#[derive(Clone, Debug)]
pub(crate) struct ByteFields<'b> {
    bytes: &'b [u8],
    place: usize,
    /// The file's byte that `bytes` begins with.
    at: u64,
    pub sizes: FieldSizes,
}

impl<'b> ByteFields<'b> {
    /// The place in the file of the next field.
    pub fn offset(&self) -> u64 {
        self.at.saturating_add(self.place as u64)
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.place
    }

    /// An error at the next field.
    pub fn damaged(&self, reason: impl Into<String>) -> Hdf5Error {
        Hdf5Error::damaged(self.offset(), reason)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], Hdf5Error> {
        if count > self.left() {
            let left = self.left();
            return Err(self.damaged(format!("a field of {count} bytes where {left} are left")));
        }
        let taken = &self.bytes[self.place..self.place + count];
        self.place += count;
        Ok(taken)
    }

    /// The next `count` bytes as fields of their own.
    pub fn part(&mut self, count: usize) -> Result<ByteFields<'b>, Hdf5Error> {
        let at = self.offset();
        let bytes = self.bytes(count)?;
        Ok(ByteFields {
            bytes,
            place: 0,
            at,
            sizes: self.sizes,
        })
    }

    /// Other bytes of the same file, at the place of these.
    pub fn with<'o>(&self, bytes: &'o [u8]) -> ByteFields<'o> {
        ByteFields {
            bytes,
            place: 0,
            at: self.offset(),
            sizes: self.sizes,
        }
    }

    /// A copy of all that is left.
    pub fn block(&self) -> ByteBlock {
        ByteBlock {
            at: self.offset(),
            bytes: self.bytes[self.place..].to_vec(),
            sizes: self.sizes,
        }
    }

    /// An unsigned number of 0 to 8 bytes, the lowest first.
    pub fn number(&mut self, bytes: usize) -> Result<u64, Hdf5Error> {
        match bytes {
            8 => return self.u64(),
            9.. => return Err(self.damaged(format!("a number of {bytes} bytes"))),
            _ => {}
        }
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.bytes(bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    pub fn u8(&mut self) -> Result<u8, Hdf5Error> {
        Ok(self.bytes(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Hdf5Error> {
        Ok(self.number(2)? as u16)
    }

    pub fn u32(&mut self) -> Result<u32, Hdf5Error> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn u64(&mut self) -> Result<u64, Hdf5Error> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub fn length(&mut self) -> Result<u64, Hdf5Error> {
        self.number(self.sizes.length_bytes.into())
    }

    /// A length, or nothing where all its bits are set.
    pub fn length_or_none(&mut self) -> Result<Option<u64>, Hdf5Error> {
        let length = self.length()?;
        Ok((length != all_ones(self.sizes.length_bytes)).then_some(length))
    }

    /// A byte of the file, counted from its first; nothing for the undefined address.
    pub fn address(&mut self) -> Result<Option<u64>, Hdf5Error> {
        let offset = self.offset();
        let address = self.number(self.sizes.address_bytes.into())?;
        if address == all_ones(self.sizes.address_bytes) {
            return Ok(None);
        }
        let sum = address.checked_add(self.sizes.base);
        let error = || Hdf5Error::damaged(offset, format!("address {address} is beyond all files"));
        sum.map(Some).ok_or_else(error)
    }

    /// An address that must be defined, of the thing that `name` says.
    pub fn defined_address(&mut self, name: &str) -> Result<u64, Hdf5Error> {
        let offset = self.offset();
        let error = || Hdf5Error::damaged(offset, format!("the address of {name} is undefined"));
        self.address()?.ok_or_else(error)
    }

    pub fn signature(&mut self, expected: &[u8; 4]) -> Result<(), Hdf5Error> {
        let offset = self.offset();
        if self.bytes(4)? != expected {
            let name = String::from_utf8_lossy(expected);
            return Err(Hdf5Error::damaged(offset, format!("no signature {name:?}")));
        }
        Ok(())
    }

    /// A version that must be one of those that this crate reads.
    pub fn version(&mut self, known: &[u8], name: &str) -> Result<u8, Hdf5Error> {
        let version = self.u8()?;
        if !known.contains(&version) {
            return Err(Hdf5Error::unsupported(format!("version {version} of {name}")));
        }
        Ok(version)
    }

    /// Text up to its zero byte; with `padded`, zeros follow until the length is a multiple of 8.
    pub fn terminated_text(&mut self, padded: bool) -> Result<String, Hdf5Error> {
        let tail = &self.bytes[self.place..];
        let end = tail.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| self.damaged("text without an end"))?;
        let text = String::from_utf8_lossy(&tail[..end]).into_owned();
        let whole = if padded { (end + 1).next_multiple_of(8) } else { end + 1 };
        self.bytes(whole)?;
        Ok(text)
    }
}

fn all_ones(bytes: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)))
}

/// Text up to its first zero byte.
pub(crate) fn text_before_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
