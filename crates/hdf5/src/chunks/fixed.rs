//! Fixed arrays (specification VII.C): a header `FAHD` and a block `FADB` of all elements, in pages where they are
//! many.

use super::elements::{ElementForm, ElementOrder};
use super::grid::PlaceSink;
use crate::base::Hdf5Error;

/// Hands on all chunks of the array with its header at `at`.
pub(super) fn put_fixed(at: u64, order: &ElementOrder, sink: &mut PlaceSink<'_, '_>) -> Result<(), Hdf5Error> {
    let view = sink.view;
    let head_bytes = 12 + u64::from(view.sizes.address_bytes) + u64::from(view.sizes.length_bytes);
    let head = view.block(at, head_bytes)?;
    let mut fields = head.checked_fields()?;
    fields.signature(b"FAHD")?;
    fields.version(&[0], "fixed arrays")?;
    let (client, element_bytes, page_bits) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let form = ElementForm::of(client, element_bytes, &fields)?;
    let count = fields.length()?;
    let Some(block_at) = fields.address()? else {
        return Ok(());
    };
    let element_bytes = form.element_bytes as u64;
    let page_elements = 1u64
        .checked_shl(page_bits.into())
        .ok_or_else(|| fields.damaged("pages that are too large"))?;
    let many = || Hdf5Error::damaged(at, format!("a fixed array of {count} elements"));
    let all_bytes = count.checked_mul(element_bytes).ok_or_else(many)?;
    view.check(block_at, all_bytes)?;
    let prefix_bytes = 6 + u64::from(view.sizes.address_bytes);
    let is_paged = count > page_elements;
    let pages = if is_paged { count.div_ceil(page_elements) } else { 0 };
    let bitmap_bytes = pages.div_ceil(8);
    let body_bytes = if is_paged { bitmap_bytes } else { all_bytes };
    let block = view.block(block_at, prefix_bytes + body_bytes + 4)?;
    let mut fields = block.checked_fields()?;
    fields.signature(b"FADB")?;
    fields.version(&[0], "blocks of fixed arrays")?;
    if fields.u8()? != form.client() || fields.defined_address("a fixed array")? != at {
        return Err(Hdf5Error::damaged(block_at, "a block of another array"));
    }
    if !is_paged {
        return form.put(&mut fields, 0, count, order, sink);
    }
    let bitmap = fields.bytes(bitmap_bytes as usize)?;
    let mut page_at = block_at + prefix_bytes + bitmap_bytes + 4;
    for page in 0..pages {
        let first = page * page_elements;
        let elements = page_elements.min(count - first);
        // Pages, of which the first has the highest bit, are there once they have an element; their space is there
        // before.
        if bitmap[(page / 8) as usize] >> (7 - page % 8) & 1 != 0 {
            let block = view.block(page_at, elements * element_bytes + 4)?;
            form.put(&mut block.checked_fields()?, first, elements, order, sink)?;
        }
        page_at = page_at.checked_add(elements * element_bytes + 4).ok_or_else(many)?;
    }
    Ok(())
}
