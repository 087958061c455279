//! Object headers (specification IV.A.1), versions 1 and 2: messages in a first block and in continuations.

use crate::base::{ByteBlock, ByteFields, FileView, Hdf5Error, Visits};
use crate::messages::kinds;

/// A flag of a message: its body says where the message is.
const IS_SHARED: u8 = 2;
/// A flag of a message: a reader that does not know the message must not read the object.
const MUST_BE_KNOWN: u8 = 0x80;
/// Bytes of a message in memory, beside its body.
const MESSAGE_BYTES: usize = 64;

/// A message before its body is parsed.
pub(super) struct HeaderMessage {
    pub kind: u16,
    pub is_shared: bool,
    /// The number of an attribute in the order of creation, where the header keeps it.
    pub created: Option<u16>,
    pub body: ByteBlock,
}

/// The messages of an object.
pub(super) struct ObjectHeader {
    pub at: u64,
    pub messages: Vec<HeaderMessage>,
}

/// Blocks of a header that are still to be read.
struct HeaderParts {
    version: u8,
    has_order: bool,
    continuations: Vec<(u64, u64)>,
    messages: Vec<HeaderMessage>,
}

impl ObjectHeader {
    /// The header at `at`.
    pub fn read(view: &FileView<'_>, at: u64) -> Result<ObjectHeader, Hdf5Error> {
        let mut visits = Visits::default();
        let first = view.block(at, 4)?;
        let mut parts = if first.bytes == b"OHDR" {
            HeaderParts::of_new(view, at, &mut visits)?
        } else {
            HeaderParts::of_old(view, at, &mut visits)?
        };
        while let Some((at, bytes)) = parts.continuations.pop() {
            visits.enter(view, at, bytes)?;
            let block = view.block(at, bytes)?;
            if parts.version == 1 {
                parts.add(view, &mut block.fields())?;
            } else {
                let mut fields = block.checked_fields()?;
                fields.signature(b"OCHK")?;
                parts.add(view, &mut fields)?;
            }
        }
        let messages = parts.messages;
        Ok(ObjectHeader { at, messages })
    }

    /// The first message of a kind.
    pub fn message(&self, kind: u16) -> Option<&HeaderMessage> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// The first message of a kind that must be there.
    pub fn required(&self, kind: u16, name: &str) -> Result<&HeaderMessage, Hdf5Error> {
        self.message(kind)
            .ok_or_else(|| Hdf5Error::damaged(self.at, format!("an object without {name}")))
    }
}

impl HeaderParts {
    /// Version 1: a head of 12 bytes, filled up to 16, then so many bytes of messages.
    fn of_old(view: &FileView<'_>, at: u64, visits: &mut Visits) -> Result<HeaderParts, Hdf5Error> {
        let head = view.block(at, 16)?;
        let mut fields = head.fields();
        if fields.u8()? != 1 {
            return Err(Hdf5Error::damaged(at, "no object header"));
        }
        fields.bytes(7)?; // counts of messages and references
        let bytes = u64::from(fields.u32()?);
        visits.enter(view, at, 16 + bytes)?;
        let mut parts = HeaderParts {
            version: 1,
            has_order: false,
            continuations: Vec::new(),
            messages: Vec::new(),
        };
        parts.add(view, &mut view.block(at + 16, bytes)?.fields())?;
        Ok(parts)
    }

    /// Version 2: flags say which fields there are; a checksum stands at the end of each block.
    fn of_new(view: &FileView<'_>, at: u64, visits: &mut Visits) -> Result<HeaderParts, Hdf5Error> {
        let head = view.block(at, 6)?;
        let mut fields = head.fields();
        fields.signature(b"OHDR")?;
        fields.version(&[2], "object headers")?;
        let flags = fields.u8()?;
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let limits = if flags & 0x10 != 0 { 4 } else { 0 };
        let size_bytes = 1 << (flags & 3);
        let head_bytes = 6 + times + limits + size_bytes;
        let size = view
            .block(at + head_bytes - size_bytes, size_bytes)?
            .fields()
            .number(size_bytes as usize)?;
        let bytes = size.checked_add(head_bytes + 4);
        let bytes = bytes.ok_or_else(|| Hdf5Error::damaged(at, format!("a header of {size} bytes")))?;
        visits.enter(view, at, bytes)?;
        let block = view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        fields.bytes(head_bytes as usize)?;
        let has_order = flags & 4 != 0;
        let mut parts = HeaderParts {
            version: 2,
            has_order,
            continuations: Vec::new(),
            messages: Vec::new(),
        };
        parts.add(view, &mut fields)?;
        Ok(parts)
    }

    /// Adds the messages of a block. Fewer bytes than the head of a message are a gap.
    fn add(&mut self, view: &FileView<'_>, fields: &mut ByteFields<'_>) -> Result<(), Hdf5Error> {
        let head_bytes = match self.version {
            1 => 8,
            _ => 4 + if self.has_order { 2 } else { 0 },
        };
        while fields.left() >= head_bytes {
            let kind = if self.version == 1 {
                fields.u16()?
            } else {
                u16::from(fields.u8()?)
            };
            let bytes = usize::from(fields.u16()?);
            let flags = fields.u8()?;
            let mut created = None;
            if self.version == 1 {
                fields.bytes(3)?;
            } else if self.has_order {
                created = Some(fields.u16()?);
            }
            let mut body = fields.part(bytes)?;
            if kind == kinds::CONTINUATION {
                view.keep(16)?;
                self.continuations
                    .push((body.defined_address("a continuation")?, body.length()?));
            } else if kind > kinds::LAST && flags & MUST_BE_KNOWN != 0 {
                return Err(Hdf5Error::unsupported(format!("message {kind:#x} of an object")));
            } else if kind != 0 {
                view.keep(MESSAGE_BYTES + bytes)?;
                let is_shared = flags & IS_SHARED != 0;
                self.messages.push(HeaderMessage {
                    kind,
                    is_shared,
                    created,
                    body: body.block(),
                });
            }
        }
        Ok(())
    }
}
