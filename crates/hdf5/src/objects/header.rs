//! Object headers (specification IV.A.1), versions 1 and 2: messages in a first block and in continuations.

use std::ops::ControlFlow;

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

/// A message where it lies.
pub(super) struct MessageHead {
    pub kind: u16,
    is_shared: bool,
    created: Option<u16>,
}

/// The function that a walk calls with each message, until it breaks.
type MessageAction<'c> = dyn FnMut(MessageHead, ByteFields<'_>) -> Result<ControlFlow<()>, Hdf5Error> + 'c;

/// A way through the blocks of a header.
struct HeaderWalk<'w, 'a> {
    view: &'w FileView<'a>,
    version: u8,
    has_order: bool,
    /// Blocks that are still to be read.
    continuations: Vec<(u64, u64)>,
    visits: Visits,
}

impl ObjectHeader {
    /// The header at `at`.
    pub fn read(view: &FileView<'_>, at: u64) -> Result<ObjectHeader, Hdf5Error> {
        let mut messages = Vec::new();
        each_message(view, at, &mut |head, body| {
            view.keep(MESSAGE_BYTES + body.left())?;
            let MessageHead {
                kind,
                is_shared,
                created,
            } = head;
            messages.push(HeaderMessage {
                kind,
                is_shared,
                created,
                body: body.block(),
            });
            Ok(ControlFlow::Continue(()))
        })?;
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

/// Calls `each` with the messages of the header at `at`, until it breaks.
pub(super) fn each_message(view: &FileView<'_>, at: u64, each: &mut MessageAction<'_>) -> Result<(), Hdf5Error> {
    let continuations = Vec::new();
    let mut walk = HeaderWalk {
        view,
        version: 1,
        has_order: false,
        continuations,
        visits: Visits::default(),
    };
    let is_new = view.block(at, 4)?.bytes == b"OHDR";
    let mut flow = if is_new {
        walk.first_new(at, each)?
    } else {
        walk.first_old(at, each)?
    };
    while flow.is_continue() {
        let Some((at, bytes)) = walk.continuations.pop() else {
            break;
        };
        walk.visits.enter(view, at, bytes)?;
        let block = view.block(at, bytes)?;
        let mut fields = if is_new {
            block.checked_fields()?
        } else {
            block.fields()
        };
        if is_new {
            fields.signature(b"OCHK")?;
        }
        flow = walk.messages(&mut fields, each)?;
    }
    Ok(())
}

impl HeaderWalk<'_, '_> {
    /// Version 1: a head of 12 bytes, filled up to 16, then so many bytes of messages.
    fn first_old(&mut self, at: u64, each: &mut MessageAction<'_>) -> Result<ControlFlow<()>, Hdf5Error> {
        let head = self.view.block(at, 16)?;
        let mut fields = head.fields();
        if fields.u8()? != 1 {
            return Err(Hdf5Error::damaged(at, "no object header"));
        }
        fields.bytes(7)?; // counts of messages and references
        let bytes = u64::from(fields.u32()?);
        self.visits.enter(self.view, at, 16 + bytes)?;
        let block = self.view.block(at + 16, bytes)?;
        self.messages(&mut block.fields(), each)
    }

    /// Version 2: flags say which fields there are; a checksum stands at the end of each block.
    fn first_new(&mut self, at: u64, each: &mut MessageAction<'_>) -> Result<ControlFlow<()>, Hdf5Error> {
        let head = self.view.block(at, 6)?;
        let mut fields = head.fields();
        fields.signature(b"OHDR")?;
        self.version = fields.version(&[2], "object headers")?;
        let flags = fields.u8()?;
        self.has_order = flags & 4 != 0;
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let limits = if flags & 0x10 != 0 { 4 } else { 0 };
        let size_bytes = 1 << (flags & 3);
        let head_bytes = 6 + times + limits + size_bytes;
        let size = self
            .view
            .block(at + head_bytes - size_bytes, size_bytes)?
            .fields()
            .number(size_bytes as usize)?;
        let bytes = size.checked_add(head_bytes + 4);
        let bytes = bytes.ok_or_else(|| Hdf5Error::damaged(at, format!("a header of {size} bytes")))?;
        self.visits.enter(self.view, at, bytes)?;
        let block = self.view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        fields.bytes(head_bytes as usize)?;
        self.messages(&mut fields, each)
    }

    /// The messages of a block. Fewer bytes than the head of a message are a gap.
    fn messages(
        &mut self,
        fields: &mut ByteFields<'_>,
        each: &mut MessageAction<'_>,
    ) -> Result<ControlFlow<()>, Hdf5Error> {
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
                self.view.keep(16)?;
                self.continuations
                    .push((body.defined_address("a continuation")?, body.length()?));
            } else if kind > kinds::LAST && flags & MUST_BE_KNOWN != 0 {
                return Err(Hdf5Error::unsupported(format!("message {kind:#x} of an object")));
            } else if kind != 0 {
                let is_shared = flags & IS_SHARED != 0;
                if each(
                    MessageHead {
                        kind,
                        is_shared,
                        created,
                    },
                    body,
                )?
                .is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
