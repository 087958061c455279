//! Messages with their bodies, which other headers or the file's table of shared messages may hold.

use std::cell::RefCell;

use super::header::{HeaderMessage, ObjectHeader};
use super::superblock::Superblock;
use crate::base::{ByteBlock, ByteFields, FileBytes, FileView, Hdf5Error};
use crate::heaps::{FractalHeap, GlobalHeaps};
use crate::messages::{kinds, parse_datatype, Datatype};

/// Bytes of a datatype in memory for each byte in the file, at most: names of one byte, each with a value of one byte.
const TYPE_BYTES: usize = 48;

/// An index of the table of shared messages: the kinds of messages in it, by bits, and its heap.
struct SharedIndex {
    kinds: u16,
    heap: Option<u64>,
}

/// A file with all that its messages may refer to.
pub(super) struct Metadata<'a> {
    pub view: FileView<'a>,
    pub heaps: GlobalHeaps,
    pub root: u64,
    shared: Vec<SharedIndex>,
    /// The heap of shared messages that was used last, by its address.
    shared_heap: RefCell<Option<(u64, FractalHeap)>>,
}

impl<'a> Metadata<'a> {
    pub fn open(file: &'a dyn FileBytes) -> Result<Metadata<'a>, Hdf5Error> {
        let superblock = Superblock::find(file)?;
        let view = FileView::new(file, superblock.sizes);
        let mut shared = Vec::new();
        if let Some(at) = superblock.extension {
            let extension = ObjectHeader::read(&view, at)?;
            if extension.message(kinds::DRIVER).is_some() {
                return Err(Hdf5Error::unsupported("a file of several parts (driver information)"));
            }
            if let Some(message) = extension.message(kinds::SHARED_TABLE) {
                shared = shared_table(&view, &mut message.body.fields())?;
            }
        }
        Ok(Metadata {
            view,
            heaps: GlobalHeaps::default(),
            root: superblock.root,
            shared,
            shared_heap: RefCell::default(),
        })
    }

    /// The body of a message, wherever it is.
    pub fn body(&self, message: &HeaderMessage) -> Result<ByteBlock, Hdf5Error> {
        if message.is_shared {
            self.shared_body(message.kind, &mut message.body.fields())
        } else {
            Ok(message.body.clone())
        }
    }

    /// The body of a message of which the next fields say where it is (specification IV.A.2, "shared").
    pub fn shared_body(&self, kind: u16, fields: &mut ByteFields<'_>) -> Result<ByteBlock, Hdf5Error> {
        let version = fields.version(&[1, 2, 3], "shared messages")?;
        let place = fields.u8()?;
        if version == 1 {
            fields.bytes(6)?;
        }
        if version == 3 && place == 1 {
            return self.body_in_heap(kind, fields);
        }
        let at = fields.defined_address("a shared message")?;
        let header = ObjectHeader::read(&self.view, at)?;
        let message = header.required(kind, "its shared message")?;
        if message.is_shared {
            return Err(Hdf5Error::damaged(at, "a shared message that is shared itself"));
        }
        Ok(message.body.clone())
    }

    /// The body of a message of the file's table, by its name in the heap.
    pub fn body_in_heap(&self, kind: u16, name: &mut ByteFields<'_>) -> Result<ByteBlock, Hdf5Error> {
        let bit = 1u16.checked_shl(kind.into()).unwrap_or(0);
        let index = self.shared.iter().find(|index| index.kinds & bit != 0);
        let heap = index.and_then(|index| index.heap);
        let heap = heap.ok_or_else(|| name.damaged(format!("no shared messages of kind {kind}")))?;
        let mut held = self.shared_heap.borrow_mut();
        let held = match &mut *held {
            Some((at, held)) if *at == heap => held,
            place => &mut place.insert((heap, FractalHeap::open(&self.view, heap)?)).1,
        };
        held.object(&self.view, name)
    }

    /// The datatype of a message body.
    pub fn datatype(&self, body: &ByteBlock) -> Result<Datatype, Hdf5Error> {
        // Small attributes may share one large type, of which each has a copy.
        self.view.keep(TYPE_BYTES * body.bytes.len())?;
        parse_datatype(&mut body.fields())
    }
}

/// The table of shared messages (specification III.H) that a message of the superblock's extension names.
fn shared_table(view: &FileView<'_>, message: &mut ByteFields<'_>) -> Result<Vec<SharedIndex>, Hdf5Error> {
    message.version(&[0], "tables of shared messages")?;
    let at = message.defined_address("the table of shared messages")?;
    let count = u64::from(message.u8()?);
    let entry = 14 + 2 * u64::from(view.sizes.address_bytes);
    let block = view.block(at, 8 + count * entry)?;
    let mut fields = block.checked_fields()?;
    fields.signature(b"SMTB")?;
    let index = |_| {
        fields.bytes(2)?; // version, and whether the index is a list or a tree
        let kinds = fields.u16()?;
        fields.bytes(10)?; // limits and a count
        fields.address()?;
        Ok(SharedIndex {
            kinds,
            heap: fields.address()?,
        })
    };
    (0..count).map(index).collect()
}
