//! Parts of a file, read to parts of one buffer.

use super::{File, Io, Queue};
use crate::{AlignedBuffer, StoreError};

/// A part of a buffer, of whole pages, and where in a file lies what it is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPart {
    pub place: usize,
    pub bytes: usize,
    pub offset: u64,
}

impl Io {
    /// Reads parts of a file, all under way at once, to parts of the buffer, which ascend and do not overlap. Calls `each` with the
    /// number of every part, in any order, when it has come or failed; gives the buffer back.
    ///
    /// # Errors
    /// The first that a part met, when all others are over.
    pub fn read_parts(
        &self,
        file: &File,
        buffer: AlignedBuffer,
        parts: &[PlacedPart],
        mut each: impl FnMut(usize, Result<&[u8], StoreError>) -> Result<(), StoreError>,
    ) -> Result<AlignedBuffer, StoreError> {
        let mut queue = Queue::new(self);
        // What lies before each part, and behind the last; and the parts themselves, when they have come.
        let (mut between, mut here) = (Vec::with_capacity(parts.len()), Vec::new());
        here.resize_with(parts.len(), || None);
        let (mut rest, mut at) = (buffer, 0);
        for (number, part) in parts.iter().enumerate() {
            let (before, behind) = rest.split_at(part.place - at);
            let (piece, behind) = behind.split_at(part.bytes);
            between.push(before);
            queue.read(file, vec![piece], part.offset, part.bytes, number as u64);
            (rest, at) = (behind, part.place + part.bytes);
        }
        queue.submit();
        let mut all = Ok(());
        while queue.under_way() > 0 {
            let Some(done) = queue.next_read(true) else { break };
            let number = done.token as usize;
            here[number] = done.buffers.into_iter().next();
            let piece = here[number].as_deref().unwrap_or_default();
            let outcome = each(number, done.outcome.map(|()| piece));
            all = all.and(outcome);
        }
        all?;
        let mut whole: Option<AlignedBuffer> = None;
        let pieces = between.into_iter().zip(here.into_iter().flatten());
        for piece in pieces.flat_map(|(before, piece)| [before, piece]).chain([rest]) {
            whole = Some(match whole {
                Some(whole) => whole.join(piece),
                None => piece,
            });
        }
        Ok(whole.expect("there is what is behind all parts"))
    }
}
