//! The local heap (specification III.D): names of the members of an old group, each with a zero byte behind.

use crate::base::{text_before_zero, ByteBlock, FileView, Hdf5Error};

/// The names of a group.
pub(crate) struct LocalHeap {
    names: ByteBlock,
}

impl LocalHeap {
    /// The heap with its header at `at`.
    pub fn open(view: &FileView<'_>, at: u64) -> Result<LocalHeap, Hdf5Error> {
        let sizes = view.sizes;
        let bytes = 8 + 2 * u64::from(sizes.length_bytes) + u64::from(sizes.address_bytes);
        let head = view.block(at, bytes)?;
        let mut fields = head.fields();
        fields.signature(b"HEAP")?;
        fields.version(&[0], "local heaps")?;
        fields.bytes(3)?;
        let bytes = fields.length()?;
        fields.length()?; // the first free block
        let data = fields.defined_address("the names of a group")?;
        Ok(LocalHeap {
            names: view.block(data, bytes)?,
        })
    }

    /// The text at an offset.
    pub fn text(&self, offset: u64) -> Result<String, Hdf5Error> {
        let place = usize::try_from(offset).ok();
        let bytes = place.and_then(|place| self.names.bytes.get(place..));
        let error = || Hdf5Error::damaged(self.names.at, format!("a name at {offset} is outside of its heap"));
        Ok(text_before_zero(bytes.ok_or_else(error)?))
    }
}
