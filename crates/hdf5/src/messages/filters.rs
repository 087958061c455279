//! The pipeline of filters (specification IV.A.2.l), versions 1 and 2.

use crate::base::{text_before_zero, ByteFields, Hdf5Error};

/// Filters of a pipeline, as the format has it.
const FILTERS_MAX: usize = 32;
/// The first number of filters that libraries beside HDF5's own register.
const REGISTERED: u16 = 256;

/// One filter of the pipeline of a dataset; the first is applied first when chunks are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The number that the HDF Group registered for the filter.
    pub id: u16,
    /// The name in the file, or else the common name of the number; empty where neither is known.
    pub name: String,
    /// Numbers that the filter is set by.
    pub values: Vec<u32>,
    /// Chunks that the filter could not be applied to are stored without it, which their masks say.
    pub is_optional: bool,
}

/// The filters of the message at the next field.
pub(crate) fn parse_filters(fields: &mut ByteFields<'_>) -> Result<Vec<Filter>, Hdf5Error> {
    let version = fields.version(&[1, 2], "filter pipelines")?;
    let count = usize::from(fields.u8()?);
    if count > FILTERS_MAX {
        return Err(fields.damaged(format!("{count} filters, {FILTERS_MAX} at most")));
    }
    if version == 1 {
        fields.bytes(6)?;
    }
    let filter = |_| {
        let id = fields.u16()?;
        let name_bytes = if version == 1 || id >= REGISTERED {
            fields.u16()?
        } else {
            0
        };
        let flags = fields.u16()?;
        let count = usize::from(fields.u16()?);
        let padded = if version == 1 {
            name_bytes.next_multiple_of(8)
        } else {
            name_bytes
        };
        let name = text_before_zero(fields.bytes(padded.into())?);
        // A list grows only with the fields that it is read from.
        let values = (0..count).map(|_| fields.u32()).collect::<Result<Vec<u32>, _>>()?;
        if version == 1 && count % 2 == 1 {
            fields.u32()?;
        }
        let name = if name.is_empty() { common_name(id).into() } else { name };
        Ok(Filter {
            id,
            name,
            values,
            is_optional: flags & 1 != 0,
        })
    };
    (0..count).map(filter).collect()
}

/// Names of filters that files mostly do not name.
fn common_name(id: u16) -> &'static str {
    match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        307 => "bzip2",
        32000 => "lzf",
        32001 => "blosc",
        32004 => "lz4",
        32008 => "bitshuffle",
        32013 => "zfp",
        32015 => "zstd",
        32026 => "blosc2",
        _ => "",
    }
}
