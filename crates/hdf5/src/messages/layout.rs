//! The layout message (specification IV.A.2.i), versions 1 to 5: where the data of a dataset is.

use super::AXES_MAX;
use crate::base::{ByteFields, Hdf5Error};

/// The place of the data, before it is held against shape and type.
#[derive(Clone, Debug)]
pub(crate) enum LayoutMessage {
    Compact(Vec<u8>),
    /// The bytes are known from version 3 on.
    Contiguous {
        at: Option<u64>,
        bytes: Option<u64>,
    },
    Chunked(ChunkLayout),
    Virtual,
}

/// Chunks of one shape, with an index that says where each is.
#[derive(Clone, Debug)]
pub(crate) struct ChunkLayout {
    /// Elements of a chunk along each axis.
    pub shape: Vec<u64>,
    pub element_bytes: u64,
    pub edges_unfiltered: bool,
    /// The index, or its only chunk, unless nothing has been stored yet.
    pub at: Option<u64>,
    pub index: ChunkIndexKind,
}

/// The kinds of index, each with what the message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkIndexKind {
    KeyedTree,
    /// Bytes and filter mask of the chunk, where it is filtered.
    Single {
        filtered: Option<(u64, u32)>,
    },
    Implicit,
    FixedArray,
    ExtensibleArray,
    RecordTree,
}

impl LayoutMessage {
    pub fn parse(fields: &mut ByteFields<'_>) -> Result<LayoutMessage, Hdf5Error> {
        let version = fields.version(&[1, 2, 3, 4, 5], "data layouts")?;
        if version < 3 {
            return old_layout(fields);
        }
        match fields.u8()? {
            0 => {
                let bytes = fields.u16()?;
                Ok(LayoutMessage::Compact(fields.bytes(bytes.into())?.to_vec()))
            }
            1 => Ok(LayoutMessage::Contiguous {
                at: fields.address()?,
                bytes: Some(fields.length()?),
            }),
            2 if version == 3 => {
                let axes = axes_of_chunks(fields.u8()?, fields)?;
                let at = fields.address()?;
                keyed_chunks(at, axes, fields)
            }
            2 => indexed_chunks(fields),
            3 => Ok(LayoutMessage::Virtual),
            class => Err(fields.damaged(format!("layout class {class}"))),
        }
    }
}

/// Axes of chunks: the message counts the bytes of an element as one more.
fn axes_of_chunks(count: u8, fields: &ByteFields<'_>) -> Result<usize, Hdf5Error> {
    let axes = usize::from(count)
        .checked_sub(1)
        .filter(|axes| (1..=AXES_MAX).contains(axes));
    axes.ok_or_else(|| fields.damaged(format!("chunks of {count} dimensions")))
}

/// Chunks with a B-tree of version 1, from their shape on.
fn keyed_chunks(at: Option<u64>, axes: usize, fields: &mut ByteFields<'_>) -> Result<LayoutMessage, Hdf5Error> {
    let shape = (0..axes)
        .map(|_| Ok(u64::from(fields.u32()?)))
        .collect::<Result<Vec<u64>, Hdf5Error>>()?;
    Ok(LayoutMessage::Chunked(ChunkLayout {
        shape,
        element_bytes: u64::from(fields.u32()?),
        edges_unfiltered: false,
        at,
        index: ChunkIndexKind::KeyedTree,
    }))
}

fn old_layout(fields: &mut ByteFields<'_>) -> Result<LayoutMessage, Hdf5Error> {
    let dimensions = fields.u8()?;
    let class = fields.u8()?;
    fields.bytes(5)?;
    match class {
        0 => {
            fields.bytes(4 * usize::from(dimensions))?;
            let bytes = fields.u32()?;
            Ok(LayoutMessage::Compact(fields.bytes(bytes as usize)?.to_vec()))
        }
        1 => Ok(LayoutMessage::Contiguous {
            at: fields.address()?,
            bytes: None,
        }),
        2 => {
            let at = fields.address()?;
            keyed_chunks(at, axes_of_chunks(dimensions, fields)?, fields)
        }
        class => Err(fields.damaged(format!("layout class {class}"))),
    }
}

/// Chunks of versions 4 and 5: flags, shape in numbers of a size of its own, and the kind of index with its parameters,
/// which the index repeats.
fn indexed_chunks(fields: &mut ByteFields<'_>) -> Result<LayoutMessage, Hdf5Error> {
    let flags = fields.u8()?;
    if flags & !3 != 0 {
        return Err(Hdf5Error::unsupported(format!("flags {flags:#x} of chunks")));
    }
    let axes = axes_of_chunks(fields.u8()?, fields)?;
    let side_bytes = usize::from(fields.u8()?);
    if !(1..=8).contains(&side_bytes) {
        return Err(fields.damaged(format!("sides of chunks in {side_bytes} bytes")));
    }
    let shape = (0..axes)
        .map(|_| fields.number(side_bytes))
        .collect::<Result<Vec<u64>, _>>()?;
    let element_bytes = fields.number(side_bytes)?;
    let index = match fields.u8()? {
        1 if flags & 2 != 0 => ChunkIndexKind::Single {
            filtered: Some((fields.length()?, fields.u32()?)),
        },
        1 => ChunkIndexKind::Single { filtered: None },
        2 => ChunkIndexKind::Implicit,
        3 => {
            fields.bytes(1)?;
            ChunkIndexKind::FixedArray
        }
        4 => {
            fields.bytes(5)?;
            ChunkIndexKind::ExtensibleArray
        }
        5 => {
            fields.bytes(6)?;
            ChunkIndexKind::RecordTree
        }
        other => return Err(Hdf5Error::unsupported(format!("chunk index {other}"))),
    };
    Ok(LayoutMessage::Chunked(ChunkLayout {
        shape,
        element_bytes,
        edges_unfiltered: flags & 1 != 0,
        at: fields.address()?,
        index,
    }))
}

#[cfg(test)]
mod tests {
    use super::{ChunkIndexKind, LayoutMessage};
    use crate::base::{ByteBlock, FieldSizes};

    /// Addresses of four bytes, lengths of two, and a user block.
    fn parsed(bytes: &[u8]) -> LayoutMessage {
        let sizes = FieldSizes {
            address_bytes: 4,
            length_bytes: 2,
            base: 512,
        };
        let block = ByteBlock {
            at: 0,
            bytes: bytes.to_vec(),
            sizes,
        };
        LayoutMessage::parse(&mut block.fields()).expect("a layout")
    }

    #[test]
    fn layouts_of_the_first_versions_are_read() {
        for version in [1, 2] {
            let compact = [version, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 7, 8, 9];
            assert!(matches!(parsed(&compact), LayoutMessage::Compact(data) if data == [7, 8, 9]));
            let contiguous = [version, 1, 1, 0, 0, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0];
            let LayoutMessage::Contiguous { at, bytes } = parsed(&contiguous) else {
                panic!("another layout");
            };
            assert_eq!((at, bytes), (Some(528), None));
            let chunked = [
                version, 3, 2, 0, 0, 0, 0, 0, 255, 255, 255, 255, 5, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0,
            ];
            let LayoutMessage::Chunked(chunks) = parsed(&chunked) else {
                panic!("another layout");
            };
            assert_eq!((chunks.shape, chunks.element_bytes, chunks.at), (vec![5, 6], 8, None));
            assert_eq!(chunks.index, ChunkIndexKind::KeyedTree);
        }
    }
}
