//! The superblock (specification II.A), versions 0 to 3: sizes of numbers, and where the root is.

use crate::base::{ByteFields, FieldSizes, FileBytes, FileView, Hdf5Error};

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// The first place of a superblock behind a user block; the others are twice the one before.
const USER_BLOCK_MIN: u64 = 512;

/// The head of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Superblock {
    pub sizes: FieldSizes,
    /// The header of the root group.
    pub root: u64,
    /// The header of an object that holds messages about the file.
    pub extension: Option<u64>,
}

impl Superblock {
    /// Looks for the superblock at 0, 512, 1024 and so on.
    pub fn find(file: &dyn FileBytes) -> Result<Superblock, Hdf5Error> {
        let sizes = FieldSizes {
            address_bytes: 8,
            length_bytes: 8,
            base: 0,
        };
        let view = FileView::new(file, sizes);
        let mut at: u64 = 0;
        while view.check(at, SIGNATURE.len() as u64).is_ok() {
            if view.block(at, SIGNATURE.len() as u64)?.bytes == SIGNATURE {
                return Superblock::parse(&view, at);
            }
            at = (2 * at).max(USER_BLOCK_MIN);
        }
        Err(Hdf5Error::damaged(0, "no HDF5 file: no superblock"))
    }

    fn parse(view: &FileView<'_>, at: u64) -> Result<Superblock, Hdf5Error> {
        // The longest, with sizes of 8 bytes, has 100 bytes; short files end before.
        let longest = 100.min(view.length() - at);
        let block = view.block(at, longest)?;
        let mut fields = block.fields();
        fields.bytes(SIGNATURE.len())?;
        match fields.version(&[0, 1, 2, 3], "superblocks")? {
            version @ (0 | 1) => old_superblock(view, at, version, fields),
            _ => new_superblock(view, at, fields),
        }
    }
}

fn set_sizes(fields: &mut ByteFields<'_>, base: u64) -> Result<(), Hdf5Error> {
    let (address_bytes, length_bytes) = (fields.u8()?, fields.u8()?);
    let known = |bytes: u8| matches!(bytes, 2 | 4 | 8);
    if !known(address_bytes) || !known(length_bytes) {
        let sizes = format!("addresses of {address_bytes} and lengths of {length_bytes} bytes");
        return Err(Hdf5Error::unsupported(sizes));
    }
    fields.sizes = FieldSizes {
        address_bytes,
        length_bytes,
        base,
    };
    Ok(())
}

fn old_superblock(
    view: &FileView<'_>,
    at: u64,
    version: u8,
    mut fields: ByteFields<'_>,
) -> Result<Superblock, Hdf5Error> {
    fields.bytes(4)?; // versions of parts
    set_sizes(&mut fields, at)?;
    fields.bytes(if version == 0 { 9 } else { 13 })?; // children of nodes, flags
    let base = stored_base(&mut fields)?;
    let extension = fields.address()?;
    check_end(view, base, &mut fields)?;
    if fields.address()?.is_some() {
        return Err(Hdf5Error::unsupported("a file of several parts (driver information)"));
    }
    fields.bytes(fields.sizes.address_bytes.into())?; // the place of an empty name
    let root = fields.defined_address("the root group")?;
    Ok(Superblock {
        sizes: fields.sizes,
        root,
        extension,
    })
}

fn new_superblock(view: &FileView<'_>, at: u64, mut fields: ByteFields<'_>) -> Result<Superblock, Hdf5Error> {
    set_sizes(&mut fields, at)?;
    let bytes = 16 + 4 * u64::from(fields.sizes.address_bytes);
    view.block(at, bytes)?.checked_fields()?;
    fields.bytes(1)?; // whether the file is open elsewhere
    let base = stored_base(&mut fields)?;
    let extension = fields.address()?;
    check_end(view, base, &mut fields)?;
    let root = fields.defined_address("the root group")?;
    Ok(Superblock {
        sizes: fields.sizes,
        root,
        extension,
    })
}

/// The base address as stored. Addresses count from the superblock, wherever a user block has moved it since.
fn stored_base(fields: &mut ByteFields<'_>) -> Result<u64, Hdf5Error> {
    fields.number(fields.sizes.address_bytes.into())
}

/// Holds the end of the file, which counts from where the base was, against the length.
fn check_end(view: &FileView<'_>, base: u64, fields: &mut ByteFields<'_>) -> Result<(), Hdf5Error> {
    let offset = fields.offset();
    let stored = fields.number(fields.sizes.address_bytes.into())?;
    let end = stored
        .checked_sub(base)
        .and_then(|bytes| bytes.checked_add(fields.sizes.base));
    let end = end.ok_or_else(|| Hdf5Error::damaged(offset, format!("an end at {stored} with a base at {base}")))?;
    if end > view.length() {
        let reason = format!(
            "the file has {} bytes, its superblock says {end}: cut off",
            view.length()
        );
        return Err(Hdf5Error::damaged(offset, reason));
    }
    Ok(())
}
