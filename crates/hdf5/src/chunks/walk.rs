//! The chunks of a dataset, out of whichever index they have.

use super::elements::ElementOrder;
use super::extensible::put_extensible;
use super::fixed::put_fixed;
use super::grid::{ChunkPlace, PlaceSink, StoredGrid};
use crate::base::{ByteFields, FileBytes, FileView, Hdf5Error};
use crate::messages::ChunkIndexKind;
use crate::objects::{DataLayout, DatasetFacts, StoredChunks};
use crate::trees::{KeyedTree, RecordTree, TreeUse};

/// Types of the records of chunks, as they are and filtered.
const PLAIN_CHUNKS: u8 = 10;
const FILTERED_CHUNKS: u8 = 11;

/// Calls `each` with the place of every chunk that is stored, once each, in the order of the index; nothing is called
/// for chunks that were never written, and for datasets without chunks. `file` has the bytes that the facts are of.
///
/// The index is read once, a node or page at a time: memory does not grow with it, but for the places of nodes (40
/// bytes each).
///
/// # Errors
/// A damaged index, chunks that leave the file or the shape, and errors of `each`.
pub fn chunks(
    facts: &DatasetFacts,
    file: &dyn FileBytes,
    each: &mut dyn FnMut(ChunkPlace) -> Result<(), Hdf5Error>,
) -> Result<(), Hdf5Error> {
    let DataLayout::Chunked(chunks) = &facts.layout else {
        return Ok(());
    };
    let Some(at) = chunks.at else {
        return Ok(());
    };
    let view = FileView::new(file, chunks.sizes);
    let grid = StoredGrid::new(facts, chunks);
    let is_filtered = !facts.filters.is_empty();
    let mut sink = PlaceSink {
        view: &view,
        grid: &grid,
        whole: chunks.bytes,
        is_filtered,
        last: None,
        each,
    };
    let endless = grid.most.iter().filter(|most| most.is_none()).count();
    let is_array = |axes: usize| {
        if endless == axes && grid.most_chunks().is_some() {
            return Ok(ElementOrder::of(&grid));
        }
        let reason = format!("an index of chunks for {axes} axes without an end, not {endless}");
        Err(Hdf5Error::damaged(at, reason))
    };
    match chunks.index {
        ChunkIndexKind::KeyedTree => put_keyed(at, chunks, &mut sink),
        ChunkIndexKind::Single { filtered } => {
            if grid.counts.iter().any(|count| *count > 1) {
                return Err(Hdf5Error::damaged(at, format!("one chunk for {:?}", grid.counts)));
            }
            let (bytes, mask) = filtered.unwrap_or((chunks.bytes, 0));
            let place = ChunkPlace {
                number: 0,
                offset: at,
                bytes,
                mask,
            };
            // A shape without elements has no chunk, though there may be space for one.
            if grid.counts.contains(&0) {
                Ok(())
            } else {
                sink.put(&vec![0; grid.counts.len()], place)
            }
        }
        ChunkIndexKind::Implicit => put_implicit(at, &is_array(0)?, &mut sink),
        ChunkIndexKind::FixedArray => put_fixed(at, &is_array(0)?, &mut sink),
        ChunkIndexKind::ExtensibleArray => put_extensible(at, &is_array(1)?, &mut sink),
        ChunkIndexKind::RecordTree => put_records(at, &mut sink),
    }
}

/// B-trees of version 1: keys of the bytes and mask of a chunk, its first element, and 0 within the element.
fn put_keyed(at: u64, chunks: &StoredChunks, sink: &mut PlaceSink<'_, '_>) -> Result<(), Hdf5Error> {
    let axes = chunks.shape.len();
    let mut coordinates = vec![0; axes];
    let tree = KeyedTree {
        of: TreeUse::Chunks,
        key_bytes: 8 + 8 * (axes + 1),
    };
    let view = sink.view;
    tree.walk(view, at, &mut |key: &mut ByteFields<'_>, offset| {
        let (bytes, mask) = (u64::from(key.u32()?), key.u32()?);
        for (coordinate, side) in coordinates.iter_mut().zip(&chunks.shape) {
            let first = key.u64()?;
            if first % side != 0 {
                return Err(key.damaged(format!("a chunk that begins at {first}, with chunks of {side}")));
            }
            *coordinate = first / side;
        }
        sink.put_in_order(
            &coordinates,
            ChunkPlace {
                number: 0,
                offset,
                bytes,
                mask,
            },
        )
    })
}

/// No index: all chunks of the largest shape lie one after the other.
fn put_implicit(at: u64, order: &ElementOrder, sink: &mut PlaceSink<'_, '_>) -> Result<(), Hdf5Error> {
    let (view, grid, bytes) = (sink.view, sink.grid, sink.whole);
    let count = grid.most_chunks().filter(|count| count.checked_mul(bytes).is_some());
    let count = count.ok_or_else(|| Hdf5Error::damaged(at, "chunks beyond all files"))?;
    view.check(at, count * bytes)?;
    let mut coordinates = vec![0; grid.counts.len()];
    for index in 0..count {
        if index % 4096 == 0 {
            view.keep(0)?;
        }
        order.locate(index, &mut coordinates);
        if coordinates
            .iter()
            .zip(&grid.counts)
            .all(|(coordinate, count)| coordinate < count)
        {
            sink.put(
                &coordinates,
                ChunkPlace {
                    number: 0,
                    offset: at + index * bytes,
                    bytes,
                    mask: 0,
                },
            )?;
        }
    }
    Ok(())
}

/// B-trees of version 2: an address, of filtered chunks bytes and mask, and the coordinates in the grid.
fn put_records(at: u64, sink: &mut PlaceSink<'_, '_>) -> Result<(), Hdf5Error> {
    let view = sink.view;
    let axes = sink.grid.counts.len();
    let kind = if sink.is_filtered {
        FILTERED_CHUNKS
    } else {
        PLAIN_CHUNKS
    };
    let tree = RecordTree::open(view, at, &[kind])?;
    let plain_bytes = usize::from(view.sizes.address_bytes) + 8 * axes;
    let size_bytes = match tree.record_bytes.checked_sub(plain_bytes) {
        Some(0) if !sink.is_filtered => 0,
        Some(more @ 5..=12) if sink.is_filtered => more - 4,
        _ => {
            return Err(Hdf5Error::damaged(
                at,
                format!("records of {} bytes for {axes} axes", tree.record_bytes),
            ))
        }
    };
    let mut coordinates = vec![0; axes];
    tree.walk(view, &mut |record| {
        let offset = record.defined_address("a chunk")?;
        let (bytes, mask) = if size_bytes > 0 {
            (record.number(size_bytes)?, record.u32()?)
        } else {
            (sink.whole, 0)
        };
        for coordinate in &mut coordinates {
            *coordinate = record.u64()?;
        }
        sink.put_in_order(
            &coordinates,
            ChunkPlace {
                number: 0,
                offset,
                bytes,
                mask,
            },
        )
    })
}
