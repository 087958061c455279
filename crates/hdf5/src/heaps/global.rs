//! The global heap (specification III.E): collections of objects, in which values of variable length lie.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::base::{ByteBlock, FileView, Hdf5Error};

/// Collections that stay for the next values.
const COLLECTIONS: usize = 4;
/// Bytes of the place of an object in the table of a collection.
const ENTRY_BYTES: usize = 64;

/// A collection and its objects by their numbers.
pub(crate) struct HeapCollection {
    block: ByteBlock,
    objects: HashMap<u16, Range<usize>>,
}

/// The collections used last.
#[derive(Default)]
pub(crate) struct GlobalHeaps(RefCell<Vec<Rc<HeapCollection>>>);

impl GlobalHeaps {
    /// The collection at `at`.
    pub fn collection(&self, view: &FileView<'_>, at: u64) -> Result<Rc<HeapCollection>, Hdf5Error> {
        let mut held = self.0.borrow_mut();
        let collection = match held.iter().position(|collection| collection.block.at == at) {
            Some(place) => held.remove(place),
            None => Rc::new(HeapCollection::read(view, at)?),
        };
        if held.len() == COLLECTIONS {
            held.remove(0);
        }
        held.push(collection.clone());
        Ok(collection)
    }
}

impl HeapCollection {
    fn read(view: &FileView<'_>, at: u64) -> Result<HeapCollection, Hdf5Error> {
        // Heads are as long as with lengths of 8 bytes.
        let head_bytes = (8 + u64::from(view.sizes.length_bytes)).next_multiple_of(8);
        let head = view.block(at, head_bytes)?;
        let mut fields = head.fields();
        fields.signature(b"GCOL")?;
        fields.version(&[1], "global heaps")?;
        fields.bytes(3)?;
        let bytes = fields.length()?;
        let block = view.block(at, bytes.max(head_bytes))?;
        let mut fields = block.fields();
        fields.bytes(head_bytes as usize)?;
        let mut objects = HashMap::new();
        while fields.left() as u64 >= head_bytes {
            let number = fields.u16()?;
            fields.bytes(6)?; // references to the object
            let bytes = fields.length()?;
            fields.bytes(8 - usize::from(view.sizes.length_bytes))?;
            if number == 0 {
                break; // free space to the end
            }
            let start = block.bytes.len() - fields.left();
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= fields.left());
            let bytes = bytes.ok_or_else(|| fields.damaged("an object that leaves its heap"))?;
            fields.bytes(bytes.next_multiple_of(8).min(fields.left()))?;
            if objects.len() == objects.capacity() {
                view.keep(2 * ENTRY_BYTES * objects.len().max(4))?;
            }
            objects.insert(number, start..start + bytes);
        }
        Ok(HeapCollection { block, objects })
    }

    /// The bytes of an object.
    pub fn object(&self, number: u32) -> Result<&[u8], Hdf5Error> {
        let range = u16::try_from(number).ok().and_then(|number| self.objects.get(&number));
        let error = || Hdf5Error::damaged(self.block.at, format!("no object {number} in a global heap"));
        range.map(|range| &self.block.bytes[range.clone()]).ok_or_else(error)
    }
}
