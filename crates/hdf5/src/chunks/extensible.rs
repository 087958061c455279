//! Extensible arrays (specification VII.D): a header `EAHD`, an index block `EAIB` with the first elements, data blocks
//! `EADB`, and super blocks `EASB` of data blocks.
//!
//! Super block s has 2^⌊s/2⌋ data blocks of 2^⌈s/2⌉ times the fewest elements. The data blocks of the first super
//! blocks stand in the index block, as do the addresses of the others. Large data blocks are divided into pages.

use super::elements::{ElementForm, ElementOrder};
use super::grid::PlaceSink;
use crate::base::{ByteFields, FileView, Hdf5Error, Visits};

/// The header of an array.
struct ArrayHeader {
    at: u64,
    form: ElementForm,
    /// Bytes of the number of an element in the heads of blocks.
    offset_bytes: usize,
    /// Elements in the index block.
    in_index: u64,
    block_elements_min: u64,
    /// Data blocks of a super block, at least; the index block has twice as many, less 2.
    super_blocks_min: u64,
    super_blocks: u32,
    page_elements: u64,
    /// Elements up to the last one that was set.
    elements: u64,
}

/// Data blocks of one size, and the first of their elements.
#[derive(Clone, Copy)]
struct BlockRow {
    blocks: u64,
    block_elements: u64,
    first: u64,
}

/// The elements of a data block, the first of them, and the first that its head says.
#[derive(Clone, Copy)]
struct DataPlace {
    elements: u64,
    first: u64,
    stored_first: u64,
}

/// Hands on all chunks of the array with its header at `at`.
pub(super) fn put_extensible(at: u64, order: &ElementOrder, sink: &mut PlaceSink<'_, '_>) -> Result<(), Hdf5Error> {
    let view = sink.view;
    let bytes = 16 + 6 * u64::from(view.sizes.length_bytes) + u64::from(view.sizes.address_bytes);
    let head = view.block(at, bytes)?;
    let mut fields = head.checked_fields()?;
    let header = ArrayHeader::parse(at, &mut fields)?;
    match fields.address()? {
        Some(index_at) => ArrayWalk {
            view,
            header: &header,
            order,
            sink,
            visits: Visits::default(),
        }
        .index(index_at),
        None => Ok(()),
    }
}

impl ArrayHeader {
    fn parse(at: u64, fields: &mut ByteFields<'_>) -> Result<ArrayHeader, Hdf5Error> {
        fields.signature(b"EAHD")?;
        fields.version(&[0], "extensible arrays")?;
        let (client, element_bytes) = (fields.u8()?, fields.u8()?);
        let form = ElementForm::of(client, element_bytes, fields)?;
        let index_bits = fields.u8()?;
        let in_index = u64::from(fields.u8()?);
        let block_elements_min = u64::from(fields.u8()?);
        let super_blocks_min = u64::from(fields.u8()?);
        let page_bits = fields.u8()?;
        for _ in 0..4 {
            fields.length()?; // counts and bytes of blocks
        }
        let elements = fields.length()?;
        fields.length()?; // elements that there is space for
        let are_powers = block_elements_min.is_power_of_two() && super_blocks_min.is_power_of_two();
        let fits = are_powers && (1..=64).contains(&index_bits) && page_bits < 64;
        let least_bits = block_elements_min.checked_ilog2().unwrap_or(0);
        let super_blocks = (u32::from(index_bits) + 1).checked_sub(least_bits);
        let super_blocks = super_blocks
            .filter(|_| fits)
            .ok_or_else(|| Hdf5Error::damaged(at, "an array of impossible sizes"))?;
        Ok(ArrayHeader {
            at,
            form,
            offset_bytes: usize::from(index_bits).div_ceil(8),
            in_index,
            block_elements_min,
            super_blocks_min,
            super_blocks,
            page_elements: 1 << page_bits,
            elements,
        })
    }

    /// The data blocks of a super block whose first element is `first`.
    fn row(&self, super_block: u32, first: u64) -> Result<BlockRow, Hdf5Error> {
        let blocks = 1u64.checked_shl(super_block / 2);
        let doubled = 1u64.checked_shl(super_block.div_ceil(2));
        let block_elements = doubled.and_then(|doubled| doubled.checked_mul(self.block_elements_min));
        match (blocks, block_elements) {
            (Some(blocks), Some(block_elements)) => Ok(BlockRow {
                blocks,
                block_elements,
                first,
            }),
            _ => Err(self.too_large()),
        }
    }

    fn too_large(&self) -> Hdf5Error {
        Hdf5Error::damaged(self.at, format!("an array of {} elements", self.elements))
    }

    /// Pages of a data block of so many elements; 0 where it is not divided.
    fn pages(&self, block_elements: u64) -> u64 {
        if block_elements > self.page_elements {
            block_elements / self.page_elements
        } else {
            0
        }
    }
}

impl BlockRow {
    /// The first element behind the blocks, which is a number with the elements of the index block as well.
    fn end(&self, header: &ArrayHeader) -> Result<u64, Hdf5Error> {
        let elements = self.blocks.checked_mul(self.block_elements);
        let end = elements.and_then(|elements| self.first.checked_add(elements));
        let end = end.filter(|end| end.checked_add(header.in_index).is_some());
        end.ok_or_else(|| header.too_large())
    }

    /// The first element of a block.
    fn first_of(&self, block: u64) -> u64 {
        self.first.saturating_add(block.saturating_mul(self.block_elements))
    }
}

struct ArrayWalk<'w, 's, 'a> {
    view: &'w FileView<'a>,
    header: &'w ArrayHeader,
    order: &'w ElementOrder,
    sink: &'w mut PlaceSink<'s, 'a>,
    visits: Visits,
}

impl ArrayWalk<'_, '_, '_> {
    /// The index block: elements, addresses of data blocks, addresses of super blocks.
    fn index(&mut self, at: u64) -> Result<(), Hdf5Error> {
        let header = self.header;
        let address_bytes = u64::from(self.view.sizes.address_bytes);
        let data_blocks = 2 * (header.super_blocks_min - 1);
        let direct_rows = 2 * header.super_blocks_min.ilog2();
        let super_blocks = header.super_blocks.saturating_sub(direct_rows);
        let element_bytes = header.in_index * header.form.element_bytes as u64;
        let bytes = 10 + address_bytes + element_bytes + (data_blocks + u64::from(super_blocks)) * address_bytes;
        self.visits.enter(self.view, at, bytes)?;
        let block = self.view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        self.head(&mut fields, b"EAIB")?;
        header
            .form
            .put(&mut fields, 0, header.in_index, self.order, self.sink)?;
        // Elements of data blocks are counted from the end of those of the index block.
        let (mut first, mut blocks) = (0, 0);
        for super_block in 0..header.super_blocks {
            if first >= header.elements.saturating_sub(header.in_index) {
                break;
            }
            let row = header.row(super_block, first)?;
            let end = row.end(header)?;
            if super_block < direct_rows {
                for block in 0..row.blocks {
                    if let Some(at) = fields.address()? {
                        // The heads of these blocks say a place of their own, with all blocks before as if they had the
                        // same size.
                        let stored_first = row.first_of(blocks + block);
                        let place = DataPlace {
                            elements: row.block_elements,
                            first: row.first_of(block),
                            stored_first,
                        };
                        self.data(at, place, None)?;
                    }
                }
            } else if let Some(at) = fields.address()? {
                self.super_block(at, row)?;
            }
            first = end;
            blocks += row.blocks;
        }
        Ok(())
    }

    /// Signature, version, client and header at the head of a block.
    fn head(&self, fields: &mut ByteFields<'_>, signature: &[u8; 4]) -> Result<(), Hdf5Error> {
        fields.signature(signature)?;
        fields.version(&[0], "blocks of extensible arrays")?;
        if fields.u8()? != self.header.form.client() || fields.defined_address("an array")? != self.header.at {
            return Err(fields.damaged("a block of another array"));
        }
        Ok(())
    }

    /// The first element, as the head of a block has it.
    fn offset(&self, fields: &mut ByteFields<'_>, first: u64) -> Result<(), Hdf5Error> {
        if fields.number(self.header.offset_bytes)? != first {
            return Err(fields.damaged(format!("a block that does not begin with element {first}")));
        }
        Ok(())
    }

    fn super_block(&mut self, at: u64, row: BlockRow) -> Result<(), Hdf5Error> {
        let header = self.header;
        let address_bytes = u64::from(self.view.sizes.address_bytes);
        let pages = header.pages(row.block_elements);
        let bitmap_bytes = pages
            .div_ceil(8)
            .checked_mul(row.blocks)
            .ok_or_else(|| header.too_large())?;
        let addresses = row
            .blocks
            .checked_mul(address_bytes)
            .ok_or_else(|| header.too_large())?;
        let head_bytes = 10 + address_bytes + header.offset_bytes as u64;
        let bytes = bitmap_bytes
            .checked_add(addresses)
            .and_then(|bytes| bytes.checked_add(head_bytes));
        let bytes = bytes.ok_or_else(|| header.too_large())?;
        self.visits.enter(self.view, at, bytes)?;
        let block = self.view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        self.head(&mut fields, b"EASB")?;
        self.offset(&mut fields, row.first)?;
        let bitmap = fields.bytes(bitmap_bytes as usize)?;
        for block in 0..row.blocks {
            if let Some(at) = fields.address()? {
                let first = row.first_of(block);
                let place = DataPlace {
                    elements: row.block_elements,
                    first,
                    stored_first: first,
                };
                self.data(at, place, Some((bitmap, block * pages)))?;
            }
        }
        Ok(())
    }

    /// A data block. `bitmap` has a bit for each page that exists, from that of the first page on.
    fn data(&mut self, at: u64, place: DataPlace, bitmap: Option<(&[u8], u64)>) -> Result<(), Hdf5Error> {
        let DataPlace {
            elements,
            first,
            stored_first,
        } = place;
        let header = self.header;
        let pages = header.pages(elements);
        let element_bytes = header.form.element_bytes as u64;
        let head_bytes = 10 + u64::from(self.view.sizes.address_bytes) + header.offset_bytes as u64;
        let (held, page_elements) = if pages > 0 {
            (0, header.page_elements)
        } else {
            (elements, 0)
        };
        let bytes = held
            .checked_mul(element_bytes)
            .and_then(|bytes| bytes.checked_add(head_bytes));
        let bytes = bytes.ok_or_else(|| header.too_large())?;
        self.visits.enter(self.view, at, bytes)?;
        let block = self.view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        self.head(&mut fields, b"EADB")?;
        self.offset(&mut fields, stored_first)?;
        let first = first.checked_add(header.in_index).ok_or_else(|| header.too_large())?;
        if pages == 0 {
            return header.form.put(&mut fields, first, elements, self.order, self.sink);
        }
        let (bitmap, first_page) =
            bitmap.ok_or_else(|| Hdf5Error::unsupported("pages of the first data blocks of an extensible array"))?;
        let page_bytes = page_elements
            .checked_mul(element_bytes)
            .and_then(|bytes| bytes.checked_add(4));
        let page_bytes = page_bytes.ok_or_else(|| header.too_large())?;
        for page in 0..pages {
            let bit = first_page + page;
            let byte = bitmap.get((bit / 8) as usize).copied().unwrap_or(0);
            if byte >> (7 - bit % 8) & 1 == 0 {
                continue;
            }
            let page_at = page_bytes
                .checked_mul(page)
                .and_then(|bytes| bytes.checked_add(at + head_bytes));
            let page_at = page_at.ok_or_else(|| header.too_large())?;
            let block = self.view.block(page_at, page_bytes)?;
            let first = first + page * page_elements;
            header.form.put(
                &mut block.checked_fields()?,
                first,
                page_elements,
                self.order,
                self.sink,
            )?;
        }
        Ok(())
    }
}
