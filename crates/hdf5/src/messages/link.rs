//! The link message (specification IV.A.2.g): a name in a group and what it stands for.

use crate::base::{text_before_zero, ByteFields, Hdf5Error};

/// A name and its target.
#[derive(Clone, Debug)]
pub(crate) struct LinkMessage {
    pub name: String,
    /// The number of the link in the order of creation, where the group has one.
    pub created: Option<u64>,
    pub target: LinkTarget,
}

/// The thing that a link stands for.
#[derive(Clone, Debug)]
pub(crate) enum LinkTarget {
    Object(u64),
    /// A path.
    Soft(String),
    External {
        file: String,
        path: String,
    },
}

impl LinkMessage {
    pub fn parse(fields: &mut ByteFields<'_>) -> Result<LinkMessage, Hdf5Error> {
        fields.version(&[1], "links")?;
        let flags = fields.u8()?;
        let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
        let created = if flags & 4 != 0 { Some(fields.u64()?) } else { None };
        if flags & 16 != 0 {
            fields.u8()?; // the character set: names are read as UTF-8, which ASCII is
        }
        let bytes = fields.number(1 << (flags & 3))?;
        let bytes = usize::try_from(bytes).map_err(|_| fields.damaged(format!("a name of {bytes} bytes")))?;
        let name = String::from_utf8_lossy(fields.bytes(bytes)?).into_owned();
        let target = match kind {
            0 => LinkTarget::Object(fields.defined_address("a link")?),
            1 => {
                let bytes = fields.u16()?;
                LinkTarget::Soft(text_before_zero(fields.bytes(bytes.into())?))
            }
            64 => {
                let bytes = fields.u16()?;
                let mut value = fields.part(bytes.into())?;
                value.version(&[0], "external links")?;
                LinkTarget::External {
                    file: value.terminated_text(false)?,
                    path: value.terminated_text(false)?,
                }
            }
            kind => return Err(Hdf5Error::unsupported(format!("links of type {kind}"))),
        };
        Ok(LinkMessage { name, created, target })
    }
}
