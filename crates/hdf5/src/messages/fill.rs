//! Fill values (specification IV.A.2.e and f).

use crate::base::{ByteFields, Hdf5Error};

/// The value of the fill message, versions 1 to 3; nothing for zeros or an undefined value.
pub(crate) fn parse_fill(fields: &mut ByteFields<'_>) -> Result<Option<Vec<u8>>, Hdf5Error> {
    let version = fields.version(&[1, 2, 3], "fill values")?;
    let has_value = if version == 3 {
        fields.u8()? & 0x20 != 0
    } else {
        fields.bytes(2)?; // times of allocation and of writing
        let is_defined = fields.u8()? != 0;
        version == 1 && fields.left() >= 4 || is_defined
    };
    if !has_value {
        return Ok(None);
    }
    parse_old_fill(fields)
}

/// The value of the old fill message: its size, which is signed, and its bytes.
pub(crate) fn parse_old_fill(fields: &mut ByteFields<'_>) -> Result<Option<Vec<u8>>, Hdf5Error> {
    let bytes = fields.u32()?;
    if bytes == 0 || bytes == u32::MAX {
        return Ok(None);
    }
    Ok(Some(fields.bytes(bytes as usize)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::parse_fill;
    use crate::base::{ByteBlock, FieldSizes};

    #[test]
    fn values_are_there_where_their_version_says_so() {
        let cases: [(&[u8], Option<&[u8]>); 6] = [
            (&[1, 2, 2, 0, 2, 0, 0, 0, 5, 6], Some(&[5, 6])),
            (&[1, 2, 2, 1, 0, 0, 0, 0], None),
            (&[2, 2, 2, 0], None),
            (&[2, 2, 2, 1, 1, 0, 0, 0, 9], Some(&[9])),
            (&[3, 0x2a, 1, 0, 0, 0, 4], Some(&[4])),
            (&[3, 0x1a], None),
        ];
        for (bytes, value) in cases {
            let sizes = FieldSizes {
                address_bytes: 8,
                length_bytes: 8,
                base: 0,
            };
            let block = ByteBlock {
                at: 0,
                bytes: bytes.to_vec(),
                sizes,
            };
            let parsed = parse_fill(&mut block.fields()).expect("a fill value");
            assert_eq!(parsed.as_deref(), value, "{bytes:?}");
        }
    }
}
