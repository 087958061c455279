//! Elements of the two arrays: an address, and of filtered chunks their bytes and mask.

use super::grid::{ChunkPlace, PlaceSink, StoredGrid};
use crate::base::{ByteFields, Hdf5Error};

/// The form of the elements of an array.
pub(super) struct ElementForm {
    pub element_bytes: usize,
    /// Bytes of the number of bytes of a chunk; nothing where chunks are not filtered.
    size_bytes: Option<usize>,
}

impl ElementForm {
    /// The form of elements of so many bytes, for a client 0 (chunks as they are) or 1 (filtered).
    pub fn of(client: u8, element_bytes: u8, fields: &ByteFields<'_>) -> Result<ElementForm, Hdf5Error> {
        let element_bytes = usize::from(element_bytes);
        let address_bytes = usize::from(fields.sizes.address_bytes);
        let size_bytes = element_bytes.saturating_sub(address_bytes + 4);
        let size_bytes = match client {
            0 if element_bytes == address_bytes => None,
            1 if (1..=8).contains(&size_bytes) => Some(size_bytes),
            _ => return Err(fields.damaged(format!("elements of {element_bytes} bytes for client {client}"))),
        };
        Ok(ElementForm {
            element_bytes,
            size_bytes,
        })
    }

    pub fn client(&self) -> u8 {
        u8::from(self.size_bytes.is_some())
    }

    /// Hands on `count` elements from the next field on, the first of which is the element `first` of the array.
    pub fn put(
        &self,
        fields: &mut ByteFields<'_>,
        first: u64,
        count: u64,
        order: &ElementOrder,
        sink: &mut PlaceSink<'_, '_>,
    ) -> Result<(), Hdf5Error> {
        let mut coordinates = vec![0; order.axes.len()];
        for place in 0..count {
            let address = fields.address()?;
            let (bytes, mask) = match self.size_bytes {
                Some(size_bytes) => (fields.number(size_bytes)?, fields.u32()?),
                None => (sink.whole, 0),
            };
            if let Some(offset) = address {
                let index = first
                    .checked_add(place)
                    .ok_or_else(|| fields.damaged("an element beyond all arrays"))?;
                order.locate(index, &mut coordinates);
                sink.put(
                    &coordinates,
                    ChunkPlace {
                        number: 0,
                        offset,
                        bytes,
                        mask,
                    },
                )?;
            }
        }
        Ok(())
    }
}

/// The order of the chunks in an array: the C order of the largest shape, with the axis without an end before the
/// others.
pub(super) struct ElementOrder {
    /// The axes, the slowest first.
    axes: Vec<usize>,
    /// Chunks along each of them but the first.
    counts: Vec<u64>,
}

impl ElementOrder {
    /// The order for a grid with at most one axis without an end.
    pub fn of(grid: &StoredGrid) -> ElementOrder {
        let mut axes: Vec<usize> = (0..grid.most.len()).collect();
        axes.sort_by_key(|axis| grid.most[*axis].is_some());
        // An axis of no chunks has none to be located either.
        let counts = axes
            .iter()
            .skip(1)
            .map(|axis| grid.most[*axis].unwrap_or(1).max(1))
            .collect();
        ElementOrder { axes, counts }
    }

    /// The coordinates of an element.
    pub fn locate(&self, index: u64, coordinates: &mut [u64]) {
        let mut index = index;
        for (axis, count) in self.axes[1..].iter().zip(&self.counts).rev() {
            coordinates[*axis] = index % count;
            index /= count;
        }
        coordinates[self.axes[0]] = index;
    }
}
