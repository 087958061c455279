//! B-trees of version 1 (specification III.A.1): `TREE`, node type, level, entries, two siblings, then keys and
//! children by turns.

use crate::base::{ByteFields, FileView, Hdf5Error, Visits};

/// Levels of a tree. Nodes have 32 children and more, so no file has as many.
const LEVELS_MAX: u8 = 32;

/// The two uses of such trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeUse {
    Group = 0,
    Chunks = 1,
}

/// A tree, with the bytes of a key.
pub(crate) struct KeyedTree {
    pub of: TreeUse,
    pub key_bytes: usize,
}

impl KeyedTree {
    /// Calls `each` with the key before each child of the leaves, and the child, in the order of the tree.
    pub fn walk(
        &self,
        view: &FileView<'_>,
        root: u64,
        each: &mut dyn FnMut(&mut ByteFields<'_>, u64) -> Result<(), Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        self.node(view, root, None, &mut Visits::default(), each)
    }

    fn node(
        &self,
        view: &FileView<'_>,
        at: u64,
        level: Option<u8>,
        visits: &mut Visits,
        each: &mut dyn FnMut(&mut ByteFields<'_>, u64) -> Result<(), Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        let head_bytes = 8 + 2 * u64::from(view.sizes.address_bytes);
        let head = view.block(at, head_bytes)?;
        let mut fields = head.fields();
        fields.signature(b"TREE")?;
        if fields.u8()? != self.of as u8 {
            return Err(Hdf5Error::damaged(
                at,
                format!("a node that is of no tree of {:?}", self.of),
            ));
        }
        let own_level = fields.u8()?;
        if own_level > LEVELS_MAX || level.is_some_and(|level| level != own_level) {
            return Err(Hdf5Error::damaged(
                at,
                format!("a node of level {own_level}, {level:?} expected"),
            ));
        }
        let entries = u64::from(fields.u16()?);
        let entry_bytes = self.key_bytes as u64 + u64::from(view.sizes.address_bytes);
        let bytes = entries * entry_bytes;
        visits.enter(view, at, head_bytes + bytes)?;
        let block = view.block(at + head_bytes, bytes)?;
        let mut fields = block.fields();
        for _ in 0..entries {
            let mut key = fields.part(self.key_bytes)?;
            let child = fields.defined_address("a child")?;
            if own_level == 0 {
                each(&mut key, child)?;
            } else {
                self.node(view, child, Some(own_level - 1), visits, each)?;
            }
        }
        Ok(())
    }
}
