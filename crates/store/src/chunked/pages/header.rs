//! Headers of pages, and the compact protocol of Thrift, which they and footers are in.

/// Structures within structures that are passed over.
pub(super) const DEPTH_MAX: usize = 16;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    Data,
    /// Levels before what is compressed, of so many bytes.
    Data2 {
        definition_bytes: usize,
        repetition_bytes: usize,
        is_compressed: bool,
    },
    Dictionary,
    /// One that readers may pass over.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub kind: PageKind,
    /// Bytes of the page as it is stored, and as it decompresses.
    pub stored: usize,
    pub plain: usize,
    /// Of the stored bytes.
    pub checksum: Option<u32>,
    pub elements: usize,
    /// How many of them are missing, where that is said.
    pub missing: Option<usize>,
    pub encoding: u64,
    pub level_encoding: u64,
}

/// Bytes of Thrift that are left.
pub(super) struct ThriftFields<'a> {
    rest: &'a [u8],
}

/// A field's number and its type.
pub(super) type FieldKey = (i64, u8);

const TRUE: u8 = 1;
const FALSE: u8 = 2;
/// Of 32 bits.
pub(super) const INTEGER: u8 = 5;
/// Of 64 bits.
pub(super) const LONG: u8 = 6;
pub(super) const TEXT: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCTURE: u8 = 12;

fn damaged() -> String {
    "parquet: the header of a page is damaged".into()
}

pub(super) fn damaged_footer() -> String {
    "the footer is damaged".into()
}

impl<'a> ThriftFields<'a> {
    pub fn new(bytes: &'a [u8]) -> ThriftFields<'a> {
        ThriftFields { rest: bytes }
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let (number, rest) = varint(self.rest).ok_or_else(damaged)?;
        self.rest = rest;
        Ok(number)
    }

    pub fn integer(&mut self) -> Result<i64, String> {
        self.varint().map(unzigzag)
    }

    /// A length, or another number that is not negative.
    fn count(&mut self) -> Result<usize, String> {
        usize::try_from(self.integer()?).map_err(|_| damaged())
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), String> {
        let count = usize::try_from(count).map_err(|_| damaged())?;
        self.rest = self.rest.get(count..).ok_or_else(damaged)?;
        Ok(())
    }

    /// The next field of a structure, after the one of number `before`; nothing at its end.
    fn next(&mut self, before: i64) -> Result<Option<FieldKey>, String> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let number = match head >> 4 {
            0 => self.integer()?,
            more => before.checked_add(i64::from(more)).ok_or_else(damaged)?,
        };
        Ok(Some((number, head & 15)))
    }

    /// Gives each field of a structure to `take`, which says whether it took its value.
    pub fn each(
        &mut self,
        depth: usize,
        take: &mut dyn FnMut(&mut ThriftFields<'a>, FieldKey) -> Result<bool, String>,
    ) -> Result<(), String> {
        let mut number = 0;
        while let Some(key) = self.next(number)? {
            number = key.0;
            if !take(self, key)? {
                self.skip(key.1, depth)?;
            }
        }
        Ok(())
    }

    /// How many elements a list has, and their type.
    fn list(&mut self) -> Result<(u64, u8), String> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        Ok((count, head & 15))
    }

    /// Has `take` read each structure of a list.
    pub fn structures(
        &mut self,
        take: &mut dyn FnMut(&mut ThriftFields<'a>) -> Result<(), String>,
    ) -> Result<(), String> {
        let (count, kind) = self.list()?;
        if count > 0 && kind != STRUCTURE {
            return Err(damaged());
        }
        (0..count).try_for_each(|_| take(self))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        let deeper = depth.checked_sub(1).ok_or_else(damaged)?;
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.skip_bytes(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip_bytes(8),
            8 => {
                let count = self.varint()?;
                self.skip_bytes(count)
            }
            9 | 10 => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    // Truths in lists have a byte each.
                    match kind {
                        TRUE | FALSE => self.skip_bytes(1)?,
                        kind => self.skip(kind, deeper)?,
                    }
                }
                Ok(())
            }
            STRUCTURE => self.each(deeper, &mut |_, _| Ok(false)),
            _ => Err(damaged()),
        }
    }
}

pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A number of seven bits a byte, and what comes behind it.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 127) << (7 * at);
        if byte < 128 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

/// The header at the beginning of some bytes, and what comes behind it.
pub(super) fn page_header(bytes: &[u8]) -> Result<(PageHeader, &[u8]), String> {
    let mut fields = ThriftFields::new(bytes);
    let mut header = PageHeader {
        kind: PageKind::Other,
        stored: 0,
        plain: 0,
        checksum: None,
        elements: 0,
        missing: None,
        encoding: 0,
        level_encoding: 3,
    };
    let mut kind = None;
    fields.each(DEPTH_MAX, &mut |fields, key| {
        match key {
            (1, 5) => kind = Some(fields.integer()?),
            (2, 5) => header.plain = fields.count()?,
            (3, 5) => header.stored = fields.count()?,
            (4, 5) => header.checksum = Some(fields.integer()? as u32),
            (5 | 7, STRUCTURE) => data_header(fields, &mut header)?,
            (8, STRUCTURE) => data_header_2(fields, &mut header)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    header.kind = match (kind.ok_or_else(damaged)?, header.kind) {
        (0, _) => PageKind::Data,
        (2, _) => PageKind::Dictionary,
        (3, kind @ PageKind::Data2 { .. }) => kind,
        (3, _) => return Err(damaged()),
        _ => PageKind::Other,
    };
    Ok((header, fields.rest))
}

/// Fields of a page of data, or of a dictionary, whose first two are the same.
fn data_header(fields: &mut ThriftFields<'_>, header: &mut PageHeader) -> Result<(), String> {
    fields.each(DEPTH_MAX, &mut |fields, key| {
        match key {
            (1, 5) => header.elements = fields.count()?,
            (2, 5) => header.encoding = fields.integer()? as u64,
            (3, 5) => header.level_encoding = fields.integer()? as u64,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn data_header_2(fields: &mut ThriftFields<'_>, header: &mut PageHeader) -> Result<(), String> {
    let (mut definition_bytes, mut repetition_bytes, mut is_compressed) = (0, 0, true);
    fields.each(DEPTH_MAX, &mut |fields, key| {
        match key {
            (1, 5) => header.elements = fields.count()?,
            (2, 5) => header.missing = Some(fields.count()?),
            (4, 5) => header.encoding = fields.integer()? as u64,
            (5, 5) => definition_bytes = fields.count()?,
            (6, 5) => repetition_bytes = fields.count()?,
            (7, TRUE | FALSE) => is_compressed = key.1 == TRUE,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    header.kind = PageKind::Data2 {
        definition_bytes,
        repetition_bytes,
        is_compressed,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_as_thrift_writes_it() {
        // Data, 16 bytes, 9 of them stored, checksum -2; two elements, dictionary; statistics with text; then more.
        let bytes = [
            0x15, 0, 0x15, 32, 0x15, 18, 0x15, 3, 0x1c, 0x15, 4, 0x15, 16, 0x15, 6, 0x15, 6, 0x1c, 0x18, 2, b'a', b'b',
            0, 0, 0, 77,
        ];
        let (header, rest) = page_header(&bytes).unwrap();
        let expected = PageHeader {
            kind: PageKind::Data,
            stored: 9,
            plain: 16,
            checksum: Some(u32::MAX - 1),
            elements: 2,
            missing: None,
            encoding: 8,
            level_encoding: 3,
        };
        assert_eq!((header, rest), (expected, &[77u8][..]));
        for cut in 0..bytes.len() - 1 {
            assert!(page_header(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn lists_in_lists_are_not_followed_for_ever() {
        assert!(page_header(&[0x19; 1000]).is_err());
        assert!(page_header(&[0x1c; 1000]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = page_header(&bytes);
        }
    }
}
