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
